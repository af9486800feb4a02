"""How long modules take to read and check, and how much memory: families of PTX, a few MB each.

Each is checked in a process of its own, forked from one that has imported ptxvm and declared all instructions but checked
nothing.  The clock is the processor's; memory is what the highest resident size rises by, in MB of PTX.
"""

from __future__ import annotations

import os
import pickle
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ptxvm.analysis.check import analyse
from ptxvm.syntax.source import Source

MODULE = ".version 8.0\n.target sm_80\n.address_size 64\n\n"
TEXT_SIZE = 2_000_000
"""The bytes of a text."""
REGISTERS = "\t.reg .pred %p<2000>;\n\t.reg .b32 %r<4000>;\n\t.reg .f32 %f<4000>;\n\t.reg .b64 %rd<4000>;\n\n"
KERNEL = (
    ".visible .entry k{n}(\n\t.param .u64 k{n}_param_0,\n\t.param .u32 k{n}_param_1\n)\n{{\n{registers}{body}\tret;\n}}\n\n"
)
BODY = 2_000
"""Statements of a kernel in most families."""


def kernels(size: int, statement: Callable[[random.Random, int], str], statements: int = BODY) -> str:
    """Kernels of so many statements each, up to a size."""
    rng, parts, length = random.Random(1), [MODULE], 0  # noqa: S311 - the same text each time
    for n in range(size):
        body = "".join([statement(rng, number) for number in range(statements)])
        parts.append(KERNEL.format(n=n, registers=REGISTERS, body=body))
        length += len(parts[-1])
        if length >= size:
            break
    return "".join(parts)


def arithmetic(rng: random.Random, _: int) -> str:
    """Operations on registers that differ from line to line, a third of them with constants."""
    a, b, c = (rng.randrange(4000) for _ in range(3))
    return rng.choice((
        f"\tadd.s32 \t%r{a}, %r{b}, %r{c};\n", f"\tadd.s32 \t%r{a}, %r{b}, {c};\n", f"\txor.b32 \t%r{a}, %r{b}, %r{c};\n",
        f"\tmul.wide.s32 \t%rd{a}, %r{b}, {c};\n", f"\tfma.rn.f32 \t%f{a}, %f{b}, %f{c}, %f{a};\n",
        f"\tmov.f32 \t%f{a}, 0f{b * 1000003:08X};\n", f"\tcvt.u64.u32 \t%rd{a}, %r{b};\n",
        f"\tsetp.lt.s32 \t%p{a % 2000}, %r{b}, %r{c};\n", f"\tselp.b32 \t%r{a}, %r{b}, %r{c}, %p{a % 2000};\n",
    ))  # fmt: skip


def memory(rng: random.Random, _: int) -> str:
    """Loads and stores at offsets."""
    a, b, c = (rng.randrange(4000) for _ in range(3))
    return rng.choice((
        f"\tld.global.f32 \t%f{a}, [%rd{b}+{c}];\n", f"\tst.global.u32 \t[%rd{b}+{c}], %r{a};\n",
        f"\tld.shared.v4.u32 \t{{%r{a}, %r{b}, %r{c}, %r{a}}}, [%r{b}+{c * 16}];\n",
        f"\tst.global.v2.f32 \t[%rd{a}+-{b}], {{%f{b}, %f{c}}};\n",
    ))  # fmt: skip


def branches(rng: random.Random, number: int) -> str:
    """Guarded jumps to labels, as compilers name them."""
    a, b = rng.randrange(2000), rng.randrange(4000)
    return f"\tsetp.ne.s32 \t%p{a}, %r{b}, {a};\n\t@%p{a} bra \t$L__BB0_{number};\n\n$L__BB0_{number}:\n"


def calls(rng: random.Random, number: int) -> str:
    """Calls through blocks of parameters, as nvcc writes them."""
    a, b = rng.randrange(4000), rng.randrange(4000)
    return (
        f"\t{{ // callseq {number}, 0\n\t.reg .b32 temp_param_reg;\n\t.param .b64 param0;\n"
        f"\tst.param.b64 \t[param0+0], %rd{a};\n"
        f"\t.param .b32 retval0;\n\tcall.uni (retval0), \n\tf, \n\t(\n\tparam0\n\t);\n\tld.param.b32 \t%r{b}, [retval0+0];\n"
        f"\t}} // callseq {number}\n"
    )


def inline(rng: random.Random, _: int) -> str:
    """Blocks of inline assembly with registers of their own, and comments."""
    a, b, c = (rng.randrange(4000) for _ in range(3))
    return (
        f"\t// begin inline asm\n\t{{ .reg .pred p;\n  setp.ge.s32 p, %r{a}, {c};\n  @p add.s32 %r{b}, %r{a}, %r{c};\n}}\n"
        "\t// end inline asm\n"
    )


