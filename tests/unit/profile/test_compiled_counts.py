"""The counts of compiled code: against closed forms, and against those of the interpreter on the same kernels."""

from __future__ import annotations

import mmap
import re
from math import gcd
from pathlib import Path

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.abi.counter_rows import FIRST_KEYS, MOST_KEYS
from ptxvm.engine.jit.run.event_counts import words
from ptxvm.profile.metrics import COUNTED

HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
REGISTERS = ".reg .pred %p<6>; .reg .b16 %h<4>; .reg .b32 %r<24>; .reg .f32 %f<8>; .reg .b64 %rd<16>;\n"
VALUES = {1: "%h1", 2: "%h1", 4: "%r20", 8: "{%r20, %r21}", 16: "{%r20, %r21, %r22, %r23}"}
TYPES = {1: "u8", 2: "u16", 4: "u32", 8: "v2.u32", 16: "v4.u32"}


def kernel(body, parameters, shared=""):
    return ptxvm.load(f"{HEAD}.visible .entry k({parameters}) {{ {REGISTERS}{shared}\n{body}\nret;\n}}").kernel()


def profiles(body, args, *, parameters=".param .u64 out", shared="", grid=1, block=32, **options):
    """The profiles of a kernel by compiled code and by the interpreter, which are the same line by line."""
    found = []
    for engine in ("jit", "interp"):
        given = [each.copy() if isinstance(each, np.ndarray) else each for each in args]
        done = kernel(body, parameters, shared).launch(grid, block, given, engine=engine, profile=True, **options)
        found.append(done.profile)
    one, other = found
    assert (one.engine, other.engine) == ("jit", "interp")
    assert lines(one) == lines(other)
    return one


def lines(profile):
    return {line.number: {name: count for name, count in line.counts.items() if count} for line in profile.lines}


# ── closed forms ────────────────────────────────────────────────────────────────────────

STRIDED = """
    ld.param.u32 %r2, [stride]; ld.param.u32 %r6, [times]; mov.u32 %r1, %tid.x; mul.lo.u32 %r3, %r1, %r2;
    mov.u32 %r4, tile; add.u32 %r5, %r3, %r4;
    LOOP:
    ld.shared.TYPE VALUE, [%r5];
    sub.u32 %r6, %r6, 1; setp.ne.u32 %p1, %r6, 0;
    @%p1 bra LOOP;
"""


