// mbarriers, tensor copies and lists of registers, as both kernels use them.
#include <cuda.h>
#include <cuda_fp16.h>
typedef unsigned long long u64;
typedef unsigned u32;

__device__ u32 address(const void *shared) { return static_cast<u32>(__cvta_generic_to_shared(shared)); }
__device__ void make(u64 *bar, u32 count) { asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(bar)), "r"(count) : "memory"); }
__device__ void expect(u64 *bar, u32 bytes) { asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(bar)), "r"(bytes) : "memory"); }
__device__ void arrive(u64 *bar) { asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(bar)) : "memory"); }
__device__ void wait(u64 *bar, u32 parity)
{
    asm volatile("{\n.reg .pred over;\nagain: mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n@!over bra again;\n}" ::"r"(address(bar)), "r"(parity) : "memory");
}
__device__ void copy(void *to, const CUtensorMap *map, int y, u64 *bar)
{
    asm volatile("cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(address(to)), "l"(map), "r"(0), "r"(y), "r"(address(bar)) : "memory");
}

#define OUT32(v) "+f"(v[0]), "+f"(v[1]), "+f"(v[2]), "+f"(v[3]), "+f"(v[4]), "+f"(v[5]), "+f"(v[6]), "+f"(v[7]), "+f"(v[8]), "+f"(v[9]), "+f"(v[10]), "+f"(v[11]), "+f"(v[12]), "+f"(v[13]), "+f"(v[14]), "+f"(v[15]), "+f"(v[16]), "+f"(v[17]), "+f"(v[18]), "+f"(v[19]), "+f"(v[20]), "+f"(v[21]), "+f"(v[22]), "+f"(v[23]), "+f"(v[24]), "+f"(v[25]), "+f"(v[26]), "+f"(v[27]), "+f"(v[28]), "+f"(v[29]), "+f"(v[30]), "+f"(v[31])
#define R32 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"

constexpr int TILE = 64 * 64, TILE_BYTES = 2 * TILE; // keys by head dimension, or queries of a warpgroup by it
