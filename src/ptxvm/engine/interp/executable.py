"""A program ready to run: its image in memory, and a routine for each function with a body."""

from __future__ import annotations

from functools import cached_property

from ptxvm.analysis.program import Function
from ptxvm.analysis.provenance import Provenance, of_program
from ptxvm.engine import spin_loops
from ptxvm.engine.call_targets import CallSites, call_sites
from ptxvm.engine.dynamic_parallelism import Children
from ptxvm.engine.interp.origins import Origins
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.segment import Slots, Tracer
from ptxvm.machine.builtins import Function as DeviceFunction, Library
from ptxvm.machine.image import Image


class Executable:
    """The routines of an image, in the order of their code; `module` has slots for the registers that they share.

    One that follows values has the functions of the device of `other`: it tells which `registers` it reads that have no
    value, or holds accesses to the objects that their `addresses` come from.  A `clustered` one runs launches in clusters of
    several CTAs; a `tracer` of its own adds instrumentation to the code.  A `single` one runs instruction by instruction.
    """

    def __init__(
        self, image: Image, other: Executable | None = None, *, registers: bool = False, addresses: bool = False,
        clustered: bool = False, tracer: type[Tracer] = Tracer, single: bool = False,
    ) -> None:  # fmt: skip
        self.image, self.tracer, self.single = image, tracer, single
        self.library: Library = image.library
        self.children: Children = other.children if other is not None else Children(image)
        defined = [f for p in image.programs for f in p.functions.values() if f.defined]
        for function in defined:
            function.read()  # which makes the registers of the module that it names
        self.module = Slots(register for p in image.programs for register in p.scope.registers)
        self.origins = Origins()
        known = other.provenance if other is not None and addresses else {}
        self.routines = [
            Routine(
                function, n, image, self.module, self.origins, registers=registers, provenance=known.get(function),
                clustered=clustered, tracer=tracer, single=single,
            )
            for n, function in enumerate(defined)
        ]  # fmt: skip
        self._of = {routine.function: routine for routine in self.routines}
        self._call_sites: dict[Function, CallSites] = {}
        self._spin_branches: dict[Function, frozenset[tuple[int, int]]] = {}

    def another(self, *, registers: bool, addresses: bool, clustered: bool) -> Executable:
        """Another one of the image, with the functions of the device of this one."""
        return Executable(
            self.image, self, registers=registers, addresses=addresses, clustered=clustered, tracer=self.tracer,
            single=self.single,
        )  # fmt: skip

    @cached_property
    def provenance(self) -> dict[Function, Provenance]:
        """The provenance of the addresses of accesses, by function."""
        return of_program(routine.function for routine in self.routines)

    def call_sites(self, kernel: Function) -> CallSites:
        """The call sites of a kernel and its functions; each group of CTAs asks, so the answer is remembered."""
        if kernel not in self._call_sites:
            self._call_sites[kernel] = call_sites(self.image, kernel)
        return self._call_sites[kernel]

    def spin_branches(self, kernel: Function) -> frozenset[tuple[int, int]]:
        """The segments, as routine and number, that end with the branch of a spin loop of a kernel or its functions.

        Each group of CTAs asks, so the answer is remembered.
        """
        if kernel not in self._spin_branches:
            ends = spin_loops.spins(self.image, kernel)
            self._spin_branches[kernel] = frozenset(
                (routine.number, n)
                for routine in self.routines
                for n, segment in enumerate(routine.segments)
                if routine.function.instructions[segment.end - 1] in ends
            )
        return self._spin_branches[kernel]

    def routine(self, function: Function) -> Routine | None:
        """The routine of a function's definition; None for a function without a body."""
        return self._of.get(self.image.resolve(function))

    def device_function(self, name: str) -> DeviceFunction | None:
        """A function that the device provides."""
        return self.children.functions.get(name) or self.library.get(name)