def located(rng: random.Random, number: int) -> str:
    """Arithmetic with its lines, as of a build with -lineinfo."""
    return f"\t.loc\t1 {number % 700 + 1} {rng.randrange(1, 60)}\n{arithmetic(rng, number)}"


def singles(rng: random.Random, number: int) -> str:
    """Registers declared one by one, where they are first used."""
    return f"\t.reg .b32 t{number};\n\tadd.s32 t{number}, %r{rng.randrange(4000)}, {rng.randrange(99999)};\n"


def packed(rng: random.Random, number: int) -> str:
    """Four instructions on a line, with Windows line ends."""
    return " ".join(arithmetic(rng, number).strip() for _ in range(4)) + "\r\n"


def aligned(rng: random.Random, number: int) -> str:
    """Instructions in columns, with a comment behind each."""
    head, _, operands = arithmetic(rng, number).strip().partition(" \t")
    return f"    {head:<16} {operands:<40} // {number}: {rng.random()}\n"


def guarded(rng: random.Random, number: int) -> str:
    """Every instruction under a guard."""
    return f"\t@{rng.choice(('', '!'))}%p{rng.randrange(2000)} {arithmetic(rng, number).strip()}\n"


def switches(rng: random.Random, number: int) -> str:
    """Jumps through tables."""
    names = ", ".join(f"$L_{number}_{case}" for case in range(4))
    labels = "".join(f"$L_{number}_{case}:\n\tadd.s32 \t%r1, %r1, {case};\n" for case in range(4))
    return f"$T_{number}: .branchtargets {names};\n\tbrx.idx \t%r{rng.randrange(4000)}, $T_{number};\n{labels}"


def spread(rng: random.Random, _: int) -> str:
    """Products of matrices whose operands have lines of their own, and scalars with decimal constants."""
    kinds = (("f", 4), ("r", 4), ("r", 2), ("f", 4))
    a, b, c, d = ("{" + ", ".join([f"%{kind}{rng.randrange(4000)}" for _ in range(n)]) + "}" for kind, n in kinds)
    head = "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"
    number = rng.randrange(4000)
    return f"\t{head}\n\t\t{a},\n\t\t{b},\n\t\t{c},\n\t\t{d};\n\tmul.f32 \t%f{number}, %f{number}, {rng.random():.4f};\n"


def indirect(rng: random.Random, number: int) -> str:
    """Calls of what a register names, by a prototype in their block, and calls that pass registers."""
    a, b = rng.randrange(4000), rng.randrange(4000)
    return (
        f"\t{{\n\t.param .b64 param0;\n\tst.param.b64 \t[param0+0], %rd{a};\n\t.param .b32 retval0;\n"
        f"\tprototype_{number} : .callprototype (.param .b32 _) _ (.param .b64 _) ;\n"
        f"\tcall (retval0), \n\t%rd{b}, \n\t(\n\tparam0\n\t)\n\t, prototype_{number};\n"
        f"\tld.param.b32 \t%r{b}, [retval0+0];\n\t}}\n\tcall.uni (%r{a}), g, (%r{b});\n"
    )


def nested(rng: random.Random, number: int) -> str:
    """Blocks in blocks, with registers of their own."""
    a, b = rng.randrange(4000), rng.randrange(4000)
    return f"\t{{\n\t{{\n\t.reg .b32 t{number};\n\tmov.b32 t{number}, %r{a};\n\tadd.s32 %r{b}, t{number}, {a};\n\t}}\n\t}}\n"


def expressions(rng: random.Random, _: int) -> str:
    """Operands that are expressions of constants, as hand-written headers leave them."""
    a, b, c = (rng.randrange(4000) for _ in range(3))
    return rng.choice((
        f"\tmov.u32 \t%r{a}, {b}+{c}*4;\n", f"\tadd.s32 \t%r{a}, %r{b}, ({c}<<2)|1;\n", f"\tmov.b64 \t%rd{a}, ~{b};\n",
        f"\tmov.u32 \t%r{a}, ({b} > {c}) ? {a} : -1;\n", f"\tld.global.u32 \t%r{a}, [%rd{b}+{c}*8+4];\n",
    ))  # fmt: skip


def local_variables(rng: random.Random, number: int) -> str:
    """Variables of the stack and of shared memory, where they are first used."""
    a = rng.randrange(4000)
    return rng.choice((
        f"\t.local .align 4 .b8 \tloc{number}[16];\n\tmov.u64 \t%rd{a}, loc{number};\n",
        f"\t.shared .align 4 .f32 \tsh{number};\n\tst.shared.f32 \t[sh{number}], %f{a};\n",
        f"\tld.local.u32 \t%r{a}, [%rd{a}+4];\n",
    ))  # fmt: skip


