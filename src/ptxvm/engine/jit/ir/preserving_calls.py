"""Calls that leave all registers as they are, for what happens seldom in loops that need every register.

To LLVM such a call is an instruction that changes memory only: it keeps what lives in registers over it.  A stub saves
them; the function gets one pointer.  Only processors with AVX-512 have so much to lose; elsewhere it is a call.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Code, Unit

GENERAL = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")
WORDS = ("rsi", "rdx", "rcx", "r8", "r9", "r10", "r11")  # of a question, beside the pointer
VECTORS, MASKS = 32, 8
ROOM = VECTORS * 64 + MASKS * 8
CLOBBERS = "~{memory},~{dirflag},~{fpsr},~{flags}"


def call(code: Code, function: str, argument: str) -> None:
    """Call a function of the module with a pointer; what it answers is in memory."""
    if not _has_much_to_lose():
        code.run(f"call void @{function}(ptr {argument})")
        return
    name = stub(code.unit, function)
    code.run(f'call void asm sideeffect "callq ${{0:P}}", "i,{{rdi}},{CLOBBERS}"(ptr @{name}, ptr {argument})')


def ask(code: Code, function: str, room: str, words: Sequence[tuple[int, str, str]]) -> str:
    """Call a function of the module with a pointer to some words, each given by its place, its type and what it is.

    It answers by an i64.  As many words as there are registers for are written down by the stub.
    """
    quick = len(words) if _has_much_to_lose() else 0
    for place, type, operand in words[min(quick, len(WORDS)) :]:
        at = code.emit(f"getelementptr i64, ptr {room}, i64 {place}")
        code.run(f"store {type} {operand}, ptr {at}, align {64 if type[0] == '<' else 8}")
    if not quick:
        return code.emit(f"call i64 @{function}(ptr {room})", pure=False)
    held = list(zip(WORDS, words, strict=False))
    writes = [f"movq %{register}, {8 * place}(%rdi)" for register, (place, _, _) in held]
    name = stub(code.unit, function, [register for register in GENERAL if register != "rax"], writes)
    places = ",".join(f"{{{register}}}" for register, _ in held)
    given = ", ".join(f"{type} {operand}" for _, (_, type, operand) in held)
    asm = f'asm sideeffect "callq ${{1:P}}", "={{rax}},i,{{rdi}},{places},{CLOBBERS}"'
    return code.emit(f"call i64 {asm}(ptr @{name}, ptr {room}, {given})", pure=False)


def _has_much_to_lose() -> bool:
    return cpu.has("avx512bw") and cpu.has("64bit")


def stub(unit: Unit, function: str, kept: Sequence[str] = GENERAL, first: Sequence[str] = ()) -> str:
    """The function that does something first, saves the registers, calls, and puts them back; its name."""
    name = f"{function}.quiet"
    if name in unit.helpers:
        return name
    masks = [f"kmovq %k{n}, {VECTORS * 64 + 8 * n}(%rsp)" for n in range(MASKS)]
    vectors = [f"vmovups %zmm{n}, {64 * n}(%rsp)" for n in range(VECTORS)]
    lines = [
        *first, "pushq %rbp", "movq %rsp, %rbp",
        *(f"pushq %{register}" for register in kept),
        f"subq $${ROOM}, %rsp", "andq $$-64, %rsp", *vectors, *masks,
        "vzeroupper", "callq ${0:P}",
        *(_back(line) for line in (*vectors, *masks)),
        f"leaq -{8 * len(kept)}(%rbp), %rsp",
        *(f"popq %{register}" for register in reversed(kept)),
        "popq %rbp", "retq",
    ]  # fmt: skip
    text = "\\0A".join(lines)
    body = f'  call void asm sideeffect "{text}", "i,{CLOBBERS}"(ptr @{function})\n  unreachable\n'
    return unit.helper(name, f"define internal void @{name}() naked noinline nounwind {{\n{body}}}")


def _back(line: str) -> str:
    """The move the other way round."""
    what, register, place = line.replace(",", "").split()
    return f"{what} {place}, {register}"
