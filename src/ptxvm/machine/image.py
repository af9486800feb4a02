"""The image of a program in memory: its variables, laid out and initialised, and the addresses of its functions."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Protocol

import numpy as np

from ptxvm.algebra.float_environment import usual_arithmetic
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.constants import ConstantError, SymbolAddress, evaluate
from ptxvm.analysis.linking import definition, linked_functions, linked_variables
from ptxvm.analysis.program import Bound, Function, Program
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.shared import static_shared
from ptxvm.analysis.symbols import Variable
from ptxvm.diagnostics.errors import InvalidPTX
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.arguments import Bank
from ptxvm.machine.builtins import Library
from ptxvm.machine.initialise import dimensions_of, initial_bytes, size_of
from ptxvm.machine.layout import (
    SharedLayout,
    VariableLayout,
    frame,
    module_local,
    open_argument_size,
    parameter_bank,
    shared_memory,
)
from ptxvm.machine.memory import Memory
from ptxvm.machine.opaque import Opaque, Unbound
from ptxvm.machine.per_lane import Array
from ptxvm.syntax import tree

CONST_BANK = 1 << 16  # bytes of a bank of .const[n] (PTX 5.1.3.1)
FUNCTION_SIZE = 16  # functions have addresses this far apart

B128 = np.dtype([("lo", "<u8"), ("hi", "<u8")])


class Placement(enum.Enum):
    """The base of the address of a variable."""

    ABSOLUTE = (
        "nothing: generic for .global and .const, in the CTA's window for .shared, in the thread's for .local of a module"
    )
    PARAMETER = "the parameter bank of the kernel"
    FRAME = "the frame of the function, in the window of .local"
    GENERIC_FRAME = "the frame of the function, as generic addresses: for .param variables"

    @property
    def in_frame(self) -> bool:
        """Is it relative to a frame?"""
        return self in (Placement.FRAME, Placement.GENERIC_FRAME)


class KernelFacts(Protocol):
    """The facts of kernels on a device that a driver tells to kernels."""

    def attributes(self, kernel: Function) -> bytes:
        """The attributes of a kernel, as a structure cudaFuncAttributes."""

    def limit(self, number: int) -> int | None:
        """A limit of the context (cudaLimit), None where there is none of that number."""

    def resident_blocks(self, kernel: Function, threads: int, dynamic: int) -> int:
        """Blocks of a kernel that a multiprocessor holds, with so many threads and bytes of dynamic shared memory each."""


class Image:
    """One program, or several linked ones, in the memory of a device.

    A `.global` or `.const` variable has a generic address, which serves as its address in its own space too; a
    `.shared` one has an offset in the window of its CTA, a `.local` or `.param` one of a function has an offset in its
    frame, and a kernel's parameter one in the parameter bank.  The shared memory of a CTA is rounded up to `shared_unit` bytes,
    as that of a device is: accesses beyond what was asked for, and before the unit ends, are in bounds.
    """

    def __init__(
        self, programs: Program | Sequence[Program], memory: Memory, shared_unit: int = 1, of: Image | None = None
    ) -> None:
        """`of` is the image of the same programs in the memory of another device: `.managed` variables are the same ones."""
        self.shared_unit = shared_unit
        self.programs = [programs] if isinstance(programs, Program) else list(programs)
        self.memory = memory
        self.variables = linked_variables(self.programs)
        self.functions = linked_functions(self.programs)
        self.allocations: dict[Variable, Allocation] = of.managed() if of is not None else {}
        self._known = frozenset(self.allocations)
        self.bound: dict[Variable, Opaque] = {}
        self.facts: KernelFacts | None = None  # of a driver
        self._banks: dict[int, Allocation] = {}
        self._numbers: dict[Variable, int] | None = None
        self._frames: dict[Function, VariableLayout] = {}
        self._declared_shared: dict[Function, int] = {}
        self._banks_of: dict[Function, VariableLayout] = {}
        self._packers: dict[Function, Bank] = {}
        self.shared: SharedLayout = shared_memory(self.programs, self.variables)
        self.module_local = module_local(self.programs)
        self._allocate_functions()
        for variable in self._stored():
            self._allocate(variable)
        with usual_arithmetic():
            for program in self.programs:
                for variable in self._stored_of(program):
                    self._initialise(variable, program)

    @cached_property
    def library(self) -> Library:
        """The functions of the device, and what they printed."""
        return Library(self.memory)

    # ── variables ───────────────────────────────────────────────────────────────────────

    def locate(self, variable: Variable, function: Function | None = None) -> tuple[Placement, int]:
        """The location of a variable for code of `function`: what its address is relative to, and an address or offset."""
        if variable.space is Space.SHARED:
            return Placement.ABSOLUTE, self.shared.offset(variable, function)
        if variable in self.module_local.offsets:
            return Placement.ABSOLUTE, self.module_local.offsets[variable]
        if variable.space in (Space.LOCAL, Space.PARAM) and function is not None:
            if function.entry and variable in self.parameters(function).offsets:
                return Placement.PARAMETER, self.parameters(function).offsets[variable]
            where = Placement.FRAME if variable.space is Space.LOCAL else Placement.GENERIC_FRAME
            return where, self.frame(function).offsets[variable]
        return Placement.ABSOLUTE, self.address(variable)

    def address(self, variable: Variable) -> int:
        """The generic address of a `.global` or `.const` variable."""
        if variable in self.allocations:
            return self.allocations[variable].start
        return self.allocations[self._definition(variable)].start

    def parameters(self, kernel: Function) -> VariableLayout:
        """The layout of a kernel's parameter bank."""
        if kernel not in self._banks_of:
            self._banks_of[kernel] = parameter_bank(kernel.signature.parameters)
        return self._banks_of[kernel]

    def bank(self, kernel: Function) -> Bank:
        """The packer of a kernel's arguments."""
        if kernel not in self._packers:
            self._packers[kernel] = Bank(kernel.signature.parameters, f"kernel '{kernel.name}'")
        return self._packers[kernel]

    def frame(self, function: Function) -> VariableLayout:
        """The layout of a function's frame: its `.local` and `.param` variables."""
        if function not in self._frames:
            self._frames[function] = frame(function)
        return self._frames[function]

    def frame_size(self, function: Function, call: Bound | None = None) -> int:
        """Bytes of the function's frame in local memory, with the unsized array that the call passes."""
        return self.frame(function).size + (open_argument_size(function, call) if call is not None else 0)

    def shared_size(self, kernel: Function, dynamic: int = 0) -> int:
        """Bytes of shared memory that a CTA of the kernel gets."""
        needed = self.shared.dynamic[kernel.name] + dynamic if dynamic else self.shared.static.get(kernel.name, 0)
        return -(-needed // self.shared_unit) * self.shared_unit

    def shared_variables(self, kernel: Function) -> tuple[tuple[int, int, str], ...]:
        """The variables of shared memory that a kernel may use: offset, size and name."""
        others = {each.name for program in self.programs for each in program.kernels} - {kernel.name}
        return tuple(
            (offset, variable.size, variable.name)
            for variable, offset in self.shared.offsets.items()
            if variable.size and variable.function not in others
        )

    def declared_shared(self, kernel: Function) -> int:
        """Bytes of the declared shared variables that a kernel uses."""
        if kernel not in self._declared_shared:
            self._declared_shared[kernel] = static_shared(kernel, self.resolve)
        return self._declared_shared[kernel]

    # ── functions ───────────────────────────────────────────────────────────────────────

    def function_address(self, function: Function | str) -> int:
        """The address of a function's definition, through aliases and other modules, where there is one."""
        found = self.functions.get(function) if isinstance(function, str) else self.resolve(function)
        if found is None:
            raise InvalidPTX(f"there is no function '{function}'")
        return self._code.start + FUNCTION_SIZE * self._order[found]

    def function_at(self, address: int) -> Function | None:
        """The function at an address; None where no function begins there."""
        number, rest = divmod(address - self._code.start, FUNCTION_SIZE)
        return self._by_number[number] if not rest and 0 <= number < len(self._by_number) else None

    def number_of(self, function: Function) -> int:
        """The number of a function, which is the same whenever the same modules are loaded."""
        return self._order[self.resolve(function)]

    def function_numbered(self, number: int) -> Function:
        """The function with a number."""
        return self._by_number[number]

    @cached_property
    def pointed_at(self) -> tuple[Function, ...]:
        """The functions whose address is taken: by an instruction, an initial value, or a list of targets."""
        found: dict[Function, None] = {}
        for program in self.programs:
            for name in _names(program):
                symbol = program.functions.get(name)
                if symbol is not None:
                    found[self.resolve(symbol)] = None
        return tuple(found)

    @property
    def addresses(self) -> list[int]:
        """The addresses of the functions and of the module's variables, in a reproducible order."""
        return [self._code.start, *(allocation.start for allocation in self.allocations.values())]

    def address_number(self, symbol: Function | Variable) -> tuple[int, int]:
        """The index of a symbol's address in `addresses`, and the offset to add to it."""
        if isinstance(symbol, Function):
            return 0, FUNCTION_SIZE * self.number_of(symbol)
        if self._numbers is None:
            self._numbers = {variable: 1 + n for n, variable in enumerate(self.allocations)}
        definition = symbol if symbol in self._numbers else self._definition(symbol)
        return self._numbers[definition], 0

    def resolve(self, function: Function) -> Function:
        """The definition that a declaration stands for; the function itself where there is none, or the machine provides it.

        Another module's definition takes the place of a `.weak` one.
        """
        own = function
        if not function.defined and function.program is not None:
            own = function.program.function(function.name) or function
        if own.defined and own.linkage is not tree.Linkage.WEAK:
            return own
        found = self.functions.get(own.name, own)
        return found if found.defined and found.linkage in (tree.Linkage.VISIBLE, tree.Linkage.WEAK) else own

    # ── variables as the host sees them ─────────────────────────────────────────────────

    @property
    def changed(self) -> dict[int, bytes]:
        """The contents of the variables that are not what the module gives them, by their number in `allocations`."""
        found: dict[int, bytes] = {}
        programs = {variable: program for program in self.programs for variable in self._stored_of(program)}
        with usual_arithmetic():
            for number, (variable, allocation) in enumerate(self.allocations.items()):
                held = allocation.bytes.tobytes()
                if not variable.opaque and held != self._initial(variable, programs[variable]).ljust(len(held), b"\0"):
                    found[number] = held
        return found

    def change(self, contents: Mapping[int, bytes]) -> None:
        """Give variables the contents that `changed` had in another process."""
        allocations = list(self.allocations.values())
        for number, held in contents.items():
            allocations[number].bytes[:] = np.frombuffer(held, np.uint8)

    def symbol(self, name: str) -> Array:
        """The values of a `.global` or `.const` variable, for the host to read and write."""
        variable = self.variables.get(name)
        if variable is None:
            raise KeyError(f"the module has no variable '{name}'; it has {', '.join(sorted(self.variables)) or 'none'}")
        if variable.space not in (Space.GLOBAL, Space.CONST):
            raise ValueError(f"'{name}' is in .{variable.space}, which has no memory outside a launch")
        allocation = self.allocations[variable]
        held, more = _held(variable.type)
        vector = (variable.vector,) if variable.vector > 1 else ()
        values = allocation.lasting.view(held)
        if variable.bank and variable.is_unsized:
            return values.reshape(-1, *vector, *more)
        return values.reshape((*dimensions_of(variable), *vector, *more))

    def release(self) -> None:
        """Release the memory."""
        for allocation in {*self.allocations.values(), self._code}:
            if allocation.live:
                self.memory.release(allocation)

    def _definition(self, variable: Variable) -> Variable:
        """The variable that a declaration means."""
        found = definition(variable, self.variables)
        if found is not None:
            return found
        declared = self.variables[variable.name]
        if declared.space is Space.CONST and declared.is_unsized:
            return declared
        raise InvalidPTX(f"'{variable.name}' is declared .extern and defined nowhere; link the module that defines it")

    # ── memory ──────────────────────────────────────────────────────────────────────────

    def _stored_of(self, program: Program) -> Iterator[Variable]:
        """The variables in .global and .const (and .tex, which is .global) of a program, those of functions too."""
        spaces = (Space.GLOBAL, Space.CONST, Space.TEX)
        yield from (v for v in program.variables.values() if v.space in spaces)
        for function in program.functions.values():
            yield from (v for v in function.statics if v.space in spaces)

    def _stored(self) -> Iterator[Variable]:
        for program in self.programs:
            yield from (v for v in self._stored_of(program) if self._definition(v) is v)

    def managed(self) -> dict[Variable, Allocation]:
        """The `.managed` variables, which all devices share from now on (PTX 5.4.8)."""
        found = {each: at for each, at in self.allocations.items() if "managed" in each.attributes}
        for allocation in found.values():
            self.memory.share(allocation)
            allocation.uses += 1
        return found

    def _allocate(self, variable: Variable) -> None:
        if variable in self._known:
            return
        constant = variable.space is Space.CONST
        if constant and variable.is_unsized and variable.initial is None:
            self.allocations[variable] = self._bank(variable.bank)
            return
        size = 8 * max(1, size_of(variable) // 8) if variable.opaque else size_of(variable)
        space = Space.CONST if constant else Space.GLOBAL
        self.allocations[variable] = self.memory.allocate(
            size, variable.alignment, space, f"`{variable.name}`", writable=not constant, detail="a variable"
        )
        if variable.opaque:
            self.bind(variable, initial_object(variable))

    def bind(self, variable: Variable, bound: Opaque) -> None:
        """Let an opaque variable stand for a texture, sampler or surface."""
        if bound.kind != variable.opaque:
            raise TypeError(f"'{variable.name}' is a .{variable.opaque} and takes no {type(bound).__name__}")
        self.bound[variable] = bound
        self.allocations[variable].bytes[:8].view(np.uint64)[:] = bound.handle

    def _bank(self, number: int) -> Allocation:
        """A whole bank of constant memory: every open array of the bank begins there (PTX 5.1.3.1)."""
        if number not in self._banks:
            self._banks[number] = self.memory.allocate(CONST_BANK, 256, Space.CONST, f".const[{number}]", writable=False)
        return self._banks[number]

    def _initialise(self, variable: Variable, program: Program) -> None:
        if variable in self.allocations and variable not in self._known and (initial := self._initial(variable, program)):
            self.allocations[variable].bytes[: len(initial)] = np.frombuffer(initial, np.uint8)

    def _initial(self, variable: Variable, program: Program) -> bytes:
        """The bytes of a variable's initial value; those behind them are 0."""
        if variable.initial is None or variable.opaque:
            return b""
        try:
            return initial_bytes(variable, program.scope.find, self._address_of) or b""
        except ConstantError as wrong:
            raise InvalidPTX(f"the initial value of '{variable.name}': {wrong}") from wrong

    def _address_of(self, address: SymbolAddress) -> int:
        symbol = address.symbol
        start = self.address(symbol) if isinstance(symbol, Variable) else self.function_address(symbol)
        return start + address.offset

    def _allocate_functions(self) -> None:
        everything = [function for program in self.programs for function in program.functions.values()]
        self._by_number = [function for function in everything if self.resolve(function) is function]
        self._order = {function: number for number, function in enumerate(self._by_number)}
        self._code = self.memory.allocate(
            FUNCTION_SIZE * len(everything), 256, Space.CODE, "the code", writable=False, zero=True
        )


def initial_object(variable: Variable) -> Opaque:
    """What an opaque variable stands for before anything is bound to it: a sampler is made of its initialiser (PTX 5.3)."""
    if variable.opaque != "samplerref" or not isinstance(variable.initial, tree.Vector):
        return Unbound(variable.opaque, variable.name)
    from ptxvm.machine.texture import Sampler  # noqa: PLC0415 - few modules have any

    fields: dict[str, str | int] = {}
    for item in variable.initial.items:
        if isinstance(item, tree.Binary) and isinstance(item.left, tree.Name):
            value = item.right
            fields[item.left.text] = value.text if isinstance(value, tree.Name) else int(evaluate(value))  # type: ignore[arg-type]
    return Sampler.of_fields(fields)


def _names(program: Program) -> Iterator[str]:
    """The names in initial values and in operands of instructions, but for those of functions that are called."""
    for function in program.functions.values():
        for bound in function.instructions:
            for name, node in bound.operands.items():
                if name != "func":
                    yield from (each.text for each in names_in(node))
    own = (variable for function in program.functions.values() for variable in function.variables)
    for variable in (*program.variables.values(), *own):
        if variable.initial is not None:
            yield from (each.text for each in names_in(variable.initial))


def _held(type: Type) -> tuple[np.dtype[np.generic], tuple[int, ...]]:
    """How the host sees elements of a type: a dtype, and the lanes of a packed one as a last dimension."""
    if type.bits == 128:
        return B128, ()
    element = type.element
    kind = "f" if element.name in ("f16", "f32", "f64") else "i" if element.is_signed else "u"
    return np.dtype(f"<{kind}{element.bytes}"), (type.lanes,) if type.is_packed else ()
