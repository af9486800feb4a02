"""Calls of the driver in native code: `native.ll`, compiled once for a processor and kept on disk.

It finds the data of the driver through an array of words, the state.  On a processor with object files that the loader
does not know, all calls go through Python.
"""

from __future__ import annotations

import ctypes
import json
import platform
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import MappingProxyType

from ptxvm.driver.attributes import Attribute
from ptxvm.driver.client_memory import TABLE
from ptxvm.driver.results import Result
from ptxvm.engine.jit.abi.specialisation import Tier
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.digest import Digest
from ptxvm.engine.jit.objects import disk_cache
from ptxvm.engine.jit.objects.cache_entry import fits
from ptxvm.engine.jit.objects.code_cache import object_code, ourselves
from ptxvm.engine.jit.objects.loader import FlatCode, Loaded
from ptxvm.libcuda.session import Gather, Session

READY, KEY, RECORDS, EXTENT, ATTRIBUTES, COLUMNS, DEVICES, TEXTS, NAMES, CODES, PAGES = range(11)
"""The words of the state: is the driver initialised; the key of stacks; where records are, and their bytes; the table of
attributes, its columns and rows; the tables of texts and names of results, and their length; that of the client's pages."""
PYTHON = 16  # the word of the first function of Python
FUNCTIONS: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "cuCtxGetCurrent": ("cuCtxGetCurrent",),
    "cuCtxSetCurrent": ("cuCtxSetCurrent",),
    "cuCtxPushCurrent": ("cuCtxPushCurrent_v2", "cuCtxPushCurrent"),
    "cuCtxPopCurrent": ("cuCtxPopCurrent_v2", "cuCtxPopCurrent"),
    "cuCtxGetDevice": ("cuCtxGetDevice",),
    "cuCtxGetDevice_v2": ("cuCtxGetDevice_v2",),
    "cuStreamQuery": ("cuStreamQuery",),
    "cuStreamIsCapturing": ("cuStreamIsCapturing",),
    "cuEventQuery": ("cuEventQuery",),
    "cuPointerGetAttribute": ("cuPointerGetAttribute",),
    "cuDeviceGetAttribute": ("cuDeviceGetAttribute",),
    "cuDeviceGet": ("cuDeviceGet",),
    "cuGetErrorString": ("cuGetErrorString",),
    "cuGetErrorName": ("cuGetErrorName",),
})  # fmt: skip
"""The functions of the file, in the order of their words, and the symbols that they stand for."""
CLEANUP = (
    "cuArrayDestroy", "cuDestroyExternalMemory", "cuEventDestroy", "cuEventDestroy_v2", "cuGraphDestroy", "cuGraphExecDestroy",
    "cuGraphReleaseUserObject", "cuGreenCtxDestroy", "cuIpcCloseMemHandle", "cuLibraryUnload", "cuLinkDestroy",
    "cuMemAddressFree", "cuMemFreeAsync", "cuMemFreeAsync_ptsz", "cuMemFreeHost", "cuMemFree_v2", "cuMemPoolDestroy",
    "cuMemRelease", "cuMemUnmap", "cuMipmappedArrayDestroy", "cuModuleUnload", "cuStreamDestroy", "cuStreamDestroy_v2",
    "cuSurfObjectDestroy", "cuTexObjectDestroy", "cuUserObjectRelease", "cuDevicePrimaryCtxRelease_v2", "cuCtxDestroy_v2",
    "nvJitLinkDestroy",
)  # fmt: skip
"""The symbols of functions that destructors call, with an exception on its way or without."""
FIRST_CLEANUP = 64  # the word of the first of them
CLEANING = """
define i32 @cleanup_{place}(i64 %a, i64 %b, i64 %c) {{
  %result = call i32 @undisturbed(i64 {place}, i64 %a, i64 %b, i64 %c)
  ret i32 %result
}}
"""
PROCESSORS = frozenset({"x86_64", "aarch64"})  # whose object files the loader knows
NO_ATTRIBUTE = -(1 << 31)


