"""Object files of aarch64, linked by ours and, as the oracle, by LLVM's own linker.

Both decide where code and data lie; what each instruction refers to must be the same.  Instructions are decoded by the Arm
Architecture Reference Manual (C6.2), relocations by ELF for the Arm 64-bit Architecture (5.7).
"""

from __future__ import annotations

import ctypes
import struct
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import pytest

from ptxvm.engine.jit.objects.elf import flatten
from ptxvm.engine.jit.objects.loader import FlatCode
from ptxvm.libcuda import native

TRIPLE = "aarch64-unknown-linux-gnu"
STATE = 0x1122_3344_5566_7788  # the address of the variable of native code
ADRP, PAGE_OF_TABLE, OF_TABLE, CALLS = {275, 311}, 311, 312, {282, 283}
SCALED = {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4, 312: 3}  # by the relocation: bits that the field leaves out

# Constants of every width, behind many pages of others, a table of jumps, calls of a function of the same file and of one of
# the C library.
TEXT = """
@far = private constant [50000 x i64] zeroinitializer, align 8
@wide = private constant <4 x i32> <i32 10, i32 20, i32 30, i32 40>, align 16
@words = private constant [4 x i64] [i64 1, i64 2, i64 3, i64 4], align 8
@ints = private constant [4 x i32] [i32 5, i32 6, i32 7, i32 8], align 4
@halves = private constant [4 x i16] [i16 9, i16 10, i16 11, i16 12], align 2
@bytes = private constant [5 x i8] [i8 1, i8 3, i8 5, i8 7, i8 9], align 1
declare i32 @abs(i32)
declare void @memcpy(ptr, ptr, i64)
define i32 @twice(i32 %a) noinline { %b = mul i32 %a, 2
  ret i32 %b }
define <4 x i32> @of_16(<4 x i32> %a) { %b = load <4 x i32>, ptr @wide
  %c = add <4 x i32> %a, %b
  ret <4 x i32> %c }
define i64 @far_at(i64 %n) { %at = getelementptr i64, ptr @far, i64 %n
  %v = load volatile i64, ptr %at
  ret i64 %v }
define double @of_8() { ret double 0x400921FB54442D18 }
define i64 @words_at(i64 %n) { %at = getelementptr i64, ptr @words, i64 %n
  %v = load volatile i64, ptr %at
  %w = load volatile i64, ptr @words
  %s = add i64 %v, %w
  ret i64 %s }
define i32 @narrow() { %a = load volatile i32, ptr @ints
  %b = load volatile i16, ptr @halves
  %c = load volatile i8, ptr @bytes
  %d = zext i16 %b to i32
  %e = zext i8 %c to i32
  %f = add i32 %a, %d
  %g = add i32 %f, %e
  ret i32 %g }
define ptr @address() { ret ptr @twice }
define i32 @chosen(i32 %n) {
  switch i32 %n, label %z [ i32 0, label %a
    i32 1, label %b
    i32 2, label %c
    i32 3, label %d
    i32 4, label %e ]
a: %r0 = call i32 @abs(i32 %n)
  ret i32 %r0
b: %r1 = call i32 @twice(i32 %n)
  ret i32 %r1
c: call void @memcpy(ptr @words, ptr @ints, i64 8)
  ret i32 7
d: %f = ptrtoint ptr @abs to i64
  %g = trunc i64 %f to i32
  ret i32 %g
e: %r2 = tail call i32 @abs(i32 77)
  ret i32 %r2
z: ret i32 -1 }
"""


