"""Modules and kernels, as a driver loads and launches them."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping, Sequence
from copy import copy
from functools import cached_property
from struct import Struct

from ptxvm import api
from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Function
from ptxvm.diagnostics.errors import InvalidPTX
from ptxvm.driver.device import LIMITS, Device
from ptxvm.driver.device_runtime import LAUNCH_OF_GRAPHS, with_device_runtime
from ptxvm.driver.kernel_clusters import KernelClusters
from ptxvm.driver.kernel_facts import ModuleFacts
from ptxvm.driver.launch_checks import exact_bounds
from ptxvm.driver.memory import enter_variable
from ptxvm.driver.models import SHARED, Model
from ptxvm.driver.programs import loaded, result_of_ptx
from ptxvm.driver.registers import registers
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.whole_program import whole_program
from ptxvm.isa.targets import Target
from ptxvm.machine.arguments import Bank
from ptxvm.machine.environment import allocation_unit
from ptxvm.machine.launch import most_threads
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.opaque import Opaque


class Module:
    """A loaded image: kernels and variables by name.

    DriverError where the PTX is wrong, or for a newer device than the model's; its message has the diagnostics.  `warnings` are
    those of ptxas.
    """

    def __init__(
        self, texts: Sequence[bytes], model: Model, device: int = 0, limits: Mapping[int, int] = LIMITS,
        life: object | None = None,
    ) -> None:  # fmt: skip
        """`limits` are those of the context, which kernels ask for.

        `life` is that of the only context in which its kernels can be launched, None for those of a library, which all have.
        """
        try:
            parts = [loaded(text, texts[:n]) for n, text in enumerate(texts)]
            for part in parts:
                runs_on(part, model)
            parts = with_device_runtime(parts, model)
            self.module, self.warnings = whole_program(texts[0], parts[0]) if len(parts) == 1 else (api.link(parts), [])
            if not exact_bounds():
                self.module.shared_unit = allocation_unit(10 * model.capability[0] + model.capability[1])
            self.module.device, self.model, self.limits, self.life = device, model, limits, life
            self.copies = {device: self}  # the modules of the same code, by device
            self._enter()
        except InvalidPTX as wrong:
            raise DriverError(result_of_invalid(texts, wrong), str(wrong)) from wrong

    def _enter(self) -> None:
        self.kernels = {name: Kernel(self, each) for name, each in self.module.kernels.items()}
        self.module.image.facts = ModuleFacts(self.kernels, self.model, self.limits)
        self.references: dict[str, object] = {}  # the client's textures and surfaces, by name

    def on(self, device: Device) -> Module:
        """The same code on another device, with variables of its own."""
        if device.ordinal not in self.copies:
            made = copy(self)
            made.module = self.module.on(device.machine)
            made._enter()  # noqa: SLF001 - of this class
            for name, kernel in made.kernels.items():
                kernel.take_attributes(self.kernels[name])
            self.copies[device.ordinal] = made
        return self.copies[device.ordinal]

    @cached_property
    def launches_graphs(self) -> bool:
        """May its kernels launch graphs?"""
        return any(LAUNCH_OF_GRAPHS in program.functions for program in self.module.programs)

    def kernel(self, name: str) -> Kernel:
        """A kernel by name; DriverError where there is none."""
        if name not in self.kernels:
            raise DriverError(Result.NOT_FOUND, f"the module has no kernel '{name}'")
        return self.kernels[name]

    def variable(self, name: str) -> tuple[int, int]:
        """The address and the size in bytes of a `.global` or `.const` variable; DriverError where there is none."""
        image = self.module.image
        found = image.variables.get(name)
        if found is None or found not in image.allocations:
            raise DriverError(Result.NOT_FOUND, f"the module has no variable '{name}'")
        allocation = image.allocations[found]
        enter_variable(allocation, self.module.device, managed="managed" in found.attributes)
        return allocation.start, allocation.size

    def is_managed(self, name: str) -> bool:
        """Has the module a managed variable of that name?"""
        found = self.module.image.variables.get(name)
        return found is not None and "managed" in found.attributes

    def opaque(self, name: str) -> str:
        """The type of a texture, sampler or surface variable, empty for any other variable."""
        found = self.module.image.variables.get(name)
        return found.opaque if found is not None else ""

    def bind(self, name: str, bound: Opaque) -> None:
        """Bind a texture, sampler or surface to the variable of that name."""
        self.module.image.bind(self.module.image.variables[name], bound)


def runs_on(module: api.Module, model: Model) -> None:
    """Check the target: DriverError where the PTX is for a newer device, or for features of another architecture."""
    major, minor = model.capability
    for program in module.programs:
        if not Target(10 * major + minor, "a").provides(program.target):
            said = f"the PTX is for {program.target}, and the device is {model.name}, sm_{major}{minor}"
            raise DriverError(Result.INVALID_PTX, said)


def result_of_invalid(texts: Sequence[bytes], wrong: InvalidPTX) -> Result:
    """The code for wrong PTX: of another kind where a text is none, or for a newer version than is known (an H200)."""
    is_ptx = all(re.search(rb"\.version\b", text) for text in texts)
    return result_of_ptx(wrong) if is_ptx else Result.INVALID_IMAGE


class Kernel:
    """A kernel, the bytes of its parameters, and the attributes that a client has set."""

    def __init__(self, module: Module, kernel: api.Kernel) -> None:
        self.module, self.kernel = module, kernel
        self.carveout = -1
        self.clusters = KernelClusters(kernel.function)
        self.fitting: set[LaunchOptions] = set()  # options that passed the checks of a launch
        self.configurations: dict[tuple[object, ...], object] = {}  # of its launches (`configuration`, which is above this)
        self.waits_for_host = False  # did a launch under checks end only after the host went on?

    def take_attributes(self, of: Kernel) -> None:
        """Take the attributes that a client has set for the same code on another device."""
        self.most_dynamic_shared, self.carveout = of.most_dynamic_shared, of.carveout
        self.clusters.take(of.clusters)

    def on(self, device: Device) -> Kernel:
        """The kernel of the same code on another device."""
        return self if self.kernel.device == device.ordinal else self.module.on(device).kernels[self.kernel.name]

    @property
    def function(self) -> Function:
        """The entry function."""
        return self.kernel.function

    @cached_property
    def most_dynamic_shared(self) -> int:
        """Bytes of dynamic shared memory that a block may have, until a client sets more (`cuda.h`, CUfunction_attribute)."""
        return max(SHARED - self.shared, 0)

    @cached_property
    def bank(self) -> Bank:
        """The layout of the parameters."""
        return self.module.module.image.bank(self.function)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """The size of each parameter in bytes."""
        return tuple(slot.size for slot in self.bank.slots)

    @cached_property
    def places(self) -> ctypes.Array[ctypes.c_uint64]:
        """The offset and the size of each parameter, one after the other, for native code."""
        words = [word for slot in self.bank.slots for word in (slot.offset, slot.size)]
        return (ctypes.c_uint64 * len(words))(*words)

    @cached_property
    def layout(self) -> Struct:
        """The parameters in their block: the bytes of each."""
        ends = [0, *(slot.offset + slot.size for slot in self.bank.slots)]
        fields = (f"{slot.offset - end}x{slot.size}s" for slot, end in zip(self.bank.slots, ends, strict=False))
        return Struct("<" + "".join(fields))

    @property
    def shared(self) -> int:
        """Bytes of static shared memory."""
        return self.module.module.image.declared_shared(self.function)

    @property
    def constant(self) -> int:
        """Bytes of the module's variables in constant memory."""
        allocations = self.module.module.image.allocations
        return sum(each.size for variable, each in allocations.items() if variable.space is Space.CONST)

    @property
    def local(self) -> int:
        """Bytes of local memory that each thread has for the kernel's own variables."""
        return self.module.module.image.frame_size(self.function)

    @cached_property
    def registers(self) -> int:
        """The estimated number of 32-bit registers of a thread."""
        return registers(self.module.module.image, self.function)

    @cached_property
    def most_threads(self) -> int:
        """How many threads a block may have, by `.reqntid` or `.maxntid`."""
        return most_threads(self.function)

    @property
    def architecture(self) -> int:
        """The architecture that the PTX is for: 90 for sm_90."""
        return self.function.program.target.number if self.function.program is not None else 0


__all__ = ["Kernel", "Module"]