class Native:
    """The native functions of a session; `python` are the addresses of the functions of Python, by symbol."""

    def __init__(self, session: Session, python: Mapping[str, int]) -> None:
        self.session = session
        self.words = (ctypes.c_uint64 * 128)()
        self.code = Loaded(flat_code(), {"state": ctypes.addressof(self.words)})
        records = session.handles.records
        attributes = [[each.attributes.get(n, 0) if n in NUMBERS else NO_ATTRIBUTE for n in range(max(NUMBERS) + 1)]
                      for each in session.driver.devices]  # fmt: skip
        flat = [value for row in attributes for value in row]
        codes = max(Result) + 1
        known = {int(each): each for each in Result}
        self.tables = (
            (ctypes.c_int32 * len(flat))(*flat),
            (ctypes.c_uint64 * codes)(*(session.text(known[n].text) if n in known else 0 for n in range(codes))),
            (ctypes.c_uint64 * codes)(*(session.text(known[n].symbol) if n in known else 0 for n in range(codes))),
        )
        table, texts, names = (ctypes.addressof(each) for each in self.tables)
        self.words[READY : PAGES + 1] = [
            0, session.stack.key, records.start, records.end - records.start,
            table, max(NUMBERS) + 1, len(attributes), texts, names, codes,
            ctypes.addressof(TABLE),
        ]  # fmt: skip
        for n, symbols in enumerate(FUNCTIONS.values()):
            self.words[PYTHON + n] = python[symbols[0]]
        for place, symbol in enumerate(CLEANUP, FIRST_CLEANUP):
            self.words[place] = python[symbol]

    @cached_property
    def gather(self) -> Gather:
        """Copies the arguments of a launch into a block, if they are in pages that are known.

        It keeps the interpreter's lock, which takes longer than to copy.
        """
        return ctypes.PYFUNCTYPE(ctypes.c_int, *(4 * [ctypes.c_size_t]))(self.code.address("gather"))

    def set_ready(self, ready: bool) -> None:  # noqa: FBT001 - it has one parameter
        """Answer calls from now on, or leave them to Python."""
        self.words[READY] = ready

    def addresses(self) -> dict[str, int]:
        """The addresses of the native functions, by the symbols that they replace."""
        cleanup = {symbol: self.code.address(f"cleanup_{place}") for place, symbol in enumerate(CLEANUP, FIRST_CLEANUP)}
        return cleanup | {symbol: self.code.address(name) for name, symbols in FUNCTIONS.items() for symbol in symbols}


NUMBERS = frozenset(map(int, Attribute))


def native(session: Session, python: Mapping[str, int]) -> Native | None:
    """The native functions of a session; None on a processor whose object files the loader does not know."""
    return Native(session, python) if platform.machine() in PROCESSORS else None


def flat_code() -> FlatCode:
    """The code, from the disk cache or compiled."""
    store, key = disk_cache.from_environment(), Digest().add(f"native {cpu.identity()} {ourselves()}").text
    if store is not None and (kept := store.get(key)) is not None and (found := unpacked(kept)) is not None:
        return found
    from ptxvm.engine.jit.objects.elf import flatten  # noqa: PLC0415 - code that is ready needs no LLVM

    cleanup = "".join(CLEANING.format(place=place) for place in range(FIRST_CLEANUP, FIRST_CLEANUP + len(CLEANUP)))
    text = Path(__file__).with_suffix(".ll").read_text(encoding="utf-8") + cleanup
    made = flatten(object_code(text, Tier.BEST, background=False))
    if store is not None:
        store.put(key, packed(made))
    return made


def packed(flat: FlatCode) -> bytes:
    """Code as bytes: a line of JSON, and the code."""
    tables = {"functions": flat.functions, "inner": list(flat.inner.items()), "outer": list(flat.outer.items())}
    return json.dumps(tables).encode() + b"\n" + flat.code


def unpacked(data: bytes) -> FlatCode | None:
    """The code of such bytes; None for other bytes."""
    first, _, code = data.partition(b"\n")
    try:
        tables = json.loads(first)
        found = FlatCode(code, dict(tables["functions"]), dict(tables["inner"]), dict(tables["outer"]))
    except (ValueError, KeyError, TypeError):
        return None
    return found if fits(found) else None


__all__ = ["FUNCTIONS", "Native", "native"]