def vectors(rng: random.Random, number: int) -> str:
    """Registers of vectors, and their components."""
    a, b = rng.randrange(4000), rng.randrange(4000)
    return (
        f"\t.reg .v4 .f32 \tv{number};\n\tld.global.v4.f32 \tv{number}, [%rd{a}];\n"
        f"\tadd.f32 \t%f{b}, v{number}.x, v{number}.y;\n"
    )


def repeated(size: int, statement: Callable[[random.Random, int], str]) -> str:
    """Statements of a module up to a size."""
    rng, parts, length, number = random.Random(1), [MODULE], 0, 0  # noqa: S311 - the same text each time
    while length < size:
        parts.append(statement(rng, number))
        length, number = length + len(parts[-1]), number + 1
    return "".join(parts)


def variable(rng: random.Random, number: int) -> str:
    """A variable of a module, with one value or none."""
    kinds = (".f32 v{n};", ".b8 v{n}[64];", ".u32 v{n} = {c};", ".b64 v{n};")
    return f".visible .global .align 8 {rng.choice(kinds).format(n=number, c=rng.randrange(64))}\n"


def external(_: random.Random, number: int) -> str:
    """A function of another module."""
    parameters = f"\t.param .b64 f{number}_param_0,\n\t.param .b32 f{number}_param_1\n"
    return f".extern .func  (.param .b32 func_retval0) f{number}\n(\n{parameters})\n;\n"


def empty(_: random.Random, number: int) -> str:
    """A kernel that does nothing."""
    return f".visible .entry k{number}()\n{{\n\tret;\n}}\n"


def parameters(rng: random.Random, number: int) -> str:
    """A kernel with many parameters."""
    kinds = (".u64 {name}", ".u32 {name}", ".align 8 .b8 {name}[16]", ".u64 .ptr .global {name}")
    names = [f"k{number}_param_{place}" for place in range(rng.randrange(20, 60))]
    lines = ",\n".join([f"\t.param {rng.choice(kinds).format(name=name)}" for name in names])
    return f".visible .entry k{number}(\n{lines}\n)\n{{\n\tret;\n}}\n\n"


def caller(rng: random.Random, number: int) -> str:
    """A function that calls one above."""
    name, called = f"f{number}", f"f{rng.randrange(max(number, 1))}"
    call = (
        "\t{\n\t.param .b64 param0;\n\tst.param.b64 \t[param0+0], %rd1;\n\t.param .b32 retval0;\n"
        f"\tcall.uni (retval0), \n\t{called}, \n\t(\n\tparam0\n\t);\n\tld.param.b32 \t%r1, [retval0+0];\n\t}}\n"
    )
    return (
        f".func (.param .b32 func_retval0) {name}(\n\t.param .b64 {name}_param_0\n)\n{{\n\t.reg .b32 \t%r<4>;\n"
        f"\t.reg .b64 \t%rd<2>;\n\n\tld.param.u64 \t%rd1, [{name}_param_0];\n{call if number else ''}"
        f"\tadd.s32 \t%r2, %r1, {number};\n\tst.param.b32 \t[func_retval0+0], %r2;\n\tret;\n}}\n\n"
    )


