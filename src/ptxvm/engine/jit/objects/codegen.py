"""Code generation: LLVM IR to object code of the host's processor."""

from __future__ import annotations

import functools
import re
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

import llvmlite.binding as llvm

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Crash
from ptxvm.engine.jit.abi.specialisation import Tier
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import IN_PLACE, MEANING, PIECES, SELDOM

T = TypeVar("T")  # what is made of a module; llvmlite has no type information, so its classes only document


@dataclass(frozen=True, slots=True)
class Recipe:
    """The passes of a tier, None for all of LLVM's, and the level of its code generator."""

    passes: Sequence[str] | None
    level: int


RECIPES = {
    Tier.SKETCH: Recipe(("sroa", "simplify_cfg"), 0),
    # instructions are combined after blocks are merged: the other order can take 20 times as long
    Tier.QUICK: Recipe(("sroa", "simplify_cfg", "instruction_combine"), 1),
    Tier.BEST: Recipe(None, 2),
}
LONG = 8_000  # lines of a module whose optimisation would take too long ...
CALL = 4  # ... to which a call of a piece that instructions share adds so many ...
COUNT = re.compile(r"  store i64 (%\w+), ptr (%ran\.\w+),")  # a counter of executed instructions (`node.counters`)
OPAQUE = r'  \1.opaque = call i64 asm "", "=r,0"(i64 \1)' + "\n" + r"  store i64 \1.opaque, ptr \2,"
WRITTEN_DOWN = Recipe((), 0)  # ... without it, compiling takes half the time, and the code up to 3 times as long
SPLITTING = "-grow-region-complexity-budget=100"
"""The most steps in which the register allocator grows the region where it splits a live range; 10,000 by LLVM's default.

In a loop around a jump through a table, live ranges span all blocks.  Growing their regions takes a third of the code
generator's time there, and the code becomes no shorter.
"""


def recipe(text: str, tier: Tier) -> Recipe:
    """The recipe for a module."""
    long = tier < Tier.BEST and text.count("\n") + CALL * text.count(f"@{MEANING}") > LONG
    return WRITTEN_DOWN if long else RECIPES[tier]


@functools.cache
def limit_splitting() -> None:
    """Let the register allocator of this process spend little on splitting live ranges; LLVM takes the option once."""
    llvm.set_option("", SPLITTING)


@functools.cache
def _target() -> llvm.Target:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    llvm.initialize_native_asmparser()
    return llvm.Target.from_default_triple()


def machine(level: int) -> llvm.TargetMachine:
    """The code generator for the host's processor."""
    return _target().create_target_machine(
        cpu=cpu.name(), features=cpu.flags(), opt=level, reloc="pic", codemodel="small", jit=True
    )


def object_code(
    text: str, tier: Tier = Tier.BEST, done: Callable[[str], None] = lambda _: None, *, patient: bool = False
) -> bytes:
    """The object file of a module; `done` is called after each step.

    `patient` leaves LLVM's own limit to the splitting of live ranges; the process must have compiled nothing before.
    """
    if not patient:
        limit_splitting()
    made: bytes = _compiled(text, tier, lambda target, module: target.emit_object(module), done)
    done("code")
    return made


def assembly(text: str, tier: Tier = Tier.BEST) -> str:
    """The code as assembly."""
    return str(_compiled(text, tier, lambda target, module: target.emit_assembly(module)))


def optimised(text: str, tier: Tier = Tier.BEST) -> str:
    """The module after LLVM's passes."""
    return str(_compiled(text, tier, lambda _, module: str(module)))


