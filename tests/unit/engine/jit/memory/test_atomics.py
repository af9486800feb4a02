"""Atomics on memory of the CTA: several lanes of a turn, each an update of its own place."""

from __future__ import annotations

import re

import numpy as np
import pytest
from engines import same

import ptxvm
from ptxvm.engine.jit.abi.specialisation import Specialisation, VersionKind
from ptxvm.engine.jit.translate.translation import Translation
from ptxvm.engine.jit.values import shared_meanings
from ptxvm.isa.special_registers import WARP

# Threads `first` and later count at places of their own choice, and keep what they found there.
COUNTS = """
.version 8.3
.target sm_90
.address_size 64
.shared .align 8 .TYPE bins[16];
.visible .entry counts(.param .u64 places, .param .u64 found, .param .u64 totals, .param .u32 first)
{
    .reg .b32 %r<10>; .reg .b64 %d<14>; .reg .pred %p<2>; .reg .TYPE %v<4>;
    ld.param.u64 %d0, [places];
    ld.param.u64 %d1, [found];
    ld.param.u64 %d2, [totals];
    ld.param.u32 %r0, [first];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %d3, %r1, 4;
    add.u64 %d3, %d0, %d3;
    mul.wide.u32 %d4, %r1, SIZE;
    add.u64 %d5, %d1, %d4;
    add.u64 %d6, %d2, %d4;
    mov.u32 %r3, bins;
    and.b32 %r4, %r1, 15;
    mad.lo.u32 %r5, %r4, SIZE, %r3;
    mov.u32 %r6, 0;
    cvt.TYPE.u32 %v0, %r6;
    st.shared.TYPE [%r5], %v0;
    bar.sync 0;
    ld.global.u32 %r7, [%d3];
    mad.lo.u32 %r7, %r7, SIZE, %r3;
    cvt.TYPE.u32 %v1, %r1;
    setp.ge.u32 %p0, %r1, %r0;
    @%p0 atom.shared.add.TYPE %v2, [%r7], OPERAND;
    @%p0 st.global.TYPE [%d5], %v2;
    bar.sync 0;
    setp.lt.u32 %p0, %r1, 16;
    @!%p0 ret;
    ld.shared.TYPE %v3, [%r5];
    st.global.TYPE [%d6], %v3;
    ret;
}
"""


@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", [0, 64, 77])  # whole warps, and one of which a part counts
@pytest.mark.parametrize("threads", [256, 250])
@pytest.mark.parametrize(("type", "operand"), [("u32", "1"), ("u64", "1"), ("u32", "%v1"), ("u64", "%v1"), ("f32", "%v1")])
def test_each_lane_updates_its_place(type: str, operand: str, threads: int, first: int) -> None:
    size = int(type[1:]) // 8
    text = COUNTS.replace("TYPE", type).replace("SIZE", str(size)).replace("OPERAND", operand)
    text = text.replace(f"cvt.{type}.{type}", "mov.u32").replace("cvt.f32", "cvt.rn.f32")
    places = np.random.default_rng(1).integers(0, 16, threads, np.uint32)
    added = np.ones(threads, np.uint64) if operand == "1" else np.arange(threads, dtype=np.uint64)
    found, totals = np.zeros(threads, f"{type[0]}{size}"), np.zeros(16, f"{type[0]}{size}")
    ptxvm.load(text).kernel().launch(1, threads, [places, found, totals, np.uint32(first)], engine="jit")
    for place in range(16):
        here = np.flatnonzero((places == place) & (np.arange(threads) >= first))
        assert totals[place] == added[here].sum()
        order = here[np.argsort(found[here], kind="stable")]  # each found the sum of those before it (PTX 9.7.13.5)
        sums = np.concatenate([[0], np.cumsum(added[order])])
        assert set(found[here].tolist()) <= set(sums.tolist())
        if operand == "1":
            assert found[order].tolist() == list(range(len(here)))


