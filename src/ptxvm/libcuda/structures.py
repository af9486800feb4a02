"""The structures of the driver API that clients pass, laid out as C does (driver API, "Data Structures")."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int32, c_size_t, c_uint32, c_uint64


class Copy2D(ctypes.Structure):
    """CUDA_MEMCPY2D."""

    _fields_ = (
        ("source_x", c_size_t), ("source_y", c_size_t), ("source_type", c_int32), ("source_host", c_uint64),
        ("source_device", c_uint64), ("source_array", c_uint64), ("source_pitch", c_size_t),
        ("target_x", c_size_t), ("target_y", c_size_t), ("target_type", c_int32), ("target_host", c_uint64),
        ("target_device", c_uint64), ("target_array", c_uint64), ("target_pitch", c_size_t),
        ("width", c_size_t), ("height", c_size_t),
    )  # fmt: skip


class Copy3D(ctypes.Structure):
    """CUDA_MEMCPY3D."""

    _fields_ = (
        ("source_x", c_size_t), ("source_y", c_size_t), ("source_z", c_size_t), ("source_level", c_size_t),
        ("source_type", c_int32), ("source_host", c_uint64), ("source_device", c_uint64), ("source_array", c_uint64),
        ("source_context", c_uint64), ("source_pitch", c_size_t), ("source_height", c_size_t),
        ("target_x", c_size_t), ("target_y", c_size_t), ("target_z", c_size_t), ("target_level", c_size_t),
        ("target_type", c_int32), ("target_host", c_uint64), ("target_device", c_uint64), ("target_array", c_uint64),
        ("target_context", c_uint64), ("target_pitch", c_size_t), ("target_height", c_size_t),
        ("width", c_size_t), ("height", c_size_t), ("depth", c_size_t),
    )  # fmt: skip


class Location(ctypes.Structure):
    """CUmemLocation."""

    _fields_ = (("type", c_int32), ("number", c_int32))


class CopyAttributes(ctypes.Structure):
    """CUmemcpyAttributes."""

    _fields_ = (("read", c_int32), ("source_hint", Location), ("target_hint", Location), ("flags", c_uint32))


class CopyPointer(ctypes.Structure):
    """The part of a CUmemcpy3DOperand for memory; lengths are in elements."""

    _fields_ = (("address", c_uint64), ("length", c_size_t), ("height", c_size_t), ("hint", Location))


class CopyArray(ctypes.Structure):
    """The part of a CUmemcpy3DOperand for an array; offsets are in elements."""

    _fields_ = (("array", c_uint64), ("x", c_size_t), ("y", c_size_t), ("z", c_size_t))


class CopyOperandUnion(ctypes.Union):
    """The union in a CUmemcpy3DOperand."""

    _fields_ = (("pointer", CopyPointer), ("array", CopyArray))


class CopyOperand(ctypes.Structure):
    """CUmemcpy3DOperand."""

    _fields_ = (("type", c_int32), ("of", CopyOperandUnion))


class CopyOperation(ctypes.Structure):
    """CUDA_MEMCPY3D_BATCH_OP; extents are in elements."""

    _fields_ = (
        ("source", CopyOperand), ("target", CopyOperand), ("width", c_size_t), ("height", c_size_t), ("depth", c_size_t),
        ("read", c_int32), ("flags", c_uint32),
    )  # fmt: skip


class LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", c_uint32 * 3), ("block", c_uint32 * 3), ("shared", c_uint32), ("stream", c_uint64),
        ("attributes", c_uint64), ("count", c_uint32),
    )  # fmt: skip


class LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: a number, and a value of 64 bytes."""

    _fields_ = (("id", c_int32), ("padding", c_uint32), ("value", c_uint32 * 16))


