"""Module-level cases against the verdicts of ptxas 13.5: declarations, functions, directives (2,773 cases, at .version 9.5).

What disagrees on purpose: 32-bit modules and addresses, which ptxas parses and no longer generates; a byte-order mark, which
is dropped; `sm_100aa`, whose end ptxas does not read; elements past the end of a vector register (`.v2 x` has no `x.z`);
shared memory that is too much for a kernel, which ptxas refuses, but not with `-c`.
"""

from __future__ import annotations

import json

import pytest
from ptxas import disagreement, errors, rows

FLOOR = 0.995
FLOOR_OF_DEMANDS = 0.995


def head(row):
    if row["own_header"]:
        return ""
    return f".version 9.5\n.target {row['arch'].replace('compute', 'sm')}\n.address_size 64\n"


def test_ptxas_takes_what_we_take(shared):
    cases = rows(shared, "directives")
    wrong = []
    for row in cases:
        found = errors(head(row) + row["text"])
        if bool(found) == row["accepted"]:
            said = found[0].message if found else row["errors"]
            wrong.append(f"  {row['category']}: {row['text']!r} {said}")
    assert len(wrong) <= (1 - FLOOR) * len(cases), disagreement(wrong, len(cases))


@pytest.fixture(scope="module")
def lowest(shared):
    """The lowest version of every target (isa/targets.json), and the versions in order."""
    targets = json.loads((shared / "isa" / "targets.json").read_text())
    floors = {name: version(first) for name, (first, _) in targets.items()}
    counts = {1: 6, 2: 4, 3: 3, 4: 4, 5: 2, 6: 6, 7: 9, 8: 9, 9: 6}
    return floors, [(major, minor) for major, count in counts.items() for minor in range(count)]


def version(text):
    major, minor = text.split(".")
    return int(major), int(minor)


def test_the_lowest_version_of_each_case_is_that_of_ptxas(shared, lowest):
    """Each accepted case passes at the version and target that it needs, and not one version below."""
    floors, versions = lowest
    cases = [row for row in rows(shared, "directives") if row["accepted"] and row.get("min_version")]
    wrong = []
    for row in cases:
        needed, target = version(row["min_version"]), row["min_sm"]
        below = [v for v in versions if floors[target] <= v < needed][-1:]
        passes = not errors(at(needed, target, row))
        refused = all(errors(at(v, target, row)) for v in below)
        if not (passes and refused):
            wrong.append(f"  {row['category']} at {row['min_version']}/{target}: {row['text']!r}")
    assert len(wrong) <= (1 - FLOOR_OF_DEMANDS) * len(cases), disagreement(wrong, len(cases))


def at(wanted, target, row):
    size = ".address_size 64\n" if wanted >= (2, 3) else ""
    return f".version {wanted[0]}.{wanted[1]}\n.target {target}\n{size}{row['text']}"
