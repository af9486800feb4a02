"""When asynchronous work ends: `asynchronous=` of a launch, and what a kernel without a wait sees."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.interp.async_copies import Copies

COPY = """
    .version 8.6
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .u64 in, .param .u64 out)
    {
    .reg .b64 %i, %o; .reg .b32 %s, %v, %bar; .reg .pred %done;
    .shared .align 16 .b8 tile[64];
    ld.param.u64 %i, [in]; ld.param.u64 %o, [out];
    mov.u32 %s, tile; add.u32 %bar, %s, 32; st.shared.b32 [%s], 7;
    mbarrier.init.shared::cta.b64 [%bar], 1;
    START
    ld.shared.b32 %v, [%s]; st.global.b32 [%o], %v;
    WAIT
    ld.shared.b32 %v, [%s]; st.global.b32 [%o+4], %v;
    ret;
    }"""
KINDS = {
    "cp.async": ("cp.async.ca.shared.global [%s], [%i], 16; cp.async.commit_group;", "cp.async.wait_group 0;"),
    "bulk": (
        """mbarrier.arrive.expect_tx.shared::cta.b64 _, [%bar], 16;
        cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%i], 16, [%bar];""",
        "wait: mbarrier.try_wait.parity.shared::cta.b64 %done, [%bar], 0; @!%done bra wait;",
    ),
}


def run(kind: str, asynchronous: str | None, seed: int | None = None, engine: str = "interp") -> list[int]:
    """What is read before the wait, and after it: 7 is old, 42 the copy."""
    start, wait = KINDS[kind]
    out = np.zeros(2, np.uint32)
    ptxvm.load(COPY.replace("START", start).replace("WAIT", wait)).kernel("k").launch(
        args=[np.full(4, 42, np.uint32), out], asynchronous=asynchronous, seed=seed, engine=engine
    )
    return out.tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_work_ends_at_its_start_or_at_the_wait(kind):
    assert run(kind, "early") == [42, 42]
    assert run(kind, "late") == [7, 42]
    assert run(kind, "early", engine="jit") == [42, 42]


def test_random_work_ends_at_any_time_by_its_seed():
    """The same seed gives the same run; after the wait the copy is there."""
    steps = " ".join(f"bra on{n}; on{n}:" for n in range(8))  # of the schedule
    kernel = COPY.replace("START", KINDS["bulk"][0] + steps).replace("WAIT", KINDS["bulk"][1])
    module = ptxvm.load(kernel)
    seen = []
    for seed in range(8):
        out = np.zeros(2, np.uint32)
        args = [np.full(4, 42, np.uint32), out]
        module.kernel("k").launch(args=args, asynchronous="random", seed=seed, engine="interp")
        first = out.tolist()
        module.kernel("k").launch(args=args, asynchronous="random", seed=seed, engine="interp")
        assert out.tolist() == first
        assert first[1] == 42
        seen.append(first[0])
    assert set(seen) == {7, 42}


def test_the_oldest_work_ends_without_a_copy_of_the_list_of_the_rest(monkeypatch):
    """Late work ends piece by piece: a copy for each piece would take a time that grows with the square of their number."""
    lists = []
    complete = Copies.complete

    def observed(self, share=None, most=None):
        before, count = self.under_way, len(self.under_way)
        complete(self, share, most)
        if most == 1 and count:
            lists.append((self.under_way is before, count - len(self.under_way)))

    monkeypatch.setattr(Copies, "complete", observed)
    start, wait = KINDS["bulk"]
    one = start.splitlines()[1].strip()
    four = start.replace("_, [%bar], 16", "_, [%bar], 64") + 3 * one
    out = np.zeros(2, np.uint32)
    ptxvm.load(COPY.replace("START", four).replace("WAIT", wait)).kernel("k").launch(
        args=[np.full(4, 42, np.uint32), out], asynchronous="late", engine="interp"
    )
    assert out.tolist() == [7, 42]
    assert lists == [(True, 1)] * 4


def test_the_automatic_engine_takes_the_interpreter_and_the_jit_refuses():
    assert run("cp.async", "late", engine="auto") == [7, 42]
    with pytest.raises(ptxvm.Unsupported, match="ends late on the JIT"):
        run("cp.async", "late", engine="jit")
    with pytest.raises(ValueError, match="early"):
        run("cp.async", "soon")


def test_late_work_ends_where_a_thread_looks_for_it_in_memory():
    """No wait that the machine knows: after some steps the copy ends, or the loop would never."""
    start, _ = KINDS["cp.async"]
    text = COPY.replace("START", start).replace(
        "WAIT", "{ .reg .pred %p; spin: ld.volatile.shared.b32 %v, [%s]; setp.eq.u32 %p, %v, 7; @%p bra spin; }"
    )
    out = np.zeros(2, np.uint32)
    ptxvm.load(text).kernel("k").launch(args=[np.full(4, 42, np.uint32), out], asynchronous="late", engine="interp")
    assert out.tolist() == [7, 42]


LOAD = """
    .version 8.6
    .target sm_100a
    .address_size 64
    .visible .entry k(.param .u64 out)
    {
    .reg .b64 %o; .reg .b32 %t, %d, %v, %w; .shared .b32 base;
    ld.param.u64 %o, [out]; mov.u32 %t, %tid.x;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [base], 32; ld.shared.b32 %d, [base];
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%d], {%t}; tcgen05.wait::st.sync.aligned;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%v}, [%d];
    tcgen05.st.sync.aligned.32x32b.x1.b32 [%d], {%d}; tcgen05.wait::st.sync.aligned;
    USE
    tcgen05.wait::ld.sync.aligned;
    mad.wide.u32 %o, %t, 4, %o; st.global.b32 [%o], %v;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %d, 32;
    ret;
    }"""


@pytest.mark.parametrize("use", ["", "add.u32 %w, %v, 1;"])
def test_a_load_of_tensor_memory_may_come_after_a_later_store(use):
    """The load is not waited for: late, it reads what the later store has written, at address 0."""
    out = np.zeros(32, np.uint32)
    kernel = ptxvm.load(LOAD.replace("USE", use)).kernel("k")
    kernel.launch(block=32, args=[out], asynchronous="early", engine="interp")
    assert out.tolist() == list(range(32))
    kernel.launch(block=32, args=[out], asynchronous="late", engine="interp")
    assert out.tolist() == [0] * 32
