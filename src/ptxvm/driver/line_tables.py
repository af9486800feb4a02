"""Line number programs (DWARF 2, "Line Number Information"), as the assembler of machine code writes them.

`.debug_line` gives machine code the lines of the source, `.nv_debug_line_sass` those of the PTX.  The addresses of a sequence
are offsets in a function, which a relocation of its first address names.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from struct import unpack_from

from ptxvm.named_tuple import NamedTuple

SET_ADDRESS, END_SEQUENCE = 2, 1  # extended opcodes
COPY, ADVANCE_PC, ADVANCE_LINE, SET_FILE, SET_COLUMN = range(1, 6)  # standard opcodes
CONST_ADD_PC, FIXED_ADVANCE_PC = 8, 9


class Row(NamedTuple):
    """The line of the machine code from an address on."""

    address: int
    file: int
    line: int
    column: int


class Unit(NamedTuple):
    """The lines of one module."""

    files: tuple[str, ...]  # of which the first has the number 1
    rows: dict[int, list[Row]]  # by function: the number of its symbol


class Location(NamedTuple):
    """A place of the source: a file by its number, a line, a column or 0."""

    file: int
    line: int
    column: int


def units(data: bytes, symbols: Mapping[int, int]) -> Iterator[Unit]:
    """The modules of a section; `symbols` are those of relocations, by offset."""
    at = 0
    while at + 4 <= len(data):
        end = at + 4 + unpack_from("<I", data, at)[0]
        yield Program(data, at, end, symbols).unit()
        at = end


class Program:
    """The reader of one module."""

    def __init__(self, data: bytes, at: int, end: int, symbols: Mapping[int, int]) -> None:
        self.data, self.end, self.symbols = data, end, symbols
        _, header, self.step, _, self.line_base, self.line_range, self.opcode_base = unpack_from("<HIBBbBB", data, at + 4)
        self.start = at + 10 + header
        self.at = at + 15
        self.operands = [self.byte() for _ in range(self.opcode_base - 1)]

    def unit(self) -> Unit:
        """Its files and rows."""
        folders = list(self.strings())
        files = []
        for name in self.strings():
            folder, _, _ = self.unsigned(), self.unsigned(), self.unsigned()
            files.append(name if not folder or name.startswith("/") else f"{folders[folder - 1]}/{name}")
        self.at = self.start
        rows: dict[int, list[Row]] = {}
        while self.at < self.end:
            symbol, found = self.sequence()
            rows.setdefault(symbol, []).extend(found)
        return Unit(tuple(files), rows)

    def sequence(self) -> tuple[int, list[Row]]:
        """The symbol of the next function, and its rows."""
        self.symbol, self.ended, self.row = 0, False, Row(0, 1, 1, 0)
        rows = []
        while self.at < self.end and not self.ended:
            code = self.byte()
            if code == 0:
                self.extended()
            elif code >= self.opcode_base:
                steps, lines = divmod(code - self.opcode_base, self.line_range)
                self.move(steps, self.line_base + lines)
                rows.append(self.row)
            elif code == COPY:
                rows.append(self.row)
            else:
                self.standard(code)
        return self.symbol, rows

    def extended(self) -> None:
        """Do what an extended opcode says; those of inlined calls say nothing that a row has."""
        size = self.unsigned()
        kind, operand = self.data[self.at], self.at + 1
        self.at += size
        if kind == END_SEQUENCE:
            self.ended = True
        elif kind == SET_ADDRESS:
            self.symbol = self.symbols.get(operand, 0)
            self.row = self.row._replace(address=unpack_from("<Q", self.data, operand)[0])

    def standard(self, code: int) -> None:
        """Do what a standard opcode says that adds no row."""
        if code == ADVANCE_PC:
            self.move(self.unsigned())
        elif code == ADVANCE_LINE:
            self.move(0, self.signed())
        elif code == SET_FILE:
            self.row = self.row._replace(file=self.unsigned())
        elif code == SET_COLUMN:
            self.row = self.row._replace(column=self.unsigned())
        elif code == CONST_ADD_PC:
            self.move((255 - self.opcode_base) // self.line_range)
        elif code == FIXED_ADVANCE_PC:
            self.row = self.row._replace(address=self.row.address + unpack_from("<H", self.data, self.at)[0])
            self.at += 2
        else:
            for _ in range(self.operands[code - 1]):
                self.unsigned()

    def move(self, steps: int, lines: int = 0) -> None:
        """Go on by instructions and lines."""
        self.row = self.row._replace(address=self.row.address + steps * self.step, line=self.row.line + lines)

    def byte(self) -> int:
        """The next byte."""
        self.at += 1
        return self.data[self.at - 1]

    def unsigned(self) -> int:
        """The next unsigned number (LEB128)."""
        value = shift = 0
        while (byte := self.byte()) & 0x80:
            value |= (byte & 0x7F) << shift
            shift += 7
        return value | byte << shift

    def signed(self) -> int:
        """The next signed number (LEB128)."""
        start = self.at
        value = self.unsigned()
        bits = 7 * (self.at - start)
        return value - (1 << bits) if self.data[self.at - 1] & 0x40 else value

    def strings(self) -> Iterator[str]:
        """The names before an empty one; the caller reads what is behind each."""
        while (end := self.data.index(b"\0", self.at)) > self.at:
            name = self.data[self.at : end].decode("utf-8", "replace")
            self.at = end + 1
            yield name
        self.at = end + 1


def locations(ptx: Unit, source: Unit) -> dict[int, Location]:
    """The source of lines of PTX, from the machine code that both units describe."""
    found: dict[int, Location] = {}
    for symbol, rows in ptx.rows.items():
        known = sorted(source.rows.get(symbol, ()))
        addresses = [row.address for row in known]
        for row in rows:
            if (before := bisect_right(addresses, row.address)) and (place := known[before - 1]).line:
                found.setdefault(row.line, Location(place.file, place.line, place.column))
    return found


__all__ = ["Location", "Row", "Unit", "locations", "units"]
