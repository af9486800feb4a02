"""From LLVM IR to functions that can be called, by our own loader and by LLVM's; and what LLVM refuses."""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from pathlib import Path

import pytest

import ptxvm
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.objects.codegen import LinkedObject, Tier, assembly, object_code, optimised
from ptxvm.engine.jit.objects.elf import flatten
from ptxvm.engine.jit.objects.loader import Loaded, NotFlatError

# A constant table, a jump table (absolute or relative, as LLVM likes), a function of the C library, an external address.
MODULE = """
@table = internal constant [4 x i32] [i32 10, i32 20, i32 30, i32 40], align 64
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i32 @abs(i32)
define i32 @entry(i32 %n) nounwind {
entry:
  %place = getelementptr i32, ptr @table, i32 %n
  %found = load i32, ptr %place
  %answer = call i32 @helper(i32 %found)
  ret i32 %answer
}
define internal i32 @helper(i32 %n) noinline nounwind {
  %minus = sub i32 0, %n
  %plus = call i32 @abs(i32 %minus)
  ret i32 %plus
}
define void @clear(ptr %place, i64 %size) nounwind {
  call void @llvm.memset.p0.i64(ptr %place, i8 7, i64 %size, i1 false)
  ret void
}
define ptr @far() nounwind {
  ret ptr @abs
}
define ptr @near() nounwind {
  ret ptr @table
}
"""


@pytest.fixture(params=["our loader", "LLVM's linker"])
def code(request: pytest.FixtureRequest) -> Loaded | LinkedObject:
    """The module in memory."""
    data = object_code(MODULE)
    if request.param == "LLVM's linker":
        return LinkedObject([data], ["entry", "clear", "far", "near"])
    if cpu.platform.machine() != "x86_64":
        pytest.skip("our loader knows x86-64 only")
    return Loaded(flatten(data))


def test_constants_helpers_and_the_c_library_are_found(code: Loaded | LinkedObject) -> None:
    entry = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(code.address("entry"))
    assert [entry(n) for n in range(4)] == [10, 20, 30, 40]
    room = ctypes.create_string_buffer(b"\0" * 100, 100)
    ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(code.address("clear"))(ctypes.addressof(room), 90)
    assert room.raw == b"\7" * 90 + b"\0" * 10


def test_addresses_of_functions_are_filled_in(code: Loaded | LinkedObject) -> None:
    far = ctypes.CFUNCTYPE(ctypes.c_void_p)(code.address("far"))()
    assert ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(far)(-5) == 5
    near = ctypes.CFUNCTYPE(ctypes.c_void_p)(code.address("near"))()
    assert list((ctypes.c_int * 4).from_address(near)) == [10, 20, 30, 40]


def test_what_is_no_object_file_of_this_processor_is_not_flat() -> None:
    with pytest.raises(NotFlatError, match="no object file"):
        flatten(b"MZ" + bytes(100))


def test_memory_that_can_be_written_is_not_flat() -> None:
    with pytest.raises(NotFlatError, match="can be written"):
        flatten(object_code("@counter = global i32 5\n"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("define i32 @f() {\n  ret i64 1\n}\n", "value doesn't match function result type"),
        ("define i32 @f() {\n  %x = add i32 %x, 1\n  ret i32 %x\n}\n", "Only PHI nodes may reference their own value"),
        ("no LLVM at all", "expected top-level entity"),
    ],
)
def test_a_module_that_llvm_refuses_is_a_crash_that_keeps_the_text(text: str, reason: str) -> None:
    with pytest.raises(ptxvm.Crash, match=reason) as caught:
        object_code(text)
    found = re.search(r"kept in (\S+\.ll)", str(caught.value))
    assert found is not None
    kept = Path(found[1])
    assert kept.read_text() == text
    kept.unlink()


@pytest.mark.parametrize("tier", list(Tier))
def test_a_tier_keeps_the_meaning(tier: Tier) -> None:
    text = optimised(
        "define i32 @f(i32 %a) {\n %p = alloca i32\n store i32 %a, ptr %p\n %b = load i32, ptr %p\n"
        " %c = add i32 %b, 1\n ret i32 %c\n}\n",
        tier,
    )
    assert "alloca" not in text
    assert re.search(r"add i32 %a, 1", text)
    assert "ret" in assembly(text, tier)


