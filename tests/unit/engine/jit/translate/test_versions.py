"""The versions of a kernel: warps that go from one to another in the middle compute what the interpreter does."""

from __future__ import annotations

import numpy as np
import pytest
from engines import same

import ptxvm
from ptxvm.engine.jit.abi.specialisation import Specialisation, Tier
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.node import access_sites
from ptxvm.engine.jit.objects import codegen
from ptxvm.engine.jit.objects.code_cache import CodeCache
from ptxvm.engine.jit.run import tiering
from ptxvm.engine.jit.translate import fixed_point, versions

HEAD = ".version 8.0\n.target sm_80\n.address_size 64\n"

# Threads below `n` add to their element what their row and column are; all meet at a barrier in between and swap with
# the thread on the other side of the CTA.
SWAP = """
.visible .entry k(.param .u64 data, .param .u32 n, .param .u32 last)
{
    .reg .b32 %r<12>; .reg .b64 %d<8>; .reg .pred %p<2>;
    .shared .align 4 .b8 room[4096];
    ld.param.u64 %d0, [data];
    ld.param.u32 %r0, [n];
    ld.param.u32 %r8, [last];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1;
    mul.wide.u32 %d1, %r4, 4;
    add.u64 %d2, %d0, %d1;
    setp.ge.u32 %p0, %r4, %r0;
    @%p0 bra SKIP;
    ld.global.u32 %r5, [%d2];
    mad.lo.u32 %r5, %r2, 100, %r5;
    add.u32 %r5, %r5, %r1;
    st.global.u32 [%d2], %r5;
SKIP:
    ld.global.u32 %r6, [%d2];
    mov.u64 %d3, room;
    add.u64 %d4, %d3, %d1;
    st.shared.u32 [%d4], %r6;
    bar.sync 0;
    sub.u32 %r7, %r8, %r4;
    mul.wide.u32 %d5, %r7, 4;
    add.u64 %d6, %d3, %d5;
    ld.shared.u32 %r9, [%d6];
    add.u32 %r9, %r9, %r2;
    st.global.u32 [%d2], %r9;
    ret;
}
"""
# A sum of a column over some rows, the distance of which is known when the kernel runs.
COLUMNS = """
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 pitch, .param .u32 rows, .param .u32 first)
{
    .reg .b32 %r<10>; .reg .b64 %d<8>; .reg .pred %p<2>; .reg .f32 %f<3>;
    ld.param.u64 %d0, [in];
    ld.param.u64 %d1, [out];
    ld.param.u32 %r0, [pitch];
    ld.param.u32 %r1, [rows];
    ld.param.u32 %r2, [first];
    mov.u32 %r3, %tid.x;
    add.s32 %r4, %r3, %r2;
    mov.f32 %f0, 0f00000000;
    mov.u32 %r5, 0;
LOOP:
    mad.lo.s32 %r6, %r5, %r0, %r4;
    mul.wide.s32 %d2, %r6, 4;
    add.s64 %d3, %d0, %d2;
    ld.global.f32 %f1, [%d3];
    fma.rn.f32 %f0, %f1, 0f3FC00000, %f0;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p0, %r5, %r1;
    @%p0 bra LOOP;
    mul.wide.u32 %d4, %r3, 4;
    add.s64 %d5, %d1, %d4;
    st.global.f32 [%d5], %f0;
    ret;
}
"""


def width_of(module: ptxvm.Module, block: tuple[int, int, int]) -> int:
    """How many lanes run abreast at first; 0 where lanes may part from the start."""
    kernel = CodeCache(module.image).translation(Specialisation(module.kernel().function, block)).versions.kernel
    return kernel.width if kernel.straight else 0


@pytest.mark.sampled(3)
@pytest.mark.parametrize("block", [(256, 1, 1), (16, 16, 1), (64, 2, 1), (100, 1, 1), (96, 3, 1), (8, 4, 8)])
@pytest.mark.parametrize("n", [0, 1, 45, 100, 200, 1000])
def test_lanes_that_part_go_on_in_the_masked_version(block: tuple[int, int, int], n: int) -> None:
    threads = block[0] * block[1] * block[2]
    module = ptxvm.load(HEAD + SWAP)
    assert width_of(module, block) >= 32
    same(module.kernel(), [np.arange(3 * threads, dtype=np.uint32), np.uint32(n), np.uint32(threads - 1)], block=block)


