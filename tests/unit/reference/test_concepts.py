"""Concepts, against the sections of the manual."""

from __future__ import annotations

import re

from ptxvm.reference.concepts import CONCEPTS, concept


def test_each_section_is_one_of_the_manual(shared):
    index = (shared / "spec" / "ptx-isa-9.1" / "INDEX.md").read_text(encoding="utf-8")
    headings = "\n".join(path.read_text(encoding="utf-8") for path in (shared / "spec" / "ptx-isa-9.1").rglob("*.md"))
    known = set(re.findall(r"(?<![\d.])(\d+(?:\.\d+)*)\.(?=[ \]])", index + headings))
    assert {each.section for each in CONCEPTS.values() if each.section} <= known


def test_spellings_of_a_name():
    assert concept("State_Spaces") is concept("state space") is concept("space")
    assert concept("@!%p1") is concept("guard")
    assert concept("shfl") is None
