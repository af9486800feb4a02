"""Memory layout of parameter banks, frames of functions and shared memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.linking import definition
from ptxvm.analysis.program import Bound, Function, Program
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.isa.special_registers import RESERVED_SHARED, RESERVED_SHARED_BYTES
from ptxvm.syntax import tree

STACK_ALIGNMENT = 16


def align(offset: int, alignment: int) -> int:
    """The next multiple."""
    return -(-offset // alignment) * alignment


class VariableLayout:
    """Offsets of variables in a block of memory, its size and its alignment."""

    def __init__(self, offsets: dict[Variable, int] | None = None, size: int = 0, alignment: int = 1) -> None:
        self.offsets = offsets if offsets is not None else {}
        self.size, self.alignment = size, alignment

    def add(self, variable: Variable, at: int | None = None) -> int:
        """Add a variable, at the end or from `at` on; returns the offset of its end."""
        start = align(self.size if at is None else at, variable.alignment)
        self.offsets[variable] = start
        self.alignment = max(self.alignment, variable.alignment)
        self.size = max(self.size, start + variable.size)
        return start + variable.size


def parameter_bank(parameters: Iterable[Register | Variable]) -> VariableLayout:
    """The parameters of a kernel, one after the other (PTX 5.1.6.1)."""
    layout = VariableLayout()
    for parameter in parameters:
        if isinstance(parameter, Variable):
            layout.add(parameter)
    return layout


def frame(function: Function) -> VariableLayout:
    """The stack frame: `.local` and `.param` variables; those of disjoint blocks share their bytes."""
    own = {id(v.node): v for v in function.variables if v.space in (Space.LOCAL, Space.PARAM) and v.node is not None}
    # `a<3>` declares several variables in one node
    families: dict[int, list[Variable]] = {key: [] for key in own}
    for variable in function.variables:
        if id(variable.node) in families and variable.space in (Space.LOCAL, Space.PARAM):
            families[id(variable.node)].append(variable)
    layout = VariableLayout(alignment=STACK_ALIGNMENT)
    at = 0
    if not function.entry:
        for formal in (*function.signature.results, *function.signature.parameters):
            if isinstance(formal, Variable) and formal.space is Space.PARAM and not formal.is_unsized:
                at = layout.add(formal, at)
    if function.body is not None:
        _block(function.body, families, layout, at)
    layout.size = align(layout.size, layout.alignment)
    if function.signature.variadic:  # its size depends on the call, so it comes last
        layout.offsets[function.signature.parameters[-1]] = layout.size  # type: ignore[index]
    return layout


def module_local(programs: Iterable[Program]) -> VariableLayout:
    """The `.local` variables of modules (PTX 5.1.5), at the foot of the stack of each thread."""
    layout = VariableLayout(alignment=STACK_ALIGNMENT)
    for program in programs:
        for variable in program.variables.values():
            if variable.space is Space.LOCAL:
                layout.add(variable)
    layout.size = align(layout.size, layout.alignment)
    return layout


def open_argument_size(function: Function, call: Bound) -> int:
    """Bytes that a call passes in the unsized array; 0 where it passes none (PTX 11.2.2)."""
    group = call.operands.get("args")
    arguments = group.items if isinstance(group, tree.Group) else []
    if not function.signature.variadic or len(arguments) < len(function.signature.parameters):
        return 0
    last = arguments[-1]
    passed = call.scope.find(last.text) if isinstance(last, tree.Name) else None
    return passed.size if isinstance(passed, Variable) else 0


def _block(block: tree.Block, families: dict[int, list[Variable]], layout: VariableLayout, at: int) -> None:
    for statement in block.statements:
        if isinstance(statement, tree.Variable):
            for declarator in statement.declarators:
                for variable in families.get(id(declarator), ()):
                    if variable not in layout.offsets:
                        at = layout.add(variable, at)
    for statement in block.statements:
        if isinstance(statement, tree.Block):
            _block(statement, families, layout, at)


class SharedLayout:
    """The shared memory of a CTA: static variables, then what the launch adds.

    `static` has the bytes that each kernel declares, and `dynamic` is where those of the launch begin: behind the kernel's own,
    aligned as the `extern .shared` arrays `of_launch` are.  Where the image has functions with code it is the same for all
    kernels, since a function that several kernels call has one address for such an array.  The first `reserved` bytes are for
    CUDA's own code (PTX 10.29).
    """

    def __init__(self, offsets: dict[Variable, int], reserved: int) -> None:
        self.offsets, self.reserved = offsets, reserved
        self.static: dict[str, int] = {}
        self.dynamic: dict[str, int] = {}
        self.of_launch: frozenset[Variable] = frozenset()

    def offset(self, variable: Variable, function: Function | None) -> int:
        """The offset of a variable for code of a function."""
        if function is not None and function.entry and variable in self.of_launch:
            return self.dynamic[function.name]
        return self.offsets[variable]


def shared_memory(programs: Iterable[Program], linked: dict[str, Variable]) -> SharedLayout:
    """Variables of modules and of `.func` come first; those of kernels share the bytes after them.

    A declaration of what another module defines lies where the definition lies; `linked` has the definition of each name.
    """
    programs = list(programs)
    reserved = RESERVED_SHARED_BYTES if any(RESERVED_SHARED in program.source.text for program in programs) else 0
    common, alignment, waiting = VariableLayout(size=reserved), STACK_ALIGNMENT, []
    elsewhere: dict[Variable, Variable] = {}
    kernels = [function for program in programs for function in program.functions.values() if function.entry]
    for variable in _common_shared(programs):
        meant = definition(variable, linked)
        if meant is not None and meant is not variable:
            elsewhere[variable] = meant
        elif variable.is_unsized or (variable.linkage is tree.Linkage.EXTERN and not variable.size):
            waiting.append(variable)
            alignment = max(alignment, variable.alignment)
        else:
            common.add(variable)
    common.offsets.update({variable: common.offsets[meant] for variable, meant in elsewhere.items()})
    result = SharedLayout(common.offsets, reserved)
    for kernel in kernels:
        own = VariableLayout(dict(common.offsets), common.size)
        for variable in kernel.statics:
            if variable.space is Space.SHARED:
                own.add(variable)
        result.offsets.update(own.offsets)
        result.static[kernel.name] = max(own.size, result.static.get(kernel.name, 0))  # .weak ones share a name
    last = align(max(result.static.values(), default=common.size), alignment)
    called = any(each.defined and not each.entry for program in programs for each in program.functions.values())
    result.dynamic = {name: last if called else align(size, alignment) for name, size in result.static.items()}
    result.offsets.update(dict.fromkeys(waiting, last))
    result.of_launch = frozenset(waiting)
    return result


def _common_shared(programs: list[Program]) -> Iterator[Variable]:
    for program in programs:
        yield from (v for v in program.variables.values() if v.space is Space.SHARED)
        for function in program.functions.values():
            if not function.entry:
                yield from (v for v in function.statics if v.space is Space.SHARED)
