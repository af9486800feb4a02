"""The machine against what silicon computed: single operations and shuffles of a card, and the `.approx` functions.

Sources: `fidelity/single_ops_rtx_pro_6000.json` (recorded on sm_120), `fidelity/sfu_random.npz` and the sweeps (a model
that its author validated exhaustively against sm_50 to sm_75).
"""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import numpy as np
import pytest

import ptxvm

HEAD = ".version 7.0\n.target sm_75\n.address_size 64\n"
CARD = ".version 8.7\n.target sm_120\n.address_size 64\n"
FUNCTIONS = ("rcp", "sqrt", "rsqrt", "lg2", "ex2", "sin", "cos")
REGISTERS = {"pred": "pred", "f16": "b16", "f32": "f32", "s32": "s32", "u32": "u32", "b32": "b32", "s64": "s64", "u64": "u64"}


@pytest.fixture(scope="module")
def recorded(shared: Path) -> dict[str, list[dict[str, str]]]:
    return json.loads((shared / "fidelity" / "single_ops_rtx_pro_6000.json").read_text())


def single(case: dict[str, str]) -> str:
    """A kernel that executes the instruction and stores 64 bits; `cvt.f32.f16` takes its half from a register."""
    head, operands = case["ptx"].split(" ", 1)
    _, *sources = operands.split(",")
    setup = ""
    if head == "cvt.f32.f16":
        setup, sources = f"mov.b16 %h, {sources[0]};", ["%h"]
    result = {
        "pred": "selp.u64 %rd2, 1, 0, %d;",
        "f16": "cvt.u64.u16 %rd2, %d;",
        "f32": "mov.b32 %r, %d; cvt.u64.u32 %rd2, %r;",
    }
    wide = "mov.b64 %rd2, %d;" if case["type"].endswith("64") else "mov.b32 %r, %d; cvt.u64.u32 %rd2, %r;"
    return f"""{CARD}.visible .entry k(.param .u64 p) {{
        .reg .{REGISTERS[case["type"]]} %d; .reg .b16 %h; .reg .b32 %r; .reg .b64 %rd<3>;
        ld.param.u64 %rd1, [p];
        {setup} {head} %d, {", ".join(sources)};
        {result.get(case["type"], wide)} st.global.u64 [%rd1], %rd2; ret; }}"""


def test_single_operations(recorded: dict[str, list[dict[str, str]]]) -> None:
    wrong = []
    for case in recorded["cases"]:
        out = np.zeros(1, np.uint64)
        ptxvm.load(single(case)).kernel().launch(args=[out])
        if int(out[0]) != int(case["result_hex"], 16):
            wrong.append(f"{case['ptx']}: {int(out[0]):x}, not {case['result_hex']}")
    assert len(recorded["cases"]) == 44
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("name", "first", "base", "mode", "amount", "clamp"),
    [
        ("down_40_71", 40, 1000, "down", 30, 31),
        ("up_90_121", 90, 2000, "up", 4, 0),
        ("bfly_130_161", 130, 3000, "bfly", 16, 31),
    ],
)
def test_shuffles(
    recorded: dict[str, dict[str, list[str]]], name: str, first: int, base: int, mode: str, amount: int, clamp: int
) -> None:
    text = f"""{HEAD}.visible .entry k(.param .u64 p) {{
        .reg .pred %p; .reg .b32 %r<9>; .reg .b64 %rd<6>;
        ld.param.u64 %rd1, [p]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 8; add.s64 %rd3, %rd1, %rd2;
        add.u32 %r2, %r1, {base};
        shfl.sync.{mode}.b32 %r3|%p, %r2, {amount}, {clamp}, 0xffffffff;
        selp.u32 %r4, 1, 0, %p; mov.b64 %rd4, {{%r3, %r4}}; st.global.u64 [%rd3], %rd4; ret; }}"""
    out = np.zeros(256, np.uint64)
    ptxvm.load(text).kernel().launch(block=256, args=[out])
    want = [int(word, 16) for word in recorded["shfl"][name]]
    got = out[first : first + 32] if mode == "down" else out[first : first + 32] & np.uint64(0xFFFFFFFF)
    assert got.tolist() == want


def approximate(function: str, inputs: np.ndarray, suffix: str = "") -> np.ndarray:
    """The results of `FUNCTION.approx.f32` for input bits."""
    text = f"""{HEAD}.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 n) {{
        .reg .pred %p; .reg .f32 %f<3>; .reg .b32 %r<6>; .reg .b64 %rd<6>;
        ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q]; ld.param.u32 %r1, [n];
        mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mad.lo.u32 %r4, %r3, 1024, %r2;
        setp.ge.u32 %p, %r4, %r1; @%p exit;
        mul.wide.u32 %rd3, %r4, 4; add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
        ld.global.f32 %f1, [%rd4]; {function}.approx{suffix}.f32 %f2, %f1; st.global.f32 [%rd5], %f2; ret; }}"""
    out = np.zeros(len(inputs), np.uint32)
    grid = -(-len(inputs) // 1024)
    ptxvm.load(text).kernel().launch(grid=grid, block=1024, args=[inputs, out, len(inputs)])
    return out


@pytest.mark.parametrize("function", FUNCTIONS)
def test_approximations_of_random_inputs(shared: Path, function: str) -> None:
    data = np.load(shared / "fidelity" / "sfu_random.npz")
    got = approximate(function, data["x"].astype(np.uint32))
    assert np.count_nonzero(got != data[function]) == 0


@pytest.mark.sampled(2)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_ftz_flushes_both_sides(shared: Path, function: str) -> None:
    data = np.load(shared / "fidelity" / "sfu_random.npz")
    inputs = data["x"].astype(np.uint32)
    flushed = np.where(inputs & 0x7F800000 == 0, inputs & 0x80000000, inputs)
    plain = approximate(function, flushed)
    want = np.where(plain & 0x7F800000 == 0, plain & 0x80000000, plain)
    assert np.count_nonzero(approximate(function, inputs, ".ftz") != want) == 0


def sweeps(shared: Path) -> list[Path]:
    """The files with a result for every input of a range."""
    return sorted((shared / "fidelity").glob("*.xz"))


def read(path: Path) -> tuple[str, np.ndarray, np.ndarray]:
    """The function, its inputs and its results."""
    function, _, _, span = path.stem.split(".")
    low, high = (int(x, 16) for x in span.split("-"))
    results = np.frombuffer(lzma.decompress(path.read_bytes()), "<i8").cumsum().cumsum().astype(np.uint32)
    return function, np.arange(low, high, dtype=np.uint32), results


def test_a_part_of_some_sweeps(shared: Path, rng: np.random.Generator) -> None:
    for path in rng.choice(sweeps(shared), 3, replace=False):
        function, inputs, results = read(path)
        some = np.unique(rng.integers(0, len(inputs), 20_000))
        assert np.count_nonzero(approximate(function, inputs[some]) != results[some]) == 0, path.name


@pytest.mark.long
def test_every_sweep(shared: Path) -> None:
    for path in sweeps(shared):
        function, inputs, results = read(path)
        assert np.count_nonzero(approximate(function, inputs) != results) == 0, path.name
