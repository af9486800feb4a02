"""Every relation and axiom of the model, dropped or weakened: a class for each, made from the model by one change."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from ptxvm.algebra.memory_order import Scope
from ptxvm.model.axioms_6_4 import PTX64
from ptxvm.model.axioms_9_1 import PTX91
from ptxvm.model.memory_events import Event, EventKind
from ptxvm.model.relations import Relation

Change = Callable[[Any], Any]


def without(model: type[PTX64], name: str) -> Change:
    """The relation has no pairs."""
    return lambda x: Relation.empty(x.count)


def weaker(model: type[PTX64], name: str, change: Callable[[Any, Any], Any]) -> Change:
    """The relation as the model has it, changed."""
    original = next(vars(cls)[name] for cls in model.__mro__ if name in vars(cls))
    return lambda x: change(x, original.func(x))


def mutant(model: type[PTX64], name: str, change: Change) -> type[PTX64]:
    """The model with one relation replaced."""
    replaced = cached_property(change)
    made = type(f"{model.__name__}_{name}", (model,), {name: replaced})
    replaced.__set_name__(made, name)
    return made


def fence_of(*orders: str) -> Callable[[Event], bool]:
    return lambda e: e.kind is EventKind.FENCE and e.order in orders


def ignoring_scope(a: Event, b: Event) -> bool:
    return a is not b and a.is_strong and b.is_strong and a.thread is not None and b.thread is not None


def one_way_scope(a: Event, b: Event) -> bool:
    if a.thread is None or b.thread is None or not ignoring_scope(a, b):
        return False
    return a.thread.within(a.scope, b.thread) or b.thread.within(b.scope, a.thread)


def of_64(name: str, x: PTX64) -> Relation:
    """A relation as PTX 6.4 has it."""
    relation: Relation = vars(PTX64)[name].func(x)
    return relation


DROPPED = {
    PTX64: """
        release_pattern acquire_pattern observation patterns_synchronize synchronizes base_causality causality
        either_way initial_before_all dependencies from_reads coherence_against_itself torn_reads split_atomics value_flow
        strong_communication_and_program_order communication_against_causality fence_sc_against_causality
        mixed_size_race read_modify_write overlapping_program_order mutually_in_scope
        same_location_program_order
        """.split(),
    PTX91: """
        observation base_causality causality fenced in_one_cta past_an_alias_fence through_generic becomes_generic was_generic
        same_proxy same_address proxy_preserved_base_causality fences_in_order
        """.split(),
}

WEAKENED: dict[str, tuple[type[PTX64], str, Callable[[Any, Any], Any]]] = {
    "scopes are ignored": (PTX64, "mutually_in_scope", lambda x, _: Relation.where(x.events, ignoring_scope)),
    "one scope that includes is enough": (PTX64, "mutually_in_scope", lambda x, _: Relation.where(x.events, one_way_scope)),
    "moral strength without program order": (PTX64, "morally_strong", lambda x, r: r & x.mutually_in_scope),
    "moral strength of partial overlap": (
        PTX64, "morally_strong",
        lambda x, r: r | ((x.program_order | x.program_order.inverse | x.mutually_in_scope) & x.overlap),
    ),
    "release pattern 1 is none": (PTX64, "release_pattern", lambda x, r: r - Relation.identity(~0, x.count)),
    "release pattern 2 is none": (
        PTX64, "release_pattern",
        lambda x, r: r - x.program_order.between(x.releases, ~0) | Relation.identity(x.releases, x.count)),
    "release pattern 3 is none": (PTX64, "release_pattern", lambda x, r: r.between(~x.releasing_fences, ~0)),
    "release pattern 3 with a weak write": (
        PTX64, "release_pattern", lambda x, r: r | x.program_order.between(x.releasing_fences, x.writes)),
    "acquire pattern 1 is none": (PTX64, "acquire_pattern", lambda x, r: r - Relation.identity(~0, x.count)),
    "acquire pattern 2 is none": (
        PTX64, "acquire_pattern",
        lambda x, r: r - x.program_order.between(~0, x.acquires) | Relation.identity(x.acquires, x.count)),
    "acquire pattern 3 is none": (PTX64, "acquire_pattern", lambda x, r: r.between(~0, ~x.acquiring_fences)),
    "red is a read operation": (
        PTX64, "strong_reads", lambda x, _: x.those(lambda e: e.kind is EventKind.READ and e.is_strong)),
    "fence.sc forms no pattern": (PTX64, "releasing_fences", lambda x, _: x.those(fence_of("acq_rel"))),
    "fence.acq_rel forms no pattern": (PTX64, "releasing_fences", lambda x, _: x.those(fence_of("sc"))),
    "fence.sc ends no pattern": (PTX64, "acquiring_fences", lambda x, _: x.those(fence_of("acq_rel"))),
    "fence.acq_rel is fence.sc": (PTX64, "fence_scs", lambda x, _: x.those(lambda e: e.kind is EventKind.FENCE)),
    "observation without moral strength": (PTX64, "observation", lambda x, r: r | x.reads_from),
    "observation not through atomics": (PTX64, "observation", lambda x, r: x.reads_from & x.morally_strong),
    "fence.sc does not synchronize": (PTX64, "synchronizes", lambda x, r: r - x.fence_sc),
    "barriers do not synchronize": (PTX64, "synchronizes", lambda x, r: r - x.barriers),
    "patterns synchronize without moral strength": (
        PTX64, "patterns_synchronize", lambda x, _: x.release_pattern.then(x.observation).then(x.acquire_pattern)),
    "base causality is not transitive": (
        PTX64, "base_causality", lambda x, _: x.program_order.or_same.then(x.synchronizes).then(x.program_order.or_same)),
    "no program order before synchronization": (
        PTX64, "base_causality", lambda x, _: x.synchronizes.then(x.program_order.or_same).transitive),
    "no program order after synchronization": (
        PTX64, "base_causality", lambda x, _: x.program_order.or_same.then(x.synchronizes).transitive),
    "causality without observation": (PTX64, "causality", lambda x, _: x.base_causality),
    "no observation and program order": (
        PTX64, "causality", lambda x, _: x.base_causality | x.observation.then(x.base_causality)),
    "no observation and base causality": (
        PTX64, "causality", lambda x, _: x.base_causality | x.observation.then(x.overlapping_program_order)),
    "coherence not from causality": (PTX64, "required_coherence", lambda x, _: x.initial_before_all.transitive),
    "coherence is total": (
        PTX64, "either_way", lambda x, _: (x.overlap - Relation.identity(~0, x.count)).between(x.writes, x.writes)),
    "a read may take a later write": (
        PTX64, "communication_against_causality", lambda x, _: x.from_reads.then(x.causality)),
    "a read may take an overwritten value": (
        PTX64, "communication_against_causality", lambda x, _: x.reads_from.then(x.causality)),
    "weak communication is strong": (
        PTX64, "strong_communication_and_program_order", lambda x, _: x.overlapping_program_order | x.communication),
    "program order of all locations": (
        PTX64, "strong_communication_and_program_order", lambda x, r: r | x.program_order),
    "control is no dependency": (PTX64, "dependencies", lambda x, _: Relation.of(
        ((x.number[read], i) for i, e in enumerate(x.events) for read in e.data), x.count)),
    "data are no dependency": (PTX64, "dependencies", lambda x, _: Relation.of(
        ((x.number[read], i) for i, e in enumerate(x.events) for read in e.control), x.count)),
    "a relaxed arrival orders memory": (
        PTX91, "ordering_barriers", lambda x, _: x.those(lambda e: e.kind is EventKind.ARRIVAL)),
    "cluster scope is cta scope": (PTX91, "mutually_in_scope", lambda x, r: r & (x.same_cta | Relation.where(
        x.events, lambda a, b: Scope.CLUSTER not in (a.scope, b.scope)))),
    "proxies do not matter to moral strength": (PTX91, "morally_strong", lambda x, _: of_64("morally_strong", x)),
    "proxies are all generic": (PTX91, "generic", lambda x, _: x.reads | x.writes),
    "a proxy fence works from any CTA": (PTX91, "fenced", lambda x, _: x.same_proxy.between(
        x.those(lambda e: e.kind is EventKind.PROXY_FENCE), x.reads | x.writes)),
    "any proxy fence will do": (PTX91, "fenced", lambda x, _: x.same_cta.between(
        x.those(lambda e: e.kind is EventKind.PROXY_FENCE), x.reads | x.writes)),
    "aliases are one address": (PTX91, "same_address", lambda x, _: x.overlap),
    "any CTA keeps a proxy": (PTX91, "in_one_cta", lambda x, _: x.base_causality & x.same_proxy),
    "one CTA needs no proxy fence": (PTX91, "in_one_cta", lambda x, _: x.base_causality & x.same_cta),
    "no program order in base causality": (PTX91, "base_causality", lambda x, _: of_64("base_causality", x)),
    "any fence releases": (PTX91, "releasing_fences", lambda x, _: x.those(lambda e: e.kind is EventKind.FENCE)),
    "any fence acquires": (PTX91, "acquiring_fences", lambda x, _: x.those(lambda e: e.kind is EventKind.FENCE)),
    "causality without observation (9.1)": (
        PTX91, "causality", lambda x, _: x.proxy_preserved_base_causality | x.fences_in_order),
    "causality ignores proxies": (
        PTX91, "causality", lambda x, _: x.base_causality | x.observation.then(x.base_causality)),
}  # fmt: skip


def mutants() -> dict[str, type[PTX64]]:
    """All of them, by what they say."""
    dropped = {
        f"{model.name}: no {name}": mutant(model, name, without(model, name))
        for model, names in DROPPED.items()
        for name in names
    }
    weakened = {
        f"{model.name}: {what}": mutant(model, name, weaker(model, name, change))
        for what, (model, name, change) in WEAKENED.items()
    }
    return dropped | weakened
