"""What the JIT shows of a kernel: the shape of every value, and what each access became."""

from __future__ import annotations

import re

import pytest

import ptxvm
from ptxvm.algebra.types import f32, pred, s32, u32, u64
from ptxvm.engine.jit.ir.lane_values import Affine, Varying
from ptxvm.engine.jit.show.shape_table import number, shape
from ptxvm.engine.jit.values import approx_exact

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"
KERNEL = """
.visible .entry k(.param .u64 data, .param .u32 pitch)
{
    .reg .b32 %r<12>; .reg .b64 %d<12>; .reg .pred %p<2>; .reg .f32 %f<3>;
    .shared .align 4 .b8 room[128];
    ld.param.u64 %d0, [data];
    ld.param.u32 %r0, [pitch];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mul.wide.u32 %d1, %r1, 4;
    add.u64 %d2, %d0, %d1;
    ld.global.u32 %r3, [%d2];
    ld.global.u32 %r4, [%d0];
    mad.lo.u32 %r5, %r2, %r0, %r1;
    mul.wide.u32 %d3, %r3, 4;
    add.u64 %d4, %d0, %d3;
    ld.global.u32 %r6, [%d4];
    mov.f32 %f0, 0f3FC00000;
    st.global.u32 [%d2], %r6;
    st.global.u32 [%d4], %r6;
    st.global.u32 [%d0], %r4;
    atom.global.add.u32 %r7, [%d0], 1;
    setp.lt.u32 %p0, %r4, %r0;
    @%p0 bra NEXT;
    mov.u32 %r8, 7;
NEXT:
    bar.sync 0;
    ret;
}
"""

POWER = """
.visible .entry power(.param .u64 data)
{
    .reg .b32 %r0; .reg .b64 %d<2>; .reg .f32 %f<2>;
    ld.param.u64 %d0, [data];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d1, %r0, 4;
    add.u64 %d0, %d0, %d1;
    ld.global.f32 %f0, [%d0];
    ex2.approx.ftz.f32 %f1, %f0;
    st.global.f32 [%d0], %f1;
    ret;
}
"""
LN_2 = "0x3FE62E4300000000"  # as LLVM writes the nearest f32


@pytest.fixture(scope="module")
def rows() -> dict[str, tuple[str, str]]:
    """The value and the note of each instruction; CTAs of 8 × 4 threads are one warp."""
    text = ptxvm.load(HEAD + KERNEL).kernel().dump("shapes", (8, 4))
    found = {}
    for line in text.splitlines()[4:]:
        if match := re.match(r" *\d+  (.{1,44}?;) *(?:  (.*?))? *$", line):
            words = re.split(r" {2,}", (match[2] or "").strip())
            found[match[1]] = words[0], words[1] if len(words) > 1 else ""
    return found


@pytest.mark.parametrize(
    ("instruction", "value"),
    [
        ("ld.param.u64 %d0, [data];", "uniform"),
        ("mov.u32 %r1, %tid.x;", "lane%8"),
        ("mov.u32 %r2, %tid.y;", "lane/8"),
        ("mul.wide.u32 %d1, %r1, 4;", "4·lane%8"),
        ("add.u64 %d2, %d0, %d1;", "base + 4·lane%8"),
        ("mad.lo.u32 %r5, %r2, %r0, %r1;", "lane%8 + u·lane/8"),
        ("mul.wide.u32 %d3, %r3, 4;", "varies"),
        ("mov.f32 %f0, 0f3FC00000;", "= 1.5"),
        ("mov.u32 %r8, 7;", "= 7"),
    ],
)
def test_values(rows: dict[str, tuple[str, str]], instruction: str, value: str) -> None:
    found, _ = rows[instruction]
    assert sorted(found.split(" + ")) == sorted(value.split(" + "))


