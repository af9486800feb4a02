"""A compiled kernel: its versions, metadata, measured speed, and idle runners."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ptxvm.engine.jit.abi.metadata import HostCallSite
from ptxvm.engine.jit.abi.specialisation import Tier, VersionKind
from ptxvm.engine.jit.objects.version import Version
from ptxvm.engine.jit.run.callbacks import Callbacks
from ptxvm.engine.jit.run.runner import Runner
from ptxvm.machine.builtins import Library
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape

if TYPE_CHECKING:
    import numpy.typing as npt

    from ptxvm.engine.jit.abi.host import HostCall
    from ptxvm.engine.jit.run.rivals import Contest


class FindRival(Protocol):
    """Finds or compiles another version of a kernel, for which launches go on in the `background`."""

    def __call__(self, *, background: bool) -> Compiled | None:
        """The other version; None where there is none."""


class Compiled:
    """A kernel for one specialisation.

    `make` finds or compiles a version of a tier or a better one; `tier` is the least tier that it is asked for.
    `translated` gives the host calls of some versions; `rival` is another version of the whole kernel, which takes turns with
    this one (`rivals`), and `find_rival` makes it.  `better` has taken the place of this one, and `find_better` makes it of
    this.  `rate` is the time of a CTA in seconds; so far `ctas` have run, and `spent` so many seconds.
    """

    rate: float | None = None
    spent = 0.0
    ctas = 0
    launches = 0
    improving = False
    better: Compiled | None = None

    def __init__(
        self,
        image: Image,
        library: Library,
        make: Callable[[VersionKind, Tier], Version],
        translated: Callable[[Iterable[VersionKind]], Sequence[HostCallSite]],
        tier: Tier,
        find_rival: FindRival | None = None,
        find_better: Callable[[Compiled], Compiled] | None = None,
    ) -> None:
        self.image, self.library, self.make, self.translated, self.tier = image, library, make, translated, tier
        self.find_rival, self.find_better = find_rival, find_better
        self.rival: Compiled | None = None
        self.contest: Contest | None = None
        self.versions: dict[VersionKind, Version] = {}
        self.runners: list[Runner] = []
        self._lock = allocate_lock()
        self.facts = self.version(VersionKind.FIRST).facts

    def version(self, kind: VersionKind) -> Version:
        """The version of a kind; the call waits until it is compiled."""
        with self._lock:
            if kind not in self.versions:
                self.versions[kind] = made = self.make(kind, self.tier)
                self.facts = made.facts  # which include those of the versions before
            return self.versions[kind]

    @property
    def is_best(self) -> bool:
        """Is the code of all versions the best?"""
        return all(version.tier == Tier.BEST for version in self.versions.values())

    def improve(self, tier: Tier) -> None:
        """Compile again the versions that are below a tier."""
        with self._lock:
            self.tier = tier
            for kind, version in self.versions.items():
                if version.tier < tier:
                    self.versions[kind] = self.make(kind, tier)

    def host_call(self, number: int) -> HostCall | None:
        """A host call that the disk cache could not hold."""
        with self._lock:
            works = self.translated(tuple(kind for kind in VersionKind if kind in self.versions))
            self.facts = self.facts._replace(host_calls=works)
        return works[number].host_call

    def take_over(self, before: Compiled) -> None:
        """Take the place of what has run until now: it has as many versions, and was as fast, or slower."""
        for kind in before.versions:
            self.version(kind)
        self.rate, self.spent, self.ctas, self.launches = before.rate, before.spent, before.ctas, before.launches

    def record_time(self, rate: float | None, ctas: int) -> None:
        """Account for a launch; a single slow one at most doubles the rate."""
        self.launches += 1
        if rate is not None:
            self.spent, self.ctas = self.spent + rate * ctas, self.ctas + ctas
            self.rate = rate if self.rate is None else min(rate, 2 * self.rate)

    @cached_property
    def addresses(self) -> npt.NDArray[np.uint64]:
        """The addresses of the functions and variables of the module, by their numbers."""
        return np.array(self.image.addresses, np.uint64)

    def face_rival(self, *, background: bool) -> None:
        """Have the rival take turns in later launches, if there is one; compiled while launches go on, in the `background`."""
        if not self.facts.scalar or self.find_rival is None or (rival := self.find_rival(background=background)) is None:
            return
        from ptxvm.engine.jit.run.rivals import Contest  # noqa: PLC0415 - few kernels have one

        self.runners.clear()
        self.contest, self.rival = Contest(), rival

    def runner(self, shape: LaunchShape, kind: type[Callbacks] = Callbacks) -> Runner:
        """An idle runner, or a new one; its memory has been touched, which the first launch pays for."""
        while self.runners:
            with suppress(IndexError):
                found = self.runners.pop()
                fits = found.resident == self.facts.suspended.resident(shape.ctas) and type(found.calls) is kind
                if fits and found.paired is (self.rival is not None):
                    return found
        return self.new_runner(shape, kind)

    def new_runner(self, shape: LaunchShape, kind: type[Callbacks] = Callbacks) -> Runner:
        """A runner of this version, or of it and its rival."""
        if self.rival is None or self.contest is None:
            return Runner(self, shape, kind)
        from ptxvm.engine.jit.run.rivals import PairedRunner, Turns  # noqa: PLC0415 - few kernels have one

        turns = Turns(self.contest, self.ctas, self.spent)
        return PairedRunner(self, Runner(self.rival, shape, kind), turns, shape, kind)
