"""`ptxvm examples`: the examples and litmus tests that come with the package."""

from __future__ import annotations

from pathlib import Path

from rich.text import Text

import ptxvm
from ptxvm.cli.failures import WrongCall
from ptxvm.cli.terminal import console
from ptxvm.diagnostics import did_you_mean

FOLDER = Path(ptxvm.__file__).parent / "samples"
"""In a checkout its files are links to `examples/` and `tests/litmus/cases/`."""


def names() -> list[str]:
    """The names of all files, those in folders last."""
    found = [path.relative_to(FOLDER) for path in FOLDER.rglob("*") if path.is_file()]
    return [str(path) for path in sorted(found, key=lambda path: (len(path.parts), path))]


def examples(name: str | None) -> int:
    """List the names, or print one file."""
    every = names()
    if name is None:
        console().print(Text("\n".join(every)))
        return 0
    if name not in every:
        raise WrongCall(f"there is no example '{name}'; {did_you_mean(name, every) or 'without a name, all are listed'}")
    print((FOLDER / name).read_text(encoding="utf-8"), end="")
    return 0
