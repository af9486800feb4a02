"""The relations of chapter 8, on the executions of small tests."""

from __future__ import annotations

import pytest

from ptxvm.model import judge, read_litmus
from ptxvm.model.axioms_6_4 import PTX64
from ptxvm.model.axioms_9_1 import PTX91
from ptxvm.model.cycle_explanation import cycle
from ptxvm.model.enumerate import Candidate, Search


def litmus(columns: str, question: str, start: str = "") -> str:
    return f"PTX test\n{{\n{start}\n}}\n{columns}\n{question}"


def executions(text: str, model: type[PTX64] = PTX64) -> list[Candidate]:
    return list(Search(read_litmus(text), model).run())


def names(candidate: Candidate, relation: str) -> set[tuple[str, str]]:
    x = candidate.execution
    return {(x.events[a].text, x.events[b].text) for a, b in getattr(x, relation)}


FLAG = """ P0@cta 0,gpu 0       | P1@cta 1,gpu 0        ;
 st.weak x, 1         | ld.acquire.gpu r0, f  ;
 st.release.gpu f, 1  | ld.weak r1, x         ;"""


def test_a_release_synchronizes_with_the_acquire_that_observes_it():
    saw = {c.registers["P1:r0"]: c for c in executions(litmus(FLAG, "exists (P1:r0 == 1)", "x=0; f=0;"))}
    assert names(saw[1], "synchronizes") == {("st.release.gpu f, 1", "ld.acquire.gpu r0, f")}
    assert names(saw[0], "synchronizes") == set()
    assert ("st.weak x, 1", "ld.weak r1, x") in names(saw[1], "causality")


def test_a_weak_pair_of_one_thread_is_morally_strong_and_of_two_is_not():
    [*found] = executions(litmus(FLAG, "exists (P1:r0 == 1)", "x=0; f=0;"))
    strong = names(found[0], "morally_strong")
    assert ("st.release.gpu f, 1", "ld.acquire.gpu r0, f") in strong
    assert ("st.weak x, 1", "ld.weak r1, x") not in strong
    assert ("st.weak x, 1", "st.weak x, 2") in names(
        executions(litmus(" P0@cta 0,gpu 0 ;\n st.weak x, 1 ;\n st.weak x, 2 ;", "exists (x == 2)"))[0], "morally_strong"
    )


def test_each_byte_has_its_own_source():
    text = litmus(
        " P0@cta 0,gpu 0 ;\n st.weak.b8 x, 1 ;\n st.weak.b8 x+3, 4 ;\n ld.weak.b32 r0, x ;",
        "forall (P0:r0 == 0x04020301)",
        "b32 x = 0x00020300;",
    )
    [found] = executions(text, PTX91)
    assert len(set(found.execution.sources.values())) == 3
    assert judge(read_litmus(text), "9.1").verdict == "holds"


def test_the_forbidden_cycle_names_its_relations():
    judgement = judge(read_litmus(litmus(FLAG, "exists (P1:r0 == 1 /\\ P1:r1 == 0)", "x=0; f=0;")), "6.4")
    assert judgement.forbidden is not None
    assert [step.edge for step in cycle(judgement.forbidden)] == ["fr", "po", "sync", "po"]
    assert judgement.forbidden.broken is not None
    assert judgement.forbidden.broken.section(PTX64) == "8.9.6"
    assert judgement.forbidden.broken.section(PTX91) == "8.10.6"


def test_an_unordered_pair_leaves_either_value_in_memory():
    text = litmus(" P0@cta 0,gpu 0 | P1@cta 1,gpu 0 ;\n st.weak x, 1 | st.weak x, 2 ;", "exists (x == 1)", "x=0;")
    judgement = judge(read_litmus(text), "6.4")
    assert set(judgement.outcomes) == {(("x", 1),), (("x", 2),)}
    [race] = judgement.races
    assert (race.kind, race.location) == ("uniform-size", "x")


def test_a_copy_in_flight_races_with_its_own_thread():
    text = litmus(" P0@cta 0,gpu 0 ;\n cp.async s, x ;\n ld.weak r0, s ;", "exists (P0:r0 == 1)", "x=1; s=0;")
    assert [race.location for race in judge(read_litmus(text), "9.1").races] == ["s"]
    awaited = text.replace(" ld.weak", " cp.async.wait_all ;\n ld.weak")
    assert judge(read_litmus(awaited), "9.1").races == []


@pytest.mark.parametrize("opcode", ["ld.relaxed r0, x", "ld.weak.gpu r0, x", "st.weak x", "fnord x", "bar.cta.jump 1"])
def test_what_is_no_instruction_is_named(opcode: str):
    with pytest.raises(ValueError, match="is no instruction of a litmus test"):
        read_litmus(litmus(f" P0@cta 0,gpu 0 ;\n {opcode} ;", "exists (x == 0)"))


@pytest.mark.parametrize("question", ["exists (x == ", "exists (x 0)", "exists (x == 0))", "exists (x == 0"])
def test_what_is_no_condition_is_named(question: str):
    with pytest.raises(ValueError, match="condition"):
        read_litmus(litmus(" P0@cta 0,gpu 0 ;\n st.weak x, 1 ;", question))


def test_a_branch_to_nowhere_is_named():
    with pytest.raises(ValueError, match="goes to a label that P0 does not have"):
        read_litmus(litmus(" P0@cta 0,gpu 0 ;\n goto LC00 ;", "exists (x == 0)"))
