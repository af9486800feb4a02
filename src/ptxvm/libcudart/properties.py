"""cudaDeviceProp: the properties of a device, in the layouts of versions 12 and 13 (runtime API, "Data Structures")."""

from __future__ import annotations

import ctypes
from ctypes import c_char, c_int32, c_size_t
from functools import cache

from ptxvm.driver.attributes import Attribute
from ptxvm.driver.device import Device

LAYOUT = """
name c256, uuid c16, luid c8, luidDeviceNodeMask i, totalGlobalMem z, sharedMemPerBlock z, regsPerBlock i, warpSize i,
memPitch z, maxThreadsPerBlock i, maxThreadsDim i3, maxGridSize i3, clockRate i 12, totalConstMem z, major i, minor i,
textureAlignment z, texturePitchAlignment z, deviceOverlap i 12, multiProcessorCount i, kernelExecTimeoutEnabled i 12,
integrated i, canMapHostMemory i, computeMode i 12, maxTexture1D i, maxTexture1DMipmap i, maxTexture1DLinear i 12,
maxTexture2D i2, maxTexture2DMipmap i2, maxTexture2DLinear i3, maxTexture2DGather i2, maxTexture3D i3, maxTexture3DAlt i3,
maxTextureCubemap i, maxTexture1DLayered i2, maxTexture2DLayered i3, maxTextureCubemapLayered i2, maxSurface1D i,
maxSurface2D i2, maxSurface3D i3, maxSurface1DLayered i2, maxSurface2DLayered i3, maxSurfaceCubemap i,
maxSurfaceCubemapLayered i2, surfaceAlignment z, concurrentKernels i, ECCEnabled i, pciBusID i, pciDeviceID i,
pciDomainID i, tccDriver i, asyncEngineCount i, unifiedAddressing i, memoryClockRate i 12, memoryBusWidth i, l2CacheSize i,
persistingL2CacheMaxSize i, maxThreadsPerMultiProcessor i, streamPrioritiesSupported i, globalL1CacheSupported i,
localL1CacheSupported i, sharedMemPerMultiprocessor z, regsPerMultiprocessor i, managedMemory i, isMultiGpuBoard i,
multiGpuBoardGroupID i, hostNativeAtomicSupported i, singleToDoublePrecisionPerfRatio i 12, pageableMemoryAccess i,
concurrentManagedAccess i, computePreemptionSupported i, canUseHostPointerForRegisteredMem i, cooperativeLaunch i,
cooperativeMultiDeviceLaunch i 12, sharedMemPerBlockOptin z, pageableMemoryAccessUsesHostPageTables i,
directManagedMemAccessFromHost i, maxBlocksPerMultiProcessor i, accessPolicyMaxWindowSize i, reservedSharedMemPerBlock z,
hostRegisterSupported i, sparseCudaArraySupported i, hostRegisterReadOnlySupported i, timelineSemaphoreInteropSupported i,
memoryPoolsSupported i, gpuDirectRDMASupported i, gpuDirectRDMAFlushWritesOptions i, gpuDirectRDMAWritesOrdering i,
memoryPoolSupportedHandleTypes i, deferredMappingCudaArraySupported i, ipcEventSupported i, clusterLaunch i,
unifiedFunctionPointers i, reserved i63 12, reserved i63 13
"""
"""The fields in their order: name, kind with the count of elements, and the version, where only one has it."""

