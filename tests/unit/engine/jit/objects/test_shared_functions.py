"""What stands in many modules alike is set apart as libraries, and does the same there; the modules are written here."""

from __future__ import annotations

import ctypes

import pytest

from ptxvm.engine.jit.abi.specialisation import Tier
from ptxvm.engine.jit.ir import cpu, libraries, preserving_calls
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.ir.module_text import NAMED, module_text
from ptxvm.engine.jit.objects import codegen
from ptxvm.engine.jit.objects.code_cache import link
from ptxvm.engine.jit.objects.shared_functions import set_apart


def function(name: str, how: str, steps: int, called: str = "", constant: int = 1) -> str:
    """A function that adds a constant some times, to what another one returns."""
    call = f"  %v0 = call i64 @{called}(i64 %a)" if called else "  %v0 = add i64 %a, 0"
    lines = [f"  %v{n + 1} = add i64 %v{n}, {constant}" for n in range(steps)]
    return "\n".join([f"define internal i64 @{name}(i64 %a) {how} {{", call, *lines, f"  ret i64 %v{steps}", "}"])


def module(*functions: str, calls: str) -> str:
    """A module whose function `main` calls one of its functions."""
    main = f"define i64 @main(i64 %a) #0 {{\n  %v0 = call i64 @{calls}(i64 %a)\n  ret i64 %v0\n}}"
    return "\n".join([*functions, main, *NAMED])


def answer(text: str, tier: Tier, argument: int) -> int:
    """What `main` returns, linked with the libraries."""
    linked, _ = link(codegen.object_code(text, tier), "main", "main", libraries.needed(text), tier)
    found: int = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)(linked.address("main"))(argument)
    return found


def test_a_long_function_is_a_library() -> None:
    text = module(function("long", "noinline #0", 50), calls="long")
    left = set_apart(text, Tier.QUICK)
    (name,) = libraries.needed(left)
    assert "define" not in left.replace("define i64 @main", "")
    assert f"define i64 @{name}(" in libraries.LIBRARIES[name]
    assert answer(left, Tier.QUICK, 7) == answer(text, Tier.QUICK, 7) == 57


def test_one_of_another_name_and_module_is_the_same_library() -> None:
    here = set_apart(module(function("long", "noinline #0", 50), calls="long"), Tier.QUICK)
    there = set_apart(
        module(function("other", "#2", 90, constant=3), function("long", "noinline #0", 50), calls="long"), Tier.QUICK
    )
    another = set_apart(module(function("long", "noinline #0", 50, constant=2), calls="long"), Tier.QUICK)
    assert libraries.needed(here) == libraries.needed(there) != libraries.needed(another)
    assert answer(another, Tier.QUICK, 1) == 101


def test_two_functions_of_a_module_that_are_the_same_are_one_library() -> None:
    alike = function("one", "noinline #0", 120), function("other", "noinline #0", 120)
    both = (
        "define internal i64 @both(i64 %a) #0 {\n  %x = call i64 @one(i64 %a)\n  %y = call i64 @other(i64 %x)\n  ret i64 %y\n}"
    )
    text = module(*alike, both, calls="both")
    left = set_apart(text, Tier.QUICK)
    assert left.count("\ndeclare ") == len(libraries.needed(left)) == 1
    assert answer(left, Tier.QUICK, 1) == answer(text, Tier.QUICK, 1) == 241


@pytest.mark.parametrize(("how", "tier", "apart"), [
    ("#1", Tier.SKETCH, True), ("#1", Tier.QUICK, True), ("#1", Tier.BEST, False),
    ("#2", Tier.QUICK, True), ("cold #2", Tier.BEST, True), ("#0", Tier.QUICK, True), ("#0", Tier.BEST, False),
])  # fmt: skip
def test_what_is_called_is_a_library_and_what_is_inlined_is_not(how: str, tier: Tier, apart: bool) -> None:
    text = module(function("piece", how, 40), calls="piece")
    left = set_apart(text, tier)
    assert bool(libraries.needed(left)) is apart
    assert answer(left, tier, 2) == 42


def test_short_functions_stay_and_go_where_they_are_called() -> None:
    text = module(function("short", "noinline #0", 3), function("long", "noinline #0", 50, "short"), calls="long")
    left = set_apart(text, Tier.QUICK)
    (name,) = libraries.needed(left)
    assert "@short(" in libraries.LIBRARIES[name]
    assert "@short(" not in left
    assert set_apart(module(function("short", "noinline #0", 3), calls="short"), Tier.QUICK).count("define") == 2
    assert answer(left, Tier.QUICK, 0) == 53


def test_a_library_calls_another() -> None:
    text = module(function("inner", "#2", 120), function("outer", "noinline #0", 60, "inner"), calls="outer")
    left = set_apart(text, Tier.QUICK)
    names = libraries.needed(left)
    assert len(names) == 2
    assert names[1] not in left
    assert answer(left, Tier.QUICK, 0) == answer(text, Tier.QUICK, 0) == 180


def test_what_calls_a_function_of_the_kernel_stays() -> None:
    text = module(function("warp", "#0", 50), function("ctas", "#2", 50, "warp"), calls="ctas")
    assert not libraries.needed(set_apart(text, Tier.QUICK))


def test_tables_go_along() -> None:
    table = "@ptxvm.table = internal constant [2 x i64] [i64 40, i64 2], align 64"
    reads = function("long", "noinline #0", 40).replace("ret i64 %v40", "%t = load i64, ptr @ptxvm.table\n  ret i64 %t")
    left = set_apart(module(table, reads, calls="long"), Tier.QUICK)
    assert len(libraries.needed(left)) == 1
    assert answer(left, Tier.QUICK, 0) == 40


@pytest.mark.parametrize("preserving", [True, False])
def test_a_call_that_preserves_registers_reaches_a_library(preserving: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inline assembly cannot take the address of a function of another module."""
    if preserving and not cpu.has("avx512bw"):
        pytest.skip("such calls are for AVX-512")
    monkeypatch.setattr(preserving_calls, "_has_much_to_lose", lambda: preserving)
    unit = Unit()
    body = function("long", "noinline #0", 50).replace("i64 %a", "ptr %q").replace("add ptr %q, 0", "load i64, ptr %q")
    unit.helper("long", body)
    code = Code(unit)
    found = preserving_calls.ask(code, "long", "%room", [(0, "i64", "%a")])
    lines = "\n".join(["  %room = alloca [4 x i64]", *code.lines, f"  ret i64 {found}"])
    text = module_text(unit, f"define i64 @main(i64 %a) #0 {{\n{lines}\n}}")
    left = set_apart(text, Tier.QUICK)
    assert len(libraries.needed(left)) == 1
    assert answer(left, Tier.QUICK, 5) == 55
