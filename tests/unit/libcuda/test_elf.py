"""The file of the library: loaded by the system's own linker, and its code for aarch64 decoded by Arm's tables.

Encodings of aarch64 are those of the Arm Architecture Reference Manual (C6.2): `ADRP` (op 1, immlo 30:29, immhi 23:5),
`LDR` with an unsigned offset of 8 bytes (imm12 21:10), `BR` (Rn 9:5), `BTI c` and `RET` as constants.
"""

from __future__ import annotations

import ctypes
import os
import platform
import shutil
import struct
import subprocess
import sys
from types import SimpleNamespace

import pytest

from ptxvm.libcuda.assembler import PROCESSORS
from ptxvm.libcuda.elf import FORKED, SLOTS, library
from ptxvm.libcuda.embedded import library_of_python
from ptxvm.libcuda.shared_library import add_name
from ptxvm.libcuda.starter import IMPORTS, Starter

NONE = Starter("pass", "", "")
NAMES = ["first", "second", *(f"f{n}" for n in range(700))]
ADRP, LDR_X16_X16, BR_X16, BTI_C, RET = 0x90000010, 0xF9400210, 0xD61F0200, 0xD503245F, 0xD65F03C0
MOV_W17 = 0x52800011


@pytest.mark.skipif(platform.machine() not in PROCESSORS, reason="no stub is written for this processor")
def test_the_linker_loads_it_and_functions_go_where_the_slots_say(tmp_path):
    path = tmp_path / "libtest.so"
    path.write_bytes(library(NAMES, "libtest.so.1", platform.machine(), 3, 4, NONE))
    loaded = ctypes.CDLL(str(path))
    assert (loaded.first(0), loaded.f699()) == (3, 3)  # nothing has filled them
    slots = (ctypes.c_void_p * len(NAMES)).in_dll(loaded, SLOTS)
    seven_more = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda value: value + 7)
    slots[1] = ctypes.cast(seven_more, ctypes.c_void_p).value
    assert loaded.second(35) == 42
    slots[0] -= 32
    assert loaded.first(0) == 4  # the host has ended
    slots[0] -= 32
    assert loaded.first(0) == 0  # and what it would give up has ended with it
    slots[0] -= 32
    current = ctypes.c_void_p(1)
    assert (loaded.first(0), loaded.first(ctypes.byref(current)), current.value) == (0, 0, None)
    loaded[FORKED]()
    assert (loaded.first(0), loaded.second(35), loaded.f699()) == (3, 3, 3)
    with pytest.raises(AttributeError):
        loaded.third  # noqa: B018


@pytest.mark.skipif(platform.machine() not in PROCESSORS, reason="no stub is written for this processor")
def test_a_loaded_library_gets_another_name(tmp_path):
    path = tmp_path / "libnamed.so.1"
    path.write_bytes(library(NAMES, "libnamed.so.1", platform.machine(), 3, 4, NONE))
    (tmp_path / "libnamed.so").symlink_to(path)
    loaded = ctypes.CDLL(str(path))
    with pytest.raises(OSError, match=r"libnamed\.so"):
        ctypes.CDLL("libnamed.so")
    add_name(path, "libnamed.so")
    assert ctypes.CDLL("libnamed.so")._handle == loaded._handle
    assert sorted(each.name for each in tmp_path.iterdir()) == ["libnamed.so", "libnamed.so.1"]


@pytest.mark.parametrize("processor", PROCESSORS)
def test_the_header_names_the_processor(processor):
    numbers = {"x86_64": 62, "aarch64": 183}  # EM_X86_64, EM_AARCH64
    data = library(NAMES, "libtest.so.1", processor, 3, 4, NONE)
    assert data[:7] == b"\x7fELF\x02\x01\x01"  # 64 bits, little-endian, version 1
    assert struct.unpack_from("<HH", data, 16) == (3, numbers[processor])  # ET_DYN


def test_aarch64_functions_jump_through_their_slots():
    data = library(NAMES, "libtest.so.1", "aarch64", 3, 4, NONE)
    symbols = exported(data)
    assert set(symbols) == {*IMPORTS, *NAMES, FORKED, SLOTS}
    for number, name in enumerate(NAMES):
        at = symbols[name]
        words = struct.unpack_from("<5I", data, at)
        assert words[:2] == (BTI_C, MOV_W17 | number << 5)
        assert words[2] & 0x9F00001F == ADRP
        pages = (words[2] >> 5 & 0x7FFFF) << 2 | words[2] >> 29 & 3
        assert words[3] & 0xFFC003FF == LDR_X16_X16
        slot = ((at + 8 >> 12) + pages << 12) + (words[3] >> 10 & 0xFFF) * 8
        assert slot == symbols[SLOTS] + 8 * number
        assert words[4] == BR_X16
    first_call = struct.unpack_from("<Q", data, symbols[SLOTS])[0]
    for at, result in ((first_call - 128, 3), (first_call - 64, 0), (first_call - 32, 4)):
        assert struct.unpack_from("<3I", data, at) == (BTI_C, 0x52800000 | result << 5, RET)  # mov w0, #result
    cbz_x0_8, str_xzr_x0, mov_w0_0 = 0xB4000040, 0xF900001F, 0x52800000
    assert struct.unpack_from("<5I", data, first_call - 96) == (BTI_C, cbz_x0_8, str_xzr_x0, mov_w0_0, RET)


