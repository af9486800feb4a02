"""What collectives do to the order of accesses (PTX 9.7.13.2, 9.7.13.16)."""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.isa.summary import orders_lanes

COPY = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d], [%d], 128;"


@pytest.mark.parametrize(
    ("instruction", "orders"),
    [
        ("bar.warp.sync -1;", True),
        (COPY, True),
        ("shfl.sync.idx.b32 %r, %r, 0, 31, -1;", False),
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r], {%r};", False),
        ("fence.acq_rel.gpu;", False),
    ],
)
def test_which_collectives_order_what_lanes_have_written(instruction: str, orders: bool) -> None:
    text = f".version 8.6\n.target sm_90\n.address_size 64\n.entry k() {{ .reg .b32 %r; .reg .b64 %d; {instruction} ret; }}"
    first, *_ = ptxvm.load(text).kernel().function.instructions
    assert orders_lanes(first.i) is orders
