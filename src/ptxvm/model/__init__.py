"""The memory consistency model of PTX, executable: chapter 8 as relations and axioms, and litmus tests.

`read_tests` reads a file, and `judge` answers its tests; `axioms_6_4` and `axioms_9_1` are the chapter.
"""

from pathlib import Path

from ptxvm.model.conditions import NotALitmusTest
from ptxvm.model.judge import MODELS, Judgement, judge
from ptxvm.model.litmus_syntax import read_litmus
from ptxvm.model.litmus_test import Test
from ptxvm.model.templates import read_template

__all__ = ["MODELS", "Judgement", "NotALitmusTest", "Test", "judge", "read_litmus", "read_template", "read_tests"]


def read_tests(path: str | Path) -> list[Test]:
    """The tests of a file: one of a `.litmus` file, one for each row of a `.test` template."""
    path = Path(path)
    text = path.read_text(encoding="utf-8", errors="replace")
    return read_template(text, path.name) if path.suffix == ".test" else [read_litmus(text)]
