"""Runs the conformance files: PTX modules whose `//:` lines say what a machine must do with them.

    //: target sm_80                                    the target of the module, in place of its own
    //: run add(0x7fffffff, 1) == 0x80000000            a kernel with one thread; its first parameter points to the results
    //: run sum<<<2, 64>>>() == (1, 2.5) : u32, f32     a launch shape, several results with their types
    //: run bad() faults misaligned                     the launch must end with this fault
    //: error[P1002]                                    the next instruction must give this diagnostic
    //: bind t = Texture(f32(0, 1), "linear")           what an opaque variable stands for, in Python

What follows `//` in a line names where the expectation comes from.  Results are compared bit for bit.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import ptxvm

HERE = Path(__file__).parent
RUN = re.compile(
    r"run\s+(?P<kernel>[\w$]+)\s*(?:<<<(?P<shape>.*?)>>>)?\s*\((?P<args>.*?)\)\s*(?:==\s*(?P<want>.*)|faults\s+(?P<fault>[\w-]+))$"
)
SIZES = {"pred": 1, "f16x2": 4, "bf16x2": 4, "u16x2": 4, "s16x2": 4, "bf16": 2, "tf32": 4}
NAN = {"f16": 0x7FFF, "bf16": 0x7FFF, "f32": 0x7FFFFFFF}
BYTES = 64
FEW = 3  # a file with so few kernels has all of them compiled each time


@dataclass
class Expectation:
    """One `//: run` line."""

    line: int
    text: str
    kernel: str
    grid: int
    block: tuple[int, ...]
    args: list[str]
    want: list[tuple[str, str]] = field(default_factory=list)
    fault: str | None = None


def bits(word: str, type: str) -> tuple[int, int]:
    """A number as the bits of a type, and how many bytes they are."""
    size = SIZES.get(type) or int(re.sub(r"\D", "", type)) // 8
    if (m := re.fullmatch(r"0[fd]([0-9a-fA-F]+)", word)) and len(m[1]) == 2 * size:
        return int(m[1], 16), size
    if re.fullmatch(r"-?(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)", word) and not type.startswith("f"):
        return int(word, 0) & ((1 << 8 * size) - 1), size
    if word in ("true", "false"):
        return int(word == "true"), size
    value = float(int(word, 0)) if re.fullmatch(r"-?0[xX].*", word) else float(word)
    if value != value and type in NAN:  # noqa: PLR0124 - PTX has one NaN of these types
        return NAN[type], size
    return int.from_bytes(struct.pack({2: "<e", 4: "<f", 8: "<d"}[size], value), "little"), size


def parse(text: str) -> tuple[str | None, list[Expectation], list[tuple[int, str]]]:
    """The target, the runs, and the errors (line of the instruction, code) of a file."""
    target, runs, errors = None, [], []
    lines = text.splitlines()
    for n, line in enumerate(lines, 1):
        if not (m := re.match(r"\s*//:\s*(.*)", line)):
            continue
        said = re.split(r"\s+//", m[1])[0].strip()
        if said.startswith("bind "):
            continue
        if said.startswith("target "):
            target = said.split()[1]
        elif said.startswith("error["):
            code = (k for k in range(n, len(lines)) if lines[k].strip() and not lines[k].strip().startswith("//"))
            errors.append((next(code) + 1, said[6:].rstrip("]")))
        elif run := RUN.match(said):
            runs.append(expectation(n, said, run))
        else:
            raise ValueError(f"line {n}: not understood: {line}")
    return target, runs, errors


def bind(module: ptxvm.Module, text: str) -> None:
    """What the `bind` lines say: textures, samplers and surfaces of arrays such as `u8((1, 2), (3, 4))`."""
    makers = {f"{kind}{size}": partial(elements, f"{kind}{size // 8}") for kind in "uif" for size in (8, 16, 32)}
    known = {**makers, **{name: getattr(ptxvm, name) for name in ("Texture", "Sampler", "Surface")}}
    for name, made in re.findall(r"^\s*//: bind (\w+) = (.*?)(?:\s+//.*)?$", text, re.MULTILINE):
        module.bind(name, eval(made, known))  # noqa: S307 - our own files


def elements(dtype: str, *values: object) -> np.ndarray:
    """`u8((1, 2), (3, 4))`"""
    return np.array(values, dtype)


def expectation(n: int, said: str, m: re.Match[str]) -> Expectation:
    """A `run` line taken apart."""
    grid, *block = [int(part) for part in (m["shape"] or "1, 1").split(",")]
    args = [a for a in re.split(r",\s*", m["args"].strip()) if a]
    want: list[tuple[str, str]] = []
    if m["want"]:
        values, _, types = m["want"].partition(" : ")
        words = [w.strip() for w in values.strip().strip("()").split(",") if w.strip()]
        kinds = [t.strip().lstrip(".") for t in types.split(",")] if types else ["u32"]
        kinds += kinds[-1:] * (len(words) - len(kinds))
        want = list(zip(words, kinds, strict=True))
    return Expectation(n, said, m["kernel"], grid, tuple(block), args, want, m["fault"])


def arguments(kernel: ptxvm.Kernel, words: list[str]) -> list[object]:
    """The scalars of a run, each as the type that the kernel declares."""
    made: list[object] = []
    for parameter, word in zip(kernel.function.signature.parameters[1:], words, strict=True):
        type = parameter.type.name
        raw, size = bits(word, type)
        held = f"f{size}" if type in ("f16", "f32", "f64") else f"u{size}"
        made.append(np.frombuffer(raw.to_bytes(size, "little"), held)[0])
    return made


def outcome(kernel: ptxvm.Kernel, run: Expectation, engine: str = "auto") -> str:
    """What is wrong with a run; empty where nothing is."""
    out = np.zeros(BYTES, np.uint8)
    try:
        kernel.launch(grid=run.grid, block=run.block, args=[out, *arguments(kernel, run.args)], engine=engine)
    except ptxvm.Fault as fault:
        return "" if fault.kind == run.fault else f"fault {fault}"
    if run.fault:
        return f"no fault, but {out[:8]}"
    at, got, want = 0, [], []
    for word, type in run.want:
        expected, size = bits(word, type)
        at = -(-at // size) * size
        got.append(int.from_bytes(out[at : at + size].tobytes(), "little"))
        want.append(expected)
        at += size
    return "" if got == want else f"got {[hex(g) for g in got]}, not {[hex(w) for w in want]}"


def files() -> Iterator[object]:
    """Every conformance file."""
    for path in sorted(HERE.rglob("*.ptx")):
        yield pytest.param(path, id=str(path.relative_to(HERE).with_suffix("")))


@pytest.mark.parametrize("engine", ["interp", pytest.param("jit", marks=pytest.mark.long)])
@pytest.mark.parametrize("path", list(files()))
def test_runs(path: Path, engine: str) -> None:
    """Every `run` line gives what it says, on every engine."""
    runs_as_it_says(path, engine)


@pytest.mark.parametrize("path", list(files()))
def test_some_kernels_on_the_jit(path: Path, rng: np.random.Generator) -> None:
    """So do the `run` lines of a fifth of the kernels, each of which is a compilation, in every run of the tests."""
    runs_as_it_says(path, "jit", rng)


def runs_as_it_says(path: Path, engine: str, rng: np.random.Generator | None = None) -> None:
    """Do the `run` lines give what they say?  With random numbers kernels are chosen."""
    text = path.read_text()
    target, runs, errors = parse(text)
    if errors and not runs:
        return
    module = ptxvm.load(text, target)
    bind(module, text)
    if rng is not None:
        kernels = sorted({run.kernel for run in runs})
        chosen = rng.permutation(kernels)[: max(FEW, len(kernels) // 5)]
        runs = [run for run in runs if run.kernel in chosen]
    wrong = []
    for run in runs:
        kernel = module.kernel(run.kernel)
        if said := outcome(kernel, run, engine):
            wrong.append((run, said))
    assert not wrong, "\n".join(f"line {run.line}: {run.text}: {said}" for run, said in wrong)


@pytest.mark.parametrize("path", list(files()))
def test_errors(path: Path) -> None:
    """Every `error` line has its diagnostic, and no other line has one."""
    text = path.read_text()
    target, _, errors = parse(text)
    found = {(d.line, d.code) for d in ptxvm.check(text, target) if d.severity == "error"}
    assert found == set(errors)


def test_there_are_enough() -> None:
    """The suite did not get lost."""
    runs = sum(len(parse(path.read_text())[1]) for path in HERE.rglob("*.ptx"))
    assert runs >= 3000