def test_the_host_is_told_apart_by_its_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = []
    for flags in ("sse2 avx", "sse2 avx avx512f", "sse2 avx"):
        info = tmp_path / "cpuinfo"
        info.write_text(f"processor\t: 0\nmodel name\t: x\nflags\t\t: {flags}\ncpu MHz\t\t: {len(said)}\n\nprocessor\t: 1\n")
        monkeypatch.setattr(cpu, "CPUINFO", info)
        said.append(cpu.identity.__wrapped__())
    assert said[0] == said[2] != said[1]


def test_quick_code_hides_from_llvm_how_counts_grow() -> None:
    """Of loops in a row, strength reduction writes a count as a sum of products of all trip counts."""
    text = """
define i64 @f(i64 %n) {
  %ran.whole = alloca i64, align 8
  store i64 0, ptr %ran.whole, align 8
  br label %loop
loop:
  %old = load i64, ptr %ran.whole, align 8
  %new = add i64 %old, 7
  store i64 %new, ptr %ran.whole, align 8
  %more = icmp ult i64 %new, %n
  br i1 %more, label %loop, label %out
out:
  %all = load i64, ptr %ran.whole, align 8
  ret i64 %all
}
"""
    assert "asm" in optimised(text, Tier.QUICK)
    assert "asm" not in optimised(text, Tier.SKETCH) + optimised(text, Tier.BEST)
    counted = Loaded(flatten(object_code(text, Tier.QUICK)))
    assert ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(counted.address("f"))(50) == 56


def interpreter(cases: int, registers: int) -> str:
    """A loop around a switch: each case changes one of many vectors, which live through all of it."""
    vector, numbers = "<32 x i64>", range(registers)
    lines = ["define void @entry(ptr %at, i32 %n) nounwind {", "entry:", "  %count = alloca i32", "  store i32 %n, ptr %count"]
    for k in numbers:
        lines += [f"  %r{k} = alloca {vector}", f"  %place{k} = getelementptr {vector}, ptr %at, i32 {k}"]
        lines += [f"  %first{k} = load {vector}, ptr %place{k}", f"  store {vector} %first{k}, ptr %r{k}"]
    targets = " ".join(f"i32 {case}, label %case{case}" for case in range(cases))
    lines += ["  br label %head", "head:", "  %left = load i32, ptr %count", f"  %which = urem i32 %left, {cases}"]
    lines += [f"  switch i32 %which, label %next [{targets}]"]
    for case in range(cases):
        a, b, d = case % registers, (case * 7 + 3) % registers, (case * 5 + 1) % registers
        lines += [f"case{case}:", f"  %a{case} = load {vector}, ptr %r{a}", f"  %b{case} = load {vector}, ptr %r{b}"]
        lines += [f"  %d{case} = mul {vector} %a{case}, %b{case}", f"  store {vector} %d{case}, ptr %r{d}", "  br label %next"]
    lines += ["next:", "  %less = sub i32 %left, 1", "  store i32 %less, ptr %count", "  %more = icmp ne i32 %less, 0"]
    lines += ["  br i1 %more, label %head, label %end", "end:"]
    for k in numbers:
        lines += [f"  %last{k} = load {vector}, ptr %r{k}", f"  store {vector} %last{k}, ptr %place{k}"]
    return "\n".join([*lines, "  ret void", "}", ""])


def test_the_register_allocator_is_limited_where_a_range_lives_in_all_blocks_of_a_loop() -> None:
    """LLVM says nothing about an option that it does not know: the code tells that it has taken it."""
    program = (
        "import sys; from ptxvm.engine.jit.objects.codegen import Tier, object_code; "
        "sys.stdout.buffer.write(object_code(sys.stdin.read(), Tier.QUICK, patient={}))"
    )
    found = [
        subprocess.run(
            [sys.executable, "-c", program.format(patient)],
            input=interpreter(60, 24).encode(),
            check=True,
            capture_output=True,
        ).stdout
        for patient in (True, False)
    ]
    assert found[0] != found[1]
