"""Real modules by name, and the pairs of a module and a kernel that have a reference.

A reference is a function `(kernel, rng)` that launches the kernel and compares what it did with CUDA's meaning of its
source, in Python integers, fractions, `math` or NumPy.  The CUDA source is the same for all targets of one producer, so
one reference serves many modules.
"""

from __future__ import annotations

import copy
import json
import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

import ptxvm

FOLDER = Path(__file__).parents[3] / "shared" / "corpus"
MISSING = f"the corpus is missing: no {FOLDER / 'corpus.tar.xz'}"
SAMPLE = 6
"""Of the modules that NVRTC wrote the default run takes one in six; `pytest -m long` takes the others ..."""
SLOW = {"nvcc/fp_sm_100a.ptx", "nvcc/fp_sm_120a.ptx"}
"""... and these, whose libdevice the other targets have as well."""

HEAD_OR_COMMENT = re.compile(r"//[^\n]*|^\.(version|target)[^\n]*", re.MULTILINE)
ENTRY = re.compile(r"(?=\.entry\s)")

Engine = Literal["interp", "jit"]
ENGINES: tuple[Engine, ...] = ("interp", "jit")
COMPILED = "_sm_75"
"""The modules for this target run on both engines by default; on the JIT, the others are `long`: it compiles for seconds."""


class Running:
    """A kernel on one engine; of every launch it keeps what the arrays held afterwards."""

    def __init__(self, kernel: ptxvm.Kernel, engine: Engine) -> None:
        self.kernel, self.engine = kernel, engine
        self.module, self.name = kernel.module, kernel.name
        self.left: list[list[bytes]] = []

    def launch(self, grid: Any, block: Any, args: Sequence[Any], **how: Any) -> ptxvm.LaunchResult:
        result = self.kernel.launch(grid, block, args, engine=self.engine, **how)
        self.left.append([each.tobytes() for each in args if isinstance(each, np.ndarray)])
        return result


Reference = Callable[[Running, np.random.Generator], None]


@cache
def texts() -> dict[str, str]:
    """The text of every module, but for those that ptxas 13.5 refused."""
    index = {entry["file"]: entry["ptxas_13_5"] for entry in json.loads((FOLDER / "index.json").read_text())}
    found = {}
    with tarfile.open(FOLDER / "corpus.tar.xz") as archive:
        for member in archive:
            name = member.name.removeprefix("./").removeprefix("corpus/")
            if not (index.get(name, "error") or "ok").startswith(("ok", "n/a")):
                continue
            if (file := archive.extractfile(member)) is not None:
                found[name] = file.read().decode()
    return dict(sorted(found.items()))


@cache
def module(name: str) -> ptxvm.Module:
    """A module, loaded once."""
    return ptxvm.load(texts()[name])


def kernels(name: str) -> list[str]:
    """The names of its kernels, found without ptxvm."""
    return re.findall(r"\.entry\s+(\w+)", texts()[name])


@cache
def bodies(name: str) -> dict[str, tuple[str, str]]:
    """What each kernel runs: its own text, and that of its module without the head, comments and kernels.

    One producer writes the same for several targets: by default such a kernel is run once.
    """
    before, *entries = ENTRY.split(HEAD_OR_COMMENT.sub("", texts()[name]))
    parts = [entry.partition("\n}") for entry in entries]
    rest = before + "".join(after for _, _, after in parts)
    return {text.split(maxsplit=2)[1].partition("(")[0]: (text, rest) for text, _, _ in parts}


def cases(pattern: str, references: dict[str, Reference], lacking: frozenset[str] = frozenset()) -> list[object]:
    """The module, the kernel and the engines of each case of the modules whose name matches.

    `lacking` are kernels that cannot run, with a reason where they are named.
    """
    if not (FOLDER / "corpus.tar.xz").is_file():
        return [pytest.param("", "", (), marks=pytest.mark.skip(reason=MISSING))]
    return list(_cases(pattern, references, lacking))


def _cases(pattern: str, references: dict[str, Reference], lacking: frozenset[str]) -> Iterator[object]:
    names = [name for name in texts() if re.fullmatch(pattern, name)]
    known = {each for name in names if COMPILED in name for each in bodies(name).values()}
    for number, name in enumerate(names):
        quick = (name.startswith("nvcc/") or number % SAMPLE == 0) and name not in SLOW
        for kernel in kernels(name):
            if f"{name} {kernel}" in lacking:
                continue
            case = f"{name.removesuffix('.ptx')}-{kernel}"
            if quick and (COMPILED in name or bodies(name)[kernel] not in known):
                yield pytest.param(name, kernel, ENGINES if COMPILED in name else ENGINES[:1], id=case)
                known.add(bodies(name)[kernel])
            if not quick or COMPILED not in name:
                yield pytest.param(name, kernel, ENGINES, id=f"{case}-both", marks=pytest.mark.long)
    assert names, pattern


def run(
    name: str,
    kernel: str,
    engines: Sequence[Engine],
    references: dict[str, Reference],
    rng: np.random.Generator,
    *,
    bits: bool = False,
) -> None:
    """Run a kernel on some engines against its reference; with `bits` they must leave the same bits too.

    That is for references with a tolerance, whose kernels are deterministic.
    """
    assert kernel in references, f"{name} has a kernel '{kernel}' without a reference"
    running = [Running(module(name).kernel(kernel), engine) for engine in engines]
    for each in running:
        try:
            references[kernel](each, copy.deepcopy(rng))  # the same numbers on each
        except BaseException as error:
            error.add_note(f"on the engine '{each.engine}'")
            raise
    if bits:
        assert running[0].left
        assert all(each.left == running[0].left for each in running)


# ── numbers ─────────────────────────────────────────────────────────────────────────────


def signed(value: int, bits: int = 32) -> int:
    """The two's complement number in the low bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def unsigned(value: int, bits: int = 32) -> int:
    """The unsigned number in the low bits."""
    return value & (1 << bits) - 1


def any_size(rng: np.random.Generator, count: int, bits: int) -> list[int]:
    """Unsigned numbers of every length, so that small ones are not rare."""
    return [int(rng.integers(0, 1 << 63)) * 2 + 1 >> int(rng.integers(64 - bits, 64)) for _ in range(count)]


def whole(rng: np.random.Generator, shape: int | tuple[int, ...], low: int = -8, high: int = 9) -> np.ndarray:
    """Small whole numbers as f32: their sums and products are exact in any order."""
    return rng.integers(low, high, shape).astype(np.float32)
