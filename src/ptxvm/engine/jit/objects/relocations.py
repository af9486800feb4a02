"""Relocations of object files: how an instruction or a word of a block refers to another place of it, by processor.

x86-64: System V ABI, AMD64 supplement 4.4.1.  aarch64: ELF for the Arm 64-bit Architecture, 5.7; pages have 4 KiB, and a
block begins at one.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import MappingProxyType

PAGE_BITS, LOW = 12, 0xFFF


class Processor:
    """A processor: its number in ELF files, and the numbers of its relocations by what they mean.

    `absolute` is that of a word with an address, `by_table` has those by way of the table of addresses, `calls` those that a
    jump in between may serve, and `direct` the others.
    """

    number: int
    absolute: int
    by_table: frozenset[int]
    calls: frozenset[int]
    direct: frozenset[int]

    def write(self, block: bytearray, at: int, kind: int, to: int) -> None:
        """Let a place of a block refer to another."""
        raise NotImplementedError

    def jump(self, at: int, slot: int) -> bytes:
        """The code at a place that jumps to the address in a slot."""
        raise NotImplementedError


class X86(Processor):
    """x86-64: distances from the place itself, in 4 or 8 bytes."""

    number, absolute = 62, 1
    by_table, calls, direct = frozenset({9, 41, 42}), frozenset({4}), frozenset({2, 24})
    WIDE = 24  # R_X86_64_PC64

    def write(self, block: bytearray, at: int, kind: int, to: int) -> None:
        """A distance."""
        struct.pack_into("<q" if kind == self.WIDE else "<i", block, at, to - at)

    def jump(self, at: int, slot: int) -> bytes:
        """`jmp *slot(%rip)`."""
        return struct.pack("<Hi", 0x25FF, slot - at - 6)


class Aarch64(Processor):
    """aarch64: distances of words and branches, and pages with the low bits of an address."""

    number, absolute = 183, 257  # R_AARCH64_ABS64
    WORDS: Mapping[int, str] = MappingProxyType({260: "<q", 261: "<i"})  # R_AARCH64_PREL64, PREL32
    PAGES = frozenset({275, 311})  # R_AARCH64_ADR_PREL_PG_HI21, ADR_GOT_PAGE
    LOW_BITS: Mapping[int, int] = MappingProxyType({277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4, 312: 3})
    """ADD_ABS_LO12_NC, LDST8 to LDST128_ABS_LO12_NC and LD64_GOT_LO12_NC: by how many bits the field is scaled."""
    by_table, calls = frozenset({311, 312}), frozenset({282, 283})  # ... R_AARCH64_JUMP26, CALL26
    direct = frozenset({*WORDS, *PAGES, *LOW_BITS}) - by_table
    ADRP_X16, LDR_X16, BR_X16 = 0x90000010, 0xF9400210, 0xD61F0200

    def write(self, block: bytearray, at: int, kind: int, to: int) -> None:
        """A word, or the field of an instruction."""
        if kind in self.WORDS:
            struct.pack_into(self.WORDS[kind], block, at, to - at)
            return
        (word,) = struct.unpack_from("<I", block, at)
        struct.pack_into("<I", block, at, word | self.field(at, kind, to))

    def field(self, at: int, kind: int, to: int) -> int:
        """The bits of an instruction at a place that refer to another (Arm ARM C6.2: `ADRP`, `ADD`, `LDR`, `B`)."""
        if kind in self.PAGES:
            pages = (to >> PAGE_BITS) - (at >> PAGE_BITS)
            return (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
        if kind in self.LOW_BITS:
            return (to & LOW) >> self.LOW_BITS[kind] << 10
        return to - at >> 2 & 0x3FFFFFF

    def jump(self, at: int, slot: int) -> bytes:
        """`adrp x16, slot; ldr x16, [x16, :lo12:slot]; br x16`."""
        page, low = self.field(at, 311, slot), self.field(at, 312, slot)
        return struct.pack("<3I", self.ADRP_X16 | page, self.LDR_X16 | low, self.BR_X16)


PROCESSORS: Mapping[int, Processor] = MappingProxyType({each.number: each for each in (X86(), Aarch64())})
"""The processors by their numbers in ELF files."""

__all__ = ["PROCESSORS", "Processor"]
