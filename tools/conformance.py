"""Writes the conformance files named `oracle_*.ptx`, whose results come from oracles that share nothing with the catalog.

    python tools/conformance.py            write them
    python tools/conformance.py --check    say which would change

The definitions are those of `tests/oracle`: Python's integers as the manual's pseudocode has them, exact rationals rounded
once (`exact`), and for `.approx` what silicon gave (`../shared/fidelity`; without that folder those files stay as they are).
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from conformance_files import FOLDER, ROOT
from conformance_files.families import families
from conformance_files.kernels import kernel, text
from conformance_files.variables import declarations

import ptxvm

if TYPE_CHECKING:
    from one_instruction import Case

OLD = ".version 6.4\n.target sm_75\n.address_size 64\n"
NEW = ".version 9.4\n.target sm_107a\n.address_size 64\n"
CHIP = ".version 9.2\n.target sm_100a\n.address_size 64\n"
HEADS = {OLD: "", NEW: "_new", CHIP: "_chip"}  # the modules, and how their files are called
ROWS = {
    "compare": 4,
    "video": 4,
    "approx": 120,
    "small": 40,
    "bits": 12,
}  # runs of one kernel, by family or file; of the others 8


def files() -> dict[Path, str]:
    """Every file with its text."""
    written = {}
    for (family, name, source), cases in families().items():
        by_head: dict[str, list[Case]] = {}
        for case in cases:
            by_head.setdefault(head_of(case), []).append(case)
        for head, chosen in by_head.items():
            path = FOLDER / family / f"oracle_{name}{HEADS[head]}.ptx"
            written[path] = text(head, source, chosen, ROWS.get(name, ROWS.get(family, 8)))
    return written


def head_of(case: Case) -> str:
    """The first of the modules that has it."""
    said = kernel("k", [case])
    for head in HEADS:
        if not any(d.severity == "error" for d in ptxvm.check(head + declarations(said) + said)):
            return head
    raise ValueError(f"no module takes {case.text}")


def main() -> int:
    """Write the files, or tell what would change."""
    stale = [path for path, said in files().items() if not path.exists() or path.read_text() != said]
    if "--check" not in sys.argv:
        for path, said in files().items():
            path.write_text(said)
    for path in stale:
        print(path.relative_to(ROOT))
    return bool(stale) and "--check" in sys.argv


if __name__ == "__main__":
    sys.exit(main())
