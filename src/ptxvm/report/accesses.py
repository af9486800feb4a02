"""The accesses of a sample: of each instruction the request of a warp that asks most of memory, for a picture."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.machine.faults import plural
from ptxvm.profile.trace import Located, Step, Touched
from ptxvm.reference.access_pictures import lanes_of_access
from ptxvm.reference.accesses import APART, WarpAccess
from ptxvm.reference.drawings import memory_of_access

DRAWN = frozenset({Space.GLOBAL, Space.SHARED, Space.LOCAL})


@dataclass(frozen=True)
class Request:
    """An access of the lanes of a warp, and the step in which it was made."""

    step: Step
    verb: str
    access: WarpAccess

    @property
    def cost(self) -> int:
        """Wavefronts or sectors."""
        return self.access.wavefronts if self.access.space is Space.SHARED else len(self.access.sectors)

    @property
    def ideal(self) -> int:
        """The fewest that would do."""
        return len(self.access.passes) if self.access.space is Space.SHARED else self.access.fewest_sectors

    @property
    def sentence(self) -> str:
        """What the picture shows."""
        cta, warp = self.step.warp
        cost = plural(self.cost, "wavefront" if self.access.space is Space.SHARED else "sector")
        what = f"{self.verb} of {plural(self.access.size, 'byte')} by {plural(len(self.access.addresses), 'lane')}"
        return f"warp {warp} of CTA {','.join(map(str, cta))}: {what}, {cost}, ideal {self.ideal}."

    def drawn(self) -> list[str]:
        """Where the lanes go, and the words that they ask for."""
        return [lanes_of_access(self.access), memory_of_access(self.access)]


def worst_requests(steps: Sequence[Step]) -> list[Request]:
    """The costliest request of each instruction and memory."""
    found: dict[tuple[Bound, Space], Request] = {}
    for step in steps:
        for request in requests(step):
            key = step.bound, request.access.space
            if key not in found or request.cost > found[key].cost:
                found[key] = request
    return list(found.values())


def requests(step: Step) -> Iterator[Request]:
    """The requests of a step: one for each access and memory."""
    for touched in step.accesses:
        for space in dict.fromkeys(located.space.window for located in touched.located.values()):
            if space in DRAWN and touched.size:
                yield Request(step, str(touched.verb), warp_access(touched, space))


def warp_access(touched: Touched, space: Space) -> WarpAccess:
    """What an access of a trace asks of one state space."""
    located = {lane: each for lane, each in touched.located.items() if each.space.window is space}
    names = list(dict.fromkeys(each.name for each in located.values()))

    def address(each: Located) -> int:
        return names.index(each.name) * APART + each.distance

    return WarpAccess(space, touched.size, {lane: address(each) for lane, each in located.items()}, tuple(names), touched.verb)


__all__ = ["Request", "worst_requests"]