TEXTS = {"second": "a text", "f5": "another"}


@pytest.mark.skipif(platform.machine() not in PROCESSORS, reason="no stub is written for this processor")
def test_functions_that_return_strings_do_so_in_a_forked_process(tmp_path):
    path = tmp_path / "libtexts.so"
    path.write_bytes(library(NAMES, "libtexts.so.1", platform.machine(), 3, 4, NONE, texts=TEXTS))
    loaded = ctypes.CDLL(str(path))
    loaded[FORKED]()
    for name, text in TEXTS.items():
        function = loaded[name]
        function.restype = ctypes.c_char_p
        assert function(7) == text.encode()
    assert (loaded.first(0), loaded.f4(), loaded.f699()) == (3, 3, 3)


def address_in(register: int, data: bytes, at: int) -> int:
    """The address that `adrp` and `add` at some place put into a register."""
    page, low = struct.unpack_from("<2I", data, at)
    assert (page & 0x9F00001F, low & 0xFFC003FF) == (0x90000000 | register, 0x91000000 | register << 5 | register)
    return ((at >> 12) + ((page >> 5 & 0x7FFFF) << 2 | page >> 29 & 3) << 12) + (low >> 10 & 0xFFF)


def test_aarch64_functions_that_return_strings_do_so_in_a_forked_process():
    str_x1_x0, loop = 0xF9000001, (0x52800002 | len(NAMES) << 5, 0xF8008401, 0x71000442, 0x54FFFFC1)
    data = library(NAMES, "libtest.so.1", "aarch64", 3, 4, NONE, texts=TEXTS)
    symbols = exported(data)
    at = symbols[FORKED]
    assert struct.unpack_from("<I", data, at)[0] == BTI_C
    assert address_in(0, data, at + 4) == symbols[SLOTS]
    assert struct.unpack_from("<4I", data, at + 20) == loop
    at += 36
    for name, text in TEXTS.items():
        assert address_in(0, data, at) == symbols[SLOTS] + 8 * NAMES.index(name)
        gives = address_in(1, data, at + 8)
        assert struct.unpack_from("<I", data, at + 16)[0] == str_x1_x0
        assert struct.unpack_from("<I", data, gives)[0] == BTI_C
        assert data[address_in(0, data, gives + 4) :].startswith(text.encode() + b"\0")
        assert struct.unpack_from("<I", data, gives + 12)[0] == RET
        at += 20
    assert struct.unpack_from("<I", data, at)[0] == RET


# What a library does before Python runs: as text, and as the assembler Keystone 0.9.2 writes it, with 0 for every address.
AARCH64_START = """
bti c; stp x29, x30, [sp, #-224]!; mov x29, sp
stp x0, x1, [sp, #16]; stp x2, x3, [sp, #32]; stp x4, x5, [sp, #48]; stp x6, x7, [sp, #64]; stp x8, x17, [sp, #80]
stp q0, q1, [sp, #96]; stp q2, q3, [sp, #128]; stp q4, q5, [sp, #160]; stp q6, q7, [sp, #192]
adrp x0, 0; add x0, x0, #0; adrp x1, 0; add x1, x1, #0; adrp x16, 0; ldr x16, [x16]; blr x16
ldp q0, q1, [sp, #96]; ldp q2, q3, [sp, #128]; ldp q4, q5, [sp, #160]; ldp q6, q7, [sp, #192]
ldp x0, x1, [sp, #16]; ldp x2, x3, [sp, #32]; ldp x4, x5, [sp, #48]; ldp x6, x7, [sp, #64]; ldp x8, x17, [sp, #80]
ldp x29, x30, [sp], #224
adrp x16, 0; add x16, x16, #0; ldr x16, [x16, x17, lsl #3]; adrp x17, 0; add x17, x17, #0; cmp x16, x17; b.eq 0; br x16
bti c; stp x29, x30, [sp, #-32]!; mov x29, sp; str x19, [sp, #16]
adrp x16, 0; ldr x16, [x16]; cbz x16, 0; adrp x16, 0; ldr x16, [x16]; blr x16; cbz w0, 0
adrp x16, 0; ldr x16, [x16]; blr x16; mov w19, w0
adrp x0, 0; add x0, x0, #0; adrp x16, 0; ldr x16, [x16]; blr x16
mov w0, w19; adrp x16, 0; ldr x16, [x16]; blr x16; b 0
adrp x16, 0; ldr x16, [x16]; cbz x16, 0; adrp x0, 0; add x0, x0, #0; mov w1, #0x102; adrp x16, 0; ldr x16, [x16]; blr x16
adrp x0, 0; add x0, x0, #0; adrp x16, 0; ldr x16, [x16]; blr x16
adrp x0, 0; add x0, x0, #0; mov w1, #1; adrp x2, 0; add x2, x2, #0; adrp x8, 0; add x8, x8, #0
adrp x16, 0; ldr x16, [x16]; blr x16
"""
AARCH64_WORDS = """
D503245F A9B27BFD 910003FD
A90107E0 A9020FE2 A90317E4 A9041FE6 A90547E8
AD0307E0 AD040FE2 AD0517E4 AD061FE6
90000000 91000000 90000001 91000021 90000010 F9400210 D63F0200
AD4307E0 AD440FE2 AD4517E4 AD461FE6
A94107E0 A9420FE2 A94317E4 A9441FE6 A94547E8
A8CE7BFD
90000010 91000210 F8717A10 90000011 91000231 EB11021F 54000000 D61F0200
D503245F A9BE7BFD 910003FD F9000BF3
90000010 F9400210 B4000010 90000010 F9400210 D63F0200 34000000
90000010 F9400210 D63F0200 2A0003F3
90000000 91000000 90000010 F9400210 D63F0200
2A1303E0 90000010 F9400210 D63F0200 14000000
90000010 F9400210 B4000010 90000000 91000000 52802041 90000010 F9400210 D63F0200
90000000 91000000 90000010 F9400210 D63F0200
90000000 91000000 52800021 90000002 91000042 90000008 91000108
90000010 F9400210 D63F0200
"""
MASKS = (
    (0x9F000000, 0x90000000, 0x60FFFFE0), (0xFF800000, 0x91000000, 0x003FFC00), (0xFFC00210, 0xF9400210, 0x003FFC00),
    (0x7E000000, 0x34000000, 0x00FFFFE0), (0xFF000010, 0x54000000, 0x00FFFFE0), (0xFC000000, 0x14000000, 0x03FFFFFF),
)  # fmt: skip
"""Of `adrp`, `add`, `ldr x16, [x16]`, `cbz`, `b.cond` and `b`: which bits tell them, and which are an address."""


