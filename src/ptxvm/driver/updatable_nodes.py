"""Kernel nodes that kernels change (`cudaGraphKernelNodeUpdatesApply` of the device runtime and its like).

What they change is in a record, which is memory of the device: its address is the handle of the node for kernels.  The
functions in `cudadevrt_nodes.ptx` write it, and a launch of the node reads it when it begins.
"""

from __future__ import annotations

import ctypes

MOST_PARAMETER_BYTES = 32764  # of a kernel (PTX 5.1.6.1)


class Head(ctypes.Structure):
    """The head of a record, before the bytes of the parameters; `cudadevrt_nodes.ptx` has the same offsets."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("enabled", ctypes.c_uint32),
        ("grid", ctypes.c_uint32 * 3),
        ("padding", ctypes.c_uint32 * 3),
    )


RECORD_SIZE = ctypes.sizeof(Head) + MOST_PARAMETER_BYTES


class NodeRecord:
    """The record of a node: whether it is enabled, its grid, and the bytes of its parameters."""

    def __init__(self, address: int) -> None:
        self.address = address
        self.head = Head.from_address(address)
        ctypes.memset(address, 0, RECORD_SIZE)

    @property
    def grid(self) -> tuple[int, int, int]:
        """The extents of the grid."""
        x, y, z = self.head.grid
        return x, y, z

    @property
    def parameters(self) -> bytes:
        """The bytes of the parameters."""
        return ctypes.string_at(self.address + ctypes.sizeof(Head), self.head.size)

    def write(self, grid: tuple[int, int, int], parameters: bytes) -> None:
        """Enter what a client asks for, in place of what kernels have changed."""
        self.head.size, self.head.enabled, self.head.grid[:] = len(parameters), 1, grid
        ctypes.memmove(self.address + ctypes.sizeof(Head), parameters, len(parameters))


__all__ = ["RECORD_SIZE", "NodeRecord"]