def functions(size: int) -> str:
    """Functions of five instructions that load their parameters."""
    text = (
        ".func (.param .b32 func_retval0) f{n}(\n\t.param .b64 f{n}_param_0,\n\t.param .b32 f{n}_param_1\n)\n{{\n"
        "\t.reg .b32 \t%r<4>;\n\t.reg .b64 \t%rd<2>;\n\n\tld.param.u64 \t%rd1, [f{n}_param_0];\n"
        "\tld.param.u32 \t%r1, [f{n}_param_1];\n\tadd.s32 \t%r2, %r1, {n};\n\tst.param.b32 \t[func_retval0+0], %r2;\n"
        "\tret;\n}}\n\n"
    )
    return MODULE + "".join(text.format(n=n) for n in range(size // 350 + 1))


def data(size: int) -> str:
    """Variables with initialisers."""
    rng, parts = random.Random(1), [MODULE]  # noqa: S311 - the same text each time
    for n in range(size // 4_000 + 1):
        values = ", ".join([str(rng.randrange(256)) for _ in range(800)])
        parts.append(f".global .align 4 .b8 table{n}[800] = {{{values}}};\n")
    return "".join(parts)


def constants(size: int) -> str:
    """Tables of masks, of numbers below zero and of the bits of floats, and strings."""
    rng, parts = random.Random(1), [MODULE]  # noqa: S311 - the same text each time
    for n in range(size // 900 + 1):
        masks = ", ".join([f"0x{rng.randrange(1 << 32):08x}" for _ in range(32)])
        numbers = ", ".join([str(rng.randrange(-99, 99)) for _ in range(32)])
        floats = ", ".join([f"0f{rng.randrange(1 << 30):08X}" for _ in range(16)])
        letters = ", ".join([str(rng.randrange(32, 127)) for _ in range(12)])
        parts.append(
            f".global .align 4 .b32 masks{n}[32] = {{{masks}}};\n.global .align 4 .s32 numbers{n}[32] = {{{numbers}}};\n"
            f".global .align 4 .f32 floats{n}[16] = {{{floats}}};\n.global .align 1 .b8 $str${n}[13] = {{{letters}, 0}};\n"
        )
    return "".join(parts)


def debugged(size: int) -> str:
    """Sections of DWARF."""
    rng = random.Random(1)  # noqa: S311 - the same text each time
    lines = [f".b8 {', '.join([str(rng.randrange(256)) for _ in range(6)])}\n" for _ in range(size // 32)]
    return f"{kernels(1, arithmetic, 10)}\t.section\t.debug_info\n\t{{\n{''.join(lines)}\t}}\n"


def small(size: int) -> str:
    """Kernels of ten instructions."""
    return kernels(size, arithmetic, 10)


FUNCTION = ".func (.param .b32 out) f(.param .b64 a)\n{\n\tst.param.b32 [out], 1;\n\tret;\n}\n"
OF_REGISTERS = ".func (.reg .b32 o) g(.reg .b32 a)\n{\n\tmov.b32 o, a;\n\tret;\n}\n"
FAMILIES: dict[str, Callable[[int], str]] = {
    "arithmetic": lambda size: kernels(size, arithmetic),
    "loads and stores": lambda size: kernels(size, memory),
    "branches": lambda size: kernels(size, branches),
    "calls": lambda size: kernels(size, calls).replace(MODULE, MODULE + FUNCTION, 1),
    "inline assembly": lambda size: kernels(size, inline),
    "line numbers": lambda size: kernels(size, located).replace(MODULE, MODULE + '.file 1 "k.cu"\n', 1),
    "single registers": lambda size: kernels(size, singles),
    "four on a line": lambda size: kernels(size, packed),
    "columns, comments": lambda size: kernels(size, aligned),
    "guards": lambda size: kernels(size, guarded),
    "switches": lambda size: kernels(size, switches),
    "lines of operands": lambda size: kernels(size, spread),
    "indirect calls": lambda size: kernels(size, indirect).replace(MODULE, MODULE + OF_REGISTERS, 1),
    "nested blocks": lambda size: kernels(size, nested),
    "constant expressions": lambda size: kernels(size, expressions),
    "local variables": lambda size: kernels(size, local_variables),
    "registers of vectors": lambda size: kernels(size, vectors),
    "variables": lambda size: repeated(size, variable),
    "externs": lambda size: repeated(size, external),
    "empty kernels": lambda size: repeated(size, empty),
    "many parameters": lambda size: repeated(size, parameters),
    "callers": lambda size: repeated(size, caller),
    "small kernels": small,
    "functions": functions,
    "data": data,
    "constants": constants,
    "debug sections": debugged,
}


@dataclass
class Reading:
    """What checking a text took: processor seconds, and the rise of memory in MB, both for a MB of PTX."""

    seconds: float
    memory: float
    errors: int


def resident(name: str) -> float:
    """A size of this process, in MB: `VmRSS`, or `VmHWM`, the highest."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024 / 1e6
    raise ValueError(f"/proc/self/status has no {name}")


def read(text: bytes) -> Reading:
    """Check a text in a child of this process."""
    inlet, outlet = os.pipe()
    child = os.fork()
    if child == 0:
        Path("/proc/self/clear_refs").write_text("5")
        before, began = resident("VmRSS"), time.process_time()
        _, report = analyse(Source(text))
        seconds = time.process_time() - began
        errors = sum(each.severity.name == "ERROR" for each in report.diagnostics)
        size = len(text) / 1e6
        os.write(outlet, pickle.dumps(Reading(seconds / size, (resident("VmHWM") - before) / size, errors)))
        os._exit(0)
    os.close(outlet)
    with os.fdopen(inlet, "rb") as stream:
        found = stream.read()
    os.waitpid(child, 0)
    reading: Reading = pickle.loads(found)  # noqa: S301 - our own child wrote it
    return reading
