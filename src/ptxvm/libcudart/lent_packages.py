"""What ptxvm depends on, for a Python that does not have it: links to the packages of another one.

A program may be of another Python than `ptxvm exec`.  Its own packages come first, and of the other's it sees only those that
ptxvm needs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import Distribution, DistributionFinder, MetadataPathFinder
from pathlib import Path

NAME = re.compile(r"[\w.-]+")


def lend(folder: Path, path: Sequence[str]) -> Path:
    """A folder in another with links to the packages that ptxvm depends on, as they are installed in the folders of a path."""
    lent = folder / "packages"
    lent.mkdir(exist_ok=True)
    for name, place in needed(path).items():
        with suppress(FileExistsError):  # another process does the same
            (lent / name).symlink_to(place)
    return lent


def needed(path: Sequence[str]) -> dict[str, Path]:
    """The places of the packages, by name: of all distributions that ptxvm requires, and of those that they require."""
    found: dict[str, Path] = {}
    seen, pending = {"ptxvm"}, ["ptxvm"]
    while pending:
        wanted = pending.pop()
        for installed in distributions(wanted, path):
            if wanted != "ptxvm":
                found |= {name: Path(str(installed.locate_file(name))) for name in top_level(installed)}
            required = {key(requirement) for requirement in installed.requires or () if "extra ==" not in requirement}
            pending += required - seen
            seen |= required
    return found


def top_level(installed: Distribution) -> set[str]:
    """The packages and modules of a distribution, and folders beside them that they need."""
    names = {file.parts[0] for file in installed.files or ()} - {"..", "__pycache__"}
    return {name for name in names if not name.endswith((".dist-info", ".pth"))}


def distributions(name: str, path: Sequence[str]) -> Sequence[Distribution]:
    """The first distribution of a name on a path, if there is one."""
    return [*MetadataPathFinder.find_distributions(DistributionFinder.Context(name=name, path=list(path)))][:1]


def key(requirement: str) -> str:
    """The name of a requirement: `numpy` of `numpy>=2`."""
    found = NAME.match(requirement)
    return found.group().lower() if found else ""


__all__ = ["lend"]