def machine() -> Any:
    """The code generator, with the code model of the JIT."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(TRIPLE)
    return target.create_target_machine(cpu="generic", features="", opt=2, reloc="pic", codemodel="small", jit=True)


def native_text() -> str:
    """The calls of the driver, as `native.flat_code` has them."""
    places = range(native.FIRST_CLEANUP, native.FIRST_CLEANUP + len(native.CLEANUP))
    cleanup = "".join(native.CLEANING.format(place=place) for place in places)
    return Path(native.__file__).with_suffix(".ll").read_text(encoding="utf-8") + cleanup


def object_file(text: str) -> bytes:
    """The object file of a module, optimised as the JIT does."""
    parsed, target = llvm.parse_assembly(text), machine()
    parsed.triple = TRIPLE
    passes = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=3))
    passes.getModulePassManager().run(parsed, passes)
    return bytes(target.emit_object(parsed))


def relocations(data: bytes) -> list[tuple[int, int]]:
    """The offsets in `.text` and the kinds of its relocations, in order."""
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    rows = [struct.unpack_from("<IIQQQQIIQQ", data, table + size * n) for n in range(count)]
    start = rows[names][4]
    (found,) = [row for row in rows if data[start + row[0] :].startswith(b".rela.text\0")]
    return sorted((at, info & 0xFFFF_FFFF) for at, info, _ in struct.iter_unpack("<QQq", data[found[4] : found[4] + found[5]]))


def signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


class Linked:
    """Linked code from an address on, of which `read` gives bytes."""

    def __init__(self, start: int, read: Any) -> None:
        self.start, self.read = start, read
        self.pages: dict[int, int] = {}  # by register

    def word(self, at: int) -> int:
        return int(struct.unpack("<I", self.read(at, 4))[0])

    def refers_to(self, offset: int, kind: int) -> int | None:
        """What the place of a relocation refers to; None for one half of a reference."""
        at = self.start + offset
        word = self.word(at)
        if kind in ADRP:
            assert word & 0x9F00_0000 == 0x9000_0000
            pages = signed((word >> 5 & 0x7FFFF) << 2 | word >> 29 & 3, 21)
            self.pages[word & 31] = (at & ~0xFFF) + (pages << 12)
            return None
        if kind in SCALED:
            return self.pages[word >> 5 & 31] + ((word >> 10 & 0xFFF) << SCALED[kind])
        assert kind in CALLS
        assert word >> 26 in (0b000101, 0b100101)  # B, BL
        return at + 4 * signed(word & 0x3FF_FFFF, 26)


def jump_of_llvm(there: Linked, at: int) -> int:
    """The address to which four moves of 16 bits and a branch of LLVM's linker lead."""
    words = [there.word(at + 4 * n) for n in range(5)]
    assert words[4] == 0xD61F_0200  # br x16
    return sum((word >> 5 & 0xFFFF) << 16 * (word >> 21 & 3) for word in words[:4])


def jump_of_ours(here: Linked, code: FlatCode, at: int) -> str:
    """The function to which a jump through a slot leads."""
    here.refers_to(at - here.start, 311)
    slot = here.refers_to(at + 4 - here.start, 312)
    assert here.word(at + 8) == 0xD61F_0200
    assert slot is not None
    return code.outer[slot]


def known(name: str) -> int:
    """The address of what the file does not define."""
    return STATE if name == "state" else ctypes.cast(ctypes.CDLL(None)[name], ctypes.c_void_p).value or 0


@pytest.mark.parametrize("text", [native_text(), TEXT], ids=["driver", "constants"])
def test_instructions_refer_to_what_llvms_linker_lets_them_refer_to(text: str) -> None:
    data = object_file(text)
    code = flatten(data)
    llvm.add_symbol("state", STATE)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(f'target triple = "{TRIPLE}"'), machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(data))
    engine.finalize_object()
    name, first = min(code.functions.items(), key=lambda item: item[1])
    kinds = set()
    here = Linked(first, lambda at, size: code.code[at : at + size])  # the section begins with the first function
    there = Linked(engine.get_function_address(name), ctypes.string_at)
    assert {n: engine.get_function_address(n) - there.start for n in code.functions} == {
        n: at - here.start for n, at in code.functions.items()
    }
    for offset, kind in relocations(data):
        ours, theirs = here.refers_to(offset, kind), there.refers_to(offset, kind)
        kinds.add(kind)
        if ours is None or theirs is None:
            continue
        if kind == OF_TABLE:
            (address,) = struct.unpack("<Q", there.read(theirs, 8))
            assert address == (known(code.outer[ours]) if ours in code.outer else code.inner[ours] + there.start - here.start)
        elif kind in CALLS and ours not in code.functions.values():
            assert known(jump_of_ours(here, code, ours)) == jump_of_llvm(there, theirs)
        elif kind in CALLS:
            assert ours - here.start == theirs - there.start
        elif ours in code.inner:
            assert code.inner[ours] - here.start == struct.unpack("<Q", there.read(theirs, 8))[0] - there.start
        else:
            size = max(1 << SCALED[kind], 4)
            assert here.read(ours, size) == there.read(theirs, size)
    assert kinds >= ({OF_TABLE, PAGE_OF_TABLE, 283} if "@state" in text else {*ADRP, *SCALED, *CALLS})


def test_native_calls_are_there_and_need_only_what_there_is() -> None:
    code = flatten(object_file(native_text()))
    cleanup = {f"cleanup_{place}" for place in range(native.FIRST_CLEANUP, native.FIRST_CLEANUP + len(native.CLEANUP))}
    assert set(code.functions) == {*native.FUNCTIONS, "gather", *cleanup}
    assert not code.inner
    held = {"PyGILState_Ensure", "PyGILState_Release", "PyErr_Fetch", "PyErr_Restore"}
    assert set(code.outer.values()) == {"state", "pthread_getspecific", "memcpy", *held}
