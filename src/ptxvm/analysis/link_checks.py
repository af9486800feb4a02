"""Checks between the modules of a link: what nvlink refuses when it merges them (PTX 11.6).

Symbols are merged in the order of the modules, as by nvlink: each declaration is compared with the symbol that the
earlier declarations of its name have defined so far.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field

from ptxvm.algebra.state_space import Space
from ptxvm.analysis import codes
from ptxvm.analysis.linking import linkage
from ptxvm.analysis.program import Function, Program
from ptxvm.analysis.references import references
from ptxvm.analysis.report import Place, Report
from ptxvm.analysis.shared import check_kernel, declared, static_shared
from ptxvm.analysis.signatures import Formal, name_of
from ptxvm.analysis.symbols import Register, Variable
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Diagnostic
from ptxvm.isa.directives import CONSTANT_BANK, DEVICE_RUNTIME, STATIC_SHARED_BYTES, SYSTEM_FUNCTIONS
from ptxvm.isa.targets import Target
from ptxvm.syntax.source import Source
from ptxvm.syntax.tree import Linkage

Findings = list[tuple[Source, list[Diagnostic]]]


def check_link(programs: Sequence[Program]) -> Findings:
    """The errors of a link, by source; empty if the modules can be linked."""
    link = _linker(programs)
    link.fit_together()
    link.merge()
    if not link.has_errors:
        link.undefined()
        link.constants()
        link.shared()
    return [(each.report.source, each.report.diagnostics) for each in link.modules if each.report.diagnostics]


def unresolved(programs: Sequence[Program], *, whole: bool) -> list[Variable | Function]:
    """What is declared `.extern` in modules that fit each other, and defined in none of them; are they a `whole` program?"""
    link = _linker(programs)
    for module in link.modules if whole else ():
        module.used = references(module.program, whole=True)
    link.merge()
    return [symbol.declared for symbol, _ in link.missing()]


def _linker(programs: Sequence[Program]) -> Linker:
    return Linker([LinkedModule(program, report) for program, report in zip(programs, _reports(programs), strict=True)])


def _reports(programs: Sequence[Program]) -> Iterator[Report]:
    """A report for each module, with a source of a name of its own."""
    names = Counter(program.source.name for program in programs)
    for number, program in enumerate(programs, 1):
        source = program.source
        if names[source.name] > 1:
            source = Source(source.text, f"{source.name} (module {number})")
        yield Report(source)


@dataclass(slots=True)
class LinkedModule:
    """A module of the link, with its report and the names that its code uses."""

    program: Program
    report: Report
    used: dict[str, Place] = field(init=False)

    def __post_init__(self) -> None:
        self.used = references(self.program)


@dataclass(slots=True)
class LinkedSymbol:
    """A name that modules share, as one of them declares it."""

    module: LinkedModule
    name: str
    meant: Variable | Function  # the target of an alias
    declared: Variable | Function
    size: int = 0  # of a variable; 0 where it is open

    @property
    def linkage(self) -> Linkage | None:
        """How the module declares it."""
        return linkage(self.declared)

    @property
    def is_definition(self) -> bool:
        """Does the module define it, rather than declare it `.extern` or `.common`?"""
        if isinstance(self.meant, Function):
            return self.meant.defined
        return self.linkage in (Linkage.VISIBLE, Linkage.WEAK)

    @property
    def is_initialised(self) -> bool:
        """Is it a variable with an initial value?"""
        return isinstance(self.meant, Variable) and self.meant.initial is not None

    @property
    def span(self) -> Place:
        """The place of the declaration."""
        return name_of(self.declared.node) if isinstance(self.declared, Function) else self.declared.node

    @property
    def kind(self) -> str:
        """The kind of symbol, as the linker distinguishes them."""
        if isinstance(self.meant, Function):
            return KERNEL if self.meant.entry else "a function"
        return f"a .{self.meant.opaque}" if self.meant.opaque else f"a variable in .{self.meant.space}"

    def place(self) -> str:
        """`a.ptx:4: .extern .global .u32 x[2];`"""
        span = self.span
        start = span.start if span is not None else 0
        source = self.module.report.source
        line = source.location(start)[0]
        return f"{source.name}:{line}: {source.line(line).strip()[:LONGEST_QUOTE]}"


KERNEL = "a kernel"
LONGEST_QUOTE = 100


class Linker:
    """The modules of a link, and the symbols that are merged so far."""

    def __init__(self, modules: Sequence[LinkedModule]) -> None:
        self.modules = modules
        self.known: dict[str, LinkedSymbol] = {}
        self.declarations: dict[str, list[LinkedSymbol]] = {}  # of functions that are .extern, until all modules were merged

    @property
    def has_errors(self) -> bool:
        """Has a module errors?"""
        return any(module.report.has_errors for module in self.modules)

    # ── the modules as wholes ───────────────────────────────────────────────────────────

    def fit_together(self) -> None:
        """One device runs all modules."""
        first = self.modules[0]
        for module in self.modules[1:]:
            here, there = module.program.address_size, first.program.address_size
            if here != there:
                said = f"addresses have {here} bits here, and {there} in {first.report.source.name}"
                module.report.error(codes.NO_COMMON_DEVICE, said, ptxas="Address sizes of the modules differ")
        targets = [module.program.target for module in self.modules]
        newest = Target(max(target.number for target in targets), "a")
        for module, target in zip(self.modules, targets, strict=True):
            if not newest.provides(target):
                other = next(str(each) for each in targets if each.number == newest.number)
                said = f"no device runs a module for {target} and one for {other}"
                module.report.error(codes.NO_COMMON_DEVICE, said, ptxas=f"SM Arch ('{target}') not compatible with '{other}'")

    def constants(self) -> None:
        """The `.const` variables of all modules share a bank (PTX 5.1.3)."""
        size = sum(
            variable.size
            for module in self.modules
            for name, variable in _constants(module.program)
            if name not in self.known or self.known[name].meant is variable
        )
        if size > CONSTANT_BANK:
            self.modules[-1].report.error(
                codes.CONSTANT_BANK,
                f"the .const variables of the modules take {size} bytes, and {CONSTANT_BANK} is the limit",
                help="move large tables to .global",
                ptxas=f"File uses too much global constant data (0x{size:x} bytes, 0x{CONSTANT_BANK:x} max)",
            )

    def shared(self) -> None:
        """Each kernel with the functions of other modules that it calls (PTX 5.1.7)."""
        for module in self.modules:
            if sum(variable.size for each in self.modules for variable in declared(each.program)) > STATIC_SHARED_BYTES:
                for kernel in module.program.kernels:
                    check_kernel(kernel, static_shared(kernel, self.definition), module.program, module.report)

    def definition(self, function: Function) -> Function:
        """The definition of a declared function, if a module has one."""
        known = self.known.get(function.name)
        return known.meant if known is not None and isinstance(known.meant, Function) and not function.defined else function

    # ── names ───────────────────────────────────────────────────────────────────────────

    def merge(self) -> None:
        """Merge the symbols of all modules, in the order of the modules."""
        for module in self.modules:
            for symbol in _symbols(module):
                known = self.known.get(symbol.name)
                if known is None:
                    self.known[symbol.name] = symbol
                elif self.same_kind(symbol, known):
                    self.merged(symbol, known)
        for declarations in self.declarations.values():
            for declaration in declarations:
                self.prototype(declaration, self.known[declaration.name])

    def same_kind(self, symbol: LinkedSymbol, known: LinkedSymbol) -> bool:
        """Is the name a variable of one space, or a function, or a kernel in both?"""
        if symbol.kind == known.kind:
            return True
        words = self.words("Memory space doesn't match for", symbol, known)
        if KERNEL in (symbol.kind, known.kind):
            words = f"Function '{symbol.name}' not declared __global__ in all source files"
        said = f"'{symbol.name}' is {symbol.kind} here, and {known.kind} in another module"
        self.error(codes.KINDS_DIFFER, said, symbol, known, ptxas=words)
        return False

    def merged(self, symbol: LinkedSymbol, known: LinkedSymbol) -> None:
        """Merge a symbol with one of the same kind of an earlier module."""
        if isinstance(symbol.meant, Variable):
            self.variable(symbol, known)
        elif symbol.is_definition and known.is_definition:
            self.second_body(symbol, known)
        elif known.is_definition:
            self.declarations.setdefault(symbol.name, []).append(symbol)
        else:
            self.declarations.setdefault(symbol.name, []).append(known)
            self.known[symbol.name] = symbol

    # ── variables ───────────────────────────────────────────────────────────────────────

    def variable(self, symbol: LinkedSymbol, known: LinkedSymbol) -> None:
        """Compare a variable with the merged one of its name."""
        if symbol.linkage is known.linkage is Linkage.VISIBLE:
            self.twice(symbol, known)
        elif not self.one_size(symbol, known):
            return
        if "managed" in _attributes(symbol) ^ _attributes(known):
            here, there = ("is .managed", "is not") if "managed" in _attributes(symbol) else ("is not .managed", "is")
            words = self.words("Managed attribute doesn't match for", symbol, known, "specified")
            said = f"'{symbol.name}' {here} here, and {there} in another module"
            self.error(codes.MANAGED_DIFFERS, said, symbol, known, ptxas=words)
        if _rank(symbol) > _rank(known):
            self.known[symbol.name] = symbol

    def one_size(self, symbol: LinkedSymbol, known: LinkedSymbol) -> bool:
        """Do two declarations of a variable agree in size?  A declaration without a size agrees with any."""
        here, there = symbol.size, known.size
        if not here or not there or here == there or symbol.linkage is known.linkage is Linkage.COMMON:
            return True
        common, other = (symbol, known) if symbol.linkage is Linkage.COMMON else (known, symbol)
        if common.linkage is Linkage.COMMON and other.is_initialised:
            return common.size < other.size or self.common_too_large(common, other)
        said = f"'{symbol.name}' has {here} bytes here, and {there} in another module"
        self.error(codes.SIZES_DIFFER, said, symbol, known, ptxas=self.words("Size doesn't match for", symbol, known))
        return False

    def common_too_large(self, common: LinkedSymbol, other: LinkedSymbol) -> bool:
        """Report a `.common` variable that has more bytes than its definition."""
        self.error(
            codes.COMMON_TOO_LARGE,
            f"'{common.name}' has {common.size} bytes here as .common, and {other.size} where it is defined",
            common,
            other,
            ptxas=f"Common symbol '{common.name}' in file '{common.module.report.source.name}' has larger size than "
            "initialization",
        )
        return False

    # ── functions ───────────────────────────────────────────────────────────────────────

    def second_body(self, symbol: LinkedSymbol, known: LinkedSymbol) -> None:
        """Report a second definition of a function or kernel, unless one of them is `.weak`."""
        weak = [each.linkage is Linkage.WEAK for each in (symbol, known)]
        if not any(weak):
            self.twice(symbol, known)
            return
        self.prototype(symbol, known)
        if weak == [False, True]:
            self.known[symbol.name] = symbol

    def prototype(self, symbol: LinkedSymbol, known: LinkedSymbol) -> None:
        """Compare a function with its definition; of kernels only the parameters of two `.weak` ones are compared."""
        if symbol.kind == KERNEL:
            self.weak_parameters(symbol, known)
        elif known.is_definition and (differs := difference(symbol.meant, known.meant)):
            here, there = differs
            said = f"'{symbol.name}' has {here} here, and {there} in another module"
            words = self.words("Prototype doesn't match for", symbol, known, "defined")
            self.error(codes.PROTOTYPES_DIFFER, said, symbol, known, ptxas=words)

    def weak_parameters(self, symbol: LinkedSymbol, known: LinkedSymbol) -> None:
        """Report two `.weak` kernels with different numbers of bytes of parameters."""
        here, there = (parameter_bytes(each.meant) for each in (symbol, known))
        if symbol.linkage is known.linkage is Linkage.WEAK and here != there:
            said = f"'{symbol.name}' takes {here} bytes of parameters here, and {there} in another module"
            words = f"Duplicate weak parameter bank for '{symbol.name}' is not the same size"
            self.error(codes.PROTOTYPES_DIFFER, said, symbol, known, ptxas=words)

    # ── what is defined nowhere ─────────────────────────────────────────────────────────

    def undefined(self) -> None:
        """Report each name that no module defines, once."""
        for symbol, place in self.missing():
            self.no_definition(symbol, place)

    def missing(self) -> Iterator[tuple[LinkedSymbol, Place]]:
        """`.extern` variables, and `.extern` functions that are used, which no module defines; with where they are used."""
        for name, symbol in self.known.items():
            if isinstance(symbol.meant, Variable):
                if symbol.linkage is Linkage.EXTERN and not _given_elsewhere(symbol.meant):
                    yield symbol, symbol.span
            elif not symbol.meant.defined and not symbol.meant.entry and not _of_device(name):
                user = next((module for module in self.modules if name in module.used), None)
                if user is not None:
                    yield LinkedSymbol(user, name, symbol.meant, user.program.functions[name]), user.used[name]

    def no_definition(self, symbol: LinkedSymbol, place: Place) -> None:
        """Report a name that no module defines; a note names a module that has one of that name without `.visible`."""
        name, note = symbol.name, ""
        for module in self.modules:
            own = module.program.variables.get(name) or module.program.functions.get(name)
            if own is not None and own.linkage is None:
                note = f"not visible to other modules: {LinkedSymbol(module, name, own, own).place()}"
        symbol.module.report.error(
            codes.UNRESOLVED,
            f"'{name}' is declared .extern, and no module of the link defines it",
            place,
            note=note,
            help="write `.visible` before the definition" if note else "link the module that defines it, all in one link",
            ptxas=f"Undefined reference to '{name}' in '{symbol.module.report.source.name}'",
        )

    # ── reports ─────────────────────────────────────────────────────────────────────────

    def twice(self, symbol: LinkedSymbol, known: LinkedSymbol) -> None:
        """Report a second definition."""
        self.error(
            codes.MULTIPLE_DEFINITION,
            f"'{symbol.name}' is defined by two modules",
            symbol,
            known,
            help="declare it `.extern` in one of them, or give it another name",
            ptxas=self.words("Multiple definition of", symbol, known, "defined"),
        )

    def words(self, attribute: str, symbol: LinkedSymbol, known: LinkedSymbol, how: str = "specified") -> str:
        """A message of nvlink."""
        here, there = (each.module.report.source.name for each in (symbol, known))
        return f"{attribute} '{symbol.name}' in '{here}', first {how} in '{there}'"

    def error(self, code: str, message: str, symbol: LinkedSymbol, other: LinkedSymbol, *, ptxas: str, help: str = "") -> None:
        """Report an error at one declaration, with a note on the other."""
        note = f"the other declaration is at {other.place()}"
        symbol.module.report.error(code, message, symbol.span, note=note, help=help, ptxas=ptxas)


# ── what a module shares ────────────────────────────────────────────────────────────────


def _symbols(module: LinkedModule) -> Iterator[LinkedSymbol]:
    """The symbols that a module shares; declared functions that its code does not use are left out."""
    program = module.program
    for name, variable in program.variables.items():
        if variable.linkage is not None:
            yield LinkedSymbol(module, name, variable, variable, 0 if variable.is_unsized else variable.size)
    for name, declaration in program.functions.items():
        function = program.function(name) or declaration
        if declaration.linkage is None and not declaration.entry:
            continue
        if function.defined or function.entry or name in module.used:
            yield LinkedSymbol(module, name, function, declaration)


def _constants(program: Program) -> Iterator[tuple[str, Variable]]:
    """The `.const` variables of a module and of its functions; the name is empty for those that are not shared."""
    for name, variable in program.variables.items():
        if variable.space is Space.CONST and not variable.bank:
            yield name if variable.linkage else "", variable
    for function in program.functions.values():
        yield from (("", variable) for variable in function.statics if variable.space is Space.CONST and not variable.bank)


def _attributes(symbol: LinkedSymbol) -> set[str]:
    return set(symbol.meant.attributes) if isinstance(symbol.meant, Variable) else set()


def _rank(symbol: LinkedSymbol) -> tuple[int, int]:
    """The rank of a declaration for merging: a definition before the largest `.common` one before one with a size."""
    order = (Linkage.EXTERN, Linkage.COMMON, Linkage.WEAK, Linkage.VISIBLE).index(symbol.linkage or Linkage.EXTERN)
    return order, symbol.size if symbol.linkage is Linkage.COMMON else int(symbol.size > 0)


def _given_elsewhere(variable: Variable) -> bool:
    """Is it defined outside the modules: by the launch, by the driver, or as a bank of constants?"""
    return (variable.space is Space.SHARED and variable.is_unsized) or bool(variable.opaque) or bool(variable.bank)


def _of_device(name: str) -> bool:
    """Is it a function that every device has?"""
    return name in SYSTEM_FUNCTIONS or name.startswith(DEVICE_RUNTIME)


# ── prototypes, as nvlink compares them ─────────────────────────────────────────────────


def difference(one: Variable | Function, other: Variable | Function) -> tuple[str, str] | None:
    """The difference of two prototypes, as the two parts that differ; None if they agree."""
    for noun, mine, theirs in zip(("result", "parameter"), formals(one), formals(other), strict=True):
        if len(mine) != len(theirs):
            return _counted(len(mine), noun), _counted(len(theirs), noun)
        for number, (here, there) in enumerate(zip(mine, theirs, strict=True), 1):
            if linked_type(here) != linked_type(there):
                return f"{described(here)} as {noun} {number}", f"{described(there)} as {noun} {number}"
    return None


def formals(symbol: Variable | Function) -> tuple[Sequence[Formal], Sequence[Formal]]:
    """The results and the parameters; a variable has none."""
    return (symbol.signature.results, symbol.signature.parameters) if isinstance(symbol, Function) else ((), ())


def linked_type(formal: Formal) -> tuple[object, ...]:
    """The type as the linker compares it: the size, the dimensions, and whether it is `.f32` or `.f64`."""
    is_float = formal.type.is_float and not formal.type.is_packed and formal.type.bits > HALF
    count, dimensions = (formal.count, ()) if isinstance(formal, Register) else (formal.vector, formal.dimensions)
    return formal.type.bytes, is_float, count, dimensions


HALF = 16  # bits: .f16 is .b16 to the linker


def described(formal: Formal) -> str:
    """`.b8[16]`"""
    count, dimensions = (formal.count, ()) if isinstance(formal, Register) else (formal.vector, formal.dimensions)
    vector = f".v{count} " if count > 1 else ""
    return f"`{vector}{formal.type}" + "".join(f"[{'' if size is None else size}]" for size in dimensions) + "`"


def _counted(count: int, noun: str) -> str:
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"


def parameter_bytes(kernel: Variable | Function) -> int:
    """Bytes of a kernel's parameters."""
    size = 0
    for formal in formals(kernel)[1]:
        if isinstance(formal, Variable):
            size = -(-size // formal.alignment) * formal.alignment + formal.size
    return size
