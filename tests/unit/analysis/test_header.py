"""`.version`, `.target` and `.address_size`; the verdicts are those of ptxas 13.5."""

from __future__ import annotations

import pytest

from ptxvm.analysis.check import analyse
from ptxvm.syntax.source import Source

KERNEL = "\n.visible .entry k() { ret; }"


@pytest.mark.parametrize(
    "head",
    [
        ".version 6.4\n.target sm_50",
        ".version 09.5\n.target sm_50",
        ".version 5.1\n.target sm_70",
        ".version 9.5\n.target sm_50\n.address_size 0x40",
        ".version 9.5\n.target sm_010",
        ".version 9.5\n.target sm_100A",
        ".version 9.5\n.target sm_60, sm_50",
        ".version 9.5\n.target sm_50\n.target texmode_independent",
        ".version 9.5\n.target sm_12, map_f64_to_f32",
        ".version 9.5\n.target sm_50, texmode_unified, texmode_unified",
    ],
)
def test_what_ptxas_takes(errors, head):
    assert errors(head + KERNEL) == []


@pytest.mark.parametrize(
    ("head", "code", "place"),
    [
        (".version 9.9\n.target sm_50", "P0501", "9.9"),
        (".version 9.50\n.target sm_50", "P0501", "9.50"),
        (".version 3.3\n.target sm_30", "P0501", "3.3"),
        (".version 9.5\n.target sm_99", "P0502", "sm_99"),
        (".version 9.5\n.target sm_80a", "P0502", "sm_80a"),
        (".version 6.4\n.target sm_80", "P0502", "sm_80"),
        (".version 7.8\n.target sm_90a", "P0502", "sm_90a"),
        (".version 9.5\n.target sm_50, nosuch", "P0502", "nosuch"),
        (".version 9.5\n.target texmode_unified", "P0502", "texmode_unified"),
        (".version 9.5\n.target sm_50, texmode_unified, texmode_independent", "P0504", "texmode_independent"),
        (".version 9.5\n.target sm_50\n.target texmode_unified, texmode_independent", "P0504", "texmode_independent"),
        (".version 9.5\n.target sm_13, map_f64_to_f32", "P0504", "map_f64_to_f32"),
        (".version 9.5\n.target sm_50, debug", "P0504", "debug"),
        (".version 1.4\n.target sm_10, texmode_independent", "P0506", "texmode_independent"),
        (".version 2.2\n.target sm_20\n.address_size 64", "P0506", ".address_size 64"),
        (".version 9.5\n.target sm_50\n.address_size 16", "P0503", "16"),
        (".version 9.5\n.target sm_50\n.address_size 064", "P0503", "064"),  # octal
    ],
)
def test_what_ptxas_refuses(errors, head, code, place):
    assert errors(head + KERNEL) == [(code, place)]


def test_the_last_architecture_counts(program):
    found = program(".version 9.5\n.target sm_60, sm_50\n.target texmode_independent")
    assert (str(found.target), found.target_options) == ("sm_50", ("texmode_independent",))


def test_debug_wants_sections(errors):
    assert errors(".version 9.5\n.target sm_50, debug\n.section .debug_info { .b8 1 }") == []


def test_a_missing_head_is_said_once(errors):
    assert [code for code, _ in errors(".version 9.5")] == ["P0502"]
    assert [code for code, _ in errors(".version 9.5" + KERNEL)] == ["P0502"]


def test_hundreds_of_digits_are_no_version(errors):
    assert [code for code, _ in errors(f".version 1.{'1' * 500}\n.target sm_50")] == ["P0501"]


def test_the_words_of_ptxas(ptxas_words):
    assert ptxas_words(".version 6.4\n.target sm_80") == ["PTX .version 6.4 does not support .target sm_80"]
    assert ptxas_words(".version 9.9\n.target sm_80") == ["Unsupported .version 9.9; current version is '9.5'"]


@pytest.mark.parametrize("target", [None, "sm_80"])
def test_a_binary_file_lacks_nothing_else(target):
    _, report = analyse(Source(b"\x7fELF\x02\x01\x01\x00.version"), target)
    assert [each.code for each in report.diagnostics] == ["P0110"]
