"""Calls that preserve all registers, for rare paths of loops that need every register.

To LLVM such a call is inline assembly that only changes memory, so values stay in registers across it.  A stub saves and
restores the registers; the function gets one pointer.  Only AVX-512 has registers enough to make this pay; on other
processors it is an ordinary call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Code, Unit

GENERAL = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")
WORDS = ("rsi", "rdx", "rcx", "r8", "r9", "r10", "r11")  # registers for words of a question, beside the pointer
VECTORS, MASKS = 32, 8
ROOM = VECTORS * 64 + MASKS * 8
CLOBBERS = "~{memory},~{dirflag},~{fpsr},~{flags}"
BY_ADDRESS = re.compile(r"callq \$\{\d:P\}([^\n]*?)ptr @([\w.]+)")


def call(code: Code, function: str, argument: str) -> None:
    """Call a function of the module with a pointer; it answers in memory."""
    if not _has_much_to_lose():
        code.run(f"call void @{function}(ptr {argument})")
        return
    name = stub(code.unit, function)
    code.run(f'call void asm sideeffect "callq ${{0:P}}", "i,{{rdi}},{CLOBBERS}"(ptr @{name}, ptr {argument})')


def ask(code: Code, function: str, room: str, words: Sequence[tuple[int, str, str]]) -> str:
    """Call a function of the module with a pointer to words, each given as (index, type, operand); returns its i64.

    The stub stores the words that fit registers; the others are stored before the call.
    """
    quick = len(words) if _has_much_to_lose() else 0
    for index, type, operand in words[min(quick, len(WORDS)) :]:
        at = code.emit(f"getelementptr i64, ptr {room}, i64 {index}")
        code.run(f"store {type} {operand}, ptr {at}, align {64 if type[0] == '<' else 8}")
    if not quick:
        return code.emit(f"call i64 @{function}(ptr {room})", pure=False)
    held = list(zip(WORDS, words, strict=False))
    writes = [f"movq %{register}, {8 * index}(%rdi)" for register, (index, _, _) in held]
    name = stub(code.unit, function, [register for register in GENERAL if register != "rax"], writes)
    constraints = ",".join(f"{{{register}}}" for register, _ in held)
    arguments = ", ".join(f"{type} {operand}" for _, (_, type, operand) in held)
    asm = f'asm sideeffect "callq ${{1:P}}", "={{rax}},i,{{rdi}},{constraints},{CLOBBERS}"'
    return code.emit(f"call i64 {asm}(ptr @{name}, ptr {room}, {arguments})", pure=False)


def elsewhere(text: str, names: Mapping[str, str]) -> str:
    """A text whose calls reach functions of other modules, by these names: inline assembly names what it has no address of."""

    def named(found: re.Match[str]) -> str:
        between, function = found.groups()
        return f"callq {names[function]}@PLT{between}i64 0" if function in names else found[0]

    return BY_ADDRESS.sub(named, text)


def _has_much_to_lose() -> bool:
    return cpu.has("avx512bw") and cpu.has("64bit")


def stub(unit: Unit, function: str, kept: Sequence[str] = GENERAL, first: Sequence[str] = ()) -> str:
    """The stub that executes `first`, saves the registers, calls and restores them; returns its name."""
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
    """The restoring move of a saving one."""
    opcode, register, target = line.replace(",", "").split()
    return f"{opcode} {target}, {register}"
