"""What stands in the way of cutting a grid: instructions and arguments by which CTAs depend on each other or on an address.

A range of CTAs runs on copies of the arrays, in another process.  So no CTA may tell another anything, and no address may get
into memory that outlives the launch, or come from elsewhere than the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound
from ptxvm.analysis.reductions import Reduction, joinable, reductions
from ptxvm.analysis.stored_addresses import stores_address
from ptxvm.analysis.symbols import Variable
from ptxvm.api import Kernel
from ptxvm.engine.call_targets import called
from ptxvm.engine.interception import INTERCEPTOR
from ptxvm.engine.jit.checks import prefilter
from ptxvm.isa.effects import Collective, Verb
from ptxvm.machine import options
from ptxvm.machine.device import allocations
from ptxvm.machine.per_lane import Array

CLUSTER = (Collective.CLUSTER_BARRIER, Collective.CLUSTER_ARRIVAL)
POINTER = np.dtype(np.uint64)
NO_WORDS: Array = np.empty(0, POINTER)


def obstacle(kernel: Kernel, args: Sequence[object]) -> str:
    """Why the CTAs of a kernel may depend on each other, or its arguments cannot be copied; empty where nothing says so."""
    if INTERCEPTOR.runs is not None:
        return "the debugger runs it"
    if len(kernel.module.programs) > 1:
        return "the module is linked of several"
    arrays = [(n, each) for n, each in enumerate(args) if isinstance(each, np.ndarray)]
    odd = [n for n, each in enumerate(args) if not isinstance(each, np.ndarray | np.generic | int | float | bytes)]
    if odd:
        return f"argument {odd[0]} is no array, number or bytes"
    if "reqnctapercluster" in kernel.function.directives:
        return "its CTAs are in clusters"
    for n, one in arrays:
        if overlapping := next((m for m, other in arrays if m > n and np.may_share_memory(one, other)), None):
            return f"arguments {n} and {overlapping} may overlap"
    if holds := held_address(args):
        return holds
    if kernel.module.jit.spins(kernel.function):
        return "it has a loop that waits for what another thread writes"
    return dependence(kernel, args)


def dependence(kernel: Kernel, args: Sequence[object]) -> str:
    """Why the instructions of a kernel may make its CTAs depend on each other, or on addresses; empty where they do not."""
    joins, image = joinable(kernel.function), kernel.module.image
    if joins and (odd := [n for n, each in reduced(kernel).items() if not fits(args[n], each)]):
        return f"argument {odd[0]} does not consist of the elements of its atomic operations"
    functions = list(called(image, kernel.function))
    for function in functions:
        for bound in function.instructions:
            if bound not in joins and (why := exchanges(bound)):
                return f"{shown(bound)} {why}"
    given = zip(kernel.function.signature.parameters, args, strict=False)  # the launch refuses another number of them
    held = [each for each, value in given if isinstance(each, Variable) and isinstance(value, np.ndarray)]
    stores = stores_address(functions, held)
    return "" if stores is None else f"{shown(stores)} stores an address, which other processes do not share"


def shown(bound: Bound) -> str:
    """An instruction, in words."""
    program = bound.program
    line, _ = program.source.location(bound.node.head_start) if program is not None else (0, 0)
    return f"'{bound.i.mnemonic}' at line {line}"


def held_address(args: Sequence[object]) -> str:
    """Which argument holds an address of memory that a launch in this process could use, in words; empty where none does."""
    ranges = [(each.start, each.end, str(each)) for each in allocations() if each.size]
    arrays = [(each.ctypes.data, each.nbytes, n) for n, each in enumerate(args) if isinstance(each, np.ndarray) and each.nbytes]
    ranges += [(start, start + size, f"argument {n}") for start, size, n in arrays]
    least, most = min((start for start, _, _ in ranges), default=0), max((end for _, end, _ in ranges), default=0)
    for n, each in enumerate(args):
        words = addresses(each)
        near = words[(words >= least) & (words < most)]
        for start, end, name in ranges if len(near) else ():
            if ((near >= start) & (near < end)).any():
                return f"argument {n} holds an address, of {name}"
    return ""


def addresses(value: object) -> Array:
    """The words of an argument that may be addresses: those of an array of such integers, of a structure, or a number."""
    if isinstance(value, np.ndarray):
        is_words = value.dtype.kind in "iu" and value.dtype.itemsize == POINTER.itemsize
        return np.ascontiguousarray(value).reshape(-1).view(POINTER) if is_words else NO_WORDS
    if isinstance(value, bytes):
        return np.frombuffer(value[: len(value) // POINTER.itemsize * POINTER.itemsize], POINTER)
    number = options.index(value)
    return NO_WORDS if number is None else np.array([number % (1 << 64)], POINTER)


def reduced(kernel: Kernel) -> dict[int, Reduction]:
    """The arguments that a kernel only reduces into, by their numbers."""
    parameters = list(kernel.function.signature.parameters)
    return {parameters.index(each): how for each, how in reductions(kernel.function).items()}


def fits(value: object, how: Reduction) -> bool:
    """Is an argument an array of whole elements?"""
    return isinstance(value, np.ndarray) and not value.nbytes % how.type.bytes and not value.ctypes.data % how.type.bytes


def exchanges(bound: Bound) -> str:
    """Why an instruction may make a CTA depend on others; empty where it does not."""
    found = bound.summary
    if found.asks_textures or any(each.window in (Space.TEXTURE, Space.SURFACE) for each in found.accesses):
        return "uses a texture, a sampler or a surface, which is bound in this process"
    if bound.calls:
        return "" if prefilter.callee_name(bound) == "" else "calls a function of the device"
    if not prefilter.known(bound) or found.cancels or found.maps_cluster or found.collective in CLUSTER:
        return "has effects beyond its CTA"
    outside = [each for each in found.accesses if each.window not in (Space.SHARED, Space.LOCAL, Space.PARAM, Space.CONST)]
    if any(each.verb is Verb.UPDATE for each in outside):
        return "is an atomic operation on memory that all CTAs share"
    if any(each.strong for each in outside):
        return "is ordered with accesses of other CTAs"
    return ""


__all__ = ["fits", "obstacle", "reduced"]
