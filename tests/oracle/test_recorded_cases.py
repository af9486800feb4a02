"""The machine against what an H200 answered to the cases of `tools/hardware_cases` (recorded by `tools/record_cases.py`)."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import ptxvm

HERE = Path(__file__).parent
RECORDS = HERE / "hardware" / "cases"


@pytest.fixture(scope="module")
def tools() -> Iterator[ModuleType]:
    sys.path.insert(0, str(HERE.parents[1] / "tools"))
    yield importlib.import_module("hardware_cases.recorded")
    sys.path.pop(0)


def tensor_map(map, tensor: np.ndarray | int) -> ptxvm.TensorMap:
    """The map of a case."""
    how = {
        "sizes": map.sizes, "strides": map.strides[: len(map.sizes) - 1], "element_strides": map.steps,
        "interleave": ptxvm.Interleave(map.interleave), "swizzle": ptxvm.Swizzle(map.swizzle), "fill": ptxvm.OobFill(map.fill),
    }  # fmt: skip
    type = ptxvm.TensorType(map.type)
    if map.box:
        return ptxvm.TensorMap.tiled(type, tensor, map.box, **how)
    return ptxvm.TensorMap.im2col(type, tensor, map.lower, map.upper, map.channels, map.pixels, **how)


def placed(array: np.ndarray) -> np.ndarray:
    """A copy at an address as a GPU's allocator gives it: a multiple of 256."""
    memory = np.zeros(array.nbytes + 256, np.uint8)
    start = -memory.ctypes.data % 256
    copy = memory[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy


@lru_cache(maxsize=4)
def module(text: str) -> ptxvm.Module:
    """The module of several cases."""
    return ptxvm.load(text, "sm_90a")


def answer(case, engine: str) -> bytes:
    """What the machine leaves in the kept arrays, as an H200."""
    arrays = {n: placed(each) for n, each in enumerate(case.arguments) if isinstance(each, np.ndarray)}
    given = [
        arrays[n] if n in arrays else tensor_map(each, arrays[each.tensor]) if hasattr(each, "tensor") else each
        for n, each in enumerate(case.arguments)
    ]
    module(case.text).kernel(case.kernel).launch(case.grid, case.block, given, shared=case.shared, engine=engine)
    return b"".join(arrays[n].tobytes() for n in case.kept)


def recorded(tools: ModuleType, group: str, cases: list) -> list[tuple[object, bytes]]:
    """The cases that the GPU ran, and what it left."""
    answers = tools.load(RECORDS / f"{group}.npz", cases)
    found = [(case, answers[case.name]) for case in cases if isinstance(answers.get(case.name), bytes)]
    assert found
    return found


def wrong(tools: ModuleType, group: str, engine: str, cases) -> list[str]:
    """The names of the cases of which something else was recorded; cases that the GPU did not run are left out."""
    return [case.name for case, said in recorded(tools, group, list(cases)) if answer(case, engine) != said]


ENGINES = ("interp", "jit")
BOTH = pytest.mark.parametrize("engine", ENGINES)
WHOLE = pytest.mark.parametrize(
    ("engine", "whole"),
    [pytest.param(engine, whole, marks=[pytest.mark.long] if whole else []) for whole in (False, True) for engine in ENGINES],
    ids=lambda each: {True: "whole", False: "some"}.get(each, each),
)
"""Some cases on each engine; all of them take long, and the JIT compiles each."""


def some(cases: list, engine: str, count: int, rng: np.random.Generator, *, whole: bool = False) -> list:
    """So many cases for the JIT, and four times as many for the interpreter; or all."""
    count *= 4 if engine == "interp" else 1
    return cases if whole or len(cases) <= count else [cases[n] for n in rng.choice(len(cases), count, replace=False)]


@BOTH
def test_warps(tools: ModuleType, engine: str) -> None:
    """What the lanes of a warp say to each other: shfl, vote, match, redux."""
    cases = importlib.import_module("hardware_cases.instructions").warps()
    assert not wrong(tools, "warps", engine, cases)


@WHOLE
def test_products_of_warps(tools: ModuleType, engine: str, whole: bool, rng: np.random.Generator) -> None:
    """Every form of mma and mma.sp."""
    cases = list(importlib.import_module("hardware_cases.instructions").matrices())
    assert not wrong(tools, "matrices", engine, some(cases, engine, 24, rng, whole=whole))


@WHOLE
def test_fragments_in_memory(tools: ModuleType, engine: str, whole: bool, rng: np.random.Generator) -> None:
    """`wmma` from memory to memory."""
    cases = list(importlib.import_module("hardware_cases.fragments").through_memory())
    assert not wrong(tools, "fragments", engine, some(cases, engine, 12, rng, whole=whole))


@WHOLE
def test_products_of_warpgroups(tools: ModuleType, engine: str, whole: bool, rng: np.random.Generator) -> None:
    """`wgmma`, dense and sparse, on layouts that descriptors name."""
    known = tools.load(RECORDS / "products.npz", cases := list(importlib.import_module("hardware_cases.warpgroups").products()))
    cases = [case for case in cases if case.name in known]
    assert not wrong(tools, "products", engine, some(cases, engine, 6, rng, whole=whole))


# Where rows of an interleaved tensor lie in each other, the order of their reductions is open; a read behind the array, which
# is in the memory of another for a GPU, is a fault here.
OPEN = {"write 114", "write 130", "write 143", "slice 186", "slice 201"}
FLAG = 16  # bytes before the box: whether the mbarrier saw the bytes that were guessed


@WHOLE
@pytest.mark.parametrize("group", ["fetches", "slices", "writes"])
def test_copies_of_tensors(tools: ModuleType, group: str, engine: str, whole: bool, rng: np.random.Generator) -> None:
    """Boxes and columns in every layout, in and out, and with reductions; what a GPU calls illegal is a fault."""
    cases = list(getattr(importlib.import_module("hardware_cases.copies"), group)())
    answers = tools.load(RECORDS / f"{group}.npz", cases)
    # without the encoder's rules, and boxes that do not fit in shared memory
    kept = {name for name, said in answers.items() if not isinstance(said, str) or "ILLEGAL_INSTRUCTION" in said} - OPEN
    cases = [case for case in cases if case.name in kept]
    failed = []
    for case in some(cases, engine, 16 if engine == "jit" else 3, rng, whole=whole):
        said = answers[case.name]
        try:
            left: bytes | None = answer(case, engine)
        except ptxvm.Fault:
            left = None
        if isinstance(said, str):
            if left is not None:
                failed.append(f"{case.name} is no fault")
        elif left is None or left[FLAG:] != said[FLAG:]:
            failed.append(case.name)
    assert len(cases) > 64
    assert not failed


def test_arguments_of_tensor_maps() -> None:
    """The encoder refuses what the driver refuses; but for swizzles of sm_100, and some sizes together that are too large."""
    copies = importlib.import_module("hardware_cases.copies")
    refused = np.load(RECORDS / "maps.npz")["refused"]
    differing = []
    for n, (map, said) in enumerate(zip(copies.maps(), refused, strict=True)):
        if map.swizzle > 3:
            continue
        try:
            tensor_map(map, 1 << 20)
            mine = False
        except ValueError:
            mine = True
        if mine != said:
            differing.append(n)
    assert len(differing) <= 7
    assert len(refused) == 4000


# Two NaN of f64: which of them comes out follows from the order in which a compiler writes them (docs, numerics).
TWO_NAN = ("atom.global.add.f64", "red.global.add.f64")


@BOTH
def test_atomics(tools: ModuleType, engine: str) -> None:
    """One thread each on its own word."""
    cases = importlib.import_module("hardware_cases.atomics").atomics()
    assert set(wrong(tools, "atomics", engine, cases)) <= set(TWO_NAN)


# Forms whose recorded results are not held against the machine, and why.
LEFT_OUT = {
    r"(@!?%p\d+ )?v\w+\.": "ptxas emulates video instructions, and not as the manual defines them (9.7.19)",
    r"@.*\b(testp|set)\.": "ptxas 13.0 writes the destination where the guard is false",
    r".*\b(bfe|bfi) ?\.(u64|s64|b64)": "ptxas takes all 32 bits of positions and lengths, the manual 8 (9.7.1.21, 9.7.1.22)",
    r".*\btestp\.f\d\d": "the manual has no testp without a property",
    r".*\bmadc\.hi\.[us]16": "the manual has no madc of 16 bits",
    r".*\bfma\.r[mpz].*bf16": "the manual rounds a fma of bf16 to nearest only",
    r".*\bfns\.b32 %r1, %r2, -3": "the manual has no such base",
    r".*\b(cos|sin|rsqrt|lg2|ex2)\.\S+ %f1, [\d.-]|.*rsqrt.* 0d": "ptxas computes functions of constants in another way",
    r".*\btanh\.": "swept in whole elsewhere",
    r".*\bcvt\.\S*(f64|tf32)": "a NaN keeps its sign and what fits of its payload, and is canonical in the machine (9.7.3)",
    r".*\bmovmatrix.* (%p|\d)": "no register",
    r".*\b(abs|neg)\.(f64|f32)": "the sign and payload of a NaN follow from how ptxas folds them into other instructions",
}
F64 = re.compile(r".*\b(add|sub|mul|fma|mad|min|max)\.\S*f64")


def same(text: str, got: np.ndarray, said: np.ndarray, before: np.ndarray) -> bool:
    """Are the registers of a form the same in all threads?  Of two NaN of f64 either may come out."""
    if not F64.match(text):
        return bool((got == said).all())
    nan = np.isnan(before.view(np.float64)).sum(axis=0) > 1
    return bool((got == said)[:, ~nan].all())


@WHOLE
def test_instructions(tools: ModuleType, engine: str, whole: bool, rng: np.random.Generator) -> None:
    """Every form that ptxas takes and that is a function of registers, on numbers of all kinds."""
    known_forms = importlib.import_module("hardware_cases.instructions")
    if not known_forms.SHARED.is_dir():
        pytest.skip(f"{known_forms.SHARED} is missing: it has the forms")
    forms, differences, compared = known_forms.forms(), [], 0
    known = tools.load(RECORDS / "instructions.npz", cases := list(known_forms.instructions()))
    cases = [case for case in cases if case.name in known]
    for case, said in recorded(tools, "instructions", some(cases, engine, 6, rng, whole=whole)):
        first = int(case.name.split()[1])
        texts = forms[first : first + known_forms.TOGETHER]
        if all(re.match(next(iter(LEFT_OUT)), text) for text in texts):
            continue
        try:
            left = answer(case, engine)
        except ptxvm.Unsupported as why:  # movmatrix of what is no register
            assert "movmatrix" in str(why)  # noqa: PT017
            continue
        before = case.arguments[0]
        got, want = (np.frombuffer(each, np.uint64).reshape(before.shape) for each in (left, said))
        at = 0
        for text in texts:
            rows = slice(at, at + known_forms.slots(text))
            at = rows.stop
            if not any(re.match(pattern, text) for pattern in LEFT_OUT):
                compared += 1
                if not same(text, got[rows], want[rows], before[rows]):
                    differences.append(text)
    assert not differences
    assert compared > (2000 if whole else 20)