ATTRIBUTES = {
    "sharedMemPerBlock": Attribute.MAX_SHARED_MEMORY_PER_BLOCK,
    "regsPerBlock": Attribute.MAX_REGISTERS_PER_BLOCK,
    "warpSize": Attribute.WARP_SIZE,
    "memPitch": Attribute.MAX_PITCH,
    "maxThreadsPerBlock": Attribute.MAX_THREADS_PER_BLOCK,
    "clockRate": Attribute.CLOCK_RATE,
    "totalConstMem": Attribute.TOTAL_CONSTANT_MEMORY,
    "textureAlignment": Attribute.TEXTURE_ALIGNMENT,
    "texturePitchAlignment": Attribute.TEXTURE_PITCH_ALIGNMENT,
    "deviceOverlap": Attribute.GPU_OVERLAP,
    "multiProcessorCount": Attribute.MULTIPROCESSOR_COUNT,
    "kernelExecTimeoutEnabled": Attribute.KERNEL_EXEC_TIMEOUT,
    "integrated": Attribute.INTEGRATED,
    "canMapHostMemory": Attribute.CAN_MAP_HOST_MEMORY,
    "computeMode": Attribute.COMPUTE_MODE,
    "maxTexture1D": Attribute.MAXIMUM_TEXTURE1D_WIDTH,
    "maxTexture1DMipmap": Attribute.MAXIMUM_TEXTURE1D_MIPMAPPED_WIDTH,
    "maxTexture1DLinear": Attribute.MAXIMUM_TEXTURE1D_LINEAR_WIDTH,
    "maxTextureCubemap": Attribute.MAXIMUM_TEXTURECUBEMAP_WIDTH,
    "maxSurface1D": Attribute.MAXIMUM_SURFACE1D_WIDTH,
    "maxSurfaceCubemap": Attribute.MAXIMUM_SURFACECUBEMAP_WIDTH,
    "surfaceAlignment": Attribute.SURFACE_ALIGNMENT,
    "concurrentKernels": Attribute.CONCURRENT_KERNELS,
    "ECCEnabled": Attribute.ECC_ENABLED,
    "pciBusID": Attribute.PCI_BUS_ID,
    "pciDeviceID": Attribute.PCI_DEVICE_ID,
    "pciDomainID": Attribute.PCI_DOMAIN_ID,
    "tccDriver": Attribute.TCC_DRIVER,
    "asyncEngineCount": Attribute.ASYNC_ENGINE_COUNT,
    "unifiedAddressing": Attribute.UNIFIED_ADDRESSING,
    "memoryClockRate": Attribute.MEMORY_CLOCK_RATE,
    "memoryBusWidth": Attribute.GLOBAL_MEMORY_BUS_WIDTH,
    "l2CacheSize": Attribute.L2_CACHE_SIZE,
    "persistingL2CacheMaxSize": Attribute.MAX_PERSISTING_L2_CACHE_SIZE,
    "maxThreadsPerMultiProcessor": Attribute.MAX_THREADS_PER_MULTIPROCESSOR,
    "streamPrioritiesSupported": Attribute.STREAM_PRIORITIES_SUPPORTED,
    "globalL1CacheSupported": Attribute.GLOBAL_L1_CACHE_SUPPORTED,
    "localL1CacheSupported": Attribute.LOCAL_L1_CACHE_SUPPORTED,
    "sharedMemPerMultiprocessor": Attribute.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
    "regsPerMultiprocessor": Attribute.MAX_REGISTERS_PER_MULTIPROCESSOR,
    "managedMemory": Attribute.MANAGED_MEMORY,
    "isMultiGpuBoard": Attribute.MULTI_GPU_BOARD,
    "multiGpuBoardGroupID": Attribute.MULTI_GPU_BOARD_GROUP_ID,
    "hostNativeAtomicSupported": Attribute.HOST_NATIVE_ATOMIC_SUPPORTED,
    "singleToDoublePrecisionPerfRatio": Attribute.SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO,
    "pageableMemoryAccess": Attribute.PAGEABLE_MEMORY_ACCESS,
    "concurrentManagedAccess": Attribute.CONCURRENT_MANAGED_ACCESS,
    "computePreemptionSupported": Attribute.COMPUTE_PREEMPTION_SUPPORTED,
    "canUseHostPointerForRegisteredMem": Attribute.CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM,
    "cooperativeLaunch": Attribute.COOPERATIVE_LAUNCH,
    "sharedMemPerBlockOptin": Attribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
    "pageableMemoryAccessUsesHostPageTables": Attribute.PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
    "directManagedMemAccessFromHost": Attribute.DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
    "maxBlocksPerMultiProcessor": Attribute.MAX_BLOCKS_PER_MULTIPROCESSOR,
    "accessPolicyMaxWindowSize": Attribute.MAX_ACCESS_POLICY_WINDOW_SIZE,
    "reservedSharedMemPerBlock": Attribute.RESERVED_SHARED_MEMORY_PER_BLOCK,
    "hostRegisterSupported": Attribute.HOST_REGISTER_SUPPORTED,
    "memoryPoolsSupported": Attribute.MEMORY_POOLS_SUPPORTED,
    "clusterLaunch": Attribute.CLUSTER_LAUNCH,
    "unifiedFunctionPointers": Attribute.UNIFIED_FUNCTION_POINTERS,
    "ipcEventSupported": Attribute.IPC_EVENT_SUPPORTED,
}
SEVERAL = {
    "maxThreadsDim": (Attribute.MAX_BLOCK_DIM_X, Attribute.MAX_BLOCK_DIM_Y, Attribute.MAX_BLOCK_DIM_Z),
    "maxGridSize": (Attribute.MAX_GRID_DIM_X, Attribute.MAX_GRID_DIM_Y, Attribute.MAX_GRID_DIM_Z),
    "maxTexture2D": (Attribute.MAXIMUM_TEXTURE2D_WIDTH, Attribute.MAXIMUM_TEXTURE2D_HEIGHT),
    "maxTexture3D": (Attribute.MAXIMUM_TEXTURE3D_WIDTH, Attribute.MAXIMUM_TEXTURE3D_HEIGHT, Attribute.MAXIMUM_TEXTURE3D_DEPTH),
    "maxTexture2DLinear": (
        Attribute.MAXIMUM_TEXTURE2D_LINEAR_WIDTH,
        Attribute.MAXIMUM_TEXTURE2D_LINEAR_HEIGHT,
        Attribute.MAXIMUM_TEXTURE2D_LINEAR_PITCH,
    ),
    "maxTexture1DLayered": (Attribute.MAXIMUM_TEXTURE1D_LAYERED_WIDTH, Attribute.MAXIMUM_TEXTURE1D_LAYERED_LAYERS),
    "maxTexture2DLayered": (
        Attribute.MAXIMUM_TEXTURE2D_LAYERED_WIDTH,
        Attribute.MAXIMUM_TEXTURE2D_LAYERED_HEIGHT,
        Attribute.MAXIMUM_TEXTURE2D_LAYERED_LAYERS,
    ),
    "maxSurface2D": (Attribute.MAXIMUM_SURFACE2D_WIDTH, Attribute.MAXIMUM_SURFACE2D_HEIGHT),
    "maxSurface3D": (Attribute.MAXIMUM_SURFACE3D_WIDTH, Attribute.MAXIMUM_SURFACE3D_HEIGHT, Attribute.MAXIMUM_SURFACE3D_DEPTH),
}
KINDS: dict[str, type[ctypes.c_char | ctypes.c_int32 | ctypes.c_size_t]] = {"c": c_char, "i": c_int32, "z": c_size_t}


