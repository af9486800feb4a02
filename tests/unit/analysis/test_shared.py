"""How much shared memory a kernel may declare; sums, limits and words are those of ptxas 13.0."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm

SOURCE = """.version 9.0
.target {target}
.address_size 64
.shared .align 4 .b8 a[49152];
.shared .align 4 .b8 b[4];
.shared .b8 unused[40000];
.func f() {{ .shared .align 16 .b8 c[48]; .reg .u32 %r; ld.shared.u32 %r, [b]; st.shared.u32 [c], %r; ret; }}
.visible .entry named(.param .u64 out) {{ .reg .u32 %r; ld.shared.u32 %r, [a]; st.shared.u32 [b], %r; ret; }}
.visible .entry own(.param .u64 out) {{ .shared .b8 d[60000]; ret; }}
.visible .entry called(.param .u64 out) {{ .shared .align 4 .b8 e[49100]; call f, (); ret; }}
.visible .entry small(.param .u64 out) {{ .reg .u32 %r; ld.shared.u32 %r, [a]; ret; }}
"""


def warnings(target: str) -> list[str]:
    return [found.ptxas for found in ptxvm.check(SOURCE.format(target=target))]


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_what_ptxas_makes_no_code_for(target: str) -> None:
    assert warnings(target) == [
        "Entry function 'named' uses too much shared data (0xc004 bytes, 0xc000 max)",
        "Entry function 'own' uses too much shared data (0xea60 bytes, 0xc000 max)",
        "Entry function 'called' uses too much shared data (0xc00c bytes, 0xc000 max)",
    ]


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_code_for_one_chip_has_all_that_it_has(target: str) -> None:
    assert warnings(target) == []


@pytest.mark.parametrize("kernel", ["named", "own", "called"])
def test_it_is_not_launched(kernel: str) -> None:
    module = ptxvm.load(SOURCE.format(target="sm_75"))
    with pytest.raises(ptxvm.InvalidPTX, match="sm_75 has 49,152 for that"):
        module.kernel(kernel).launch(args=[np.zeros(4, np.uint32)])
    module.kernel("small").launch(args=[np.zeros(4, np.uint32)])


def test_no_cta_has_more_than_a_chip() -> None:
    kernel = ptxvm.load(SOURCE.format(target="sm_90")).kernel("small")
    kernel.launch(args=[np.zeros(4, np.uint32)], shared=232448 - 49152)
    with pytest.raises(ValueError, match="232,449 bytes of shared memory"):
        kernel.launch(args=[np.zeros(4, np.uint32)], shared=232449 - 49152)