@pytest.mark.parametrize(
    ("instruction", "note"),
    [
        ("ld.global.u32 %r3, [%d2];", "1 row of 8"),
        ("ld.global.u32 %r4, [%d0];", "broadcast"),
        ("ld.global.u32 %r6, [%d4];", "gather"),
        ("atom.global.add.u32 %r7, [%d0], 1;", "lane by lane"),
    ],
)
def test_accesses(rows: dict[str, tuple[str, str]], instruction: str, note: str) -> None:
    assert rows[instruction][1] == note


@pytest.mark.parametrize(
    ("instruction", "note"),
    [
        ("st.global.u32 [%d2], %r6;", "1 row of 8"),
        ("st.global.u32 [%d4], %r6;", "scatter"),
        ("st.global.u32 [%d0], %r4;", "single store"),
        ("@%p0 bra NEXT;", "together"),
    ],
)
def test_what_gives_no_value(rows: dict[str, tuple[str, str]], instruction: str, note: str) -> None:
    assert rows[instruction] == (note, "")


def test_each_slow_access_and_branch_has_its_cause() -> None:
    loop = "LOOP: sub.u32 %r6, %r6, 1;\n    setp.ne.u32 %p0, %r6, 0;\n    @%p0 bra LOOP;"
    text = HEAD + KERNEL.replace("mov.u32 %r8, 7;", loop)
    table = ptxvm.load(text).kernel().dump("shapes", (8, 4))
    slow = table.partition("\nSlow:\n")[2].partition("\n\n")[0].splitlines()
    at = {line.strip(): number for number, line in enumerate(text.splitlines(), 1)}
    index, loaded = at["ld.global.u32 %r3, [%d2];"], at["ld.global.u32 %r6, [%d4];"]
    assert slow == [
        f"line {loaded}: gather: line {index} loads %r3",
        f"line {at['st.global.u32 [%d4], %r6;']}: scatter: line {index} loads %r3",
        f"line {at['atom.global.add.u32 %r7, [%d0], 1;']}: lane by lane: an atomic access",
        f"line {at['@%p0 bra LOOP;']}: lanes that part run under a mask: line {loaded} loads %r6",
        "everywhere: the kernel has no version for whole warps; code runs under masks, one warp at a time",
    ]


STRIDES = """
.visible .entry strides(.param .u64 data, .param .u32 n)
{
    .reg .b32 %r<5>; .reg .b64 %d<3>; .reg .pred %p0;
    ld.param.u64 %d0, [data]; ld.param.u32 %r0, [n];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x; mad.lo.u32 %r1, %r1, %r2, %r3;
    mov.u32 %r3, %nctaid.x; mul.lo.u32 %r2, %r2, %r3;
LOOP:
    mul.wide.u32 %d1, %r1, 8; add.u64 %d1, %d0, %d1;
    mov.u64 %d2, %gridid;
    st.global.u64 [%d1], %d2;
    add.u32 %r1, %r1, %r2;
    setp.lt.u32 %p0, %r1, %r0;
    @%p0 bra LOOP;
    ret;
}
"""


def test_what_python_computes_and_loops_in_step_are_named() -> None:
    text = HEAD + STRIDES
    table = ptxvm.load(text).kernel().dump("shapes", 64)
    at = 1 + next(n for n, line in enumerate(text.splitlines()) if "%gridid" in line)
    assert re.search(r"mov.u64 %d2, %gridid; +varies +in Python\n", table)
    assert re.search(r"@%p0 bra LOOP; +together, else masked, in step\n", table)
    assert f"\nline {at}: computed in Python, which takes microseconds for each warp: mov.u64 has no machine code\n" in table


def test_the_other_dumps_are_code() -> None:
    kernel = ptxvm.load(HEAD + KERNEL).kernel()
    assert re.search(r"^define .*i32 @grid\(", kernel.dump("llvm", 32), re.MULTILINE)
    assert re.search(r"^grid:", kernel.dump("asm", 32), re.MULTILINE)
    with pytest.raises(ValueError, match="there is no dump of 'bits'; there are shapes, llvm, asm"):
        kernel.dump("bits")


