"""Calls that leave all registers as they are, for what happens seldom in loops that need every register.

To LLVM such a call is an instruction that changes memory only: it keeps what lives in registers over it.  A stub saves
them; the function gets one pointer.  Only processors with AVX-512 have so much to lose; elsewhere it is a call.
"""

from __future__ import annotations

from ptxvm.engine.jit import host
from ptxvm.engine.jit.code import Code, Unit

GENERAL = ("rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11")
VECTORS, MASKS = 32, 8
ROOM = VECTORS * 64 + MASKS * 8
CLOBBERS = "~{memory},~{dirflag},~{fpsr},~{flags}"


def call(code: Code, function: str, argument: str) -> None:
    """Call a function of the module with a pointer; what it answers is in memory."""
    if not (host.has("avx512bw") and host.has("64bit")):
        code.run(f"call void @{function}(ptr {argument})")
        return
    name = stub(code.unit, function)
    code.run(f'call void asm sideeffect "callq ${{0:P}}", "i,{{rdi}},{CLOBBERS}"(ptr @{name}, ptr {argument})')


def stub(unit: Unit, function: str) -> str:
    """The function that saves the registers, calls, and puts them back; its name."""
    name = f"{function}.quiet"
    if name in unit.helpers:
        return name
    masks = [f"kmovq %k{n}, {VECTORS * 64 + 8 * n}(%rsp)" for n in range(MASKS)]
    vectors = [f"vmovups %zmm{n}, {64 * n}(%rsp)" for n in range(VECTORS)]
    lines = [
        "pushq %rbp", "movq %rsp, %rbp",
        *(f"pushq %{register}" for register in GENERAL),
        f"subq $${ROOM}, %rsp", "andq $$-64, %rsp", *vectors, *masks,
        "vzeroupper", "callq ${0:P}",
        *(_back(line) for line in (*vectors, *masks)),
        f"leaq -{8 * len(GENERAL)}(%rbp), %rsp",
        *(f"popq %{register}" for register in reversed(GENERAL)),
        "popq %rbp", "retq",
    ]  # fmt: skip
    text = "\\0A".join(lines)
    body = f'  call void asm sideeffect "{text}", "i,{CLOBBERS}"(ptr @{function})\n  unreachable\n'
    return unit.helper(name, f"define internal void @{name}() naked noinline nounwind {{\n{body}}}")


def _back(line: str) -> str:
    """The move the other way round."""
    what, register, place = line.replace(",", "").split()
    return f"{what} {place}, {register}"