@pytest.mark.parametrize("first", [0, 37])
def test_a_loop_of_several_warps_abreast(first: int, rng: np.random.Generator) -> None:
    module = ptxvm.load(HEAD + COLUMNS)
    assert width_of(module, (256, 1, 1)) > 32
    data = rng.random((9, 300), np.float32)
    same(module.kernel(), [data, np.zeros(256, np.float32), np.uint32(300), np.uint32(9), np.uint32(first)], block=256)


@pytest.mark.parametrize(("warps", "width"), [(2, 64), (3, 32), (5, 32), (6, 64), (8, 128), (9, 128), (12, 128)])
def test_few_warps_are_left_without_a_group(warps: int, width: int) -> None:
    """A warp that is in none runs in the masked version, which takes longer."""
    assert width_of(ptxvm.load(HEAD + COLUMNS), (32 * warps, 1, 1)) == width


def test_an_access_in_a_loop_of_several_warps_faults_in_the_right_thread() -> None:
    module = ptxvm.load(HEAD + COLUMNS)
    arguments = [np.zeros(300 * 3 - 50, np.float32), np.zeros(256, np.float32), *np.array([300, 3, 0], np.uint32)]
    with pytest.raises(ptxvm.Fault) as caught:
        module.kernel().launch(block=256, args=arguments, engine="jit")
    assert caught.value.place is not None
    assert caught.value.place.thread == (250, 0, 0)


def barriers(count: int) -> str:
    """Each turn a thread takes what its neighbour has, and a multiple of its number; odd ones below `n` add 1 before."""
    turn = """
    @%p0 bra SKIP{n};
    add.u32 %r3, %r3, 1;
SKIP{n}:
    st.shared.u32 [%d1], %r3;
    bar.sync 0;
    ld.shared.u32 %r4, [%d2];
    mad.lo.u32 %r3, %r1, {n}, %r4;
    bar.sync 0;"""
    return (
        HEAD
        + f"""
.visible .entry k(.param .u64 out, .param .u32 n)
{{
    .reg .b32 %r<8>; .reg .b64 %d<5>; .reg .pred %p<3>;
    .shared .align 4 .b8 room[256];
    ld.param.u64 %d0, [out];
    ld.param.u32 %r0, [n];
    mov.u32 %r1, %tid.x;
    and.b32 %r2, %r1, 1;
    setp.eq.u32 %p1, %r2, 0;
    setp.ge.u32 %p2, %r1, %r0;
    or.pred %p0, %p1, %p2;
    mov.u64 %d3, room;
    mul.wide.u32 %d4, %r1, 4;
    add.u64 %d1, %d3, %d4;
    add.u64 %d0, %d0, %d4;
    add.u32 %r5, %r1, 1;
    and.b32 %r5, %r5, 63;
    mul.wide.u32 %d2, %r5, 4;
    add.u64 %d2, %d3, %d2;
    mov.u32 %r3, %r1;
{"".join(turn.format(n=n) for n in range(count))}
    st.global.u32 [%d0], %r3;
    ret;
}}
"""
    )


