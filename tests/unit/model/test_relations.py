"""The algebra of relations, on small examples."""

from __future__ import annotations

from hypothesis import given, strategies as st

from ptxvm.model.relations import Relation, members

CHAIN = Relation.of([(0, 1), (1, 2), (2, 3)], 4)
RELATIONS = st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5))).map(lambda pairs: Relation.of(pairs, 6))


def test_a_relation_is_its_pairs():
    assert list(CHAIN) == [(0, 1), (1, 2), (2, 3)]
    assert (1, 2) in CHAIN
    assert (2, 1) not in CHAIN
    assert list(members(0b1010)) == [1, 3]


def test_composition_goes_two_steps():
    assert list(CHAIN.then(CHAIN)) == [(0, 2), (1, 3)]


def test_closure_of_a_chain():
    assert list(CHAIN.transitive) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]


def test_a_cycle_is_found_and_its_ends_are_one_event():
    ring = CHAIN | Relation.of([(3, 1)], 4)
    assert CHAIN.is_acyclic
    assert not ring.is_acyclic
    assert ring.cycle == [1, 2, 3, 1]
    assert CHAIN.cycle == []


def test_the_shortest_way():
    assert (CHAIN | Relation.of([(0, 2)], 4)).path(0, 3) == [0, 2, 3]
    assert CHAIN.path(3, 0) == []


def test_between_keeps_the_sets():
    assert list(CHAIN.between(0b0011, 0b0100)) == [(1, 2)]


@given(RELATIONS, RELATIONS)
def test_composition_is_that_of_sets_of_pairs(a: Relation, b: Relation):
    assert set(a.then(b)) == {(i, k) for i, j in a for j2, k in b if j == j2}
    assert set(a.inverse) == {(j, i) for i, j in a}
    assert set(a - b) == set(a) - set(b)


@given(RELATIONS)
def test_the_closure_is_the_least_transitive_one(a: Relation):
    closure = a.transitive
    assert set(closure.then(closure)) <= set(closure)
    assert set(closure) == {(i, j) for i in range(6) for j in range(6) if a.path(i, j)}


@given(RELATIONS, st.integers(0, 5), st.integers(0, 5))
def test_joining_keeps_transitivity(a: Relation, i: int, j: int):
    assert a.transitive.joined(i, j) == (a | Relation.of([(i, j)], 6)).transitive
