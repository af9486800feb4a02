"""Cubins: ELF files with the machine code of one GPU, and with the PTX that it was made of where they have line information.

`ptxas -lineinfo` and `-g` keep the text for debuggers, in a section `.nv_debug_ptx_txt`; a linker keeps one such section of
each module, with a number behind its name.  The text ends its lines with zero bytes, and lacks comments, `.loc`, `.file` and
`.section`, whose lines are empty; nothing else differs from what the assembler was given.  The line tables of the machine
code know the files, and the places of the PTX that any machine code came from: both are put back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from struct import error, iter_unpack, unpack_from

from ptxvm.driver.client_memory import bytes_at
from ptxvm.driver.line_tables import Location, Unit, locations, units
from ptxvm.driver.results import BuildError, Result

MAGIC = b"\x7fELF"
HEADER = 64
TEXT = ".nv_debug_ptx_txt"
LINES_OF_PTX, LINES_OF_SOURCE = ".nv_debug_line_sass", ".debug_line"
HIDDEN = re.compile(rb"\.hidden\s+\.param\b")
HIDDEN_PARAMETERS = (
    "the cubin has a kernel with hidden parameters: tensor maps, which code for the host in it makes. Compile it for a device "
    "without them (PTXVM_DEVICE=sm_89), or let no load and store use them (in cuda.tile allow_tma=False)"
)
NOBITS = 8  # a section that has no bytes in the file
HEAD = re.compile(rb"\.version[^\n]*\n\s*\.target[^\n]*(\n\s*\.address_size[^\n]*)?")  # of a module


class AssembledPTX(bytes):
    """A text of PTX that an assembler has made machine code of."""


def cubin_at(address: int) -> bytes:
    """The bytes of a cubin in memory, up to the last table or section."""
    header = bytes_at(address, HEADER)
    programs, sections, size, count = *unpack_from("<32xQQ", header), *unpack_from("<58xHH", header)
    program_size, program_count = unpack_from("<54xHH", header)
    table = bytes_at(address + sections, size * count)
    ends = [HEADER, sections + len(table), programs + program_size * program_count]
    for n in range(count):
        kind, offset, length = unpack_from("<4xI16xQQ", table, n * size)
        ends.append(offset if kind == NOBITS else offset + length)
    return bytes_at(address, max(ends))


def ptx_texts(cubin: bytes) -> list[bytes]:
    """The PTX modules that a cubin was made of, in the order of the link: none where it has no line information."""
    try:
        sections = sections_of(cubin)
        texts = {name: data for name, data in sections.items() if name == TEXT or name.startswith(TEXT + ".")}
        if not texts:
            return []
        sources = list(units(sections.get(LINES_OF_SOURCE, b""), symbols_in(sections, LINES_OF_SOURCE)))
        of_ptx = list(units(sections.get(LINES_OF_PTX, b""), symbols_in(sections, LINES_OF_PTX)))
    except (error, ArithmeticError, ValueError, IndexError):
        raise BuildError(Result.INVALID_IMAGE, "the cubin is damaged") from None
    if any(map(HIDDEN.search, texts.values())):
        raise BuildError(Result.NO_BINARY_FOR_GPU, HIDDEN_PARAMETERS)
    lines = {unit.files[0] if unit.files else TEXT: unit for unit in of_ptx}
    return [AssembledPTX(restored(data, lines.get(name), sources)) for name, data in texts.items()]


def restored(data: bytes, ptx: Unit | None, sources: list[Unit]) -> bytes:
    """A text with its lines, its files, and the places in the source where the machine code has them."""
    text = data.rstrip(b"\0").replace(b"\0", b"\n") + b"\n"
    source = next((each for each in sources if ptx is not None and each.rows.keys() & ptx.rows.keys()), None)
    if ptx is None or source is None:
        return text
    lines = with_places(text.split(b"\n"), locations(ptx, source))
    files = [f' .file {number} "{name}"' for number, name in enumerate(source.files, 1)]
    return HEAD.sub(lambda head: head[0] + "".join(files).encode(), b"\n".join(lines), count=1)


def with_places(lines: list[bytes], places: Mapping[int, Location]) -> list[bytes]:
    """The lines of a text with `.loc` in empty lines, each before the first instruction behind it whose place is known."""
    empty = None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            empty = number - 1
        elif line.lstrip().startswith(b"."):  # a declaration, or the head of a function
            empty = None
        elif empty is not None and (place := places.get(number)):
            lines[empty] = b".loc %d %d %d" % place
            empty = None
    return lines


def sections_of(cubin: bytes) -> dict[str, bytes]:
    """The bytes of the sections of a file by name (System V ABI, "Sections")."""
    (table,) = unpack_from("<40xQ", cubin)
    size, count, strings = unpack_from("<58xHHH", cubin)
    heads = [unpack_from("<II16xQQ", cubin, table + size * n) for n in range(count)]
    names = heads[strings][2] if heads else 0
    return {
        cubin[names + name : cubin.index(b"\0", names + name)].decode("latin-1"):
        b"" if kind == NOBITS else cubin[offset : offset + length]
        for name, kind, offset, length in heads
    }  # fmt: skip


def symbols_in(sections: Mapping[str, bytes], name: str) -> dict[int, int]:
    """The numbers of the symbols that relocations of a section name, by offset (System V ABI, "Relocation")."""
    return {offset: info >> 32 for offset, info in iter_unpack("<QQ", sections.get(f".rel{name}", b""))}


__all__ = ["MAGIC", "AssembledPTX", "cubin_at", "ptx_texts"]
