"""Indirect calls: the functions that a call through a pointer may enter, and reasons to refuse others (PTX 9.7.12.5, 11.3)."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.analysis.program import Bound, Function
from ptxvm.analysis.symbols import Prototype, Register, Signature, Table, Variable
from ptxvm.machine.image import Image
from ptxvm.syntax import tree

CallSites = dict[Function, list[tuple[Function, int]]]  # of each function the callers, each with the number of its instruction


def called(image: Image, function: Function) -> Iterator[Function]:
    """A kernel, and the functions that it calls by name."""
    seen, work = set(), [function]
    while work:
        each = image.resolve(work.pop())
        if each in seen:
            continue
        seen.add(each)
        yield each
        for bound in each.instructions:
            if bound.calls:
                work += callees(image, bound)


def call_sites(image: Image, kernel: Function) -> CallSites:
    """The calls that may enter a kernel (none) and each function of `called`."""
    sites: CallSites = {function: [] for function in called(image, kernel)}
    for function in sites:
        for index, bound in enumerate(function.instructions):
            for callee in callees(image, bound) if bound.calls else ():
                sites[callee].append((function, index))
    return sites


def callees(image: Image, bound: Bound) -> list[Function]:
    """The functions with a body that a call may enter: the named function, or the targets of the pointer."""
    named = bound.callee()
    if named is None:
        return enterable(image, bound)
    function = image.resolve(named)
    return [function] if function.defined else []


def enterable(image: Image, bound: Bound) -> list[Function]:
    """The functions that a call may enter: its list of targets, or all functions whose address is taken."""
    named = _named(bound)
    found = named.targets if isinstance(named, Table) else image.pointed_at
    resolved = dict.fromkeys(image.resolve(function) for function in found)
    return [function for function in resolved if _misfit(image, named, function) is None]


def refusal(image: Image, bound: Bound, address: int) -> str | None:
    """The reason why a call may not enter the function at an address; None where it may."""
    function = image.function_at(address)
    if function is None:
        return f"the call goes to {address:#x}, where no function is"
    named, function = _named(bound), image.resolve(function)
    said = _misfit(image, named, function)
    if said is None and not isinstance(named, Table) and function not in image.pointed_at:
        # Computed from the address of another function, which PTX gives no meaning; compiled code has no entry for it.
        return f"the call goes to '{function.name}', whose address is never taken"
    return said


def _named(bound: Bound) -> object:
    """The list of targets or the prototype that the call names."""
    node = bound.operands.get("proto")
    return bound.scope.find(node.text) if isinstance(node, tree.Name) else None


def _misfit(image: Image, named: object, function: Function) -> str | None:
    """The reason why a call with a list or a prototype may not enter a function."""
    if function.entry:
        return f"the call goes to the kernel '{function.name}', which is launched and not called"
    if isinstance(named, Table) and function not in map(image.resolve, named.targets):
        return f"the call goes to '{function.name}', which is not in its list '{named.name}'"
    if isinstance(named, Prototype) and not _alike(function.signature, named.signature):
        return f"the call goes to '{function.name}', whose parameters are not those of its prototype '{named.name}'"
    return None if function.defined else f"the function '{function.name}' has no body"


def _alike(one: Signature, other: Signature) -> bool:
    """Do two signatures pass the same registers and bytes?"""
    if one.variadic or other.variadic:
        return True
    if (len(one.results), len(one.parameters)) != (len(other.results), len(other.parameters)):
        return False
    pairs = zip((*one.results, *one.parameters), (*other.results, *other.parameters), strict=True)
    return all(_passed(a) == _passed(b) or _unsized(a) or _unsized(b) for a, b in pairs)


def _passed(formal: Register | Variable) -> tuple[bool, int]:
    """Is a parameter a register, and how many bits has it?"""
    if isinstance(formal, Register):
        return True, formal.type.bits * formal.count
    return False, 8 * (formal.size if formal.dimensions else formal.element_size)


def _unsized(formal: Register | Variable) -> bool:
    return isinstance(formal, Variable) and formal.is_unsized
