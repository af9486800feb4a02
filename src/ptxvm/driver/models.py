"""The device models that a process can choose: limits and capabilities of real cards.

The limits by compute capability are those of the CUDA C++
Programming Guide ("Compute Capabilities"); counts and clocks are those of one product of each.
"""

from __future__ import annotations

from collections.abc import Mapping

from ptxvm.dataclass import dataclass
from ptxvm.driver.attributes import Attribute
from ptxvm.isa.targets import Target

KIB = 1024
SHARED = 48 * KIB  # that a block has unless its kernel asks for more
WINDOW = (128 << 20) - 4 * KIB  # of addresses whose lines stay in the L2 cache
DEFAULT = "sm_89"  # the newest whose every instruction runs


@dataclass(frozen=True, slots=True)
class Model:
    """A card: `shared` counts the bytes of shared memory of a multiprocessor, `optin` the most for one block."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    threads: int  # resident on a multiprocessor
    blocks: int  # resident on a multiprocessor
    shared: int
    optin: int
    l2: int
    clock: int  # kHz
    memory_clock: int  # kHz
    bus: int  # bits

    @property
    def has_clusters(self) -> bool:
        """May a launch have clusters of more than one block?  Hopper and later."""
        return self.capability >= (9, 0)

    def attributes(self) -> Mapping[Attribute, int]:
        """The value of every attribute that is not 0."""
        major, minor = self.capability
        hopper, ampere = self.has_clusters, major >= 8
        return ALIKE | {
            Attribute.MULTIPROCESSOR_COUNT: self.multiprocessors,
            Attribute.MAX_THREADS_PER_MULTIPROCESSOR: self.threads,
            Attribute.MAX_BLOCKS_PER_MULTIPROCESSOR: self.blocks,
            Attribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: self.shared,
            Attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: self.optin,
            Attribute.RESERVED_SHARED_MEMORY_PER_BLOCK: KIB if ampere else 0,
            Attribute.L2_CACHE_SIZE: self.l2,
            Attribute.MAX_PERSISTING_L2_CACHE_SIZE: self.l2 * 3 // 4 if ampere else 0,
            Attribute.CLOCK_RATE: self.clock,
            Attribute.MEMORY_CLOCK_RATE: self.memory_clock,
            Attribute.GLOBAL_MEMORY_BUS_WIDTH: self.bus,
            Attribute.COMPUTE_CAPABILITY_MAJOR: major,
            Attribute.COMPUTE_CAPABILITY_MINOR: minor,
            Attribute.SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: 2
            if self.capability in {(8, 0), (9, 0), (10, 0)}
            else 64
            if ampere
            else 32,
            Attribute.CLUSTER_LAUNCH: int(hopper),
            Attribute.TENSOR_MAP_ACCESS_SUPPORTED: int(hopper),
            Attribute.MULTICAST_SUPPORTED: int(hopper),
            Attribute.MEM_SYNC_DOMAIN_COUNT: 4 if hopper else 1,
            Attribute.MAX_ACCESS_POLICY_WINDOW_SIZE: WINDOW if ampere else 0,
        }


ALIKE = {
    Attribute.MAX_THREADS_PER_BLOCK: 1024,
    Attribute.MAX_BLOCK_DIM_X: 1024,
    Attribute.MAX_BLOCK_DIM_Y: 1024,
    Attribute.MAX_BLOCK_DIM_Z: 64,
    Attribute.MAX_GRID_DIM_X: (1 << 31) - 1,
    Attribute.MAX_GRID_DIM_Y: 65535,
    Attribute.MAX_GRID_DIM_Z: 65535,
    Attribute.MAX_SHARED_MEMORY_PER_BLOCK: SHARED,
    Attribute.TOTAL_CONSTANT_MEMORY: 64 * KIB,
    Attribute.WARP_SIZE: 32,
    Attribute.MAX_PITCH: (1 << 31) - 1,
    Attribute.MAX_REGISTERS_PER_BLOCK: 65536,
    Attribute.MAX_REGISTERS_PER_MULTIPROCESSOR: 65536,
    Attribute.TEXTURE_ALIGNMENT: 512,
    Attribute.GPU_OVERLAP: 1,
    Attribute.TEXTURE_PITCH_ALIGNMENT: 32,
    Attribute.SURFACE_ALIGNMENT: 512,
    Attribute.CAN_MAP_HOST_MEMORY: 1,
    Attribute.CONCURRENT_KERNELS: 1,
    Attribute.PCI_BUS_ID: 1,
    Attribute.ASYNC_ENGINE_COUNT: 2,
    Attribute.UNIFIED_ADDRESSING: 1,
    Attribute.STREAM_PRIORITIES_SUPPORTED: 1,
    Attribute.GLOBAL_L1_CACHE_SUPPORTED: 1,
    Attribute.LOCAL_L1_CACHE_SUPPORTED: 1,
    Attribute.MANAGED_MEMORY: 1,
    Attribute.CONCURRENT_MANAGED_ACCESS: 1,
    Attribute.HOST_NATIVE_ATOMIC_SUPPORTED: 1,
    Attribute.PAGEABLE_MEMORY_ACCESS: 1,
    Attribute.COMPUTE_PREEMPTION_SUPPORTED: 1,
    Attribute.CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM: 1,
    Attribute.COOPERATIVE_LAUNCH: 1,
    Attribute.HOST_REGISTER_SUPPORTED: 1,
    Attribute.PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES: 1,
    Attribute.DIRECT_MANAGED_MEM_ACCESS_FROM_HOST: 1,
    Attribute.MEMORY_POOLS_SUPPORTED: 1,
    Attribute.HOST_MEMORY_POOLS_SUPPORTED: 1,
    Attribute.HOST_NUMA_MEMORY_POOLS_SUPPORTED: 1,
    Attribute.HOST_NUMA_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED: 1,
    Attribute.MEMPOOL_SUPPORTED_HANDLE_TYPES: 1,  # files
    Attribute.HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: 1,
    Attribute.VIRTUAL_ADDRESS_MANAGEMENT_SUPPORTED: 1,
    Attribute.IPC_EVENT_SUPPORTED: 1,
    Attribute.CAN_USE_64_BIT_STREAM_MEM_OPS: 1,
    Attribute.CAN_USE_STREAM_WAIT_VALUE_NOR: 1,
    Attribute.MAXIMUM_TEXTURE1D_WIDTH: 131072,
    Attribute.MAXIMUM_TEXTURE2D_WIDTH: 131072,
    Attribute.MAXIMUM_TEXTURE2D_HEIGHT: 65536,
    Attribute.MAXIMUM_TEXTURE3D_WIDTH: 16384,
    Attribute.MAXIMUM_TEXTURE3D_HEIGHT: 16384,
    Attribute.MAXIMUM_TEXTURE3D_DEPTH: 16384,
    Attribute.MAXIMUM_TEXTURE1D_LAYERED_WIDTH: 32768,
    Attribute.MAXIMUM_TEXTURE1D_LAYERED_LAYERS: 2048,
    Attribute.MAXIMUM_TEXTURE2D_LAYERED_WIDTH: 32768,
    Attribute.MAXIMUM_TEXTURE2D_LAYERED_HEIGHT: 32768,
    Attribute.MAXIMUM_TEXTURE2D_LAYERED_LAYERS: 2048,
    Attribute.MAXIMUM_TEXTURECUBEMAP_WIDTH: 32768,
    Attribute.MAXIMUM_TEXTURECUBEMAP_LAYERED_WIDTH: 32768,
    Attribute.MAXIMUM_TEXTURECUBEMAP_LAYERED_LAYERS: 2046,
    Attribute.MAXIMUM_TEXTURE1D_LINEAR_WIDTH: 1 << 28,
    Attribute.MAXIMUM_TEXTURE2D_LINEAR_WIDTH: 131072,
    Attribute.MAXIMUM_TEXTURE2D_LINEAR_HEIGHT: 65000,
    Attribute.MAXIMUM_TEXTURE2D_LINEAR_PITCH: 2097120,
    Attribute.MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH: 32768,
    Attribute.MAXIMUM_TEXTURE2D_MIPMAPPED_WIDTH: 32768,
    Attribute.MAXIMUM_TEXTURE2D_MIPMAPPED_HEIGHT: 32768,
    Attribute.CAN_TEX2D_GATHER: 1,
    Attribute.MAXIMUM_TEXTURE2D_GATHER_WIDTH: 32768,
    Attribute.MAXIMUM_TEXTURE2D_GATHER_HEIGHT: 32768,
    Attribute.MAXIMUM_SURFACE1D_WIDTH: 32768,
    Attribute.MAXIMUM_SURFACE2D_WIDTH: 131072,
    Attribute.MAXIMUM_SURFACE2D_HEIGHT: 65536,
    Attribute.MAXIMUM_SURFACE3D_WIDTH: 16384,
    Attribute.MAXIMUM_SURFACE3D_HEIGHT: 16384,
    Attribute.MAXIMUM_SURFACE3D_DEPTH: 16384,
    Attribute.MAXIMUM_SURFACE1D_LAYERED_WIDTH: 32768,
    Attribute.MAXIMUM_SURFACE1D_LAYERED_LAYERS: 2048,
    Attribute.MAXIMUM_SURFACE2D_LAYERED_WIDTH: 32768,
    Attribute.MAXIMUM_SURFACE2D_LAYERED_HEIGHT: 32768,
    Attribute.MAXIMUM_SURFACE2D_LAYERED_LAYERS: 2048,
    Attribute.MAXIMUM_SURFACECUBEMAP_WIDTH: 32768,
    Attribute.MAXIMUM_SURFACECUBEMAP_LAYERED_WIDTH: 32768,
    Attribute.MAXIMUM_SURFACECUBEMAP_LAYERED_LAYERS: 2046,
}

MODELS = {
    "sm_75": Model("T4", (7, 5), 40, 1024, 16, 64 * KIB, 64 * KIB, 4096 * KIB, 1590000, 5001000, 256),
    "sm_80": Model("A100", (8, 0), 108, 2048, 32, 164 * KIB, 163 * KIB, 40960 * KIB, 1410000, 1215000, 5120),
    "sm_86": Model("A10", (8, 6), 72, 1536, 16, 100 * KIB, 99 * KIB, 6144 * KIB, 1695000, 6251000, 384),
    "sm_89": Model("L4", (8, 9), 58, 1536, 24, 100 * KIB, 99 * KIB, 49152 * KIB, 2040000, 6251000, 192),
    "sm_90": Model("H100", (9, 0), 132, 2048, 32, 228 * KIB, 227 * KIB, 51200 * KIB, 1980000, 2619000, 5120),
    "sm_100": Model("B200", (10, 0), 148, 2048, 32, 228 * KIB, 227 * KIB, 129024 * KIB, 1965000, 3996000, 8192),
    "sm_120": Model("RTX 5090", (12, 0), 170, 1536, 24, 100 * KIB, 99 * KIB, 98304 * KIB, 2407000, 14001000, 512),
}


def model_of(target: Target) -> str:
    """The name of the model that code for a target is shown for: the last whose compute capability is not above it."""
    return next((name for name in reversed(MODELS) if int(name.removeprefix("sm_")) <= target.number), next(iter(MODELS)))


__all__ = ["DEFAULT", "MODELS", "SHARED", "Model", "model_of"]
