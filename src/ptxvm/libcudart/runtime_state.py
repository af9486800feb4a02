"""The state of the runtime library: the registered code of a program; the device and the last error of each thread.

A thread has a current context, of the driver; at its first need the runtime gives it the primary context of its device.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import field
from enum import IntEnum
from functools import cache
from typing import TypeVar

from ptxvm.dataclass import dataclass
from ptxvm.driver.code_images import texts_at
from ptxvm.driver.context import Context
from ptxvm.driver.device import Device
from ptxvm.driver.module import Kernel, Module
from ptxvm.libcuda.c_values import put_u64
from ptxvm.libcuda.session import session
from ptxvm.libcuda.threads import PerThread
from ptxvm.named_tuple import NamedTuple

F = TypeVar("F", bound=Callable[..., int | None])


class RuntimeResult(IntEnum):
    """The results that only the runtime has; the others are the driver's (runtime API, `cudaError`)."""

    INVALID_CONFIGURATION = 9
    INVALID_PITCH_VALUE = 12
    INVALID_SYMBOL = 13
    INVALID_CHANNEL_DESCRIPTOR = 20
    INVALID_MEMCPY_DIRECTION = 21
    INVALID_FILTER_SETTING = 26
    INVALID_DEVICE_FUNCTION = 98


class RuntimeApiError(Exception):
    """A call failed in a way that only the runtime has; `result` is the code."""

    def __init__(self, result: RuntimeResult, message: str) -> None:
        super().__init__(message)
        self.result = result


class RuntimeFunction(NamedTuple):
    """A function of the runtime, and whether it works after a kernel has failed, and before there is a device."""

    implementation: Callable[..., int | None]
    any_state: bool
    stateless: bool


FUNCTIONS: dict[str, RuntimeFunction] = {}
"""The implemented functions, by symbol; they raise errors as exceptions."""


def function(*symbols: str, any_state: bool = False, stateless: bool = False) -> Callable[[F], F]:
    """Enter a function under its symbols; `any_state` and `stateless` are those of `RuntimeFunction`."""

    def enter(implementation: F) -> F:
        FUNCTIONS.update(dict.fromkeys(symbols, RuntimeFunction(implementation, any_state, stateless)))
        return implementation

    return enter


# ── what a program has registered ───────────────────────────────────────────────────────


@dataclass(eq=False)
class Fatbin:
    """The device code of a translation unit, at an address, and its loaded modules, by device."""

    address: int
    cell: ctypes.c_uint64 = field(default_factory=ctypes.c_uint64)  # the address is the handle
    managed: list[tuple[int, str]] = field(default_factory=list)  # addresses of host pointers, and names
    modules: dict[Device, Module] = field(default_factory=dict)

    @property
    def handle(self) -> int:
        """The handle for the program."""
        return ctypes.addressof(self.cell)

    def module(self) -> Module:
        """The module for the current device; managed variables are the same on all of them."""
        device = session().context.device
        if device not in self.modules and self.managed and self.modules:
            self.modules[device] = next(iter(self.modules.values())).on(device)
        elif device not in self.modules:
            texts = texts_at(self.address, device.model.capability)
            self.modules[device] = module = Module(texts, device.model, device.ordinal, session().context.limits)
            for pointer, name in self.managed:
                put_u64(pointer, module.variable(name)[0])
        return self.modules[device]

    def forget(self, device: Device) -> None:
        """Load the code anew when a device uses it next; where there are managed variables, on all of them."""
        gone = list(self.modules) if self.managed else [device]
        for each in gone:
            self.modules.pop(each, None)


class RegisteredSymbol(NamedTuple):
    """A function or a variable of device code, by its name."""

    fatbin: Fatbin
    name: str


class Launching(NamedTuple):
    """The configuration between `<<<` and `>>>`."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int


class ProgramThread(PerThread):
    """The state of a thread of the program."""

    def __init__(self) -> None:
        super().__init__()
        self.device: int | None = None  # until the thread chooses one
        self.error = 0
        self.launching: list[Launching] = []


class Runtime:
    """The state of the runtime in a process."""

    def __init__(self) -> None:
        self.fatbins: dict[int, Fatbin] = {}
        self.functions: dict[int, RegisteredSymbol] = {}
        self.variables: dict[int, RegisteredSymbol] = {}
        self.thread = ProgramThread()
        self.first_device = 0
        """The device of threads that choose none."""

    def kernel(self, address: int) -> Kernel:
        """The kernel of a function of the program, or of a handle; RuntimeApiError for an address that is neither."""
        if (symbol := self.functions.get(address)) is not None:
            return symbol.fatbin.module().kernel(symbol.name)
        found = session().handles.objects.get(address)
        if not isinstance(found, Kernel):
            raise RuntimeApiError(RuntimeResult.INVALID_DEVICE_FUNCTION, f"there is no kernel of {address:#x}")
        return found

    def variable(self, address: int) -> tuple[int, int]:
        """The address on the device and the size of a variable of the program; RuntimeApiError where it is none."""
        symbol = self.variables.get(address)
        if symbol is None:
            raise RuntimeApiError(RuntimeResult.INVALID_SYMBOL, f"there is no variable of the device at {address:#x}")
        return symbol.fatbin.module().variable(symbol.name)

    def ready(self, *, any_state: bool) -> None:
        """Ensure a current context; DriverError where one of its kernels has failed, unless for `any_state`."""
        current = session()
        if not current.initialised:
            current.initialise()
        if current.stack.current is None:
            self.choose(self.first_device if self.thread.device is None else self.thread.device)
        current.check(any_state=any_state)

    def active(self, ordinal: int) -> Context:
        """The primary context of a device, which the runtime retains; DriverError where there is no such device."""
        context = session().driver.primary_context(ordinal)
        if not context.users:
            context.retain()
        return context

    def choose(self, ordinal: int) -> None:
        """Make the primary context of a device current; DriverError where there is no such device."""
        context = self.active(ordinal)
        self.thread.device = ordinal
        stack = session().stack
        stack[-1:] = [context]


@cache
def runtime() -> Runtime:
    """The runtime of the process."""
    return Runtime()


__all__ = [
    "FUNCTIONS",
    "Fatbin",
    "Launching",
    "RegisteredSymbol",
    "RuntimeApiError",
    "RuntimeFunction",
    "RuntimeResult",
    "function",
    "runtime",
]
