"""A compiled kernel: its code, what is known of it, and the runners that wait for its next launch."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ptxvm.engine.jit.abi.metadata import HostCallSite
from ptxvm.engine.jit.abi.specialisation import Tier
from ptxvm.engine.jit.objects.version import Version
from ptxvm.engine.jit.run.runner import Runner
from ptxvm.machine.builtins import Library
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape

if TYPE_CHECKING:
    from ptxvm.engine.jit.abi.host import HostCall

ORDER = ("first", "masked", "shapeless")


class Compiled:
    """A kernel for one shape of CTA.

    `make` finds or compiles a version by its name, of a tier or a better one; `tier` is the least that it is asked for.
    `translated` gives what Python does in some of them.  `rate` is the
    seconds that a CTA takes, `spent` those that all have taken.
    """

    rate: float | None = None
    spent = 0.0
    launches = 0
    improving = False

    def __init__(
        self,
        image: Image,
        library: Library,
        make: Callable[[str, Tier], Version],
        translated: Callable[[Iterable[str]], Sequence[HostCallSite]],
        tier: Tier,
    ) -> None:
        self.image, self.library, self.make, self.translated, self.tier = image, library, make, translated, tier
        self.versions: dict[str, Version] = {}
        self.runners: list[Runner] = []
        self._lock = allocate_lock()
        self.facts = self.version("first").facts

    def version(self, name: str) -> Version:
        """One by its name: `first`, `masked` or `shapeless`; the call waits until it is compiled."""
        with self._lock:
            if name not in self.versions:
                self.versions[name] = made = self.make(name, self.tier)
                self.facts = made.facts  # and all that was known before
            return self.versions[name]

    def improve(self, tier: Tier) -> None:
        """Let all code be of a tier at least."""
        with self._lock:
            self.tier = tier
            for name, version in self.versions.items():
                if version.tier < tier:
                    self.versions[name] = self.make(name, tier)

    def host_call(self, number: int) -> HostCall | None:
        """What Python does, where that was not kept with the code."""
        with self._lock:
            works = self.translated(tuple(name for name in ORDER if name in self.versions))
            self.facts = self.facts._replace(host_calls=works)
        return works[number].host_call

    def replace(self, name: str, better: Version) -> None:
        """Better code, for the launches to come."""
        with self._lock:
            self.versions[name] = better

    def took(self, rate: float | None, ctas: int) -> None:
        """A launch has ended; one that was slow by chance is not believed at once."""
        self.launches += 1
        if rate is not None:
            self.spent += rate * ctas
            self.rate = rate if self.rate is None else min(rate, 2 * self.rate)

    @cached_property
    def addresses(self) -> np.ndarray[Any, np.dtype[np.uint64]]:
        """Where the functions and variables of the module are, which code asks for by number."""
        return np.array(self.image.addresses, np.uint64)

    def runner(self, shape: LaunchShape) -> Runner:
        """A runner that is not in use."""
        try:
            found = self.runners.pop()
        except IndexError:
            return Runner(self, shape)
        return found if found.resident == self.facts.suspended.resident(shape.ctas) else Runner(self, shape)
