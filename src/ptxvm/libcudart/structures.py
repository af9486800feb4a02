"""The structures of the runtime API that clients pass, laid out as C does (runtime API, "Data Structures")."""

from __future__ import annotations

import ctypes
from ctypes import c_float, c_int32, c_int64, c_size_t, c_uint32, c_uint64


class ThreeSizes(ctypes.Structure):
    """dim3."""

    _fields_ = (("x", c_uint32), ("y", c_uint32), ("z", c_uint32))

    def extent(self) -> tuple[int, int, int]:
        """The three numbers."""
        return self.x, self.y, self.z


class Extent(ctypes.Structure):
    """cudaExtent, and cudaPos: three sizes."""

    _fields_ = (("width", c_size_t), ("height", c_size_t), ("depth", c_size_t))


class PitchedPointer(ctypes.Structure):
    """cudaPitchedPtr."""

    _fields_ = (("pointer", c_uint64), ("pitch", c_size_t), ("width", c_size_t), ("height", c_size_t))


class Location(ctypes.Structure):
    """cudaMemLocation."""

    _fields_ = (("type", c_int32), ("id", c_int32))


class Channels(ctypes.Structure):
    """cudaChannelFormatDesc: the bits of each channel, and the kind of number."""

    _fields_ = (("x", c_int32), ("y", c_int32), ("z", c_int32), ("w", c_int32), ("kind", c_int32))


class Copy3D(ctypes.Structure):
    """cudaMemcpy3DParms."""

    _fields_ = (
        ("source_array", c_uint64), ("source_position", Extent), ("source", PitchedPointer),
        ("target_array", c_uint64), ("target_position", Extent), ("target", PitchedPointer),
        ("extent", Extent), ("kind", c_int32),
    )  # fmt: skip


class CopyPeer3D(ctypes.Structure):
    """cudaMemcpy3DPeerParms."""

    _fields_ = (
        ("source_array", c_uint64), ("source_position", Extent), ("source", PitchedPointer), ("source_device", c_int32),
        ("target_array", c_uint64), ("target_position", Extent), ("target", PitchedPointer), ("target_device", c_int32),
        ("extent", Extent),
    )  # fmt: skip


class LaunchConfig(ctypes.Structure):
    """cudaLaunchConfig_t."""

    _fields_ = (
        ("grid", ThreeSizes), ("block", ThreeSizes), ("shared", c_size_t), ("stream", c_uint64), ("attributes", c_uint64),
        ("count", c_uint32),
    )  # fmt: skip


class PointerAttributes(ctypes.Structure):
    """cudaPointerAttributes."""

    _fields_ = (("type", c_int32), ("device", c_int32), ("on_device", c_uint64), ("on_host", c_uint64), ("more", c_int64 * 8))


class KernelNode(ctypes.Structure):
    """cudaKernelNodeParams."""

    _fields_ = (
        ("function", c_uint64), ("grid", ThreeSizes), ("block", ThreeSizes), ("shared", c_uint32), ("parameters", c_uint64),
        ("extra", c_uint64),
    )  # fmt: skip


class LinearResource(ctypes.Structure):
    """The part of a cudaResourceDesc for memory, with rows (`pitch2D`) or without."""

    _fields_ = (
        ("pointer", c_uint64), ("channels", Channels), ("width", c_size_t), ("height", c_size_t), ("pitch", c_size_t),
    )  # fmt: skip


class ResourceUnion(ctypes.Union):
    """The union in a cudaResourceDesc."""

    _fields_ = (("array", c_uint64), ("linear", LinearResource), ("reserved", c_int32 * 32))


class Resource(ctypes.Structure):
    """cudaResourceDesc."""

    _fields_ = (("type", c_int32), ("of", ResourceUnion), ("flags", c_uint32))


class Sampling(ctypes.Structure):
    """cudaTextureDesc."""

    _fields_ = (
        ("address", c_int32 * 3), ("filter", c_int32), ("read", c_int32), ("srgb", c_int32), ("border", c_float * 4),
        ("normalized", c_int32), ("anisotropy", c_uint32), ("mipmap_filter", c_int32), ("bias", c_float),
        ("least_level", c_float), ("most_level", c_float), ("no_trilinear", c_int32), ("seamless", c_int32),
    )  # fmt: skip


__all__ = [
    "Channels", "Copy3D", "CopyPeer3D", "Extent", "KernelNode", "LaunchConfig", "LinearResource",
    "Location", "PitchedPointer", "PointerAttributes", "Resource", "Sampling", "ThreeSizes",
]  # fmt: skip
