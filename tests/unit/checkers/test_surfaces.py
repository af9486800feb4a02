"""What kernels do to surfaces is watched as accesses of their bytes (PTX 9.7.11).

An order lets a CTA see what it did through surfaces, but not what another one did so, nor what was done through pointers (PTX
8.6 and 8.9.5): there is no fence between these proxies.
"""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

HEAD = """
.version 6.4
.target sm_75
.address_size 64
.global .surfref s;
.entry k(.param .u64 data) {
    .reg .b32 %r<6>; .reg .b64 %d; .reg .pred %p;
    ld.param.u64 %d, [data];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    xor.b32 %r3, %r2, 4;
    mad.wide.u32 %d, %r1, 4, %d;
"""


def found(body, data=None, schedules=4, engine="auto"):
    module = ptxvm.load(HEAD + body + "\n ret;\n}\n")
    array = np.zeros(32, np.uint32)
    module.bind("s", ptxvm.Surface(array))
    args = [array if data is None else data]
    return module.kernel().launch(1, 32, args, check=("race",), schedules=schedules, seed=0, engine=engine).findings


@pytest.mark.parametrize(
    ("body", "hazards"),
    [
        ("sust.b.1d.b32.trap [s, {%r2}], %r1;", []),
        ("sust.b.1d.b32.trap [s, {%r2}], %r1; suld.b.1d.b32.trap %r4, [s, {%r3}];", ["RAW"]),
        ("sust.b.1d.b32.trap [s, {%r2}], %r1; bar.sync 0; suld.b.1d.b32.trap %r4, [s, {%r3}];", []),
        ("sust.p.1d.b32.trap [s, {%r1}], %r1; suld.b.1d.b32.trap %r4, [s, {%r3}];", ["RAW"]),
        ("and.b32 %r2, %r2, 64; sust.b.1d.b32.trap [s, {%r2}], %r1;", ["WAW"]),
        ("setp.eq.u32 %p, %r1, 3; @%p sust.b.1d.b32.trap [s, {%r2}], %r1;", []),
        ("add.u32 %r2, %r2, 4; sust.b.1d.b32.zero [s, {%r2}], %r1;", []),
        ("add.u32 %r2, %r2, 4; sust.b.1d.b32.clamp [s, {%r2}], %r1;", ["WAW"]),  # the last two lanes meet
        ("sured.b.add.1d.u32.trap [s, {0}], %r1;", []),
        ("sured.b.add.1d.u32.trap [s, {0}], %r1; bar.sync 0; suld.b.1d.b32.trap %r4, [s, {0}];", []),
        ("sured.b.add.1d.u32.trap [s, {%r2}], %r1; suld.b.1d.b32.trap %r4, [s, {%r3}];", ["RAW"]),
    ],
)
def test_races_on_surfaces(body, hazards):
    assert [each.hazard for each in found(body, np.zeros(32, np.uint32))] == hazards


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(
    ("body", "hazards"),
    [
        ("sust.b.1d.b32.trap [s, {%r3}], %r1; ld.global.u32 %r4, [%d];", ["RAW"]),
        ("sust.b.1d.b32.trap [s, {%r2}], %r1; ld.global.u32 %r4, [%d];", ["RAW"]),  # by one thread, but two proxies
        ("sust.b.1d.b32.trap [s, {%r2}], %r1; bar.sync 0; st.global.u32 [%d], %r1;", ["WAW"]),
        ("suld.b.1d.b32.trap %r4, [s, {%r3}]; bar.sync 0; st.global.u32 [%d], %r1;", []),  # PTX 2.3: it was not written before
        ("ld.global.u32 %r4, [%d]; bar.sync 0; sust.b.1d.b32.trap [s, {%r3}], %r1;", []),
        ("st.global.u32 [%d], %r1; suld.b.1d.b32.trap %r4, [s, {%r3}];", ["RAW"]),
        ("st.global.u32 [%d], %r1; suld.b.1d.b32.trap %r4, [s, {%r2}];", ["RAW"]),
        ("st.global.u32 [%d], %r1; bar.sync 0; sured.b.add.1d.u32.trap [s, {%r2}], 1;", ["WAW"]),
    ],
)
def test_a_surface_and_global_memory_are_the_same_bytes(body, hazards, engine):
    assert [each.hazard for each in found(body, engine=engine)] == hazards


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(
    ("body", "hazards"),
    [
        ("sured.b.add.1d.u32.trap [s, {0}], %r1;", []),  # morally strong: no order is needed
        ("sured.b.add.1d.u32.trap [s, {0}], %r1; red.global.add.u32 [%d], 1;", ["WAW"]),  # not so of two proxies
        ("suld.b.1d.b32.trap %r4, [s, {0}];", []),
    ],
)
def test_surfaces_in_two_ctas(body, hazards, engine):
    module, data = ptxvm.load(HEAD + body + "\n ret;\n}\n"), np.zeros(32, np.uint32)
    surface = ptxvm.Surface(data)
    module.bind("s", surface)
    findings = module.kernel().launch(2, 1, [data], check=("race",), engine=engine).findings
    assert [each.hazard for each in findings] == hazards
