"""What instructions do, as a whole: to the order of accesses (PTX 9.7.13.2, 9.7.13.16), and with matrices."""

from __future__ import annotations

import pytest

import ptxvm
from ptxvm.isa.summary import orders_lanes

COPY = "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%d], [%d], 128;"
SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r, %r}, {%r, %r}, {%r, %r}, {%r, %r}, %r, 0;"


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


@pytest.mark.parametrize(
    ("instruction", "operations"),
    [
        ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%r, %r}, {%r, %r, %r, %r}, {%r, %r}, {%r, %r};", 16 * 8 * 16),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%g, %g}, {%g}, {%g}, {%g, %g};", 8 * 8 * 4),
        (SPARSE, 16 * 8 * 16 // 2),
        ("mul.f64 %g, %g, %g;", 0),
    ],
)
def test_how_much_is_multiplied_and_added(instruction: str, operations: int) -> None:
    """By the shape m x n x k of a product (PTX 9.7.14), of whose A half of the elements are stored where it is sparse."""
    registers = ".reg .b32 %r; .reg .f64 %g;"
    text = f".version 8.6\n.target sm_90\n.address_size 64\n.entry k() {{ {registers} {instruction} ret; }}"
    first, *_ = ptxvm.load(text).kernel().function.instructions
    assert first.summary.multiply_adds == operations
