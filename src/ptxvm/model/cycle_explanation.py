"""Explanations of forbidden executions: the cycle that an axiom finds, with the relation of each step."""

from __future__ import annotations

from itertools import pairwise

from ptxvm.dataclass import dataclass
from ptxvm.model.axioms_6_4 import PTX64
from ptxvm.model.enumerate import Candidate
from ptxvm.model.relations import Relation

EDGES = {
    "rf": "reads from",
    "co": "coherence order",
    "fr": "read before written",
    "sync": "synchronizes",
    "cause": "causality order",
    "po": "program order",
    "obs": "observation order",
    "dep": "dependency",
    "sc": "Fence-SC order",
}
"""The names of the edges in a drawing."""


@dataclass(frozen=True)
class CycleStep:
    """One step of a cycle: an event precedes another in a relation."""

    first: int
    edge: str
    second: int

    def as_json(self, candidate: Candidate) -> dict[str, str]:
        """As plain values."""
        events = candidate.execution.events
        return {"first": str(events[self.first]), "edge": self.edge, "second": str(events[self.second])}


def edges(x: PTX64) -> dict[str, Relation]:
    """The relations of an execution, by their short names."""
    return {
        "rf": x.reads_from,
        "fr": x.from_reads,
        "co": x.coherence,
        "dep": x.dependencies,
        "sync": x.synchronizes,
        "po": x.program_order,
        "obs": x.observation,
        "cause": x.causality,
        "sc": x.fence_sc,
    }


def cycle(candidate: Candidate) -> list[CycleStep]:
    """The cycle that the broken axiom forbids."""
    axiom, x = candidate.broken, candidate.execution
    if axiom is None:
        return []
    nodes = axiom.counterexample(x)
    match axiom.name:
        case "No Thin Air":
            return _named(x, nodes, ("rf", "dep"))
        case "SC per Location":
            return _named(x, nodes, ("rf", "fr", "co", "po"))
        case "Causality":
            return _against_causality(x, nodes[0])
        case "Coherence":
            return _both_ways(x, nodes[0])
        case "Atomicity of RMW":
            read, write = nodes
            between = next(b for b in range(x.count) if (read, b) in x.from_reads and (b, write) in x.coherence)
            return [CycleStep(read, "fr", between), CycleStep(between, "co", write)]
        case "Single-Copy Atomicity":
            return [CycleStep(nodes[0], "rf", nodes[1]), CycleStep(nodes[1], "fr", nodes[0])]
    return [*_causal(x, nodes[0], nodes[1]), CycleStep(nodes[1], "sc", nodes[0])]


def _named(x: PTX64, nodes: list[int], names: tuple[str, ...]) -> list[CycleStep]:
    """The steps of a cycle; each is named after the first of these relations that has it."""
    relations = edges(x)
    return [CycleStep(a, next(name for name in names if (a, b) in relations[name]), b) for a, b in pairwise(nodes)]


def _both_ways(x: PTX64, start: int) -> list[CycleStep]:
    """The steps from a write to another write and back."""
    other = next((b for b in range(x.count) if b != start and (start, b) in x.coherence and (b, start) in x.coherence), start)
    return [*_causal(x, start, other), *(_causal(x, other, start) if other != start else [])]


def _against_causality(x: PTX64, start: int) -> list[CycleStep]:
    """The steps of a communication from an event to one that precedes it in causality order."""
    for name, relation in (("fr", x.from_reads), ("rf", x.reads_from)):
        for middle in range(x.count):
            if (start, middle) in relation and (middle, start) in x.causality:
                return [CycleStep(start, name, middle), *_causal(x, middle, start)]
    return []


def _causal(x: PTX64, a: int, b: int) -> list[CycleStep]:
    """The steps that make up a causality pair; one step of coherence order if there is no such pair."""
    if (a, b) not in x.causality:
        return [CycleStep(a, "co", b)]
    return _named(x, (x.program_order | x.synchronizes | x.observation).path(a, b), ("sync", "po", "obs"))