class KernelNode(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS, version 1 and, with the kernel and the context, 2."""

    _fields_ = (
        ("function", c_uint64), ("grid", c_uint32 * 3), ("block", c_uint32 * 3), ("shared", c_uint32),
        ("parameters", c_uint64), ("extra", c_uint64), ("kernel", c_uint64), ("context", c_uint64),
    )  # fmt: skip


class MemsetNode(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = (
        ("target", c_uint64), ("pitch", c_size_t), ("value", c_uint32), ("element", c_uint32), ("width", c_size_t),
        ("height", c_size_t),
    )  # fmt: skip


class PoolProperties(ctypes.Structure):
    """CUmemPoolProps."""

    _fields_ = (
        ("type", c_int32), ("handle_types", c_int32), ("location", Location), ("security", c_uint64), ("most", c_size_t),
        ("usage", ctypes.c_uint16), ("rest", ctypes.c_ubyte * 54),
    )  # fmt: skip


class AllocationNode(ctypes.Structure):
    """CUDA_MEM_ALLOC_NODE_PARAMS."""

    _fields_ = (
        ("pool", PoolProperties), ("access", c_uint64), ("count", c_size_t), ("size", c_size_t), ("address", c_uint64),
    )  # fmt: skip


class InstantiateParameters(ctypes.Structure):
    """CUDA_GRAPH_INSTANTIATE_PARAMS."""

    _fields_ = (("flags", c_uint64), ("stream", c_uint64), ("failed", c_uint64), ("result", c_int32))


class UpdateInformation(ctypes.Structure):
    """CUgraphExecUpdateResultInfo."""

    _fields_ = (("result", c_int32), ("node", c_uint64), ("before", c_uint64))


class HostNode(ctypes.Structure):
    """CUDA_HOST_NODE_PARAMS."""

    _fields_ = (("function", c_uint64), ("argument", c_uint64))


class ConditionalNode(ctypes.Structure):
    """CUDA_CONDITIONAL_NODE_PARAMS."""

    _fields_ = (("handle", c_uint64), ("type", c_int32), ("size", c_uint32), ("graphs", c_uint64), ("context", c_uint64))


class MemoryOperation(ctypes.Structure):
    """CUstreamBatchMemOpParams: the fields of all kinds."""

    _fields_ = (
        ("operation", c_int32), ("address", c_uint64), ("value", c_uint64), ("flags", c_uint32), ("rest", c_uint32 * 5),
    )  # fmt: skip


class BatchNode(ctypes.Structure):
    """CUDA_BATCH_MEM_OP_NODE_PARAMS."""

    _fields_ = (("context", c_uint64), ("count", c_uint32), ("operations", c_uint64), ("flags", c_uint32))


class AllocationProperties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = (
        ("type", c_int32), ("handle_types", c_int32), ("location_type", c_int32), ("location", c_int32), ("metadata", c_uint64),
        ("flags", c_uint64),
    )  # fmt: skip


class MulticastProperties(ctypes.Structure):
    """CUmulticastObjectProp."""

    _fields_ = (("devices", c_uint32), ("size", c_size_t), ("handle_types", c_uint64), ("flags", c_uint64))


class ExecutionAffinity(ctypes.Structure):
    """CUexecAffinityParam of multiprocessors."""

    _fields_ = (("type", c_int32), ("count", c_uint32))


class ContextParameters(ctypes.Structure):
    """CUctxCreateParams."""

    _fields_ = (("affinities", c_uint64), ("count", c_int32), ("graphics", c_uint64))


class ExternalMemoryHandle(ctypes.Structure):
    """CUDA_EXTERNAL_MEMORY_HANDLE_DESC of a file; `rest` are handles of other interfaces."""

    _fields_ = (
        ("type", c_int32), ("padding", c_int32), ("file", c_int32), ("more", c_int32), ("rest", c_uint64), ("size", c_uint64),
        ("flags", c_uint32),
    )  # fmt: skip


class ExternalBuffer(ctypes.Structure):
    """CUDA_EXTERNAL_MEMORY_BUFFER_DESC."""

    _fields_ = (("offset", c_uint64), ("size", c_uint64), ("flags", c_uint32))


class DeviceResource(ctypes.Structure):
    """CUdevResource of multiprocessors; a word of its padding has the device."""

    _fields_ = (
        ("type", c_int32), ("device", c_int32), ("padding", c_uint32 * 22), ("count", c_uint32), ("least", c_uint32),
        ("alignment", c_uint32), ("flags", c_uint32), ("rest", c_uint32 * 6), ("next", c_uint64),
    )  # fmt: skip


class WorkQueueConfiguration(ctypes.Structure):
    """CUdevResource of the configuration of work queues."""

    _fields_ = (
        ("type", c_int32), ("padding", c_uint32 * 23), ("device", c_int32), ("limit", c_uint32), ("scope", c_int32),
        ("rest", c_uint32 * 7), ("next", c_uint64),
    )  # fmt: skip


class WorkQueueResource(ctypes.Structure):
    """CUdevResource of the work queues of a context: a handle in bytes that belong to the driver."""

    _fields_ = (
        ("type", c_int32), ("padding", c_uint32 * 23), ("handle", c_uint64), ("rest", c_uint32 * 8), ("next", c_uint64),
    )  # fmt: skip


class GroupParameters(ctypes.Structure):
    """CU_DEV_SM_RESOURCE_GROUP_PARAMS."""

    _fields_ = (
        ("count", c_uint32), ("coscheduled", c_uint32), ("preferred", c_uint32), ("flags", c_uint32), ("rest", c_uint32 * 12),
    )  # fmt: skip


class AccessDescription(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = (("location_type", c_int32), ("location", c_int32), ("flags", c_int32))


class ArrayDescriptor(ctypes.Structure):
    """CUDA_ARRAY_DESCRIPTOR."""

    _fields_ = (("width", c_size_t), ("height", c_size_t), ("format", c_int32), ("channels", c_uint32))


class Array3DDescriptor(ctypes.Structure):
    """CUDA_ARRAY3D_DESCRIPTOR."""

    _fields_ = (
        ("width", c_size_t), ("height", c_size_t), ("depth", c_size_t), ("format", c_int32), ("channels", c_uint32),
        ("flags", c_uint32),
    )  # fmt: skip


class LinearResource(ctypes.Structure):
    """The part of a CUDA_RESOURCE_DESC for memory, with rows (`pitch2D`) or without, when `width` is in bytes."""

    _fields_ = (
        ("pointer", c_uint64), ("format", c_int32), ("channels", c_uint32), ("width", c_size_t), ("height", c_size_t),
        ("pitch", c_size_t),
    )  # fmt: skip


class ResourceUnion(ctypes.Union):
    """The union in a CUDA_RESOURCE_DESC."""

    _fields_ = (("array", c_uint64), ("linear", LinearResource), ("reserved", c_int32 * 32))


class Resource(ctypes.Structure):
    """CUDA_RESOURCE_DESC."""

    _fields_ = (("type", c_int32), ("of", ResourceUnion), ("flags", c_uint32))


class ResourceView(ctypes.Structure):
    """CUDA_RESOURCE_VIEW_DESC, but for words that are reserved, which CUDA 12's runtime does not have."""

    _fields_ = (
        ("format", c_int32), ("width", c_size_t), ("height", c_size_t), ("depth", c_size_t), ("first_level", c_uint32),
        ("last_level", c_uint32), ("first_layer", c_uint32), ("last_layer", c_uint32),
    )  # fmt: skip


class TextureDescriptor(ctypes.Structure):
    """CUDA_TEXTURE_DESC."""

    _fields_ = (
        ("address", c_int32 * 3), ("filter", c_int32), ("flags", c_uint32), ("anisotropy", c_uint32),
        ("mipmap_filter", c_int32), ("bias", c_float), ("least_level", c_float), ("most_level", c_float),
        ("border", c_float * 4), ("reserved", c_int32 * 12),
    )  # fmt: skip


__all__ = [
    "AccessDescription", "AllocationNode", "AllocationProperties", "Array3DDescriptor", "ArrayDescriptor", "BatchNode",
    "ConditionalNode", "ContextParameters", "Copy2D", "Copy3D", "CopyArray", "CopyAttributes", "CopyOperand",
    "CopyOperandUnion", "CopyOperation", "CopyPointer", "DeviceResource", "ExecutionAffinity", "ExternalBuffer",
    "ExternalMemoryHandle", "GroupParameters", "HostNode", "InstantiateParameters", "KernelNode", "LaunchAttribute",
    "LaunchConfig", "LinearResource", "Location", "MemoryOperation", "MemsetNode", "MulticastProperties", "PoolProperties",
    "Resource", "ResourceView", "TextureDescriptor", "UpdateInformation", "WorkQueueConfiguration", "WorkQueueResource",
]  # fmt: skip
