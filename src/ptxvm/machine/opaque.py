"""Opaque objects and their handles: 64-bit numbers that stand for textures, samplers and surfaces (PTX 5.3)."""

from __future__ import annotations

import numpy as np

from ptxvm.machine.device_array import DeviceArray
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.handles import HANDLES, NUMBERS
from ptxvm.machine.memory import Memory


class Opaque:
    """An opaque object, for which a handle stands."""

    kind = ""

    def __init__(self, array: object = None) -> None:
        self.handle = next(NUMBERS)
        HANDLES[self.handle] = self
        self.source = array if isinstance(array, DeviceArray) else None  # which stays as long as this does


class Unbound(Opaque):
    """An opaque variable to which the host has not bound an object yet."""

    def __init__(self, kind: str, name: str) -> None:
        super().__init__()
        self.kind, self.name = kind, name


def find(memory: Memory, handle: int, wanted: str = "") -> Opaque:
    """The object of a handle, or of the variable at an address; an AccessFault where it is not of a `wanted` kind."""
    found: Opaque | None = HANDLES.get(handle)
    if found is None:
        try:
            found = HANDLES.get(int(memory.load(np.dtype(np.uint64), np.uint64(handle))))
        except AccessFault:
            found = None
    if isinstance(found, Unbound) and wanted:
        raise AccessFault("unbound", f"nothing is bound to the .{found.kind} `{found.name}`; use Module.bind", handle)
    if found is not None and found.source is not None and not found.source.live:
        raise AccessFault("use-after-free", f"{found!r} is one of a DeviceArray that has been freed", handle)
    if found is None or (wanted and found.kind != wanted):
        description = f"of a .{found.kind}" if found is not None else "of nothing"
        needed = f", and a .{wanted} is needed" if wanted else ""
        raise AccessFault("invalid-handle", f"{handle:#x} is the handle {description}{needed}", handle)
    return found


def is_a(memory: Memory, handle: int, kind: str) -> bool:
    """Is it a handle of, or the address of a variable of, this kind (`istypep`)?"""
    try:
        return find(memory, handle).kind == kind
    except AccessFault:
        return False