def _compiled(
    text: str, tier: Tier, emit: Callable[[llvm.TargetMachine, llvm.ModuleRef], T], done: Callable[[str], None] = lambda _: None
) -> T:
    """The result of `emit` for a module after its passes.

    LLVM crashes unless all that it made of a module is freed before the module's context.
    """
    how = recipe(text, tier)
    if tier is Tier.BEST:
        text = text.replace(PIECES, IN_PLACE)
    elif how.level:
        # a count that grows through loops in a row is a sum of products of trip counts, on which LLVM's strength reduction
        # spends time that grows with the cube of their number; the passes of the best tier cut that short
        text = COUNT.sub(OPAQUE, text)
    target = machine(how.level)
    with llvm.create_context() as context, _parsed(text, context) as module:
        done("parse")
        module.triple = target.triple
        module.data_layout = str(target.target_data)
        _run_passes(module, tier, how)
        if tier < Tier.BEST:
            _write_down_seldom(module)
        done("passes")
        return emit(target, module)


def _parsed(text: str, context: llvm.ContextRef) -> llvm.ModuleRef:
    """The module of a text; raises Crash where LLVM refuses it, and keeps the text in a file."""
    try:
        module = llvm.parse_assembly(text, context)
    except RuntimeError as wrong:
        raise _refused(text, wrong) from None
    try:
        module.verify()
    except RuntimeError as wrong:
        module.close()
        raise _refused(text, wrong) from None
    return module


def _refused(text: str, wrong: RuntimeError) -> Crash:
    with tempfile.NamedTemporaryFile("w", prefix="ptxvm-", suffix=".ll", delete=False) as file:
        file.write(text)
    reason = " ".join(str(wrong).split())
    return Crash(f"LLVM refuses a module; please report this, with the text that is kept in {file.name}: {reason}")


def _run_passes(module: llvm.ModuleRef, tier: Tier, how: Recipe) -> None:
    if how.passes is not None and not how.passes:
        return
    builder = _pass_builder(tier, how.level, cpu.name(), cpu.flags())
    with _pass_manager(builder, how.passes) as passes:
        passes.run(module, builder)


def _write_down_seldom(module: llvm.ModuleRef) -> None:
    """Let the code generator take no time over functions that run seldom.

    The passes must not meet that attribute: llvmlite's instrumentation of them, which they would tell, is gone after the first.
    """
    for function in module.functions:
        if any(SELDOM.encode() in words for words in function.attributes):
            function.add_function_attribute("optnone")


@functools.cache
def _pass_builder(tier: Tier, level: int, _cpu: str, _flags: str) -> llvm.PassBuilder:
    """The pass builder for a processor; all modules share it, since llvmlite leaks part of each."""
    options = llvm.create_pipeline_tuning_options(speed_level=int(tier))
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = tier is Tier.BEST
    return llvm.create_pass_builder(machine(level), options)


@contextmanager
def _pass_manager(builder: llvm.PassBuilder, names: Sequence[str] | None) -> Iterator[llvm.ModulePassManager]:
    """The passes of these names, or all of LLVM's.

    llvmlite does not free them: its class inherits a `_dispose` that does nothing, ahead of the one that frees.
    """
    passes = builder.getModulePassManager() if names is None else llvm.create_new_module_pass_manager()
    try:
        for name in names or ():
            getattr(passes, f"add_{name}_pass")()
        yield passes
    finally:
        llvm.ffi.lib.LLVMPY_DisposeNewModulePassManger(passes)
        passes.detach()


# ── linked by LLVM ──────────────────────────────────────────────────────────────────────


@functools.cache
def _linker() -> llvm.LLJIT:
    return llvm.create_lljit_compiler(machine(0))


class LinkedObject:
    """Object files that LLVM's linker has loaded, on processors whose relocations `elf` does not know."""

    count = 0

    def __init__(self, files: Sequence[bytes], names: Sequence[str]) -> None:
        LinkedObject.count += 1
        builder = llvm.JITLibraryBuilder().add_current_process()
        for data in files:
            builder.add_object_img(data)
        for name in names:
            builder.export_symbol(name)
        self._tracker = builder.link(_linker(), f"kernel{LinkedObject.count}")

    def address(self, name: str) -> int:
        """The address of a function."""
        return int(self._tracker[name])
