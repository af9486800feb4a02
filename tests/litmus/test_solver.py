"""z3 and the search find the same outcomes; and z3 decides what is too much for the search.

Both ask the same axioms, so this compares how executions are found, not what is asked of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from verdicts import KERNELS_AGAIN, Expected, collected, own

from ptxvm.litmus import read
from ptxvm.model import judge, read_litmus
from ptxvm.model.conditions import CannotSolve
from ptxvm.model.judge import MANY, choices

z3 = pytest.importorskip("z3", reason="z3 is an extra: pip install ptxvm[z3]")

REFUSED = ("accesses of several sizes", "a variable with writes of its parts", "a barrier with a number from memory")
BOTH = [each for each in [*own(), *collected()] if "CADP" not in each.path]


def same(expected: Expected) -> bool:
    test = expected.test()
    try:
        solved = judge(test, expected.model, solver="z3")
    except CannotSolve as why:
        if not str(why).startswith(REFUSED):
            raise
        return False
    found = judge(test, expected.model, solver="search")
    assert solved.solver == "z3"
    assert solved.outcomes == found.outcomes
    assert solved.verdict == found.verdict
    assert {(race.first, race.second) for race in solved.races} == {(race.first, race.second) for race in found.races}
    return True


def test_both_agree_on_some(rng: np.random.Generator):
    assert sum(same(BOTH[int(n)]) for n in rng.permutation(len(BOTH))[:40]) > 20


@pytest.mark.long
@pytest.mark.parametrize("expected", BOTH, ids=str)
def test_both_agree(expected: Expected):
    same(expected)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("path", [each for each in KERNELS_AGAIN if each.id != "mbarriers"])
def test_both_agree_on_kernels(path: Path):
    compared = 0
    for test in read(path):
        try:
            solved = judge(test, solver="z3")
        except CannotSolve:
            continue
        found = judge(test, solver="search")
        assert (solved.verdict, solved.outcomes, solved.termination) == (found.verdict, found.outcomes, found.termination)
        assert {(race.first, race.second) for race in solved.races} == {(race.first, race.second) for race in found.races}
        compared += 1
    assert compared


def ring(threads: int, fence: str) -> str:
    """Store buffering by many: each writes its own variable, and reads the next one's."""
    columns = [
        [f"P{n}@cta {n},gpu 0", f"st.relaxed.gpu x{n}, 1", fence, f"ld.relaxed.gpu r0, x{(n + 1) % threads}"]
        for n in range(threads)
    ]
    rows = [" | ".join(column[n] for column in columns) + " ;" for n in range(4)]
    asked = " /\\ ".join(f"P{n}:r0 == 0" for n in range(threads))
    return (
        "PTX ring\n{\n" + " ".join(f"x{n} = 0;" for n in range(threads)) + "\n}\n" + "\n".join(rows) + f"\nexists ({asked})\n"
    )


def test_what_is_too_much_for_the_search():
    """Seven threads, 21 pairs of fences: with fence.sc one thread is the last, and sees what the next one wrote."""
    test = read_litmus(ring(7, "fence.sc.gpu"))
    assert choices(test) > MANY
    judgement = judge(test)
    assert (judgement.solver, judgement.verdict) == ("z3", "forbidden")


def test_an_answer_among_too_many_outcomes():
    test = read_litmus(ring(9, "fence.acq_rel.gpu"))
    judgement = judge(test, solver="z3")
    assert judgement.verdict == "allowed"
    assert not judgement.complete
    assert judgement.witness is not None
    assert all(judgement.witness.registers[f"P{n}:r0"] == 0 for n in range(9))


def test_what_z3_is_not_asked():
    (sizes,) = [each.test() for each in own() if each.name == "mixed-size-race" and each.model == "9.1"]
    with pytest.raises(CannotSolve, match="several sizes"):
        judge(sizes, solver="z3")