def without_addresses(word: int) -> int:
    """An instruction with 0 for an address."""
    for bits, told, address in MASKS:
        if word & bits == told:
            return word & ~address
    return word


def test_aarch64_starts_python_as_an_assembler_writes_it():
    wanted = [int(word, 16) for word in AARCH64_WORDS.split()]
    data = library(NAMES, "libtest.so.1", "aarch64", 3, 4, NONE)
    start = struct.unpack_from("<Q", data, exported(data)[SLOTS])[0]
    found = struct.unpack_from(f"<{len(wanted)}I", data, start)
    assert len(wanted) == sum(line.count(";") + 1 for line in AARCH64_START.strip().splitlines())
    assert [hex(without_addresses(word)) for word in found] == [hex(word) for word in wanted]


@pytest.mark.skipif(platform.machine() not in PROCESSORS, reason="no stub is written for this processor")
def test_a_first_call_runs_the_script_and_keeps_its_arguments(tmp_path):
    """Here Python runs already; the script fills the slots, and the call goes on."""
    script = "import filler; filler.fill()"
    path = tmp_path / "libstarted.so"
    path.write_bytes(library(["double", "other"], "libstarted.so", platform.machine(), 3, 4, Starter(script, "", "")))
    loaded = ctypes.CDLL(str(path))
    prototype = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int, ctypes.c_double)
    twice = prototype(lambda count, value: count * value)
    calls = []

    def fill():
        calls.append(1)
        (ctypes.c_void_p * 2).in_dll(loaded, SLOTS)[0] = ctypes.cast(twice, ctypes.c_void_p).value

    sys.modules["filler"] = SimpleNamespace(fill=fill)
    try:
        assert prototype(("double", loaded))(3, 1.25) == 3.75
        assert prototype(("double", loaded))(2, 2.5) == 5
        assert loaded.other() == 3  # nothing has filled it
    finally:
        del sys.modules["filler"]
    assert calls == [1]


C_PROGRAM = """
extern int answer(int, double);
#include <stdio.h>
int main(void) { printf("%d\\n", answer(40, 2.0)); return 0; }
"""


@pytest.mark.skipif(platform.machine() not in PROCESSORS, reason="no stub is written for this processor")
@pytest.mark.skipif(not (library_of_python() and shutil.which("cc")), reason="it needs cc and a shared library of Python")
def test_a_program_without_python_starts_it(tmp_path):
    script = f"""
import ctypes
loaded = ctypes.CDLL({str(tmp_path / "libanswer.so.1")!r})
sum = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_double)(lambda a, b: int(a + b))
ctypes.c_void_p.in_dll(loaded, {SLOTS!r}).value = ctypes.cast(sum, ctypes.c_void_p).value
"""
    starter = Starter(script, sys.executable, library_of_python())
    path = tmp_path / "libanswer.so.1"
    path.write_bytes(library(["answer"], path.name, platform.machine(), 3, 4, starter, "VERSION_1"))
    (tmp_path / "main.c").write_text(C_PROGRAM)
    command = ["cc", "main.c", str(path), "-Wl,--allow-shlib-undefined", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    environment = os.environ | {"LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run(["./main"], cwd=tmp_path, env=environment, check=False, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("42\n", "")


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