# What many instructions of a form do, each time to places that the results before it tell.
FORMS = {
    "global": "atom.global.add.u32 %v, [%g], %v;",
    "some lanes": "@%p atom.global.max.s32 %v, [%g], %t;",
    "words of 64 bits": "mov.b64 %d, {{%v, %t}}; atom.global.xor.b64 %d, [%g8], %d; cvt.u32.u64 %v, %d;",
    "floats": "cvt.rn.f32.u32 %f, %v; atom.global.add.f32 %f, [%g], %f; mov.b32 %v, %f;",
    "shared": "atom.shared.add.u32 %v, [%s], %t;",
    "some lanes of shared": "@%p atom.shared.inc.u32 %v, [%s], 9;",
    "any space": "atom.exch.b32 %v, [%g], %t;",
    "a comparison": "atom.global.cas.b32 %v, [%g], %v, %t;",
    "halves": "red.global.add.noftz.f16x2 [%g], %v; ld.global.u32 %v, [%g];",
    "one place": "red.global.add.u32 [%o], %v; red.shared.add.u32 [s], 1;",
    "the system": "atom.acq_rel.sys.global.min.u32 %v, [%g], %t;",
    "vectors": "atom.global.v2.f32.add {{%f, %h}}, [%g8], {{%f, %h}}; mov.b32 %v, %h;",
    "mbarriers": "mbarrier.arrive.shared.b64 %d, [m]; cvt.u32.u64 %v, %d;",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tier", ["quick", "best"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_many_share_a_piece(form: str, tier: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Six of a form do what the interpreter does, of which the second to the sixth are calls.

    One warp, as those of a CTA may come in any order.
    """
    monkeypatch.setenv("PTXVM_TIER", tier)
    monkeypatch.setenv("PTXVM_CACHE", "off")
    monkeypatch.setattr(shared_meanings, "SEVERAL", 1)
    places = "and.b32 %x, %v, 60; add.u32 %s, %b, %x; cvt.u64.u32 %d, %x; add.u64 %g, %o, %d; and.b64 %g8, %g, -8;"
    module = ptxvm.load(f""".version 8.3\n.target sm_90\n.address_size 64
        .visible .entry k(.param .u64 given, .param .u64 out, .param .u64 last) {{
        .shared .align 8 .b8 s[64]; .shared .align 8 .b64 m; .reg .b32 %v, %t, %s, %b, %x; .reg .b64 %d, %g, %g8, %o, %a;
        .reg .f32 %f, %h; .reg .pred %p;
        ld.param.u64 %a, [given]; ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %d, %t, 4; add.u64 %a, %a, %d;
        ld.global.u32 %v, [%a]; setp.lt.s32 %p, %v, 0; mov.u32 %b, s; mov.f32 %f, 0f3F800000; mov.f32 %h, 0f40000000;
        mbarrier.init.shared.b64 [m], 100000; and.b32 %x, %t, 15; mad.lo.u32 %s, %x, 4, %b; st.shared.u32 [%s], %x; bar.sync 0;
        {" ".join(places + form.format() for _ in range(6))}
        bar.sync 0; ld.param.u64 %a, [last]; mul.wide.u32 %d, %t, 8; add.u64 %a, %a, %d; and.b32 %x, %t, 15;
        mad.lo.u32 %s, %x, 4, %b; ld.shared.u32 %s, [%s]; st.global.v2.u32 [%a], {{%v, %s}};
        ret; }}""")
    function = module.image.resolve(module.kernel().function)
    text, _ = Translation(module.image, Specialisation(function, (WARP, 1, 1), 0)).text(VersionKind.FIRST)
    assert len(re.findall(r"call .* @ptxvm\.meaning\.", text)) >= 5
    given = rng.integers(0, 1 << 32, WARP, np.uint32)
    given[::5] &= 0x3C00_3C00
    same(module.kernel(), [given, np.arange(16, dtype=np.uint32), np.zeros((WARP, 2), np.uint32)], block=WARP)
