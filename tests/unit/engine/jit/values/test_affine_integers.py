"""Integer arithmetic on the coordinates of a thread, which stays affine where it can: against Python's integers.

The expectations are PTX 9.7.1 (add, sub, mul, div, rem, min, max), 9.7.5 (setp, selp) and 9.7.7 (and, or, xor, not, shl, shr).
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.run.tiering import policy

HEAD = ".version 7.8\n.target sm_80\n.address_size 64\n"
KEPT, LENGTH, GRID = 4, 24, 3
FULL = (1 << 32) - 1


def signed(n: int) -> int:
    return n - (1 << 32) if n >> 31 else n


# PTX, whose last operand is a register or a constant, and what it is of a and b.
OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "add.u32": lambda a, b: a + b,
    "sub.u32": lambda a, b: a - b,
    "mul.lo.u32": lambda a, b: a * b,
    "and.b32": lambda a, b: a & b,
    "or.b32": lambda a, b: a | b,
    "xor.b32": lambda a, b: a ^ b,
    "min.u32": min,
    "max.s32": lambda a, b: max(signed(a), signed(b)),
}
BY_CONSTANT: dict[str, Callable[[int, int], int]] = {
    "shl.b32": lambda a, b: a << b,
    "shr.u32": lambda a, b: a >> b,
    "shr.s32": lambda a, b: signed(a) >> b,
    "div.u32": lambda a, b: a // b,
    "rem.u32": lambda a, b: a % b,
}
CONSTANTS = [0, 1, 2, 3, 4, 7, 12, 15, 16, 31, 32, 60, 63, 64, 240, 255, 1020, 3072, FULL, FULL - 3, FULL - 15, 1 << 31]


def program(rng: random.Random) -> tuple[str, Callable[[list[int]], list[int]]]:
    """Instructions that follow on registers %r0 to %r3, and what they leave in the last ones."""
    lines, steps = [], []
    for n in range(4, LENGTH):
        source = rng.randrange(n)
        if rng.random() < 0.35:
            name = rng.choice(list(BY_CONSTANT))
            constant = 1 << rng.randrange(7) if name[:3] in ("div", "rem") else rng.randrange(12)
            lines.append(f"{name} %r{n}, %r{source}, {constant};")
            steps.append((BY_CONSTANT[name], source, None, constant))
        elif rng.random() < 0.1:
            constant = rng.choice(CONSTANTS)
            lines.append(f"setp.lt.u32 %p, %r{source}, {constant}; selp.b32 %r{n}, 1, 2, %p;")
            steps.append((lambda a, b: 1 if a < b else 2, source, None, constant))
        else:
            name, constant = rng.choice(list(OPERATIONS)), rng.choice(CONSTANTS)
            other = rng.randrange(n) if rng.random() < 0.4 else None
            lines.append(f"{name} %r{n}, %r{source}, {f'%r{other}' if other is not None else constant};")
            steps.append((OPERATIONS[name], source, other, constant))

    def expected(first: list[int]) -> list[int]:
        values = list(first)
        for operation, source, other, constant in steps:
            values.append(operation(values[source], constant if other is None else values[other]) & FULL)
        return values[-KEPT:]

    return "\n".join(lines), expected


@pytest.mark.sampled(3)
@pytest.mark.parametrize("block", [(32, 1, 1), (1024, 1, 1), (16, 32, 1), (8, 8, 2), (96, 1, 1), (24, 4, 1)])
def test_integers_of_the_coordinates_are_those_of_python(block: tuple[int, int, int], rng: np.random.Generator) -> None:
    choice = random.Random(int(rng.integers(1 << 32)))
    for _ in range(12):
        body, expected = program(choice)
        stores = "\n".join(f"st.global.u32 [%d1+{4 * n}], %r{LENGTH - KEPT + n};" for n in range(KEPT))
        text = f"""{HEAD}.visible .entry k(.param .u64 out, .param .u32 size) {{
            .reg .b32 %r<{LENGTH}>; .reg .b32 %t<6>; .reg .b64 %d<3>; .reg .pred %p;
            mov.u32 %r0, %tid.x; mov.u32 %r1, %tid.y; mov.u32 %r2, %ctaid.x; ld.param.u32 %r3, [size];
            {body}
            mov.u32 %t0, %tid.z; mad.lo.u32 %t1, %t0, {block[1]}, %r1; mad.lo.u32 %t1, %t1, {block[0]}, %r0;
            mad.lo.u32 %t1, %r2, {block[0] * block[1] * block[2]}, %t1;
            ld.param.u64 %d0, [out]; mul.wide.u32 %d1, %t1, {4 * KEPT}; add.u64 %d1, %d0, %d1;
            {stores}
            ret; }}"""
        x, y, z = block
        size = choice.choice([0, 5, 96, FULL])
        wanted = [expected([i, j, cta, size]) for cta, _, j, i in product(range(GRID), range(z), range(y), range(x))]
        out = np.zeros((GRID * x * y * z, KEPT), np.uint32)
        ptxvm.load(text).kernel("k").launch(GRID, block, [out, np.uint32(size)], engine="jit")
        wrong = np.argwhere(out != np.array(wanted, np.uint32))
        assert not len(wrong), f"thread and register {wrong[0].tolist()} of\n{text}"


@pytest.mark.parametrize(
    ("instructions", "shape"),
    [
        ("shl.b32 %r1, %r0, 2; and.b32 %r2, %r1, 12;", "4·lane%4"),
        ("shl.b32 %r1, %r0, 10; and.b32 %r2, %r1, 3072;", "1024·lane%4"),
        ("and.b32 %r2, %r0, -4;", "base + 4·lane/4"),
        ("shl.b32 %r1, %r0, 1; or.b32 %r2, %r1, 1;", "base + 2·lane"),
        ("not.b32 %r2, %r0;", "base + -1·lane"),
        ("rem.u32 %r2, %r0, 16;", "lane%16"),
        ("div.u32 %r2, %r0, 8;", "base + lane/8"),
        ("shr.s32 %r2, %r0, 31;", "= 0"),
        ("mov.u32 %r1, %ctaid.x; shl.b32 %r1, %r1, 10; or.b32 %r2, %r1, %r0;", "base + lane"),
    ],
)
def test_logic_and_shifts_stay_affine(instructions: str, shape: str) -> None:
    body = instructions.replace("; ", ";\n")
    text = f"{HEAD}.visible .entry k() {{ .reg .b32 %r<3>;\nmov.u32 %r0, %tid.x;\n{body}\nret; }}"
    lines = [line for line in ptxvm.load(text).kernel("k").dump("shapes", 1024).splitlines() if " %r2," in line]
    assert lines[0].split(";", 1)[1].strip() == shape


@pytest.mark.parametrize("left", [20, 26, 27, 31])
@pytest.mark.parametrize("name", ["shr.u32", "shr.s32"])
def test_shifts_to_the_right_follow_those_that_wrap(name: str, left: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """PTX 9.7.8.7 and 9.7.8.8: the number of a thread loses its upper bits first, in warps behind the first one too."""
    monkeypatch.setenv("PTXVM_TIER", "best")
    policy.cache_clear()
    text = f"""{HEAD}.visible .entry k(.param .u64 from, .param .u64 to) {{
    .reg .b32 %r<6>; .reg .b64 %from, %to;
    ld.param.u64 %from, [from];
    ld.param.u64 %to, [to];
    mov.u32 %r0, %tid.x;
    mad.wide.u32 %from, %r0, 16, %from;
    mad.wide.u32 %to, %r0, 4, %to;
    ld.global.v4.b32 {{%r2, %r3, %r4, %r5}}, [%from];  // which two warps do together
    shl.b32 %r1, %r0, {left};
    {name} %r1, %r1, {left};
    xor.b32 %r1, %r1, %r2;
    st.global.u32 [%to], %r1;
    ret; }}"""
    out = np.zeros(128, np.uint32)
    ptxvm.load(text).kernel().launch(1, 128, [np.zeros(512, np.uint32), out], engine="jit")
    policy.cache_clear()
    kept = (np.arange(128, dtype=np.uint64) << left).astype(np.uint32)
    assert (out == (kept >> left if name == "shr.u32" else (kept.view(np.int32) >> left).view(np.uint32))).all()


@pytest.mark.parametrize("name", ["div.u32", "div.s32", "rem.u32", "rem.s32"])
def test_lanes_divided_by_zero_are_what_the_reference_interpreter_makes_of_them(name: str) -> None:
    """The result has no meaning (PTX 9.7.1.9, 9.7.1.10), and the kernel runs."""
    text = f"""{HEAD}.visible .entry k(.param .u64 out) {{ .reg .b32 %r<4>; .reg .b64 %d<3>;
        ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mad.lo.u32 %r2, %r1, 64, %r0;
        {name} %r3, %r2, 0; mul.wide.u32 %d1, %r2, 4; add.u64 %d2, %d0, %d1; st.global.u32 [%d2], %r3; ret; }}"""
    results = {engine: np.zeros(128, np.uint32) for engine in ("interp", "jit")}
    for engine, out in results.items():
        ptxvm.load(text).kernel("k").launch(grid=2, block=64, args=[out], engine=engine)
    assert (results["jit"] == results["interp"]).all()


@pytest.mark.parametrize(
    ("instructions", "shape"),
    [
        ("mov.u32 %r2, %r0;", "lane%32"),
        ("max.s32 %r1, %r0, 2; add.s32 %r1, %r1, 31; sub.s32 %r1, %r1, %r0; setp.lt.u32 %p, %r1, 96;", "= true"),
        ("mov.u32 %r1, %tid.y; rem.u32 %r2, %r1, 16; setp.gt.u32 %p, %r1, 15;", "= false"),
    ],
)
def test_rows_of_a_warp_have_constants_for_their_lanes(instructions: str, shape: str) -> None:
    """tid.x is the number of the lane in each warp of a CTA of 32 by 16 threads (eight run abreast); tid.y is below 16."""
    body = instructions.replace("; ", ";\n")
    text = f"{HEAD}.visible .entry k() {{ .reg .b32 %r<3>; .reg .pred %p;\nmov.u32 %r0, %tid.x;\n{body}\nret; }}"
    lines = ptxvm.load(text).kernel("k").dump("shapes", (32, 16)).splitlines()
    last = instructions.rstrip(";").split("; ")[-1]
    assert next(line for line in lines if last in line).split(";", 1)[1].strip() == shape


def test_a_number_that_cannot_wrap_needs_no_other_version() -> None:
    """The lanes of a CTA of 256 threads are below 2^31: there is nothing to test when they are extended."""
    text = f"""{HEAD}.visible .entry k(.param .u64 out) {{ .reg .b32 %r<2>; .reg .b64 %d<3>;
        ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; st.global.u32 [%d0], %r0; mul.wide.s32 %d1, %r0, 4; add.u64 %d2, %d0, %d1;
        st.global.u32 [%d2], %r0; ret; }}"""
    shapes = ptxvm.load(text).kernel("k").dump("shapes", 1024)
    assert "base + 4·lane" in shapes
    assert "contiguous" in shapes


def test_a_constant_that_lanes_apart_write_alike_stays_constant() -> None:
    """Lanes leave the loop one after another: those that stay in it write the constant that the others read after it."""
    text = f"""{HEAD}.visible .entry k(.param .u64 out) {{ .reg .b32 %r<4>; .reg .pred %p<1>; .reg .b64 %d<1>;
        ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; ld.global.u32 %r3, [%d0];
        $again: mov.u32 %r1, 16;
        add.u32 %r0, %r0, %r1; setp.lt.u32 %p0, %r0, %r3; @%p0 bra $again;
        add.u32 %r2, %r1, 1;
        st.global.u32 [%d0], %r2; ret; }}"""
    lines = ptxvm.load(text).kernel("k").dump("shapes", 64).splitlines()
    assert next(line for line in lines if "add.u32 %r2" in line).endswith("= 17")


@pytest.mark.skipif(not cpu.has("avx2"), reason="other processors convert as LLVM does")
def test_lanes_are_converted_to_integers_together() -> None:
    text = f"""{HEAD}.visible .entry k(.param .u64 out) {{ .reg .b32 %r<3>; .reg .b64 %d<3>;
        ld.param.u64 %d0, [out]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.u64 %d2, %d0, %d1;
        ld.global.u32 %r1, [%d2]; cvt.rzi.u32.f32 %r2, %r1; st.global.u32 [%d2], %r2; ret; }}"""
    assert "cvttss2si" not in ptxvm.load(text).kernel("k").dump("asm", 32)
