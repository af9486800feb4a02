"""How much shared memory a kernel may declare; sums, limits and words are those of ptxas 13.0."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm.analysis.check import analyse
from ptxvm.analysis.shared import static_shared
from ptxvm.syntax.source import Source

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


SMALL = """.version 9.0
.target {target}
.address_size 64
.shared .align 4 .b8 a[49152];
.visible .entry small(.param .u64 out) {{ .reg .u32 %r; ld.shared.u32 %r, [a]; ret; }}
"""


def errors(target: str) -> list[str]:
    return [found.ptxas for found in ptxvm.check(SOURCE.format(target=target)) if found.severity == "error"]


@pytest.mark.parametrize("target", ["sm_75", "sm_80", "sm_90", "sm_120"])
def test_what_ptxas_makes_no_code_for(target: str) -> None:
    assert errors(target) == [
        "Entry function 'named' uses too much shared data (0xc004 bytes, 0xc000 max)",
        "Entry function 'own' uses too much shared data (0xea60 bytes, 0xc000 max)",
        "Entry function 'called' uses too much shared data (0xc00c bytes, 0xc000 max)",
    ]


def test_variables_that_no_kernel_uses_take_no_room() -> None:
    assert ptxvm.check(".version 9.0\n.target sm_90\n.address_size 64\n.shared .b8 s[99999999]; .entry k() { ret; }") == []


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a"])
def test_code_for_one_chip_has_all_that_it_has(target: str) -> None:
    assert errors(target) == []


def test_bodies_that_mention_little_stay_unread() -> None:
    kernels = "".join(
        f".shared .b8 s{n}[40000];\n.entry k{n}() {{ .reg .u32 %r; ld.shared.u8 %r, [s{n}]; // not s1, a comment\n ret; }}\n"
        for n in (0, 2, 3)
    )
    program, report = analyse(Source(f".version 9.0\n.target sm_90\n.address_size 64\n.shared .b8 s1[4];\n{kernels}"))
    assert not report.diagnostics
    assert all(function.lazy is not None for function in program.functions.values())


def test_a_kernel_that_mentions_none_stays_unread() -> None:
    text = (
        ".version 9.0\n.target sm_90\n.address_size 64\n.func g() { ret; }\n.entry k() { call g, (); ret; }\n.shared .b8 s[4];"
    )
    program, _ = analyse(Source(text))
    assert static_shared(program.functions["k"]) == 0
    assert all(function.lazy is not None for function in program.functions.values())


def test_it_is_not_loaded() -> None:
    with pytest.raises(ptxvm.InvalidPTX, match="sm_75 has 49,152 for that"):
        ptxvm.load(SOURCE.format(target="sm_75"))


def test_what_linked_modules_use_together_is_not_linked() -> None:
    """So says nvlink 13.5."""
    head = ".version 9.0\n.target sm_80\n.address_size 64\n"
    use = ".shared .b8 {0}[30000]; st.shared.b8 [{0}], 1;"
    kernel = f"{head}.extern .func f(); .visible .entry k() {{ {use.format('a')} call f, (); ret; }}"
    function = f"{head}.visible .func f() {{ {use.format('b')} ret; }}"
    with pytest.raises(ptxvm.InvalidPTX) as caught:
        ptxvm.link([ptxvm.load(kernel), ptxvm.load(function)])
    assert [found.ptxas for found in caught.value.diagnostics] == [
        "Entry function 'k' uses too much shared data (0xea60 bytes, 0xc000 max)"
    ]


def test_no_cta_has_more_than_a_chip() -> None:
    kernel = ptxvm.load(SMALL.format(target="sm_90")).kernel()
    kernel.launch(args=[np.zeros(4, np.uint32)], shared=232448 - 49152)
    with pytest.raises(ValueError, match="232,449 bytes of shared memory"):
        kernel.launch(args=[np.zeros(4, np.uint32)], shared=232449 - 49152)
