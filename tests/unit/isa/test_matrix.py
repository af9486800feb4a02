"""Operands of matrix instructions beside the matrices: metadata in one register, and a predicate that says whether D counts."""

from __future__ import annotations

import pytest

import ptxvm

SPARSE = "mma.sp::ordered_metadata.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16"
KERNEL = f""".version 9.0
.target sm_90a
.address_size 64
.visible .entry k()
{{{{
    .reg .b32 %r<9>;
    {SPARSE} {{{{%r1, %r2}}}}, {{{{%r1, %r2}}}}, {{{{%r1, %r2}}}}, {{{{%r1, %r2}}}}, {{}}, 0;
    ret;
}}}}
"""


def test_metadata_in_several_registers_are_taken_and_have_no_meaning() -> None:
    """PTX 9.7.14.6 has one register of metadata, which may stand in braces; `{%r1, %r2}` is what ptxas 13.0 takes, too."""
    ptxvm.load(KERNEL.format("{%r1}")).kernel().launch(1, 32, engine="interp")
    with pytest.raises(ptxvm.Unsupported, match="metadata and scales in several registers"):
        ptxvm.load(KERNEL.format("{%r1, %r2}")).kernel().launch(1, 32, engine="interp")


def test_scale_d_of_wgmma_says_whether_it_reads_d() -> None:
    """PTX 9.7.15.5.2: D is A * B where scale-d is false, and A * B + D otherwise; `mma.sp` adds C always."""
    line = "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %d1, %d2, %p1, 1, 1, 0, 0;"
    text = KERNEL.format("%r3").replace("ret;", f".reg .b64 %d<4>; .reg .pred %p<2>; {line} ret;")
    found = ptxvm.load(text).kernel().function.instructions
    assert [bound.i.of.enabling for bound in found[:2]] == [None, "scale_d"]
