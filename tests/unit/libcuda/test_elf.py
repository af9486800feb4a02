"""The file of the library: loaded by the system's own linker, and its code for aarch64 decoded by Arm's tables.

Encodings of aarch64 are those of the Arm Architecture Reference Manual (C6.2): `ADRP` (op 1, immlo 30:29, immhi 23:5),
`LDR` with an unsigned offset of 8 bytes (imm12 21:10), `BR` (Rn 9:5), `BTI c` and `RET` as constants.
"""

from __future__ import annotations

import ctypes
import platform
import struct

import pytest

from ptxvm.libcuda.elf import PROCESSORS, SLOTS, library

NAMES = ["first", "second", *(f"f{n}" for n in range(700))]
ADRP, LDR_X16_X16, BR_X16, BTI_C, RET = 0x90000010, 0xF9400210, 0xD61F0200, 0xD503245F, 0xD65F03C0


@pytest.mark.skipif(platform.machine() not in PROCESSORS, reason="no stub is written for this processor")
def test_the_linker_loads_it_and_functions_go_where_the_slots_say(tmp_path):
    path = tmp_path / "libtest.so"
    path.write_bytes(library(NAMES, "libtest.so.1", platform.machine(), 3, 4))
    loaded = ctypes.CDLL(str(path))
    assert (loaded.first(0), loaded.f699()) == (3, 3)  # nothing has filled them
    slots = (ctypes.c_void_p * len(NAMES)).in_dll(loaded, SLOTS)
    seven_more = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda value: value + 7)
    slots[1] = ctypes.cast(seven_more, ctypes.c_void_p).value
    assert loaded.second(35) == 42
    slots[0] += 16
    assert loaded.first(0) == 4  # the host has ended
    with pytest.raises(AttributeError):
        loaded.third  # noqa: B018


@pytest.mark.parametrize("processor", PROCESSORS)
def test_the_header_names_the_processor(processor):
    numbers = {"x86_64": 62, "aarch64": 183}  # EM_X86_64, EM_AARCH64
    data = library(NAMES, "libtest.so.1", processor, 3, 4)
    assert data[:7] == b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
    assert struct.unpack_from("<HH", data, 16) == (3, numbers[processor])  # ET_DYN


def test_aarch64_functions_jump_through_their_slots():
    data = library(NAMES, "libtest.so.1", "aarch64", 3, 4)
    symbols = exported(data)
    assert set(symbols) == {*NAMES, SLOTS}
    for number, name in enumerate(NAMES):
        at = symbols[name]
        words = struct.unpack_from("<4I", data, at)
        assert words[0] == BTI_C
        assert words[1] & 0x9F00001F == ADRP
        pages = (words[1] >> 5 & 0x7FFFF) << 2 | words[1] >> 29 & 3
        assert words[2] & 0xFFC003FF == LDR_X16_X16
        slot = ((at + 4 >> 12) + pages << 12) + (words[2] >> 10 & 0xFFF) * 8
        assert slot == symbols[SLOTS] + 8 * number
        assert words[3] == BR_X16
    unfilled = struct.unpack_from("<Q", data, symbols[SLOTS])[0]
    for at, result in ((unfilled, 3), (unfilled + 16, 4)):
        assert struct.unpack_from("<3I", data, at) == (BTI_C, 0x52800000 | result << 5, RET)  # mov w0, #result


def exported(data: bytes) -> dict[str, int]:
    """The addresses of the dynamic symbols, by the section headers (System V ABI, "Sections")."""
    headers, size, count = struct.unpack_from("<Q", data, 40)[0], *struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, headers + size * n) for n in range(count)]
    table = next(each for each in sections if each[1] == 11)  # SHT_DYNSYM
    strings = sections[table[6]]
    found = {}
    for at in range(table[4] + 24, table[4] + table[5], 24):
        name, _, _, _, value, _ = struct.unpack_from("<IBBHQQ", data, at)
        begin = strings[4] + name
        found[data[begin : data.index(b"\0", begin)].decode()] = value
    return found