@cache
def structure(major: str) -> type[ctypes.Structure]:
    """The structure of a version."""
    fields = []
    for field in LAYOUT.replace("\n", " ").strip().split(", "):
        name, kind, *only = field.split()
        if only in ([], [major]):
            count = int(kind[1:] or 1)
            type = KINDS[kind[0]]
            fields.append((name, type * count if count > 1 else type))
    return type_of(major, fields)


def type_of(major: str, fields: list[tuple[str, type]]) -> type[ctypes.Structure]:
    """A ctypes structure of some fields."""
    return type(f"DeviceProperties{major}", (ctypes.Structure,), {"_fields_": fields})


def properties(device: Device, major: str) -> ctypes.Structure:
    """The properties of a device, in the layout of a version."""
    made = structure(major)()
    names = {name for name, *_ in structure(major)._fields_}
    values: dict[str, object] = {name: device.attribute(which) for name, which in ATTRIBUTES.items()}
    values |= {"name": device.name.encode(), "totalGlobalMem": device.memory}
    values |= dict(zip(("major", "minor"), device.model.capability, strict=True))
    for name in names & set(values):
        setattr(made, name, values[name])
    for name, several in SEVERAL.items():
        getattr(made, name)[:] = [device.attribute(which) for which in several]
    offset: int = structure(major).uuid.offset
    ctypes.memmove(ctypes.addressof(made) + offset, device.uuid, 16)  # it may have a byte 0, which ends a c_char
    return made


__all__ = ["properties"]
