"""Tests that repeat the failures of a campaign, as files of pytest."""

from __future__ import annotations

import os
import pprint
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from ptxvm.campaign.case import DeclaredWorkload
from ptxvm.campaign.declaration import Declaration, declared
from ptxvm.campaign.outcome import Job, Outcome
from ptxvm.campaign.pool import Pool
from ptxvm.campaign.shrink import Small
from ptxvm.diagnostics.errors import PTXVMError

TEST = '''"""Case {number} of the campaign {name!r} failed: {reason}."""

from pathlib import Path

from ptxvm.campaign.reproduction import repeat

HERE = Path(__file__).parent
CAMPAIGN = {tables}
PARAMETERS = {parameters}


def test_{function}():
    repeat(CAMPAIGN, PARAMETERS, HERE / {folder!r})
'''
SMALL = """

if __name__ == "__main__":
    # The fewest statements of the kernel that fail alike.
    repeat(CAMPAIGN, PARAMETERS, HERE / {folder!r}, Path(__file__).with_suffix(".ptx"))
"""


class CaseFailed(PTXVMError, AssertionError):  # noqa: N818 - it says what happened
    """A case of a campaign fails; `outcome` says how."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(f"{outcome.reason}\n{outcome.message}")
        self.outcome = outcome


def repeat(tables: Mapping[str, object], parameters: Mapping[str, object], folder: Path, kernel: Path | None = None) -> None:
    """Run one case of a campaign in a process of its own, within its limits; `kernel` is a file in place of the campaign's.

    Raises `CaseFailed` where it fails.
    """
    declaration = declared(tables, folder)
    text = kernel.read_text(encoding="utf-8", errors="surrogateescape") if kernel is not None else None
    with Pool(DeclaredWorkload(declaration), 1, declaration.limits) as pool:
        for done in pool.outcomes([Job(0, parameters, text)]):
            for each in done:
                if each.outcome.failed:
                    raise CaseFailed(each.outcome)


def write_tests(folder: Path, declaration: Declaration, failures: Iterable[Small]) -> list[Path]:
    """Write a test for each failure, and beside it the PTX that was made small; gives the files of the tests.

    A test runs the kernel of the campaign, and passes when that is mended; as a script it runs what was made small of it.
    """
    written: list[Path] = []
    for small in failures:
        found = small.case.outcome
        name = re.sub(r"\W+", "_", f"{declaration.subject.name} {found.kind or found.verdict} {small.case.number}").strip("_")
        file = folder / f"test_{name}.py"
        template = TEST
        if small.text is not None:
            file.with_suffix(".ptx").write_text(small.text, encoding="utf-8", errors="surrogateescape")
            template += SMALL
        file.write_text(
            template.format(
                name=declaration.subject.name, reason=one_line(found.reason), number=small.case.number, function=name,
                tables=literal({name: table for name, table in declaration.tables.items() if name != "parameters"}),
                parameters=literal(small.parameters), folder=os.path.relpath(declaration.folder, folder),
            ),
            encoding="utf-8",
        )  # fmt: skip
        written.append(file)
    return written


def literal(value: object) -> str:
    """A value as Python writes it."""
    return pprint.pformat(value, width=120, sort_dicts=False)


def one_line(text: str) -> str:
    """A text within a docstring."""
    return " ".join(text.split()).replace("\\", "/").replace('"', "'")


__all__ = ["CaseFailed", "repeat", "write_tests"]
