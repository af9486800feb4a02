"""The check `memory` of kernels in clusters: compiled code clears what is right, and finds what is wrong (PTX 5.1.7)."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxvm

KERNEL = """
    .version 8.6
    .target sm_90
    .address_size 64
    .visible .entry k(.param .u64 in, .param .u64 out)
    {
    .reg .b64 %i, %o, %g; .reg .b32 %t, %r, %s, %p, %v, %c, %a;
    .shared .b32 first[64]; .shared .b32 second[64];
    ld.param.u64 %i, [in]; ld.param.u64 %o, [out];
    mov.u32 %t, %tid.x; mov.u32 %c, %ctaid.x; mov.u32 %r, %cluster_ctarank; xor.b32 %p, %r, 1;
    mad.lo.u32 %v, %c, 32, %t; mad.wide.u32 %i, %v, 4, %i; mad.wide.u32 %o, %v, 4, %o; ld.global.b32 %v, [%i];
    mov.u32 %s, second; mad.lo.u32 %s, %t, 4, %s; st.shared.b32 [%s], %v;
    mapa.shared::cluster.u32 %a, %s, %p; cvt.u64.u32 %g, %s; cvta.shared.u64 %g, %g;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    BODY
    st.global.b32 [%o], %v;
    barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;
    ret;
    }"""
RIGHT = {
    "a load": "ld.shared::cluster.b32 %v, [%a];",
    "a generic load": "mapa.u64 %g, %g, %p; ld.b32 %v, [%g];",
    "a load of the own memory": "xor.b32 %s, %s, 4; ld.shared.b32 %v, [%s]; mad.lo.u32 %v, %p, 32, 0; sub.u32 %v, %v, 0;",
    "an atomic": "atom.shared::cluster.exch.b32 %v, [%a], 7;",
}
WRONG = {
    "beyond the memory of a CTA": ("ld.shared::cluster.b32 %v, [%a+256];", "out-of-bounds"),
    "of no CTA": ("mapa.shared::cluster.u32 %a, %s, 7; ld.shared::cluster.b32 %v, [%a];", "out-of-bounds"),
    "misaligned": ("st.shared::cluster.b32 [%a+2], %v;", "misaligned"),
    "beyond the own memory": ("ld.shared.b32 %v, [%s+256];", "out-of-bounds"),
    "before the own variable": ("ld.shared.b32 %v, [%s+-4];", "out-of-bounds"),
    "before the own variable, generic": ("ld.b32 %v, [%g+-4];", "out-of-bounds"),
    "beyond an array": ("add.u64 %o, %o, 4;", "out-of-bounds"),
}


def run(body: str, engine: str) -> tuple[list[str], list[int]]:
    """The findings, without the addresses of this process, and the result."""
    data, out = np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)
    kernel = ptxvm.load(KERNEL.replace("BODY", body)).kernel("k")
    found = kernel.launch(8, 32, [data, out], cluster=2, engine=engine, check="memory").findings
    return [re.sub("at 0x[0-9a-f]{9,}", "there", str(each)) for each in found], out.tolist()


@pytest.mark.parametrize("body", RIGHT)
def test_what_is_right_is_cleared(body, quick):
    found, out = run(RIGHT[body], "jit")
    assert quick()
    assert not found
    if body != "a load of the own memory":
        assert out == np.arange(256).reshape(-1, 2, 32)[:, ::-1].ravel().tolist()


@pytest.mark.parametrize("body", WRONG)
def test_what_is_wrong_is_found_on_each_engine(body, quick):
    text, code = WRONG[body]
    expected = run(text, "interp")
    assert expected[0][0].startswith(code)
    assert run(text, "jit") == expected
    assert not quick()


def test_the_other_checks_are_left_to_the_interpreter(quick):
    kernel = ptxvm.load(KERNEL.replace("BODY", RIGHT["a load"])).kernel("k")
    for check in ("race", "init", "sync"):
        args = [np.arange(256, dtype=np.uint32), np.zeros(256, np.uint32)]
        assert not kernel.launch(8, 32, args, cluster=2, check=check, engine="jit").findings
        assert not quick()
