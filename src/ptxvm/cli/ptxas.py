"""`ptxvm-ptxas`: verifies PTX where a tool calls ptxas; with its options, its messages and its exit codes.

No machine code is made: the output, `elf.o` or that of `-o`, is the PTX itself, which ptxvm's driver loads.  Without `-c` the
modules are a whole program, in which nothing may be missing.
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ptxvm import __version__
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import f64
from ptxvm.analysis.check import analyse
from ptxvm.analysis.checks import Checks
from ptxvm.analysis.codes import OTHER_TARGET
from ptxvm.analysis.header import refuse_other
from ptxvm.analysis.link_checks import check_link, unresolved
from ptxvm.analysis.program import Function, Program
from ptxvm.analysis.report import Report
from ptxvm.analysis.signatures import name_of
from ptxvm.analysis.symbols import Variable
from ptxvm.cli.failures import OUR_BUG, one_line
from ptxvm.cli.ptxas_options import DEFAULT_TARGET, OPTIONS, PtxasCall, RefusedError, Takes, parse
from ptxvm.cli.standard_streams import OutputLost, watched, write_error
from ptxvm.diagnostics import Diagnostic, Severity, Span
from ptxvm.diagnostics.ptxas import ABORTED, lines
from ptxvm.isa.targets import LOWEST, VERSIONS, device_target
from ptxvm.syntax.source import Source
from ptxvm.syntax.tree import Linkage, Node, Section

OUTPUT = "elf.o"
REFUSED = 255  # the exit code of ptxas, whatever is wrong
LOADS, STORES = ("ca", "cg", "cs", "lu", "cv"), ("wb", "cg", "cs", "wt")
"""The cache operators of loads and of stores (PTX 9.7.9.1)."""
DOUBLES = "Program is doing double precision computations."
CONFLICT = "Conflicting options --device-debug and --generate-line-info specified, ignoring --generate-line-info option"
OPTIMIZED = "Optimized debugging not supported"
DEBUGGING = (".debug_abbrev", ".debug_info")
"""The sections that code with debugging information has (PTX 11.5.2)."""
OPEN, IGNORED = "Unresolved extern variable", "in whole program compilation, ignoring extern qualifier"
VALUES = {
    Takes.TEXT: "FILE", Takes.LIST: "A,B", Takes.MODULE: "PTX", Takes.NUMBER: "N", Takes.BOOL: "true|false",
    Takes.REGISTERS: "N", Takes.TARGET: "sm_NN", Takes.BITS: "64", Takes.TOOL: "TOOL",
}  # fmt: skip


def main(arguments: Sequence[str] | None = None) -> int:
    """Verify modules; the exit code is 0, or 255 where something is wrong."""
    with watched():
        try:
            return run(parse(sys.argv[1:] if arguments is None else arguments))
        except RefusedError as refused:
            write_error(f"ptxas fatal   : {refused}\n")
            return REFUSED
        except OutputLost as lost:
            write_error(f"ptxas fatal   : {lost}\n")
            return REFUSED
        except KeyboardInterrupt:
            return 130
        except Exception as wrong:  # noqa: BLE001 - the last line of defence, as in `ptxvm.cli.main`
            write_error(f"ptxas fatal   : {type(wrong).__name__}: {one_line(str(wrong))}: a bug of ptxvm, please report it\n")
            return OUR_BUG


def run(request: PtxasCall) -> int:
    """Do what the options ask for."""
    if request.has("version"):
        return show(f"ptxas of ptxvm {__version__}: verifies PTX, and makes no machine code\n{release()}\n")
    if request.has("list-version"):
        return show("".join(f"{major}.{minor}\n" for major, minor in VERSIONS))
    if request.has("help") or not (request.files or request.has("input-as-string")):
        return show(usage())
    if not request.has("disable-warnings"):
        for name in request.again:
            write_error(
                f"ptxas warning : incompatible redefinition for option '{name}', the last value of this option was used\n"
            )
    for name in ("def-load-cache", "def-store-cache", "force-load-cache", "force-store-cache"):
        access, allowed = ("load", LOADS) if "load" in name else ("store", STORES)
        if request.has(name) and request.last(name) not in allowed:
            write_error(
                f"ptxas error   : Invalid default cache modifier on {access} specified: {request.last(name)}\n{ABORTED}\n"
            )
            return REFUSED
    if request.has("device-debug") and request.has("generate-line-info") and _warnings(request, [CONFLICT]):
        return REFUSED
    if request.has("device-debug") and _optimizes(request):
        raise RefusedError(OPTIMIZED)
    return verify(request)


def _optimizes(request: PtxasCall) -> bool:
    """Is a level of optimization asked for that is not 0?"""
    return int(request.last("opt-level", "0")) > 0


def show(text: str) -> int:
    """Print a text."""
    sys.stdout.write(text)
    sys.stdout.flush()
    return 0


def release() -> str:
    """The line from which LLVM's tests and Triton read which PTX there is: the CUDA release that brought the newest version."""
    major, minor = VERSIONS[-1]
    return f"Cuda compilation tools, release {major + 4}.{minor}, V{major + 4}.{minor}.0"


