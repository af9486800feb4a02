"""Shared libraries without a compiler: ELF files whose every function jumps through a slot of a table.

A process loads the file as it loads any library, and a host fills the slots with addresses of functions.  Before, every
slot leads to code that starts the host.  (System V ABI, "Object Files" and "Dynamic Linking"; the processor supplements
of x86-64 and aarch64.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import pack
from types import MappingProxyType

from ptxvm.libcuda.assembler import PROCESSORS, STUB, Processor
from ptxvm.libcuda.starter import IMPORTS, Starter, slot_label, starting_code, text_label
from ptxvm.named_tuple import NamedTuple

SLOTS = "ptxvm_slots"
FORKED = "ptxvm_forked"  # a function that lets every slot lead to code that returns `unfilled`: in a forked child
PAGE = 0x10000  # the largest page of aarch64; x86-64 is content with it
HEADER, PROGRAM_HEADER, SECTION_HEADER, SYMBOL, RELOCATION, DYNAMIC = 64, 56, 64, 24, 24, 16
FUNCTION, OBJECT, IMPORT = 0x12, 0x11, 0x20  # global functions and objects; a weak symbol of another library, or of none
READ, WRITE, EXECUTE = 4, 2, 1
LOAD, DYNAMIC_SEGMENT, STACK = 1, 2, 0x6474E551
RUNPATH = 29  # where what is needed is searched
PROGBITS, STRTAB, RELA, HASH, DYNAMIC_SECTION, DYNSYM, VERDEF, VERSYM = 1, 3, 4, 5, 6, 11, 0x6FFFFFFD, 0x6FFFFFFF
GLOBAL, VERSIONED = 1, 2  # versions of symbols


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


def library(
    names: Sequence[str], soname: str, processor: str, unfilled: int, ended: int, starter: Starter, version: str = "",
    texts: Mapping[str, str] = MappingProxyType({}),
) -> bytes:  # fmt: skip
    """The file of a library that exports `names`, in the order of the slots, and the table `ptxvm_slots`.

    A function with an empty slot runs the `starter`, and returns `unfilled` (0 to 65,535) where the slot stays empty.
    `STUB` bytes before the first target of the slots is code that returns `ended`, for the end of the host; as many bytes
    before that is code that returns 0, and before that code that also stores a null pointer.  The functions have a `version`
    for the linker, unless it is "".  `texts` are what functions that return strings do so in a forked process.
    KeyError for an unknown processor.
    """
    cpu = PROCESSORS[processor]
    strings = Strings()
    symbols = [*IMPORTS, *names, FORKED, SLOTS]
    offsets = [strings.add(name) for name in symbols]
    entries = [(14, strings.add(soname)), *([(1, strings.add(starter.python))] if starter.python else [])]
    versions = version_table(strings, soname, version) if version else b""
    numbers = pack(f"<{len(symbols) + 1}H", 0, *[GLOBAL] * len(IMPORTS), *[VERSIONED] * (len(names) + 2)) if version else b""
    read = DataLayout(HEADER + 4 * PROGRAM_HEADER, {
        ".hash": hash_table(symbols), ".dynsym": bytes(SYMBOL * (len(symbols) + 1)), ".dynstr": strings.data,
        ".gnu.version": numbers, ".gnu.version_d": versions,
        ".rela.dyn": bytes(RELOCATION * (len(names) + 1 + len(IMPORTS))),
    })  # fmt: skip
    text_at = aligned(read.end, PAGE)
    code_at = text_at + 4 * STUB
    said = {names.index(name): text for name, text in texts.items()}
    stubs_at = aligned(code_at + len(starting_code(cpu, code_at, {}, len(names), [*said]).data), STUB)
    dynamic_at = aligned(stubs_at + STUB * len(names), PAGE)
    entries += dynamic_entries(read, len(names), versioned=bool(version))
    dynamic = b"".join(pack("<QQ", *entry) for entry in [*entries, (0, 0)])
    written = DataLayout(aligned(dynamic_at + len(dynamic), 64), {
        "slots": bytes(8 * len(names)), **{name: bytes(8) for name in IMPORTS}, **starter.data(),
        **{text_label(number): text.encode() + b"\0" for number, text in said.items()},
    })  # fmt: skip

    first = starting_code(cpu, code_at, {}, len(names), [*said]).defined
    slots_at = written.labels["slots"]
    labels = written.labels | first | {slot_label(number): slots_at + 8 * number for number in said} | {"unfilled": text_at}
    code = starting_code(cpu, code_at, labels, len(names), [*said])
    constants = cpu.constant(unfilled) + cpu.none() + cpu.constant(0) + cpu.constant(ended)
    text = (constants + bytes(code.data)).ljust(stubs_at - text_at, b"\0")
    text += b"".join(cpu.jump(stubs_at + STUB * n, n, slots_at + 8 * n) for n in range(len(names)))
    pointers = [(slots_at + 8 * n, first["first call"]) for n in range(len(names))]
    pointers.append((written.labels["argv"], written.labels["program"]))
    data = bytearray(written.data)
    data[: 8 * len(names)] = pack(f"<{len(names)}Q", *[first["first call"]] * len(names))
    read.put(".dynsym", symbol_table(offsets, stubs_at, first["forked"], slots_at))
    read.put(".rela.dyn", relocation_table(cpu, pointers, [written.labels[name] for name in IMPORTS]))
    sections = [
        Section(".hash", HASH, 2, *read.piece(".hash"), link=2, entry=4),
        Section(".dynsym", DYNSYM, 2, *read.piece(".dynsym"), link=3, info=1, entry=SYMBOL),
        Section(".dynstr", STRTAB, 2, *read.piece(".dynstr"), alignment=1),
        Section(".rela.dyn", RELA, 2, *read.piece(".rela.dyn"), link=2, entry=RELOCATION),
        Section(".text", PROGBITS, 6, text_at, text, alignment=STUB),
        Section(".dynamic", DYNAMIC_SECTION, 3, dynamic_at, dynamic, link=3, entry=DYNAMIC),
        Section(".data", PROGBITS, 3, slots_at, bytes(data), alignment=64),
    ]
    if version:
        sections.append(Section(".gnu.version", VERSYM, 2, *read.piece(".gnu.version"), link=2, alignment=2, entry=2))
        sections.append(Section(".gnu.version_d", VERDEF, 2, *read.piece(".gnu.version_d"), link=3, info=2, alignment=4))
    return image(cpu, segments(text_at + len(text), dynamic_at, len(dynamic), written.end), sections, written.end)


def requirement(needed: str, processor: str) -> bytes:
    """The file of a library with nothing but a need of another, which the loader finds in the folder of the file.

    Where that other library is loaded already, from the same file under another name, the loader adds the name to it: it
    compares files.  KeyError for an unknown processor.
    """
    strings = Strings()
    entries = [(1, strings.add(needed)), (RUNPATH, strings.add("$ORIGIN"))]
    tables = {".hash": hash_table(()), ".dynsym": bytes(SYMBOL), ".dynstr": strings.data, ".rela.dyn": b""}
    read = DataLayout(HEADER + 4 * PROGRAM_HEADER, tables)
    dynamic_at = aligned(read.end, PAGE)
    entries += dynamic_entries(read, -1, versioned=False)  # of which none is relative
    dynamic = b"".join(pack("<QQ", *entry) for entry in [*entries, (0, 0)])
    end = dynamic_at + len(dynamic)
    sections = [
        Section(".hash", HASH, 2, *read.piece(".hash"), link=2, entry=4),
        Section(".dynsym", DYNSYM, 2, *read.piece(".dynsym"), link=3, info=1, entry=SYMBOL),
        Section(".dynstr", STRTAB, 2, *read.piece(".dynstr"), alignment=1),
        Section(".dynamic", DYNAMIC_SECTION, 3, dynamic_at, dynamic, link=3, entry=DYNAMIC),
    ]
    return image(PROCESSORS[processor], segments(read.end, dynamic_at, len(dynamic), end), sections, end)


def segments(text_end: int, dynamic_at: int, dynamic_size: int, end: int) -> list[bytes]:
    """The segments: code, then data with the dynamic section first; and the stack, which is not executable."""
    return [
        segment(LOAD, READ | EXECUTE, 0, text_end, PAGE),
        segment(LOAD, READ | WRITE, dynamic_at, end - dynamic_at, PAGE),
        segment(DYNAMIC_SEGMENT, READ | WRITE, dynamic_at, dynamic_size, 8),
        segment(STACK, READ | WRITE, 0, 0, 16),
    ]


class DataLayout:
    """Pieces of data one behind the other, at multiples of 16, and their addresses."""

    def __init__(self, at: int, pieces: Mapping[str, bytes]) -> None:
        self.at = at
        self.labels: dict[str, int] = {}
        self.sizes = {name: len(piece) for name, piece in pieces.items()}
        self.data = bytearray()
        for name, piece in pieces.items():
            self.data += bytes(aligned(self.end, 16) - self.end)
            self.labels[name] = self.end
            self.data += piece

    @property
    def end(self) -> int:
        """The address behind the last piece."""
        return self.at + len(self.data)

    def put(self, name: str, piece: bytes) -> None:
        """Fill a piece."""
        start = self.labels[name] - self.at
        self.data[start : start + self.sizes[name]] = piece

    def piece(self, name: str) -> tuple[int, bytes]:
        """The address of a piece, and its bytes."""
        start = self.labels[name] - self.at
        return self.labels[name], bytes(self.data[start : start + self.sizes[name]])


def dynamic_entries(read: DataLayout, count: int, *, versioned: bool) -> list[tuple[int, int]]:
    """The tables that the dynamic linker reads, each a tag and a value; `count` slots and one more pointer are relative."""
    at, sizes = read.labels, read.sizes
    entries = [(4, at[".hash"]), (5, at[".dynstr"]), (6, at[".dynsym"]), (10, sizes[".dynstr"]), (11, SYMBOL)]
    entries += [(7, at[".rela.dyn"]), (8, sizes[".rela.dyn"]), (9, RELOCATION), (0x6FFFFFF9, count + 1)]
    if versioned:
        entries += [(0x6FFFFFF0, at[".gnu.version"]), (0x6FFFFFFC, at[".gnu.version_d"]), (0x6FFFFFFD, 2)]
    return entries


def symbol_table(offsets: Sequence[int], stubs_at: int, forked_at: int, slots_at: int) -> bytes:
    """The symbols: what is imported, the functions, what a forked child calls, and the slots."""
    imported, functions = offsets[: len(IMPORTS)], offsets[len(IMPORTS) : -2]
    table = bytes(SYMBOL) + b"".join(pack("<IBBHQQ", offset, IMPORT, 0, 0, 0, 0) for offset in imported)
    for n, offset in enumerate(functions):
        table += pack("<IBBHQQ", offset, FUNCTION, 0, 5, stubs_at + STUB * n, STUB)
    table += pack("<IBBHQQ", offsets[-2], FUNCTION, 0, 5, forked_at, STUB)
    return table + pack("<IBBHQQ", offsets[-1], OBJECT, 0, 7, slots_at, 8 * len(functions))


def relocation_table(cpu: Processor, pointers: Sequence[tuple[int, int]], cells: Sequence[int]) -> bytes:
    """The relocations: pointers into the file, and cells for what is imported."""
    table = b"".join(pack("<QQq", at, cpu.relative, to) for at, to in pointers)
    return table + b"".join(pack("<QQq", at, n << 32 | cpu.symbolic, 0) for n, at in enumerate(cells, 1))


def version_table(strings: Strings, soname: str, version: str) -> bytes:
    """The definitions of versions: of the file, and of its functions (Linux Standard Base, "Symbol Versioning")."""
    table = b""
    for number, (name, flags) in enumerate([(soname, 1), (version, 0)], 1):
        following = 0 if number == 2 else 28
        table += pack("<HHHHIII", 1, flags, number, 1, hash_of(name), 20, following) + pack("<II", strings.add(name), 0)
    return table


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
        fields = (name, each.type, each.flags, each.at, each.at, len(each.data))
        whole += pack("<IIQQQQIIQQ", *fields, each.link, each.info, each.alignment, each.entry)
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


__all__ = ["FORKED", "SLOTS", "library", "requirement"]
