"""Final states that coherence order rules out: the last write contradicts causality order (PTX 8.10.1)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice, product

from ptxvm.model.axioms_6_4 import COHERENCE
from ptxvm.model.enumerate import Candidate, without_coherence
from ptxvm.model.relations import Relation

MANY = 256
"""The most variants of one execution that are tried."""


def overruled(candidate: Candidate, variables: Collection[str], *, initial: bool) -> Iterator[Candidate]:
    """Variants of an execution in which memory ends with other writes to these variables; each one breaks Coherence.

    With `initial`, memory may also end with the initial value of a variable that is written.
    """
    x = candidate.execution
    cells = [cell for cell, writes in x.memory.items() if cell[0] in variables and len(writes) > 1]
    firsts = {w for cell in cells for w in x.memory[cell] if x.initial >> w & 1}
    free = [sorted((w for w in x.memory[cell] if initial or w not in firsts), key=firsts.__contains__) for cell in cells]
    for chosen in islice(product(*free), MANY):
        last = dict(zip(cells, chosen, strict=True))
        against = [
            (later, write)
            for cell, write in last.items()
            for later in x.memory[cell]
            if later != write and (later, write) not in x.coherence
        ]
        if any(pair[::-1] in x.required_coherence for pair in against):
            order = (x.coherence | Relation.of(against, x.count)).transitive
            refused = without_coherence(x).with_decisions(coherence=order)
            yield Candidate(refused, candidate.known, candidate.registers, COHERENCE, last)