def test_a_dump_is_of_the_numerics_of_a_launch() -> None:
    kernel = ptxvm.load(HEAD + POWER).kernel()
    exact, fast = (kernel.dump("llvm", 32, numerics=numerics) for numerics in ("exact", "fast"))
    assert exact == kernel.dump("llvm", 32)
    assert (LN_2 in fast) == approx_exact.available()  # of the series of 2**x; a processor without AVX-512 has one way only
    assert LN_2 not in exact
    with pytest.raises(ValueError, match="there are no numerics 'sloppy'; there are exact, fast"):
        kernel.dump("llvm", 32, numerics="sloppy")


LANES = tuple(range(32))


@pytest.mark.parametrize(
    ("type", "raw", "said"),
    [
        (u32, Affine(5), "= 5"),
        (s32, Affine(0xFFFF_FFFF), "= -1"),
        (f32, Affine(0xC0200000), "= -2.5"),
        (pred, Affine(1), "= true"),
        (u32, Affine(0x80000001), "= 0x80000001"),
        (u32, Affine("%x"), "uniform"),
        (u64, Affine(8, ((LANES, 4),)), "8 + 4·lane"),
        (u64, Affine("%x", ((LANES, (1 << 64) - 4),)), "base + -4·lane"),
        (u32, Affine(0, ((tuple(n % 4 for n in LANES), 1), (tuple(n // 4 for n in LANES), "%u"))), "lane%4 + u·lane/4"),
        (u32, Affine("%x", ((tuple(n * n for n in LANES), 1),)), "base + K[lane]"),
        (u32, Varying("%v"), "varies"),
        (f32, Varying("<...>", LANES), "constants"),
    ],
)
def test_shapes_in_words(type: object, raw: Affine | Varying, said: str) -> None:
    assert shape(type, raw) == said  # type: ignore[arg-type]


def test_numbers_are_read_by_their_type() -> None:
    assert [number(f32, 0x7F800000), number(u64, 1 << 40), number(s32, 0xFFF0_0001)] == ["inf", hex(1 << 40), "-1048575"]


def test_where_the_version_for_whole_warps_ends_is_told():
    """A ballot is written for one warp: behind a loop that runs for several it is masked, and nothing is said of its values."""
    text = """
        .version 7.0
        .target sm_75
        .address_size 64
        .visible .entry k(.param .u64 data, .param .u32 count)
        {
            .reg .b32 %r<8>; .reg .b64 %d<4>; .reg .pred %p<3>;
            ld.param.u64 %d1, [data];
            ld.param.u32 %r6, [count];
            mov.u32 %r1, %tid.x;
            mad.wide.u32 %d1, %r1, 4, %d1;
            mov.u32 %r5, 0;
            mov.u32 %r3, 0;
        AGAIN:
            ld.global.b32 %r2, [%d1];
            add.u32 %r3, %r3, %r2;
            add.u32 %r5, %r5, 1;
            setp.lt.u32 %p2, %r5, %r6;
            @%p2 bra AGAIN;
            setp.gt.u32 %p1, %r3, 7;
            vote.sync.ballot.b32 %r4, %p1, 0xffffffff;
            add.u32 %r4, %r4, 1;
            st.global.b32 [%d1], %r4;
            ret;
        }
        """
    lines = ptxvm.load(text).kernel().dump("shapes", 256).splitlines()
    rows = {line.split()[1]: line.split()[-1] for line in lines if line[:4].strip().isdigit()}
    assert rows["vote.sync.ballot.b32"] == "here"
    assert rows["st.global.b32"] == "masked"
    assert "line 21: from here on each warp runs alone, under masks: vote.sync.ballot.b32 is written for one warp" in lines
    assert not any("varies" in line or "=" in line for line in lines if " add.u32 %r4" in line)
