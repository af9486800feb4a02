"""The ELF linker: an object file becomes one position-independent block of code and constants."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ptxvm.engine.jit.objects.loader import FlatCode, NotFlatError
from ptxvm.engine.jit.objects.relocations import PROCESSORS, Processor
from ptxvm.named_tuple import NamedTuple

ALLOCATED, WRITABLE = 2, 1  # flags of a section
UNDEFINED, GLOBAL = 0, 1
SYMBOLS, RELOCATIONS, EMPTY = 2, 4, 8  # types of sections
OBJECT = 1  # the type of the file
STUB_ALIGNMENT = 16


def flatten(data: bytes) -> FlatCode:
    """The block of an ELF object file; raises NotFlatError for what this linker does not know."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise NotFlatError("this is no object file in ELF")
    type, number = struct.unpack_from("<HH", data, 16)
    if type != OBJECT or number not in PROCESSORS:
        raise NotFlatError(f"this is no object file of x86-64 or aarch64, but one of type {type} of processor {number}")
    return _Flattening(data, PROCESSORS[number]).run()


class _Section(NamedTuple):
    name: str
    type: int
    flags: int
    start: int
    size: int
    link: int
    info: int
    alignment: int


class _Flattening:
    def __init__(self, data: bytes, processor: Processor) -> None:
        self.data, self.processor = data, processor
        self.sections = list(self._sections())
        self.block = bytearray()
        self.at: dict[int, int] = {}  # the offsets of sections in the block
        self.slots: dict[str | int, int] = {}  # the table of addresses: offsets by symbol
        self.stubs: dict[str, int] = {}
        self.functions: dict[str, int] = {}
        self.inner: dict[int, int] = {}
        self.outer: dict[int, str] = {}

    def run(self) -> FlatCode:
        for number, section in enumerate(self.sections):
            if section.flags & ALLOCATED:
                if section.flags & WRITABLE:
                    raise NotFlatError(f"section {section.name} can be written")
                self.at[number] = self._append(self._contents(section), section.alignment)
        symbols = [s for section in self.sections if section.type == SYMBOLS for s in self._symbols(section)]
        for name, owner, value, binding in symbols:
            if binding == GLOBAL and owner in self.at:
                self.functions[name] = self.at[owner] + value
        for section in self.sections:
            if section.type == RELOCATIONS and section.info in self.at:
                self._relocate(section, symbols)
        return FlatCode(bytes(self.block), self.functions, self.inner, self.outer)

    def _sections(self) -> Iterator[_Section]:
        (table,) = struct.unpack_from("<Q", self.data, 40)
        size, count, names = struct.unpack_from("<HHH", self.data, 58)
        rows = [struct.unpack_from("<IIQQQQIIQQ", self.data, table + size * n) for n in range(count)]
        for name, type, flags, _, start, length, link, info, alignment, _ in rows:
            yield _Section(self._string(rows[names][4] + name), type, flags, start, length, link, info, alignment)

    def _string(self, at: int) -> str:
        return self.data[at : self.data.index(b"\0", at)].decode()

    def _contents(self, section: _Section) -> bytes:
        return bytes(section.size) if section.type == EMPTY else self.data[section.start : section.start + section.size]

    def _symbols(self, section: _Section) -> list[tuple[str, int, int, int]]:
        """Name, section, offset in it, binding."""
        names = self.sections[section.link].start
        rows = struct.iter_unpack("<IBBHQQ", self._contents(section))
        return [(self._string(names + name), owner, value, info >> 4) for name, info, _, owner, value, _ in rows]

    def _append(self, contents: bytes, alignment: int) -> int:
        self.block += bytes(-len(self.block) % max(alignment, 1))
        self.block += contents
        return len(self.block) - len(contents)

    # ── relocations ─────────────────────────────────────────────────────────────────────

    def _relocate(self, section: _Section, symbols: list[tuple[str, int, int, int]]) -> None:
        for offset, info, addend in struct.iter_unpack("<QQq", self._contents(section)):
            at, kind = self.at[section.info] + offset, info & 0xFFFF_FFFF
            name, owner, value, _ = symbols[info >> 32]
            inside = owner in self.at
            target = self.at[owner] + value if inside else None
            if owner != UNDEFINED and not inside:
                raise NotFlatError(f"a relocation needs '{name}', which is in no section")
            if kind in self.processor.by_table:
                self.processor.write(self.block, at, kind, self._slot(name, target) + addend)
            elif kind in self.processor.calls:
                to = target if target is not None else self._stub(name)
                self.processor.write(self.block, at, kind, to + addend)
            elif kind in self.processor.direct and target is not None:
                self.processor.write(self.block, at, kind, target + addend)
            elif kind == self.processor.absolute and target is not None:
                self.inner[at] = target + addend
            else:
                raise NotFlatError(f"relocation {kind} of '{name}'")

    def _slot(self, name: str, target: int | None) -> int:
        """The offset of the slot for the address of a symbol."""
        key = name if target is None else target
        if key not in self.slots:
            self.slots[key] = self._append(bytes(8), 8)
            if target is None:
                self.outer[self.slots[key]] = name
            else:
                self.inner[self.slots[key]] = target
        return self.slots[key]

    def _stub(self, name: str) -> int:
        """A jump to a function of the C library, which may be out of reach of a call."""
        if name not in self.stubs:
            slot = self._slot(name, None)
            at = -(-len(self.block) // STUB_ALIGNMENT) * STUB_ALIGNMENT
            self.stubs[name] = self._append(self.processor.jump(at, slot), STUB_ALIGNMENT)
        return self.stubs[name]
