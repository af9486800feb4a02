"""Modifiers that are words of their own wherever they stand: none is a component of a register or a variable.

ptxas 13.0 takes each of them behind `%r2` for an error of syntax, and other words for a component that there is none of.
"""

from __future__ import annotations

import re

WORDS = frozenset(
    """
    L1 L2 NaN a1d a2d a2dms abs acq_rel acquire acube add addr_mode_0 addr_mode_1 addr_mode_2 alias aligned all and any
    approx array_size b1024 b4e ballot bf16 bf16x2 bfly block16 block32 box_dim bulk_group ca cas cc cg
    channel_data_type channel_order clamp cluster col const cs cta cube cv dec depth down ecl ecr element_stride
    elemtype eq equ exch exclusive f4e fill_mode filter_mode finite force_unnormalized_coords ftz ge geu gl global
    global_address global_dim global_stride gpu gt gtu height hi hs idx inc infinite interleave_layout le leu lo local
    ls lt ltu lu max mbarrier mbarrier_init memory_layout min mmio nan nc ne neu noComplete noftz noinc normal
    normalized_coords notanumber num num_mipmap_levels num_samples number or param po popc rank rc16 rc8 relaxed release
    relu rm rmi rn rna rni row rp rpi rs rz rzi s2 s4 sat satfinite sc shared shiftamt shr15 shr7 sp subnormal
    swizzle_atomicity swizzle_mode sync sys tensormap trans trap u2 u4 uni up v2 v4 volatile wb weak width wrap wt x1
    x128 x16 x2 x32 x4 x64 x8 xor zero
    """.split()
)
SHAPE = re.compile(r"m\d+n\d+(k\d+)?")
"""Shapes of matrices: `m16n8k16`."""


def is_keyword(word: str) -> bool:
    """Is it such a word, without its dot?"""
    return word in WORDS or SHAPE.fullmatch(word) is not None
