"""The code of libraries: compiled when a kernel first needs it, kept on disk, and linked into all that do."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Mapping

from ptxvm.engine.jit.abi.specialisation import Tier
from ptxvm.engine.jit.ir.digest import Digest
from ptxvm.engine.jit.ir.libraries import LIBRARIES
from ptxvm.engine.jit.objects.cache_entry import packed_code, unpacked_code
from ptxvm.engine.jit.objects.disk_cache import DiskCache
from ptxvm.engine.jit.objects.elf import flatten
from ptxvm.engine.jit.objects.loader import FlatCode

LEAST = Tier.QUICK
"""The tier of a library in code that is made for one run: it is there for the next kernels too."""
PAGE = 4096  # what code for some processors refers to by its place in a page
_LOCK = allocate_lock()
_FOUND: dict[tuple[str, Tier], FlatCode] = {}
_OBJECTS: dict[tuple[str, Tier], bytes] = {}

Compile = Callable[[str, Tier], bytes]


def object_of(name: str, tier: Tier, compiled: Compile) -> bytes:
    """The object file of a library."""
    key = name, max(tier, LEAST)
    with _LOCK:
        found = _OBJECTS.get(key)
    if found is None:
        found = compiled(LIBRARIES[name], key[1])
        with _LOCK:
            _OBJECTS[key] = found
    return found


def code_of(name: str, tier: Tier, compiled: Compile, sources: str, store: DiskCache | None) -> FlatCode:
    """The code of a library, which a cache may keep; `sources` is a digest of what it depends on beside its name.

    Code is compiled in the background, too, where the environment may no longer be the one that the cache was opened in.
    """
    key = name, max(tier, LEAST)
    with _LOCK:
        found = _FOUND.get(key)
    if found is None:
        entry = Digest().add(repr((*key, sources))).text
        found = kept(entry, store)
        if found is None:
            found = flatten(object_of(name, tier, compiled))
            keep(entry, found, store)
        with _LOCK:
            _FOUND[key] = found
    return found


def kept(key: str, store: DiskCache | None) -> FlatCode | None:
    """The code alone that an entry of a cache has."""
    data = None if store is None else store.get(key)
    return None if data is None else unpacked_code(data)


def keep(key: str, code: FlatCode, store: DiskCache | None) -> None:
    """Keep code alone in a cache."""
    if store is not None:
        store.put(key, packed_code(code))


def joined(code: FlatCode, libraries: Mapping[str, FlatCode]) -> FlatCode:
    """A block of code, and behind it those with the functions that it and they call."""
    block, inner, outer = bytearray(code.code), dict(code.inner), dict(code.outer)
    entries = {}
    for name, library in libraries.items():
        block += bytes(-len(block) % PAGE)
        start = len(block)
        block += library.code
        entries[name] = start + library.functions[name]
        inner |= {start + at: start + target for at, target in library.inner.items()}
        outer |= {start + at: called for at, called in library.outer.items()}
    inner |= {at: entries[called] for at, called in outer.items() if called in entries}
    outer = {at: called for at, called in outer.items() if called not in entries}
    return FlatCode(bytes(block), code.functions, inner, outer)
