"""From a kernel to the texts of its versions."""

from __future__ import annotations

import threading
from functools import cached_property, partial
from typing import TYPE_CHECKING

from ptxvm.engine.jit import dispatch, stack, streams
from ptxvm.engine.jit.facts import Facts, Site, Standing, Work
from ptxvm.engine.jit.kernel import Kernel
from ptxvm.engine.jit.raw import WARP
from ptxvm.engine.jit.versions import Versions, choose
from ptxvm.machine.image import Image

if TYPE_CHECKING:
    from ptxvm.engine.jit.shelf import Specialisation


class Translation:
    """The versions of a kernel as LLVM IR, each made when it is asked for, after those from which warps come to it."""

    def __init__(self, image: Image, wanted: Specialisation) -> None:
        self.image, self.wanted = image, wanted
        self._lock = threading.RLock()

    @cached_property
    def versions(self) -> Versions:
        """The version that runs first, and how others are made."""
        size = self.image.shared_size(self.wanted.function, self.wanted.shared)
        constants = {"dynamic_smem_size": self.wanted.shared, "total_smem_size": size}
        x, y, z = self.wanted.block
        make = partial(
            Kernel,
            self.image,
            self.wanted.function,
            self.wanted.block,
            size,
            constants,
            trusted=self.wanted.trusted,
            fast=self.wanted.fast,
        )
        return choose(make, x * y * z, self.wanted.checks)

    @cached_property
    def masked(self) -> str:
        """The text of the version for lanes that have parted."""
        return self.versions.masked()

    @cached_property
    def shapeless(self) -> str:
        """The text of the version in which nothing wraps."""
        if self.versions.kernel.straight:
            _ = self.masked  # which numbers the places of its code first
        return self.versions.shapeless()

    def text(self, version: str) -> tuple[str, Facts]:
        """The module of a version (`first`, `masked` or `shapeless`), and what is known of it and those before."""
        with self._lock:
            text = self.versions.text if version == "first" else str(getattr(self, version))
            return text, self.facts

    @property
    def loops(self) -> bool:
        """May a thread run some of it several times?"""
        kernel = self.versions.kernel
        return any(kernel.plan.repeats(node) for node in kernel.nodes)

    @property
    def facts(self) -> Facts:
        """What is known of the versions that have been translated."""
        kernel, image = self.versions.kernel, self.image
        number = kernel.place_of
        return Facts(
            name=kernel.function.name,
            function=image.number_of(kernel.function),
            warps=kernel.warps,
            record_size=kernel.record_size,
            shared_size=kernel.shared_size,
            stack=kernel.stack_size if kernel.uses_local else 0,
            asks=kernel.asks,
            constants=kernel.constants,
            frames=[(image.number_of(frame.function), len(frame.code)) for frame in kernel.plan.frames],
            most_sites=kernel.most_sites,
            pointers=streams.places(kernel)[0],
            streamed=streams.places(kernel)[1],
            sites=[Site(number(bound), space, size, span, writing) for bound, space, size, span, writing in kernel.sites],
            standing=Standing(
                threads=kernel.threads,
                meets=kernel.meets,
                cta_size=kernel.cta_size,
                most_resident=kernel.most_resident,
                saved=stack.ROOM * kernel.warps * WARP if kernel.plan.shared else 0,
                masks=dispatch.exchange(kernel),
                waits={n.number: (number(n.code[0]), n.barrier_wait) for n in kernel.nodes if n.waits},
            ),
            works=[Work(number(bound), work, inputs, outputs) for bound, work, inputs, outputs in kernel.works],
        )
