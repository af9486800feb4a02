"""Shared libraries without a compiler: ELF files whose every function jumps through a slot of a table.

A process loads the file as it loads any library, and a host fills the slots with addresses of functions.  Until then every
slot leads to code that returns one number.  (System V ABI, "Object Files" and "Dynamic Linking"; the processor supplements
of x86-64 and aarch64.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from struct import pack
from types import MappingProxyType
from typing import NamedTuple

SLOTS = "ptxvm_slots"
STUB = 16  # bytes of code of one function
PAGE = 0x10000  # the largest page of aarch64; x86-64 is content with it
HEADER, PROGRAM_HEADER, SECTION_HEADER, SYMBOL, RELOCATION, DYNAMIC = 64, 56, 64, 24, 24, 16
FUNCTION, OBJECT = 0x12, 0x11  # global symbols
READ, WRITE, EXECUTE = 4, 2, 1
LOAD, DYNAMIC_SEGMENT, STACK = 1, 2, 0x6474E551
PROGBITS, STRTAB, RELA, HASH, DYNAMIC_SECTION, DYNSYM = 1, 3, 4, 5, 6, 11


@dataclass(frozen=True)
class Processor:
    """What the file says of a processor: its number, its relocation "base plus addend", and code."""

    number: int
    relative: int

    def jump(self, at: int, slot: int) -> bytes:
        """The code of a function at an address, which jumps to where a slot says."""
        raise NotImplementedError

    def constant(self, result: int) -> bytes:
        """The code of a function that returns a number."""
        raise NotImplementedError


class X86(Processor):
    """x86-64, with the landing pads of control-flow enforcement."""

    def jump(self, at: int, slot: int) -> bytes:
        """`endbr64; jmp *slot(%rip)`."""
        return (b"\xf3\x0f\x1e\xfa\xff\x25" + pack("<i", slot - (at + 10))).ljust(STUB, b"\x90")

    def constant(self, result: int) -> bytes:
        """`endbr64; mov $result, %eax; ret`."""
        return (b"\xf3\x0f\x1e\xfa\xb8" + pack("<i", result) + b"\xc3").ljust(STUB, b"\x90")


class Aarch64(Processor):
    """aarch64, with the landing pads of branch target identification."""

    def jump(self, at: int, slot: int) -> bytes:
        """`bti c; adrp x16, slot; ldr x16, [x16, :lo12:slot]; br x16`; `bti c` takes jumps through x16."""
        pages = (slot >> 12) - ((at + 4) >> 12)
        adrp = 0x90000010 | (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
        load = 0xF9400210 | (slot & 0xFFF) >> 3 << 10
        return pack("<4I", 0xD503245F, adrp, load, 0xD61F0200)

    def constant(self, result: int) -> bytes:
        """`bti c; mov w0, #result; ret; nop`."""
        return pack("<4I", 0xD503245F, 0x52800000 | result << 5, 0xD65F03C0, 0xD503201F)


PROCESSORS: Mapping[str, Processor] = MappingProxyType({"x86_64": X86(62, 8), "aarch64": Aarch64(183, 1027)})


class Section(NamedTuple):
    """A section of the file, which lies at its own address."""

    name: str
    type: int
    flags: int
    at: int
    data: bytes
    link: int = 0
    info: int = 0
    alignment: int = 8
    entry: int = 0


class Strings:
    """A string table: names, each once, and their offsets."""

    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, name: str) -> int:
        """The offset of a name."""
        at = len(self.data)
        self.data += name.encode("ascii") + b"\0"
        return at


def library(names: Sequence[str], soname: str, processor: str, unfilled: int, ended: int) -> bytes:
    """The file of a library that exports `names`, in the order of the slots, and the table `ptxvm_slots`.

    `unfilled` (0 to 65,535) is what a function returns whose slot has not been filled.  `STUB` bytes behind the code that
    does so is code that returns `ended`, for slots when the host ends.  KeyError for an unknown processor.
    """
    cpu = PROCESSORS[processor]
    strings = Strings()
    offsets = [strings.add(name) for name in (*names, SLOTS)]
    soname_at = strings.add(soname)
    count = len(names)

    hash_at = HEADER + 4 * PROGRAM_HEADER
    table = hash_table([*names, SLOTS])
    symbols_at = aligned(hash_at + len(table), 8)
    strings_at = symbols_at + SYMBOL * (count + 2)
    relocations_at = aligned(strings_at + len(strings.data), 8)
    text_at = aligned(relocations_at + RELOCATION * count, PAGE)
    stubs_at = text_at + 2 * STUB
    dynamic_at = aligned(stubs_at + STUB * count, PAGE)
    entries = dynamic(hash_at, strings_at, len(strings.data), symbols_at, relocations_at, count, soname_at)
    slots_at = aligned(dynamic_at + len(entries), 64)
    end = slots_at + 8 * count

    symbols = bytes(SYMBOL) + b"".join(
        pack("<IBBHQQ", offset, FUNCTION, 0, 5, stubs_at + STUB * n, STUB) for n, offset in enumerate(offsets[:-1])
    )
    symbols += pack("<IBBHQQ", offsets[-1], OBJECT, 0, 7, slots_at, 8 * count)
    relocations = b"".join(pack("<QQq", slots_at + 8 * n, cpu.relative, text_at) for n in range(count))
    text = (
        cpu.constant(unfilled)
        + cpu.constant(ended)
        + b"".join(cpu.jump(stubs_at + STUB * n, slots_at + 8 * n) for n in range(count))
    )
    sections = [
        Section(".hash", HASH, 2, hash_at, table, link=2, entry=4),
        Section(".dynsym", DYNSYM, 2, symbols_at, symbols, link=3, info=1, entry=SYMBOL),
        Section(".dynstr", STRTAB, 2, strings_at, strings.data, alignment=1),
        Section(".rela.dyn", RELA, 2, relocations_at, relocations, link=2, entry=RELOCATION),
        Section(".text", PROGBITS, 6, text_at, text, alignment=STUB),
        Section(".dynamic", DYNAMIC_SECTION, 3, dynamic_at, entries, link=3, entry=DYNAMIC),
        Section(".data", PROGBITS, 3, slots_at, pack(f"<{count}Q", *[text_at] * count), alignment=64),
    ]
    segments = [
        segment(LOAD, READ | EXECUTE, 0, stubs_at + STUB * count, PAGE),
        segment(LOAD, READ | WRITE, dynamic_at, end - dynamic_at, PAGE),
        segment(DYNAMIC_SEGMENT, READ | WRITE, dynamic_at, len(entries), 8),
        segment(STACK, READ | WRITE, 0, 0, 16),
    ]
    return image(cpu, segments, sections, end)


def dynamic(
    hash_at: int, strings_at: int, strings: int, symbols_at: int, relocations_at: int, count: int, soname: int
) -> bytes:
    """The entries that the dynamic linker reads, each a tag and a value."""
    entries = [
        (14, soname),
        (4, hash_at),
        (5, strings_at),
        (6, symbols_at),
        (10, strings),
        (11, SYMBOL),
        (7, relocations_at),
        (8, RELOCATION * count),
        (9, RELOCATION),
        (0x6FFFFFF9, count),
        (0, 0),
    ]
    return b"".join(pack("<QQ", *entry) for entry in entries)


def segment(type: int, flags: int, at: int, size: int, alignment: int) -> bytes:
    """A program header; the file is mapped as it is."""
    return pack("<IIQQQQQQ", type, flags, at, at, at, size, size, alignment)


def image(cpu: Processor, segments: Sequence[bytes], sections: Sequence[Section], end: int) -> bytes:
    """The whole file; linkers read the sections, loaders the segments."""
    names = Strings()
    named = [names.add(each.name) for each in sections]
    names_at, named_self = end, names.add(".shstrtab")
    headers_at = aligned(names_at + len(names.data), 8)
    whole = bytearray(headers_at)
    head = pack(
        "<HHIQQQIHHHHHH",
        3, cpu.number, 1, 0, HEADER, headers_at, 0, HEADER,
        PROGRAM_HEADER, len(segments), SECTION_HEADER, len(sections) + 2, len(sections) + 1,
    )  # fmt: skip
    parts = {0: b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + head, HEADER: b"".join(segments), names_at: names.data}
    for at, data in (parts | {each.at: each.data for each in sections}).items():
        whole[at : at + len(data)] = data
    whole += bytes(SECTION_HEADER)
    for name, each in zip(named, sections, strict=True):
        place = (name, each.type, each.flags, each.at, each.at, len(each.data))
        whole += pack("<IIQQQQIIQQ", *place, each.link, each.info, each.alignment, each.entry)
    whole += pack("<IIQQQQIIQQ", named_self, STRTAB, 0, 0, names_at, len(names.data), 0, 0, 1, 0)
    return bytes(whole)


def hash_table(names: Sequence[str]) -> bytes:
    """The hash table of the symbols, which are numbered from 1."""
    count = len(names) + 1
    buckets, chain = [0] * (count // 2 + 1), [0] * count
    for number, name in enumerate(names, 1):
        bucket = hash_of(name) % len(buckets)
        chain[number], buckets[bucket] = buckets[bucket], number
    return pack(f"<{2 + len(buckets) + count}I", len(buckets), count, *buckets, *chain)


def hash_of(name: str) -> int:
    """The hash of a name (System V ABI, "Hash Table")."""
    value = 0
    for byte in name.encode("ascii"):
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value


def aligned(at: int, alignment: int) -> int:
    """The next multiple of an alignment."""
    return -(-at // alignment) * alignment


__all__ = ["PROCESSORS", "SLOTS", "STUB", "library"]
