"""Fused attention on both engines against NumPy, whenever its work ends, with no findings; and with mistakes, which are named.

`nvcc --ptx -arch=compute_90a` (and 100a) of CUDA 13.0 made the PTX of the sources beside it, in the folder `attention`.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ptxvm
from ptxvm import DeviceArray, Swizzle, TensorMap, TensorType

HERE = Path(__file__).parent / "attention"
QUERIES, KEYS, DEPTH = 128, 256, 64
THREADS = {"attention_wgmma": 384, "attention_tcgen05": 192}
COPY, PRODUCT, MULTIPLY, POLL = "cp.async.bulk.tensor", "tcgen05.mma", "wgmma.mma_async", "mbarrier.try_wait"
MISTAKES = {
    "scores are not waited for": ("attention_wgmma", r"wgmma\.wait_group\S+ 1;", "", "register-in-use", (MULTIPLY, "max.f32")),
    "sums are not waited for": ("attention_wgmma", r"wgmma\.wait_group\S+ 0;", "", "race", (MULTIPLY, COPY)),
    "registers are not ordered": ("attention_wgmma", r"wgmma\.fence\S+;", "", "missing-fence", (MULTIPLY,)),
    "buffers are not given back": ("attention_wgmma", r"mbarrier\.arrive\.shared\S+ _, [^;]*;", "", "deadlock", (POLL,)),
    "scores are not waited for, sm_100": ("attention_tcgen05", r"tcgen05\.wait::ld\S+;", "", "race", ("tcgen05.ld", PRODUCT)),
    "P is not waited for": ("attention_tcgen05", r"tcgen05\.wait::st\S+;", "", "race", ("tcgen05.st", PRODUCT)),
    "P is not there yet": ("attention_tcgen05", r"mov.b32 \t(%r\d+), 128", r"mov.b32 \1, 96", "race", ("tcgen05.st", PRODUCT)),
    "products have no commit": ("attention_tcgen05", r"tcgen05\.commit[^;]*;", "", "deadlock", (POLL,)),
}  # fmt: skip


@cache
def text(name: str) -> str:
    return (HERE / f"{name}.ptx").read_text()


def launched(name, rng, change=lambda source: source, keys=KEYS, **how):
    """The result of a launch, and how far it is from NumPy's."""
    matrices = [rng.standard_normal((rows, DEPTH)).astype(np.float16) for rows in (QUERIES, keys, keys)]
    there = [DeviceArray.from_host(each) for each in matrices]
    maps = [TensorMap.tiled(TensorType.FLOAT16, each, (DEPTH, 64), swizzle=Swizzle.B128) for each in there]
    out, scale = np.zeros((QUERIES, DEPTH), np.float32), np.float32(np.log2(np.e) / 8)
    kernel = ptxvm.load(change(text(name))).kernel(name)
    result = kernel.launch(1, THREADS[name], [*maps, out, scale, np.int32(keys // 64)], **how)
    q, k, v = (each.astype(np.float64) for each in matrices)
    weights = np.exp(q @ k.T / 8)
    return result, np.abs(out - weights / weights.sum(axis=1, keepdims=True) @ v).max()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", THREADS)
@pytest.mark.parametrize(
    "how",
    [
        {"engine": "jit"}, *({"engine": engine, "asynchronous": "random"} for engine in ("interp", "jit")),
        {"engine": "jit", "asynchronous": "late"},
        *(pytest.param({"engine": "interp", "asynchronous": each}, marks=pytest.mark.long) for each in ("early", "late")),
    ],
)  # fmt: skip
def test_attention_agrees_with_numpy(name, how, rng):
    _, difference = launched(name, rng, **how)
    assert difference < 2e-3  # P is rounded to f16


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", THREADS)
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_attention_has_no_findings(name, engine, rng):
    result, difference = launched(name, rng, keys=192, engine=engine, check=("race", "memory", "sync", "init"))
    assert result.findings == []
    assert difference < 2e-3


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", MISTAKES)
def test_a_mistake_is_found_and_its_instructions_are_named(what, rng):
    name, pattern, instead, kind, named = MISTAKES[what]
    assert re.search(pattern, text(name))
    result, _ = launched(name, rng, lambda source: re.sub(pattern, instead, source), keys=192, check=("race", "memory", "sync"))
    found = {(each.kind, *(opcode(party.place.text) for party in each.accesses)) for each in result.findings}
    assert any(
        each[0] == kind and len(each) == 1 + len(named) and all(map(str.startswith, each[1:], named)) for each in found
    ), found


def opcode(line: str) -> str:
    """The instruction of a line, without its label and guard."""
    return next(word for word in line.split() if word[0] != "@" and word[-1] != ":")