def usage() -> str:
    """The page of options."""
    used = [each for each in OPTIONS if each.help]
    page = ["Usage: ptxvm-ptxas [options] FILE...", "", "Verifies PTX as ptxas does; - is the standard input.", ""]
    for each in used:
        value = f" {VALUES[each.takes]}" if each.takes is not Takes.NOTHING else ""
        page += [f"--{each.name}{value} (-{each.short})", f"        {each.help}"]
        if each.takes is Takes.TARGET:  # from here LLVM's tests read which targets there are
            page += filled([f"'{target}'," for target in sorted(LOWEST)], " " * 8)
    page += ["", "These are about machine code, and have no effect:"]
    return "\n".join([*page, *filled([f"--{each.name}" for each in OPTIONS if not each.help]), ""])


def filled(words: Sequence[str], indent: str = "") -> list[str]:
    """Lines of words, none of which is broken."""
    return textwrap.wrap(
        " ".join(words), 78, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


# ── modules ─────────────────────────────────────────────────────────────────────────────


def verify(request: PtxasCall) -> int:
    """Check all modules, each alone and then together, and write the output."""
    target = request.last("gpu-name", DEFAULT_TARGET)
    kind, _, number = target.partition("_")
    sources = list(read(request))
    checked = [check_for(source, f"sm_{number}") for source in sources]
    again = defined_again([program for program, _ in checked])
    found = [
        (report.source, _wanted(request, [*_of_module(report), *twice, *extra(request, program)]))
        for (program, report), twice in zip(checked, again, strict=True)
    ]
    write_error("".join(f"{line}\n" for each in found for line in lines(*each)))
    if any(each.severity is Severity.ERROR for _, diagnostics in found for each in diagnostics):
        write_error(f"{ABORTED}\n")
        return REFUSED
    for _, report in checked:  # which ptxas says of a module without errors, and without its place
        for each in report.diagnostics:
            if each.code == OTHER_TARGET:
                raise RefusedError(each.ptxas)
    programs = [program for program, _ in checked]
    if any("debug" in program.target_options for program in programs) and _optimizes(request):
        raise RefusedError(OPTIMIZED)
    linked = together(request, programs) if kind == "sm" else 0
    if linked == 0:
        inform(request, programs, f"sm_{number}")
        write(request, sources)
    return linked


def check_for(source: Source, target: str) -> tuple[Program, Report]:
    """Check a module by its own target, whose code must run on another."""
    program, report = analyse(source)
    refuse_other(Checks(program, report), device_target(target))
    report.diagnostics.sort(key=lambda each: each.span.start)
    return program, report


def _of_module(report: Report) -> list[Diagnostic]:
    """What is wrong with a module itself, whatever target it is compiled for."""
    return [each for each in report.diagnostics if each.code != OTHER_TARGET]


def read(request: PtxasCall) -> Iterator[Source]:
    """The sources, in the order of ptxas: files, then texts."""
    for file in request.files:
        try:
            yield Source(sys.stdin.buffer.read(), "<stdin>") if file == "-" else Source.read(file)
        except OSError:
            raise RefusedError(f"Input file '{file}' could not be opened\n{ABORTED}") from None
    for number, text in enumerate(request.all("input-as-string")):
        yield Source(text, f"<input-as-string {number}>")


def extra(request: PtxasCall, program: Program) -> Iterator[Diagnostic]:
    """The warnings that options ask for."""
    if not request.has("warn-on-double-precision-use"):
        return
    report = Report(program.source)
    for function in program.functions.values():
        for bound in function.instructions:
            if f64.name in bound.i.bound.values():
                report.warning("", DOUBLES, bound.node)
    yield from report.diagnostics


def _wanted(request: PtxasCall, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics without warnings, or with errors in their place, as the options say."""
    if request.has("disable-warnings"):
        return [each for each in diagnostics if each.severity is Severity.ERROR]
    if request.has("warning-as-error"):
        return [replace(each, severity=Severity.ERROR) if each.severity is Severity.WARNING else each for each in diagnostics]
    return diagnostics


def together(request: PtxasCall, programs: Sequence[Program]) -> int:
    """Check what only the whole program shows."""
    names = {kernel.name for program in programs for kernel in program.kernels}
    for name in request.all("entry"):
        if name not in names:
            raise RefusedError(f"Unknown function {name}")
    errors = check_link(programs) if len(programs) > 1 else []
    said = [f"fatal   : {each.ptxas or each.message}" for _, diagnostics in errors for each in diagnostics]
    warned = list(_without_debugging(programs)) if request.has("device-debug") else []
    warned += _local_memory(programs) if request.has("warn-on-local-memory-usage") else []
    if not request.has("compile-only") and not said:
        missing = unresolved(programs)
        said = [f"fatal   : Unresolved extern function '{each.name}'" for each in missing if isinstance(each, Function)]
        warned += [f"{OPEN} '{each.name}' {IGNORED}" for each in missing if isinstance(each, Variable)]
    if said:  # of a program that is not whole ptxas says nothing else
        write_error(f"ptxas {said[0]}\n")
        return REFUSED
    return _warnings(request, warned)


def _warnings(request: PtxasCall, warned: Sequence[str]) -> int:
    """Print warnings that have no place, as the options say."""
    if not warned or request.has("disable-warnings"):
        return 0
    as_errors = request.has("warning-as-error")
    word = "error  " if as_errors else "warning"
    write_error("".join(f"ptxas {word} : {each}\n" for each in warned) + f"{ABORTED}\n" * as_errors)
    return REFUSED * as_errors


def defined_again(programs: Sequence[Program]) -> Iterator[list[Diagnostic]]:
    """What each module defines that one before it has defined: to ptxas all modules are one."""
    known = set[str]()
    for program in programs:
        report, here = Report(program.source), set[str]()
        for kind, symbol, place in _definitions(program):
            here.add(symbol.name)
            if symbol.name in known:
                report.error("", f"Duplicate definition of {kind} '{symbol.name}'", place)
        known |= here
        yield report.diagnostics


def _definitions(program: Program) -> Iterator[tuple[str, Function | Variable, Span | Node]]:
    """The kernels, functions and variables that a module defines for others."""
    for function in program.functions.values():
        if function.defined and (function.entry or function.linkage is not None):
            yield "function", function, name_of(function.node)
    for variable in program.variables.values():
        if variable.linkage in (Linkage.VISIBLE, Linkage.WEAK) and variable.node is not None:
            yield "variable", variable, variable.node


def _without_debugging(programs: Sequence[Program]) -> Iterator[str]:
    """The sections of debugging that no module has."""
    there = {each.name for program in programs for each in program.tree.statements if isinstance(each, Section)}
    yield from (f" {name} section not found" for name in DEBUGGING if name not in there)


def _local_memory(programs: Sequence[Program]) -> Iterator[str]:
    """What is to be said of kernels with local memory."""
    for kernel in (kernel for program in programs for kernel in program.kernels):
        if size := bytes_in(Space.LOCAL, kernel.variables):
            yield f"Local memory used for function '{kernel.name}', size of stack frame: {size} bytes"


def bytes_in(space: Space, variables: Iterable[Variable]) -> int:
    """The bytes of the variables that are in a space."""
    return sum(each.size for each in variables if each.space is space)


def inform(request: PtxasCall, programs: Sequence[Program], target: str) -> None:
    """Print what is known of memory; how many registers a kernel has is not known without machine code."""
    if not request.has("verbose"):
        return
    for program in programs:
        declared = [*program.variables.values(), *(each for f in program.functions.values() for each in f.statics)]
        constants = f", {size} bytes cmem[3]" if (size := bytes_in(Space.CONST, declared)) else ""
        told = [f"ptxas info    : {bytes_in(Space.GLOBAL, declared)} bytes gmem{constants}"]
        for kernel in program.kernels:
            local, shared = (bytes_in(space, kernel.variables) for space in (Space.LOCAL, Space.SHARED))
            told += [
                f"ptxas info    : Compiling entry function '{kernel.name}' for '{target}'",
                f"ptxas info    : Function properties for {kernel.name}",
                f"    {local} bytes of .local declared, {shared} bytes smem; registers are not known",
            ]
        write_error("\n".join([*told, ""]))


def write(request: PtxasCall, sources: Sequence[Source]) -> None:
    """Write the PTX that was checked."""
    output = request.last("output-file", OUTPUT)
    try:
        Path(output).write_text("\n".join(source.text for source in sources), encoding="utf-8")
    except OSError:
        raise RefusedError(f"Output file '{output}' could not be opened") from None
