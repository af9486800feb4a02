"""Directives in words: every directive that the parser knows has its sentence and its section."""

from __future__ import annotations

import re

from ptxvm.reference.directive_words import DIRECTIVES
from ptxvm.syntax.declarations import LINKAGE, SPACES
from ptxvm.syntax.directives import FUNCTION_DIRECTIVES, HEADER, KERNEL_DIRECTIVES


def test_every_directive_is_there():
    known = {
        *LINKAGE,
        *SPACES,
        *HEADER,
        *KERNEL_DIRECTIVES,
        *FUNCTION_DIRECTIVES,
        ".entry",
        ".func",
        ".loc",
        ".file",
        ".section",
    }
    assert known - DIRECTIVES.keys() == set()


def test_each_has_a_section_and_a_sentence():
    for section, said in DIRECTIVES.values():
        assert re.fullmatch(r"\d+(\.\d+)+", section)
        assert len(said) > 10