@pytest.mark.parametrize("long", [False, True], ids=["registers in the processor", "written down"])
@pytest.mark.parametrize("n", [0, 40, 64])
def test_many_barriers_share_how_a_warp_waits(n: int, *, long: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The values are those of the same steps in NumPy."""
    monkeypatch.setenv("PTXVM_CACHE", "off")
    monkeypatch.setattr(tiering, "first", lambda _=None: Tier.QUICK)
    if long:
        monkeypatch.setattr(codegen, "LONG", 0)
    out, thread = np.zeros(64, np.uint32), np.arange(64, dtype=np.uint32)
    ptxvm.load(barriers(20)).kernel().launch(1, 64, [out, n], engine="jit")
    wanted = thread.copy()
    for turn in range(20):
        wanted = np.roll(wanted + (thread % 2 == 1) * (thread < n), -1) + thread * turn
    np.testing.assert_array_equal(out, wanted)


def test_a_long_module_is_written_down_where_somebody_waits() -> None:
    text = "\n" * (codegen.LONG + 1)
    assert codegen.recipe(text, Tier.QUICK) is codegen.WRITTEN_DOWN
    assert codegen.recipe(text[1:], Tier.QUICK) is codegen.RECIPES[Tier.QUICK]
    assert codegen.recipe(text, Tier.BEST) is codegen.RECIPES[Tier.BEST]


def test_places_without_room_for_distances_are_checked_lane_by_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel may have more accesses than a record has room for: then those of all versions and widths share one."""
    monkeypatch.setattr(access_sites, "SPANS", 0)
    test_an_access_in_a_loop_of_several_warps_faults_in_the_right_thread()
    test_a_loop_of_several_warps_abreast(0, np.random.default_rng(5))
    test_lanes_that_part_go_on_in_the_masked_version((96, 3, 1), 45)


def test_registers_that_nothing_reads_count_where_they_are_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """A load of four words writes four registers, whichever are read: 128 lanes have no room for them, and are not tried."""
    tried = []
    monkeypatch.setattr(versions, "translate", lambda kernel: tried.append(kernel.width) or fixed_point.translate(kernel))
    load = "ld.global.v4.u32 {%r2, %r3, %r4, %r5}, [%d0]; xor.b32 %r1, %r1, %r5;\n"
    module = ptxvm.load(f"""{HEAD}
.visible .entry k(.param .u64 data)
{{
    .reg .b32 %r<6>; .reg .b64 %d<2>;
    ld.param.u64 %d0, [data];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %d1, %r0, 4;
    add.u64 %d0, %d0, %d1;
    mov.u32 %r1, %r0;
    {load * 4}
    st.global.u32 [%d0], %r1;
    ret;
}}
""")
    assert width_of(module, (256, 1, 1)) == 64
    assert tried == [64]


def test_a_register_of_many_parts_waits_at_a_barrier() -> None:
    """A sum of 150 words, each times some bits of the thread's number: affine in 150 patterns of 256 lanes."""
    terms = "".join(
        f"ld.param.u32 %r0, [words+{4 * n}]; and.b32 %r1, %t, {n + 1}; mad.lo.u32 %r2, %r0, %r1, %r2;\n" for n in range(150)
    )
    kernel = ptxvm.load(f"""{HEAD}
.visible .entry k(.param .u64 out, .param .align 4 .b8 words[600])
{{
    .reg .b32 %r<4>, %t; .reg .b64 %d<3>;
    ld.param.u64 %d0, [out];
    mov.u32 %t, %tid.x;
    mov.u32 %r2, 0;
    {terms}
    mul.wide.u32 %d1, %t, 4;
    add.u64 %d2, %d0, %d1;
    bar.sync 0;
    st.global.u32 [%d2], %r2;
    ret;
}}
""").kernel()
    out, words = np.zeros(256, np.uint32), np.arange(1000, 1150, dtype=np.uint32)
    kernel.launch(block=256, args=[out, words.tobytes()], engine="jit")
    thread = np.arange(256, dtype=np.uint32)
    assert (out == sum((thread & n + 1) * words[n] for n in range(150))).all()


# Where `CHOICE` is a branch, lanes skip an instruction by what they have loaded.
DOUBLED = """
.visible .entry k(.param .u64 data)
{
    .reg .b32 %r<6>; .reg .b64 %d<4>; .reg .pred %p<2>;
    ld.param.u64 %d0, [data]; mov.u32 %r1, %tid.x; mul.wide.u32 %d1, %r1, 4; add.u64 %d2, %d0, %d1;
    ld.global.u32 %r2, [%d2]; setp.gt.u32 %p0, %r2, 7;
    CHOICE
    mul.lo.u32 %r2, %r2, 3; xor.b32 %r2, %r2, %r1;
END:
    BARRIER
    st.global.u32 [%d2], %r2;
    ret;
}
"""


@pytest.mark.parametrize(
    ("choice", "barrier", "together"),
    [("@%p0 bra END;", "", "one at a time"), ("", "", "abreast"), ("@%p0 bra END;", "bar.sync 0;", "abreast")],
)
def test_lanes_that_skip_something_without_mask_registers(
    choice: str, barrier: str, together: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wide predicates are slow there; a group whose barriers are free is worth that."""
    has = cpu.has
    monkeypatch.setattr(cpu, "has", lambda feature: has(feature) and not feature.startswith("avx512"))
    kernel = ptxvm.load(HEAD + DOUBLED.replace("CHOICE", choice).replace("BARRIER", barrier)).kernel()
    assert together in kernel.dump("shapes", 256).splitlines()[0]
