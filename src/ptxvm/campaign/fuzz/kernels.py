"""Mutated kernels: no PTX that is valid ends the process, whatever it computes."""

from __future__ import annotations

import re
from random import Random

import numpy as np

from ptxvm.api import Kernel, load
from ptxvm.diagnostics.errors import Fault, InvalidPTX, Unsupported
from ptxvm.machine.options import EngineName

NUMBER = re.compile(r"(?<![\w%.$])(?:0x[0-9a-fA-F]+|\d+)(?![\w.])")
REGISTER = re.compile(r"%[a-z]+\d*")
STRANGE = ["0", "1", "31", "32", "33", "0x7fffffff", "0x80000000", "0xffffffff", "4096", "65536", "5"]
DEFINED = re.compile(r"(?:\.visible\s+)?\.(?:entry\s+([\w$]+)|func)")
WORDS = 64  # of each array
INPUTS = [
    (2, np.zeros(WORDS, np.uint32), 3),
    (1, np.full(WORDS, 0xFFFFFFFF, np.uint32), 0),
    (3, np.resize([int(each, 0) for each in STRANGE], WORDS).astype(np.uint32), 40),
]
"""The grids, and what arrays and numbers are, of the launches of each kernel."""


def mutated(text: str, random: Random) -> tuple[str, list[str]]:
    """A few small changes of numbers, registers, opcodes, guards and lines; and the kernels that have them, if all do."""
    lines = text.splitlines()
    code = [n for n, line in enumerate(lines) if line.strip().endswith(";") and not line.strip().startswith((".", "//"))]
    if not code:
        return text, []
    changed: list[str] = []
    names = sorted(set(REGISTER.findall(text))) or ["%none"]
    for _ in range(random.randint(1, 4)):
        at = random.choice(code)
        lines[at] = changed_line(lines[at], lines[random.choice(code)], names, random)
        changed.append(next((found[1] for before in lines[at::-1] if (found := DEFINED.match(before))), ""))
    return "\n".join(lines), sorted(set(changed)) if all(changed) else []


def changed_line(line: str, other: str, names: list[str], random: Random) -> str:
    """A line with one kind of change; `other` is another line, and `names` are registers."""
    match random.randrange(6):
        case 0:
            return NUMBER.sub(lambda m: random.choice(STRANGE) if random.random() < 0.5 else m[0], line)
        case 1:
            return REGISTER.sub(lambda m: random.choice(names) if random.random() < 0.4 else m[0], line)
        case 2:
            return f"{line} {other.strip()}"
        case 3:
            return ""
        case 4:
            guards = [each for each in names if each.startswith("%p")]
            guarded = f"@{random.choice(['', '!'])}{random.choice(guards)} {line.strip()}" if guards else line
            return line if "@" in line else guarded
    mine, theirs = line.split(), other.split()
    return " ".join([theirs[0], *mine[1:]]) if mine and theirs and "@" not in mine[0] + theirs[0] else line


def run_all(text: str, names: list[str], engine: EngineName = "jit") -> set[str] | None:
    """Run kernels, or all where none is named, for a few instructions; gives the mnemonics of the module, None of no valid one.

    Faults and refusals are results as others are.
    """
    try:
        module = load(text.encode())
    except (InvalidPTX, Unsupported):
        return None
    for kernel in [module.kernel(name) for name in names if name in module.kernels] or list(module.kernels.values()):
        run_kernel(kernel, engine)
    functions = [each for program in module.programs for each in program.functions.values()]
    return {bound.i.mnemonic for function in functions for bound in function.instructions}


def run_kernel(kernel: Kernel, engine: EngineName) -> None:
    """Run a kernel on small arrays of zeros, of ones and of strange words: what takes long is to compile it."""
    parameters = kernel.function.signature.parameters
    for grid, words, number in INPUTS:
        args = [words.copy() if each.type.bits == 64 else number for each in parameters]
        try:
            kernel.launch(grid=grid, block=40, args=args, engine=engine, steps=1)
        except (Unsupported, ValueError, TypeError):
            return
        except Fault:
            continue


__all__ = ["mutated", "run_all"]