@pytest.mark.parametrize("size", [4, 8, 16])
def test_strides_conflict_as_often_as_they_and_the_banks_divide(size):
    body = STRIDED.replace("TYPE", TYPES[size]).replace("VALUE", VALUES[size])
    code = kernel(body, ".param .u32 stride, .param .u32 times", ".shared .align 16 .b8 tile[16896];")
    passes = size // 4
    for stride in range(1, 33):  # known when the kernel runs; the second time round the pattern is remembered
        found = code.launch(2, 32, [size * stride, 3], engine="jit", profile=True).profile
        assert found["shared_load_wavefronts"] == 2 * 3 * passes * gcd(stride, 32 // passes), stride
        assert found["shared_load_wavefronts_ideal"] == 2 * 3 * passes


GLOBAL = """
    ld.param.u64 %rd1, [out]; ld.param.u32 %r2, [stride]; mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, %r2; add.u64 %rd3, %rd1, %rd2;
    mov.u32 %r6, 2;
    LOOP:
    ld.global.TYPE VALUE, [%rd3];
    add.u64 %rd3, %rd3, SIZE;
    sub.u32 %r6, %r6, 1; setp.ne.u32 %p1, %r6, 0;
    @%p1 bra LOOP;
"""


@pytest.mark.parametrize("size", [1, 2, 4, 8, 16])
def test_strides_touch_the_sectors_between_the_first_and_the_last_lane(size):
    body = GLOBAL.replace("TYPE", TYPES[size]).replace("VALUE", VALUES[size]).replace("SIZE", str(size))
    code = kernel(body, ".param .u64 out, .param .u32 stride")
    memory = np.zeros(1 << 16, np.uint8)
    for stride in range(1, 33):
        found = code.launch(1, 64, [memory, size * stride], engine="jit", profile=True).profile
        addresses = [size * (stride * np.arange(32 * warp, 32 * warp + 32) + n) for warp in range(2) for n in range(2)]
        assert found["global_load_sectors"] == sum(len({*(each // 32).tolist()}) for each in addresses), stride
        assert found["global_load_lines"] == sum(len({*(each // 128).tolist()}) for each in addresses), stride
        assert found["global_load_sectors_ideal"] == 4 * size


SWIZZLE = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mov.u32 %r3, tile;
    MIXED
    mad.lo.u32 %r5, %r1, 128, %r3; mad.lo.u32 %r5, %r4, 4, %r5;
    st.shared.u32 [%r5], %r1;
"""


@pytest.mark.parametrize(("mixed", "wavefronts"), [("xor.b32 %r4, %r1, %r2;", 1), ("mov.u32 %r4, %r2;", 32),
                                                   ("shr.u32 %r4, %r1, 1; xor.b32 %r4, %r4, %r2;", 2)])  # fmt: skip
def test_a_swizzle_of_columns_has_as_many_passes_as_rows_share_a_bank(mixed, wavefronts):
    found = profiles(
        SWIZZLE.replace("MIXED", mixed), [], parameters="", shared=".shared .align 16 .b8 tile[4096];", block=(32, 32)
    )
    assert found["shared_store_wavefronts"] == 32 * wavefronts


GATHER = """
    ld.param.u64 %rd1, [out]; ld.param.u64 %rd4, [where]; mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x;
    mad.lo.u32 %r4, %r2, %r3, %r1; mul.wide.u32 %rd2, %r4, 4; add.u64 %rd5, %rd4, %rd2;
    ld.global.u32 %r5, [%rd5]; mul.wide.u32 %rd6, %r5, SIZE; add.u64 %rd7, %rd1, %rd6;
    mov.u32 %r8, tile; and.b32 %r9, %r5, 255; mad.lo.u32 %r9, %r9, SIZE, %r8;
    setp.lt.u32 %p1, %r5, 200;
    ld.global.TYPE VALUE, [%rd7];
    @%p1 st.shared.TYPE [%r9], VALUE;
    @%p1 atom.shared.add.u32 %r10, [%r9], 1;
    red.global.add.u32 [%rd7], 1;
"""


@pytest.mark.parametrize("size", [4, 8, 16])
def test_gathers_count_what_their_addresses_say(size, rng):
    where = rng.integers(0, 256, 256).astype(np.uint32)
    body = GATHER.replace("TYPE", TYPES[size]).replace("VALUE", VALUES[size]).replace("SIZE", str(size))
    found = profiles(body, [np.zeros(4096, np.uint8), where], parameters=".param .u64 out, .param .u64 where",
                     shared=".shared .align 16 .b8 tile[4096];", grid=4, block=64)  # fmt: skip
    each = where.reshape(8, 32).astype(np.int64) * size
    assert found["global_load_sectors"] == 8 * 4 + sum(len({*(warp // 32).tolist()}) for warp in each)
    wanted = [np.unique(warp, return_counts=True) for warp in each]
    some = [np.unique(warp[warp < 200 * size], return_counts=True) for warp in each]
    assert found["atomic_addresses"] == sum(len(one) for one, _ in [*wanted, *some])
    assert found["atomic_steps"] == sum(int(counts.max()) for _, counts in [*wanted, *some])
    assert found["atomic_operations"] == 256 + int((where < 200).sum())


BATCHES = """
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r5, %r1;
    mov.u64 %rd2, tile; cvta.shared.u64 %rd3, %rd2;
    mov.u64 %rd8, 1; mov.u64 %rd9, 2; mov.u16 %h1, 1; mov.u16 %h2, 2; mov.u32 %r20, 1;
    mov.u32 %r6, TIMES;
LOOP:
    mul.lo.u32 %r5, %r5, 1664525; add.u32 %r5, %r5, 1013904223; shr.u32 %r7, %r5, 24;
    setp.lt.u32 %p1, %r7, 200; setp.lt.u32 %p2, %r7, 100;
    mul.wide.u32 %rd4, %r7, SIZE; add.u64 %rd5, %rd1, %rd4; add.u64 %rd6, %rd2, %rd4; add.u64 %rd7, %rd3, %rd4;
    @%p2 mov.u64 %rd7, %rd5;                            // lanes of one request in two spaces
    ACCESSES
    activemask.b32 %r8; shfl.sync.idx.b32 %r9, %r5, 3, 31, %r8;
    sub.u32 %r6, %r6, 1; setp.ne.u32 %p3, %r6, 0;
    @%p3 bra LOOP;
"""
LOADS = "ld.global.TYPE VALUE, [%rd5]", "ld.shared.TYPE VALUE, [%rd6]", "st.TYPE [%rd7], VALUE"
UPDATES = [f"red{space}.add.TYPE [{at}], VALUE" for space, at in ((".global", "%rd5"), (".shared", "%rd6"), ("", "%rd7"))]
SWAPS = [f"atom{space}.cas.b16 %h2, [{at}], %h1, %h2" for space, at in ((".global", "%rd5"), (".shared", "%rd6"), ("", "%rd7"))]
KINDS = [
    (LOADS, 1, "u8", "%h1"), (LOADS, 2, "u16", "%h1"), (LOADS, 4, "u32", "%r20"), (LOADS, 8, "u64", "%rd8"),
    (LOADS, 16, "v2.u64", "{%rd8, %rd9}"), (SWAPS, 2, "", ""), (UPDATES, 4, "u32", "%r20"), (UPDATES, 8, "u64", "%rd8"),
]  # fmt: skip


@pytest.mark.parametrize(("accesses", "size", "type", "value"), KINDS)
@pytest.mark.parametrize("times", [1, 7, 8, 9, 15, 16, 17, 33, 50])
def test_requests_are_the_same_in_batches_of_any_number(times, accesses, size, type, value):
    """Fewer than a batch, a whole one, one more, and several: sectors, wavefronts and contention for lanes here and there."""
    guarded = "".join(f"@%p1 {access}; " for access in accesses).replace("TYPE", type).replace("VALUE", value)
    text = BATCHES.replace("ACCESSES", guarded).replace("TIMES", str(times)).replace("SIZE", str(size))
    found = profiles(text, [np.zeros(4096, np.uint8)], shared=".shared .align 16 .b8 tile[4096];", block=64)
    assert sum(found[f"{space}_{verb}_requests"] for space in ("global", "shared") for verb in ("load", "atomic")) >= 4 * times


PAIRS = """
    mov.u32 %r1, %tid.x; mov.u32 %r2, tile; mov.u32 %r6, TIMES; mov.u32 %r8, 0;
LOOP:
    and.b32 %r9, %r6, 3; not.b32 %r9, %r9; and.b32 %r9, %r1, %r9;           // lanes n and n ^ 1, n ^ 2, all four, none
    mad.lo.u32 %r9, %r6, 77, %r9; mul.lo.u32 %r5, %r9, 0x9e3779b1; shr.u32 %r7, %r5, 24;      // no neighbours alike
    mad.lo.u32 %r10, %r6, 31, %r1; mul.lo.u32 %r10, %r10, 0x9e3779b1; shr.u32 %r10, %r10, 24;
    setp.lt.u32 %p1, %r10, 200;
    mad.lo.u32 %r7, %r7, SIZE, %r2;
    ld.shared.TYPE VALUE, [%r7];
    @%p1 ld.shared.TYPE VALUE, [%r7];
    @%p1 st.shared.TYPE [%r7], VALUE;
    sub.u32 %r6, %r6, 1; setp.ne.u32 %p3, %r6, 0;
    @%p3 bra LOOP;
"""


@pytest.mark.parametrize("times", [1, 8, 16, 17, 50])
@pytest.mark.parametrize("size", [4, 8, 16])
def test_loads_of_pairs_of_lanes_are_the_same_in_batches(size, times):
    """A pass serves twice as many lanes in three of four rounds (`profile.warp_accesses.may_pair`)."""
    text = PAIRS.replace("TYPE", TYPES[size]).replace("VALUE", VALUES[size])
    text = text.replace("TIMES", str(times)).replace("SIZE", str(size))
    found = profiles(text, [], parameters="", shared=".shared .align 16 .b8 tile[4096];", block=64)
    (whole,) = (line for line in found.lines if line.text.startswith("ld.shared"))
    rounds, alone = 2 * times, 2 * (times // 4)
    passes = size // 4
    assert whole["shared_load_wavefronts_ideal"] == (rounds if size == 4 else (rounds - alone) * passes // 2 + alone * passes)
    assert whole["shared_load_bytes"] == rounds * 32 * size


BEFORE_AN_EXIT = """
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mov.u32 %r5, %r1; mov.u32 %r6, 60; mov.u32 %r9, 0;
LOOP:
    mul.lo.u32 %r5, %r5, 1664525; add.u32 %r5, %r5, 1013904223; shr.u32 %r7, %r5, 24;
    setp.lt.u32 %p1, %r7, 12;                           // of some warps no lane
    mul.wide.u32 %rd4, %r7, 4; add.u64 %rd5, %rd1, %rd4;
    @%p1 ld.global.u32 %r8, [%rd5];
    setp.eq.u32 %p2, %r6, WHEN; selp.u32 %r10, 0x7ffffff0, 0, %p2; add.u32 %r10, %r10, %r1;
    mul.wide.s32 %rd6, %r10, 4; cvt.u32.u64 %r11, %rd6;    // where one wraps, another version runs this again
    add.u32 %r9, %r9, %r11;
    sub.u32 %r6, %r6, 1; setp.ne.u32 %p3, %r6, 0;
    @%p3 bra LOOP;
    st.global.u32 [%rd1], %r9;
"""


@pytest.mark.parametrize("when", [0, 1, 20, 60])
@pytest.mark.parametrize("block", [32, 64, 128, 256])
def test_requests_before_a_side_exit_count_once(block, when):
    found = profiles(BEFORE_AN_EXIT.replace("WHEN", str(when)), [np.zeros(1024, np.uint8)], block=block, grid=4)
    assert 60 < found["global_load_requests"] < 4 * 60 * block // 32


# ── the same on both engines ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("block", [32, 64, 256, 40, 31])
def test_lanes_part_in_loops_and_meet_at_a_shuffle(block):
    found = profiles("""
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; and.b32 %r7, %r1, 7; mov.u32 %r2, 0;
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
    LOOP:
        ld.global.u32 %r3, [%rd3];
        add.u32 %r2, %r2, %r3; add.u32 %r2, %r2, 1;
        setp.le.u32 %p1, %r2, %r7;
        @%p1 bra LOOP;
        and.b32 %r4, %r1, 1; setp.eq.u32 %p2, %r4, 0;
        @%p2 bra EVEN;
        mov.u32 %r5, 1;
        bra JOIN;
    EVEN:
        @%p1 mov.u32 %r5, 2;
    JOIN:
        shfl.sync.idx.b32 %r6, %r5, 0, 31, -1;
        st.global.u32 [%rd3], %r6;""", [np.zeros(512, np.uint32)], block=block, grid=3)  # fmt: skip
    assert found["divergent_branches"] > 0


@pytest.mark.parametrize("block", [32, 48, 128])
def test_lanes_that_go_back_from_the_middle_of_a_loop_run_before_the_others(block):
    found = profiles("""
        mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0; mov.u32 %r3, 3;
    LOOP:
        sub.u32 %r3, %r3, 1; setp.eq.u32 %p2, %r3, 0;
        @%p2 bra END;
        @%p1 bra LOOP;
        bra LOOP;
    END:
        mov.u32 %r4, %r3;""", [], parameters="", block=block)  # fmt: skip
    by_text = {line.text: line for line in found.lines}
    warps = -(-block // 32)
    assert by_text["@%p1 bra LOOP;"]["inst_executed"] == (1 + 2) * warps  # all lanes, then even ones and odd ones
    assert by_text["mov.u32 %r4, %r3;"]["inst_executed"] == warps


@pytest.mark.parametrize("members", ["%r3", "0xffffff7e"])
@pytest.mark.parametrize("block", [48, 64, 128])
def test_a_collective_whose_lanes_are_all_there_ends_before_other_lanes_go_on(block, members):
    """An address wraps, so that lanes go on in the version with a lane scheduler; lane 0 ends before others wait for it."""
    found = profiles(f"""
        ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 31; setp.eq.u32 %p1, %r2, 7;
        vote.sync.ballot.b32 %r3, !%p1, -1;
        @%p1 bra JOIN;
        sub.u32 %r5, 5, %r1; mad.wide.u32 %rd2, %r5, 1, %rd1;
        setp.eq.u32 %p2, %r2, 0;
        @%p2 bra OUT;
        bar.warp.sync {members};
    JOIN:
        vote.sync.ballot.b32 %r4, 1, 0xfffffffe;
    OUT:
        mov.u32 %r6, %r4;""", [np.zeros(1, np.uint64)], block=block)  # fmt: skip
    warps = -(-block // 32)
    by_text = {line.text: line["inst_executed"] for line in found.lines}
    assert by_text["vote.sync.ballot.b32 %r4, 1, 0xfffffffe;"] == warps


FUNCTION = """
.func (.reg .b32 %y) half(.reg .b32 %x)
{
    .reg .pred %q; .reg .b32 %z;
    and.b32 %z, %x, 1; setp.eq.u32 %q, %z, 0;
    @%q bra EVEN;
    add.u32 %y, %x, 1;
    bra JOIN;
EVEN:
    shr.u32 %y, %x, 1;
JOIN:
    add.u32 %y, %y, 0;
    ret;
}
"""


def test_lanes_part_in_a_function_and_meet_behind_its_call():
    body = """
        mov.u32 %r1, %tid.x; mov.u32 %r2, 3;
    LOOP:
        and.b32 %r3, %r1, 2; setp.eq.u32 %p1, %r3, 0;
        @%p1 bra SKIP;
        call (%r1), half, (%r1);
    SKIP:
        sub.u32 %r2, %r2, 1; setp.ne.u32 %p2, %r2, 0;
        @%p2 bra LOOP;"""
    text = f"{HEAD}{FUNCTION}.visible .entry k() {{ {REGISTERS}\n{body}\nret;\n}}"
    found = [ptxvm.load(text).kernel().launch(2, 64, profile=True, engine=engine).profile for engine in ("jit", "interp")]
    assert lines(found[0]) == lines(found[1])
    by_text = {line.text: line for line in found[0].lines}
    # The warps of which some lane has bit 1 call, as a whole; all lanes meet behind the call.
    calls, values = 0, np.arange(64).reshape(2, 32)
    for _ in range(3):
        calling = values & 2 > 0
        calls += 2 * int(calling.any(axis=1).sum())
        values = np.where(calling, np.where(values & 1, values + 1, values >> 1), values)
    assert by_text["sub.u32 %r2, %r2, 1;  setp.ne.u32 %p2, %r2, 0;"]["inst_executed"] == 2 * 2 * 3 * 2
    assert by_text["add.u32 %y, %y, 0;"]["inst_executed"] == calls


FUNCTION_THAT_SHUFFLES = ".func (.reg .b32 %y) next(.reg .b32 %x) {\nshfl.sync.down.b32 %y, %x, 1, 31, -1;\nret; }\n"


def test_lanes_wait_in_a_function_for_those_that_vote_in_a_loop_before_its_call():
    """The lanes of a loop vote on who goes on; the others are at a shuffle in a function, which a warp executes once."""
    body = """
        mov.u32 %r1, %tid.x; and.b32 %r2, %r1, 3; mov.u32 %r3, -1;
    LOOP:
        setp.ne.u32 %p1, %r2, 0; sub.u32 %r2, %r2, 1;
        vote.sync.ballot.b32 %r3, %p1, %r3;
        @%p1 bra LOOP;
        call (%r1), next, (%r1);
        mov.u32 %r4, %r1;"""
    text = f"{HEAD}{FUNCTION_THAT_SHUFFLES}.visible .entry k() {{ {REGISTERS}\n{body}\nret;\n}}"
    found = [ptxvm.load(text).kernel().launch(2, 64, profile=True, engine=engine).profile for engine in ("jit", "interp")]
    assert lines(found[0]) == lines(found[1])
    by_text = {line.text: line["inst_executed"] for line in found[0].lines}
    (shuffle,) = [count for text, count in by_text.items() if "shfl" in text]
    assert (by_text["@%p1 bra LOOP;"], shuffle, by_text["mov.u32 %r4, %r1;"]) == (4 * 4, 4, 4)


def test_warps_that_meet_at_a_barrier_of_their_own():
    found = profiles("""
        mov.u32 %r1, %tid.x; setp.lt.u32 %p1, %r1, 64;
        @%p1 bra FIRST;
        bar.sync 2, 64;
        mov.u32 %r2, 1;
        bra END;
    FIRST:
        bar.sync 1, 64;
        mov.u32 %r2, 2;
    END:
        mov.u32 %r3, %r2;""", [], parameters="", block=128)  # fmt: skip
    assert (found["barriers"], found["divergent_branches"]) == (4, 0)


@pytest.mark.parametrize(("body", "said"), [
    ("{ .param .b64 p; .param .b64 q; .param .b32 r; call (r), vprintf, (p, q); }", "calls of 'vprintf'"),
])  # fmt: skip
def test_what_compiled_code_does_not_count_is_named(body, said):
    text = (f"{HEAD}.extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);\n"
            f".visible .entry k(.param .u64 out) {{ {REGISTERS} ld.param.u64 %rd1, [out];\n{body}\nret;\n}}")  # fmt: skip
    code, memory = ptxvm.load(text).kernel(), np.array([1, 0], np.uint32)
    with pytest.raises(ptxvm.Unsupported, match=f"a profile of {said} on the JIT"):
        code.launch(1, 1, [memory], profile=True, engine="jit")


def test_a_generic_access_may_reach_several_spaces_and_arrays(rng):
    choice = rng.integers(0, 3, 64).astype(np.uint32)
    found = profiles("""
        ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [other]; ld.param.u64 %rd3, [choice]; mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd4, %r1, 4; add.u64 %rd5, %rd3, %rd4; ld.global.u32 %r2, [%rd5];
        mov.u32 %r3, tile; cvt.u64.u32 %rd6, %r3; cvta.shared.u64 %rd6, %rd6;
        setp.eq.u32 %p1, %r2, 0; setp.eq.u32 %p2, %r2, 1;
        selp.b64 %rd7, %rd1, %rd2, %p1; selp.b64 %rd7, %rd6, %rd7, %p2; add.u64 %rd7, %rd7, %rd4;
        st.u32 [%rd7], %r1;
        add.u64 %rd8, %rd1, %rd4; ld.u32 %r4, [%rd8]; ld.u32 %r4, [%rd6];""",
        [np.zeros(64, np.uint32), np.zeros(64, np.uint32), choice], shared=".shared .align 16 .b8 tile[256];",
        parameters=".param .u64 out, .param .u64 other, .param .u64 choice", block=64)  # fmt: skip
    for warp in (choice[:32], choice[32:]):
        assert {*warp.tolist()} == {0, 1, 2}
    assert (found["global_store_requests"], found["shared_store_requests"]) == (2, 2)
    assert found["shared_load_wavefronts"] == 2


def test_an_address_that_wraps_goes_on_without_counting_twice():
    """A side exit runs the node again in another version, after an access that it has counted."""
    found = profiles("""
        ld.param.u64 %rd1, [out]; ld.param.u32 %r2, [far]; mov.u32 %r1, %tid.x;
        mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;
        ld.global.u32 %r3, [%rd3];
        add.u32 %r4, %r1, %r2; setp.gt.u32 %p1, %r4, 64; mul.wide.u32 %rd4, %r4, 4; add.u64 %rd5, %rd1, %rd4;
        @!%p1 ld.global.u32 %r5, [%rd5];""", [np.zeros(64, np.uint32), np.uint32(2**32 - 16)],
        parameters=".param .u64 out, .param .u32 far")  # fmt: skip
    assert found["global_load_requests"] == 2


def test_host_threads_add_up():
    body = "ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd3, %rd1, %rd2;"
    code, memory = kernel(f"{body} ld.global.u32 %r2, [%rd3];", ".param .u64 out"), np.zeros(64, np.uint32)
    for threads in (1, 2):
        found = code.launch(20_000, 64, [memory], engine="jit", profile=True, threads=threads).profile
        assert (found["inst_executed"], found["global_load_sectors"]) == (20_000 * 2 * 6, 20_000 * 2 * 4)


def test_a_launch_without_a_profile_has_no_counters():
    code = kernel("ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], 1;", ".param .u64 out")
    assert "counters" not in code.dump("llvm", 32)


def test_all_that_compiled_code_counts_is_a_metric():
    found = profiles("ld.param.u64 %rd1, [out]; st.global.u32 [%rd1], 1;", [np.zeros(1, np.uint32)])
    assert list(found.counts) == list(COUNTED)


@pytest.mark.skipif(not hasattr(mmap, "MADV_NOHUGEPAGE"), reason="the host has no huge pages")
def test_the_words_of_a_launch_are_zero_and_lie_in_small_pages():
    """A huge page takes the host a fifth of a millisecond to clear, of which a kernel counts in a few words."""
    found = words()
    assert (len(found), found.any()) == (FIRST_KEYS + MOST_KEYS, False)
    found[[5, FIRST_KEYS + MOST_KEYS - 1]] = 1
    address = found.ctypes.data
    smaps = Path("/proc/self/smaps").read_text(encoding="ascii")
    for mapping in re.split(r"^(?=[0-9a-f]+-[0-9a-f]+ )", smaps, flags=re.MULTILINE)[1:]:
        first, last = (int(each, 16) for each in mapping.split(maxsplit=1)[0].split("-"))
        if first <= address < last:
            assert re.search(r"^VmFlags:.*\bnh\b", mapping, re.MULTILINE)  # no huge pages
            return
    raise AssertionError("the words are not mapped")


LOCK = """
    ld.param.u64 %rd1, [out]; mov.u32 %r5, 3;
AGAIN:
LOCK:
    atom.acquire.gpu.global.cas.b32 %r1, [%rd1], 0, 1;
    setp.ne.u32 %p1, %r1, 0;
    @%p1 bra LOCK;
    ld.global.u32 %r2, [%rd1+4]; add.u32 %r2, %r2, 1; st.global.u32 [%rd1+4], %r2;
    atom.release.gpu.global.exch.b32 %r1, [%rd1], 0;
    sub.u32 %r5, %r5, 1; setp.ne.u32 %p2, %r5, 0;
    @%p2 bra AGAIN;
"""


@pytest.mark.parametrize("engine", ["jit", "interp"])
@pytest.mark.parametrize(("grid", "block"), [(1, 32), (2, 9)])
def test_lanes_leave_a_lock_once_however_often_they_try(grid, block, engine):
    memory = np.zeros(2, np.uint32)
    found = kernel(LOCK, ".param .u64 out").launch(grid, block, [memory], engine=engine, profile=True).profile
    by_text, threads = {line.text: line for line in found.lines}, grid * block
    tries, again = by_text["@%p1 bra LOCK;"], by_text["@%p2 bra AGAIN;"]
    assert memory.tolist() == [0, 3 * threads]
    assert tries["thread_inst_executed"] - tries["thread_inst_executed_true"] == 3 * threads
    assert again["thread_inst_executed"] == found["global_load_bytes"] // 4 == 3 * threads
    assert by_text["atom.acquire.gpu.global.cas.b32 %r1, [%rd1], 0, 1;"]["atomic_operations"] == tries["thread_inst_executed"]
    assert found.waits == [tries.number]
