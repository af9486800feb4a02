"""Promotion of parameters to registers: of `.param` variables that only loads, stores and calls name, and by themselves.

The ABI passes arguments and results through `.param` variables (PTX 7.1): a caller stores into them, a callee loads from its
own.  In memory each thread has its own, so that every argument would be scattered and gathered, and a pointer that is the same
in all lanes would come out as one that varies.  Where nothing takes its address, and all accesses are of one size, a variable
is as good as a register of so many elements: stores and loads become moves, and calls pass registers.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.scope import NameScope, register_shape
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.engine.jit.cfg.rewriting import becomes_move, copied, with_code
from ptxvm.isa.effects import Verb
from ptxvm.named_tuple import NamedTuple
from ptxvm.syntax import tree

PARTS = "xyzw"  # the elements of a register
SIZES = (8, 4, 2)  # bytes of an element


class Move(NamedTuple):
    """A load or a store of an element of a `.param` variable, by the name of the variable."""

    name: tree.Name
    offset: int
    type: Type
    other: tree.Operand
    stores: bool


def in_registers(function: Function) -> Function:
    """The function with those of its parameters, results and arguments in registers that can be; itself where none can."""
    sizes = _element_sizes(function)
    while sizes:
        rewriting = _Rewriting(function, sizes)
        if rewriting.refused is None:
            return rewriting.function()
        del sizes[rewriting.refused]
    return function


# ── which variables ─────────────────────────────────────────────────────────────────────


def _element_sizes(function: Function) -> dict[Variable, int]:
    """The variables that registers can stand for, each with the bytes of an element."""
    accessed: dict[Variable, set[int]] = {each: set() for each in function.variables if _is_passed(function, each)}
    for bound in function.instructions if accessed else ():
        for name in _names(bound):
            variable = bound.scope.find(name.text)
            if isinstance(variable, Variable) and variable in accessed and not _passes(bound, name):
                accessed[variable].add(_size(bound, name))
    found = {variable: _element(variable, sizes) for variable, sizes in accessed.items()}
    return {variable: size for variable, size in found.items() if size}


def _is_passed(function: Function, variable: Variable) -> bool:
    """Is it a parameter, result or argument of a call, of a known size?  The parameters of kernels are in their bank."""
    own = variable.space is Space.PARAM and not variable.is_unsized and not variable.opaque
    return own and not (function.entry and variable in function.signature.parameters)


def _names(bound: Bound) -> Iterator[tree.Name]:
    """The names in the operands of an instruction."""
    for operand in bound.node.operands:
        yield from names_in(operand)


def _passes(bound: Bound, name: tree.Name) -> bool:
    """Does a call pass a variable, or take it for a result?  It does so as a whole, whatever the elements are."""
    groups = [operand for operand in bound.node.operands if isinstance(operand, tree.Group)]
    return bound.calls and name.component is None and any(name in group.items for group in groups)


def _size(bound: Bound, name: tree.Name) -> int:
    """The bytes of the element that an instruction accesses; 0 where it uses a variable in another way."""
    move = _move(bound)
    return move.type.bytes if move is not None and move.name is name and move.offset % move.type.bytes == 0 else 0


def _element(variable: Variable, sizes: set[int]) -> int:
    """The bytes of an element of the register for a variable, by those of its accesses; 0 where none fits."""
    fitting = [size for size in SIZES if variable.size % size == 0 and variable.size <= size * len(PARTS)]
    return next((size for size in fitting if sizes <= {size}), 0)


def _move(bound: Bound) -> Move | None:
    """The load or store of one element of a `.param` variable; None for another instruction."""
    match bound.summary.accesses, bound.node.operands:
        case [access], [first, second] if bound.i.of.effects == {"mem"}:
            stores = access.verb is Verb.WRITE
        case _:
            return None
    if access.window is not Space.PARAM or access.type is None or access.count != 1 or access.strong:
        return None
    address, other = (first, second) if stores else (second, first)
    match address:
        case tree.Address(items=[tree.Name(component=None) as name]):
            return Move(name, 0, access.type, other, stores)
        case tree.Address(
            items=[tree.Binary(op="+", left=tree.Name(component=None) as name, right=tree.Integer(value=offset))]
        ):
            return Move(name, offset, access.type, other, stores)
    return None


# ── the function with registers ─────────────────────────────────────────────────────────


class _Rewriting:
    """The code of a function with registers in place of variables; `refused` is one for which the ISA has no such move."""

    def __init__(self, function: Function, sizes: dict[Variable, int]) -> None:
        self._declared, self._scopes = function, dict[int, NameScope]()
        self._registers = {
            variable: _register(variable, size, len(function.registers) + n) for n, (variable, size) in enumerate(sizes.items())
        }
        self.refused: Variable | None = None
        self._code = [self._rewritten(bound) for bound in function.instructions]

    def function(self) -> Function:
        """The function."""
        own = self._declared
        made = with_code(own, self._code)
        made.scope = copy(own.scope)
        made.scope.registers = [*own.registers, *self._registers.values()]
        made.signature = copy(own.signature)
        made.signature.parameters = tuple(map(self._formal, own.signature.parameters))
        made.signature.results = tuple(map(self._formal, own.signature.results))
        return made

    def _formal(self, formal: Register | Variable) -> Register | Variable:
        return self._registers.get(formal, formal) if isinstance(formal, Variable) else formal

    def _rewritten(self, bound: Bound) -> Bound:
        """The instruction with registers in place of variables."""
        found = {name.text: variable for name in _names(bound) if (variable := self._variable(bound, name)) is not None}
        if not found:
            return bound
        made = copied(bound, self._scope(bound.scope, found))
        move = None if bound.calls else _move(bound)
        if move is not None and not _becomes_move(made, move, self._registers[found[move.name.text]]):
            self.refused = found[move.name.text]
        return made

    def _variable(self, bound: Bound, name: tree.Name) -> Variable | None:
        symbol = bound.scope.find(name.text)
        return symbol if isinstance(symbol, Variable) and symbol in self._registers else None

    def _scope(self, outer: NameScope, found: dict[str, Variable]) -> NameScope:
        """A block within another one, in which registers have the names of the variables."""
        scope = self._scopes.get(id(outer))
        if scope is None:
            scope = self._scopes[id(outer)] = outer.inner()
        for name, variable in found.items():
            scope.names[name] = self._registers[variable]
        return scope


def _register(variable: Variable, size: int, index: int) -> Register:
    type, count = Type.named[f"b{8 * size}"], variable.size // size
    return Register(variable.name, type, count, index, shape=register_shape(type, count))


def _becomes_move(bound: Bound, move: Move, register: Register) -> bool:
    """Make an instruction move the element of a register instead; False if the ISA has no such move."""
    element = copy(move.name)
    if register.count > 1:
        element.component = PARTS[move.offset // register.type.bytes]
    operands = [element, move.other] if move.stores else [move.other, element]
    return move.offset < register.count * register.type.bytes and becomes_move(bound, move.type, operands)
