// Signed bytes to fp16, four at a time, without a conversion instruction: the converter of CUTLASS and FasterTransformer.
//
// The bytes have 128 added, so they are unsigned, and lie in the order e0 e2 e1 e3.  A byte e under the byte 0x64 is the
// fp16 1024 + e; prmt puts two of each word there and the order right, and a subtraction of 1152 takes both constants off.
extern "C" __global__ void dequantize(const unsigned *packed, unsigned *halves, int words) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= words) return;
    unsigned bytes = packed[i], low, high;
    asm("prmt.b32 %0, %1, %2, 0x5250;" : "=r"(low) : "r"(bytes), "n"(0x64646464));   // 64 e1 64 e0
    asm("prmt.b32 %0, %1, %2, 0x5351;" : "=r"(high) : "r"(bytes), "n"(0x64646464));  // 64 e3 64 e2
    asm("sub.f16x2 %0, %1, %2;" : "=r"(low) : "r"(low), "r"(0x64806480));
    asm("sub.f16x2 %0, %1, %2;" : "=r"(high) : "r"(high), "r"(0x64806480));
    halves[2 * i] = low;
    halves[2 * i + 1] = high;
}
