"""No PTX ends the process: mutants of the conformance kernels run on the JIT, in a process of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import ptxvm

MUTANTS = int(os.environ.get("PTXVM_MUTANTS", "30"))
BATCH = 30
CONFORMANCE = Path(__file__).parents[1] / "conformance"
NUMBER = re.compile(r"(?<![\w%.$])(?:0x[0-9a-fA-F]+|\d+)(?![\w.])")
REGISTER = re.compile(r"%[a-z]+\d*")
STRANGE = ["0", "1", "31", "32", "33", "0x7fffffff", "0x80000000", "0xffffffff", "4096", "65536", "5"]
DEFINED = re.compile(r"(?:\.visible\s+)?\.(?:entry\s+([\w$]+)|func)")
# What runs a file of mutants: one after the other, each named before it runs; of kernels those that changed, of which the
# file beside it has the names, and all where a function changed.
RUNNER = """
import sys, numpy as np, ptxvm
from pathlib import Path
for path in sorted(Path(sys.argv[1]).glob("*.ptx")):
    print(path.name, flush=True)
    try:
        module = ptxvm.load(path)
    except (ptxvm.InvalidPTX, ptxvm.Unsupported):
        continue
    names = path.with_suffix(".names").read_text().split()
    for kernel in [module.kernel(name) for name in names or module.kernels]:
        parameters = kernel.function.signature.parameters
        arguments = [np.zeros(64, np.uint32) if p.type.bits == 64 else 3 for p in parameters]
        try:
            kernel.launch(grid=2, block=40, args=arguments, engine="jit", steps=1)
        except (ptxvm.Fault, ptxvm.Unsupported, ValueError, TypeError):
            pass
print("all", flush=True)
"""


def mutated(text: str, rng: np.random.Generator) -> tuple[str, list[str]]:
    """A few small changes of numbers, registers, opcodes, guards and lines; and the kernels that have them, if all do."""
    lines = text.splitlines()
    code = [n for n, line in enumerate(lines) if line.strip().endswith(";") and not line.strip().startswith((".", "//"))]
    if not code:
        return text, []
    changed: list[str] = []
    names = sorted(set(REGISTER.findall(text))) or ["%none"]
    for _ in range(rng.integers(1, 5)):
        at = int(rng.choice(code))
        line = lines[at]
        match rng.integers(6):
            case 0:
                line = NUMBER.sub(lambda m: str(rng.choice(STRANGE)) if rng.random() < 0.5 else m[0], line)
            case 1:
                line = REGISTER.sub(lambda m: str(rng.choice(names)) if rng.random() < 0.4 else m[0], line)
            case 2:
                other = lines[int(rng.choice(code))]
                line = f"{line} {other.strip()}"
            case 3:
                line = ""
            case 4:
                guards = sorted({m for m in REGISTER.findall(text) if m.startswith("%p")})
                line = f"@{rng.choice(['', '!'])}{rng.choice(guards)} {line.strip()}" if guards and "@" not in line else line
            case _:
                other = lines[int(rng.choice(code))].split()
                mine = line.split()
                line = " ".join([other[0], *mine[1:]]) if mine and other and "@" not in (mine[0] + other[0]) else line
        lines[at] = line
        changed.append(next((found[1] for before in lines[at::-1] if (found := DEFINED.match(before))), ""))
    return "\n".join(lines), sorted(set(changed)) if all(changed) else []


def kernels() -> list[str]:
    """The conformance files that run something."""
    return [
        p.read_text() for p in sorted(CONFORMANCE.rglob("*.ptx")) if "//: run" in p.read_text() and p.stat().st_size < 20_000
    ]


@pytest.mark.parametrize("batch", range(-(-MUTANTS // BATCH)))
def test_a_mutant_never_ends_the_process(batch: int, tmp_path: Path, rng: np.random.Generator) -> None:
    texts = kernels()
    written = 0
    while written < BATCH:
        text, names = mutated(texts[rng.integers(len(texts))], rng)
        if any(d.severity == "error" for d in ptxvm.check(text)):
            continue
        (tmp_path / f"{written:03}.ptx").write_text(text)
        (tmp_path / f"{written:03}.names").write_text(" ".join(names))
        written += 1
    done = subprocess.run([sys.executable, "-c", RUNNER, str(tmp_path)], capture_output=True, text=True, check=False)
    last = done.stdout.split()[-1] if done.stdout.split() else ""
    if done.returncode or last != "all":
        text = (tmp_path / last).read_text() if last.endswith(".ptx") else ""
        pytest.fail(f"exit status {done.returncode} at {last}\n{done.stderr[-3000:]}\n{text}")
