"""Translation: a kernel and its versions as LLVM assembly, with their metadata."""

from __future__ import annotations

import threading
from functools import cached_property, partial

from ptxvm.analysis.collector import NoCollection
from ptxvm.engine.jit.abi.metadata import Facts, HostCallSite, SuspendedLayout
from ptxvm.engine.jit.abi.specialisation import Specialisation, VersionKind
from ptxvm.engine.jit.cfg import requirements, thread_order
from ptxvm.engine.jit.cfg.kernel_analysis import KernelAnalysis
from ptxvm.engine.jit.cfg.thread_rows import thread_rows
from ptxvm.engine.jit.cfg.uncounted import Uncounted
from ptxvm.engine.jit.memory import streaming_stores
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.translate import residency
from ptxvm.engine.jit.translate.versions import Versions, choose, parts_in_loops, scalar
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.image import Image


class Translation:
    """The versions of a kernel; each is translated on demand, after the versions from which warps come to it."""

    def __init__(self, image: Image, wanted: Specialisation) -> None:
        self.image, self.wanted = image, wanted
        self._lock = threading.RLock()

    @cached_property
    def versions(self) -> Versions:
        """The version that runs first; it makes the others."""
        wanted = self.wanted
        analysis = KernelAnalysis(
            self.image,
            wanted.function,
            ordered=wanted.profiled,
            deferred=wanted.deferred,
            registers=wanted.passes_in_registers,
        )
        if wanted.profiled and analysis.graph(general=False).shared:
            raise Uncounted("functions whose code stands once for many calls, as of recursion")
        make = partial(KernelContext, analysis, wanted, thread_rows(analysis, wanted))
        if wanted.scalar:
            return scalar(make)
        return choose(make, wanted.checks, narrow=wanted.narrow)

    @cached_property
    def masked(self) -> str:
        """The text of the version for diverged warps."""
        return self.versions.masked()

    @cached_property
    def shapeless(self) -> str:
        """The text of the version without affine registers."""
        if self.versions.kernel.straight:
            _ = self.masked  # its access sites are numbered first
        return self.versions.shapeless()

    def text(self, kind: VersionKind) -> tuple[str, Facts]:
        """The module of a version, and the metadata of it and those before."""
        with self._lock, NoCollection():
            match kind:
                case VersionKind.FIRST:
                    text = self.versions.text
                case VersionKind.MASKED:
                    text = self.masked
                case VersionKind.SHAPELESS:
                    text = self.shapeless
            return text, self.facts

    @property
    def loops(self) -> bool:
        """Has the kernel loops?"""
        return self.versions.kernel.graph.has_loops

    def _may_be_scalar(self, kernel: KernelContext) -> bool:
        """Is the version that runs first one of vectors that may be slow in loops, and is there scalar code for it?

        Lanes may part there, or each may write along a row of its own.
        """
        wanted, slow = self.wanted, parts_in_loops(kernel) or kernel.writes_along_rows
        return wanted.plain and not wanted.scalar and slow and thread_order.threads_are_independent(kernel.analysis)

    @property
    def facts(self) -> Facts:
        """The metadata of the versions that have been translated."""
        kernel, image = self.versions.kernel, self.image
        number = kernel.instruction_number
        return Facts(
            name=kernel.function.name,
            function=image.number_of(kernel.function),
            rows=kernel.rows.lanes,
            warps=kernel.warps,
            record_size=kernel.record_size,
            shared_size=kernel.shared_size,
            stack=kernel.stack_size if kernel.uses_local else 0,
            device_functions=kernel.device_functions,
            constants=kernel.constants,
            frames=[(image.number_of(frame.function), len(frame.code)) for frame in kernel.graph.frames],
            most_sites=kernel.sites.most,
            pointers=streaming_stores.pointer_offsets(kernel)[0],
            streamed=streaming_stores.pointer_offsets(kernel)[1],
            sites=list(kernel.sites.all),
            suspended=SuspendedLayout(
                threads=kernel.threads,
                states=kernel.states_offset,
                cta_size=kernel.cta_size,
                most_resident=residency.most_resident(kernel),
                most_in_step=residency.most_in_step(kernel),
                saved=kernel.saved_room * kernel.warps * WARP if kernel.graph.shared else 0,
                masks=kernel.layout.exchange,
                waits={n.number: (number(n.code[0]), n.barrier_wait) for n in kernel.nodes if n.waits},
            ),
            cancels=requirements.cancels(image, kernel.function),
            asks_spaces=requirements.asks_spaces(image, kernel.function),
            weights=kernel.counters.weights if kernel.counters is not None else [],
            counter_words=kernel.counters.words if kernel.counters is not None else 0,
            batches=kernel.counters.batches if kernel.counters is not None else [],
            scalar=self._may_be_scalar(kernel),
            host_calls=[
                HostCallSite(number(bound), work, inputs, outputs) for bound, work, inputs, outputs in kernel.host_calls
            ],
        )
