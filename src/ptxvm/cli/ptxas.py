"""`ptxvm-ptxas`: verifies PTX where a tool calls ptxas; with its options, its messages and its exit codes.

No machine code is made: the output, `elf.o` or that of `-o`, is the PTX itself, which ptxvm's driver loads.  Without `-c` the
modules are a whole program, in which nothing may be missing.
"""

from __future__ import annotations

import re
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ptxvm import __version__
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import f64
from ptxvm.analysis import codes
from ptxvm.analysis.check import analyse
from ptxvm.analysis.checks import Checks
from ptxvm.analysis.header import refuse_other
from ptxvm.analysis.operand_problems import is_compared
from ptxvm.analysis.program import Bound, Program
from ptxvm.analysis.report import Report
from ptxvm.analysis.shapes import names_in
from ptxvm.analysis.symbols import Variable
from ptxvm.cli.failures import OUR_BUG, one_line
from ptxvm.cli.ptxas_addresses import WORD, declares_size, narrow_addresses, no_narrow_code, other_host
from ptxvm.cli.ptxas_options import OPTIONS, REAL, PtxasCall, RefusedError, Takes, parse
from ptxvm.cli.ptxas_program import Names
from ptxvm.cli.ptxas_reading import SYNTAX, as_read
from ptxvm.cli.ptxas_residency import of_kernels
from ptxvm.cli.ptxas_warnings import OPTIMIZED, TOOLS, of_options, optimizes
from ptxvm.cli.standard_streams import OutputLost, watched, write_error
from ptxvm.diagnostics import Diagnostic, Severity, Span
from ptxvm.diagnostics.ptxas import ABORTED, NO_ARITHMETIC, lines, stops
from ptxvm.isa.targets import LOWEST, VERSIONS, device_target, parse_target
from ptxvm.syntax.lexer import PlainText
from ptxvm.syntax.source import Source
from ptxvm.syntax.tree import Address, Directive, Section

OUTPUT = "elf.o"
REFUSED = 255  # the exit code of ptxas, whatever is wrong
Checked = tuple[Program, Report]
NO_DEBUGGING = "Debug information not found in presence of .target debug"  # which ptxas says without a place
STACK_WORD = 8
DOUBLES = "Program is doing double precision computations."
DEBUGGING = (".debug_abbrev", ".debug_info")
"""The sections that code with debugging information has (PTX 11.5.2)."""
NO_KERNELS = f"Entry function is not allowed when command line option '--{TOOLS}' is specified "
TENSOR_MEMORY = (10, 11)
"""The families of targets that have tensor memory (PTX 9.7.16.1)."""
BEYOND = "Potential out of bound access while accessing symbol"
NOT_SUPPORTED = "' not supported"
"""How an error ends of a pragma that a module cannot have."""
DIRECTIVE = re.compile(r"\s*(\.\w+)")
LINE = re.compile(r"\.loc\s")
UNKNOWN_FILE = ".loc directive without .file directive is found, line information in generated binary may not be complete"
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
    return check_options(request) or verify(request)


def check_options(request: PtxasCall) -> int:
    """Print what is wrong with the options; the exit code is 0 if that does not end the run."""
    for name in request.again:  # which -w does not silence
        write_error(f"ptxas warning : incompatible redefinition for option '{name}', the last value of this option was used\n")
    failed = False
    for severity, said in of_options(request):
        error = severity is Severity.ERROR or request.has("warning-as-error")
        failed |= error
        if error or not request.has("disable-warnings"):
            write_error(f"ptxas {'error  ' if error else 'warning'} : {said}\n")
    if failed:
        write_error(f"{ABORTED}\n")
    return REFUSED * failed


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
    names, checked, failed, late = Names(), list[Checked](), False, list[Diagnostic]()
    for source in read(request):
        if isinstance(source, str):
            write_error(f"ptxas fatal   : {source}\n")
            failed = True
            continue
        program, report = check_for(source, target_of(request))
        checked.append((program, report))
        found = missing_head(program, report) or as_read(
            program, [*of_module(program, report), *names.add(program), *extra(request, program)]
        )
        late += (each for each in found if is_late(each))
        found = wanted(request, [each for each in found if not is_late(each)])
        write_error("".join(f"{line}\n" for line in lines(source, found)))
        failed |= any(each.severity is Severity.ERROR for each in found)
        if any(map(stops, found)):
            break
    if failed:
        write_error(f"{ABORTED}\n")
        return REFUSED
    programs = [program for program, _ in checked]
    compile_for(request, checked)
    if request.has(TOOLS) and any(program.kernels for program in programs):
        write_error(f"ptxas error   : {NO_KERNELS}\n{ABORTED}\n")
        return REFUSED
    say_what_is_ignored(request, programs)
    if not request.compiles:
        return 0
    warned = [UNKNOWN_FILE] * any(map(lacks_files, programs))
    linked = warn(request, warned) or together(request, programs, names) or refuse_late(late)
    linked = linked or warn(request, list(of_kernels(request, programs)))
    if linked == 0:
        inform(request, programs, request.target)
        write(request, [program.source for program in programs])
    return linked


def is_late(found: Diagnostic) -> bool:
    """Does ptxas find it where it writes machine code, when nothing else is wrong?"""
    return found.code == codes.CONSTANT_BANK or found.ptxas.startswith(NO_ARITHMETIC) or found.ptxas.endswith(NOT_SUPPORTED)


def refuse_late(found: Sequence[Diagnostic]) -> int:
    """Print what ptxas finds last, without places; the exit code."""
    for each in found:
        if each.ptxas.startswith(NO_ARITHMETIC):
            write_error(f"ptxas fatal   : Line No: {each.line}: {each.ptxas}\n")
            return REFUSED
    write_error("".join(f"ptxas error   : {each.ptxas}\n" for each in found))
    return REFUSED * bool(found)


def lacks_files(program: Program) -> bool:
    """Has a module lines of a source, and no file for them?"""
    text = program.source.text
    return ".loc" in text and ".file" not in text and LINE.search(PlainText(program.source).text) is not None


def target_of(request: PtxasCall) -> str:
    """The real target, also of a virtual one."""
    return REAL + request.target.partition("_")[2]


def missing_head(program: Program, report: Report) -> list[Diagnostic]:
    """What ptxas says of a module that does not begin with `.version` and `.target`: nothing else."""
    statements = program.tree.statements
    for number, name in enumerate(("version", "target")):
        found = statements[number] if number < len(statements) else None
        if isinstance(found, Directive) and found.name == name:
            continue
        start = statements[number - 1].end if number else 0
        begun = DIRECTIVE.match(PlainText(report.source).text, start)
        if name == "target" and (unknown := [each for each in report.diagnostics if each.code == codes.VERSION]):
            return unknown
        if name == "target" and begun and begun[1] == ".target":
            return []  # it ends in an error of its own
        places = [Span(begun.start(1), begun.end(1))] if begun and begun[1] == f".{name}" else []
        places += [each.span for each in report.diagnostics if each.code.startswith(SYNTAX)]
        if isinstance(found, Directive) and found.name == "target":  # a list, which only what follows ends
            found = statements[number + 1] if number + 1 < len(statements) else None
        end = len(report.source.text)
        places.append(Span(end, end) if found is None else Span(found.start, found.end))
        place = min(places, key=lambda span: span.start)
        only = Report(report.source)
        only.error(codes.VERSION, f"Missing .{name} directive at start of file '{report.source.name}'", place)
        return only.diagnostics
    return []


def of_module(program: Program, report: Report) -> list[Diagnostic]:
    """What is wrong with a module itself, whatever target it is compiled for, and whatever other modules define.

    What a directive alone does not do, ptxas says at the end of its kernel.
    """
    found = [each for each in report.diagnostics if each.code not in (codes.OTHER_TARGET, codes.UNDEFINED)]
    ends = {each.node.start: report.source.location(each.node.end - 1)[0] for each in program.functions.values()}
    at_end = {
        number: replace(each, line=max((line for start, line in ends.items() if start <= each.span.start), default=each.line))
        for number, each in enumerate(found)
        if each.code == codes.IGNORED
    }
    found = [at_end.get(number, each) for number, each in enumerate(found)]
    return [replace(each, line=0) if each.ptxas == NO_DEBUGGING else each for each in found]


def compile_for(request: PtxasCall, checked: Sequence[Checked]) -> None:
    """Refuse a program that is none for the target: the last `.target` of its modules counts."""
    for _, report in checked[-1:]:
        for each in report.diagnostics:
            if each.code == codes.OTHER_TARGET:
                raise RefusedError(each.ptxas)
    if any("debug" in program.target_options for program, _ in checked) and optimizes(request):
        raise RefusedError(OPTIMIZED)


def say_what_is_ignored(request: PtxasCall, programs: Sequence[Program]) -> None:
    """Say that the target of the last module has no tensor memory to check; no option silences that."""
    if not any(request.has(f"{each}-tensor-memory-access-check") for each in ("g", "gno")) or not programs:
        return
    target = parse_target(str(programs[-1].target))
    if not target.suffix or target.number // 10 not in TENSOR_MEMORY:
        options = "--g-tensor-memory-access-check / --gno-tensor-memory-access-check"
        write_error(f"ptxas info    : Command line option '{options}' not supported for '.target {target}', will be ignored\n")


def check_for(source: Source, target: str) -> tuple[Program, Report]:
    """Check a module by its own target, whose code must run on another."""
    program, report = analyse(source)
    refuse_other(Checks(program, report), device_target(target))
    report.diagnostics.sort(key=lambda each: each.span.start)
    return program, report


def read(request: PtxasCall) -> Iterator[Source | str]:
    """The sources, in the order of ptxas: files, then texts; or why there is none.  A file with a NUL is none."""
    for file in request.files:
        try:
            data, name = (sys.stdin.buffer.read(), "<stdin>") if file == "-" else (Path(file).read_bytes(), file)
        except OSError:
            yield f"Input file '{file}' could not be opened"
            continue
        before, nul, _ = data.partition(b"\0")
        line = 1 + before.count(b"\n")
        yield f"Unexpected EOF encountered on line {line}" if nul else Source(data, name)
    for text in request.all("input-as-string"):
        yield Source(text, "application ptx input")


def extra(request: PtxasCall, program: Program) -> Iterator[Diagnostic]:
    """What is said of accesses that are wider than their variable, and the warnings that options ask for."""
    report = Report(program.source)
    for function in program.functions.values():
        for bound in function.instructions:
            if (wide := beyond_variable(bound)) is not None:
                report.add(Severity.NOTE, "", wide, bound.node)
            if request.has("warn-on-double-precision-use") and f64.name in bound.i.bound.values():
                report.warning("", DOUBLES, bound.node)
    yield from report.diagnostics


def beyond_variable(bound: Bound) -> str | None:
    """What is said of an access to a variable that is no array, by a type larger than its own."""
    decoded, operand = bound.decoded, bound.operands.get("a")
    if decoded is None or not is_compared(decoded) or not isinstance(operand, Address):
        return None
    name = next(iter(names_in(operand)), None)
    found = bound.scope.find(name.text) if name is not None else None
    if not isinstance(found, Variable) or found.dimensions or found.vector > 1 or found.opaque:
        return None
    own, asked = found.type, decoded.type
    return f"{BEYOND} '{found.name}' of type '{own}' with instruction type '{asked}'." if own.bytes < asked.bytes else None


def wanted(request: PtxasCall, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """The diagnostics without warnings, or with errors in their place, as the options say."""
    if request.has("disable-warnings"):
        return [each for each in diagnostics if each.severity is not Severity.WARNING]
    if request.has("warning-as-error"):
        return [replace(each, severity=Severity.ERROR) if each.severity is Severity.WARNING else each for each in diagnostics]
    return diagnostics


def together(request: PtxasCall, programs: Sequence[Program], names: Names) -> int:
    """Check what only the whole program shows."""
    whole = not request.has("compile-only")
    for name in names.open_functions(programs, whole=whole):
        if whole or not names.is_extern(name):
            raise RefusedError(f"Unresolved extern function '{name}'")
    if any(declares_size(program) and program.address_size == WORD for program in programs):
        _warnings(request, [other_host(WORD)])
        raise RefusedError(no_narrow_code(parse_target(request.target)))
    narrow = [each for program in programs for each in narrow_addresses(program)]
    if any(each.bits == WORD for each in narrow):
        _warnings(request, [each.warning for each in narrow])
        raise RefusedError(no_narrow_code(parse_target(request.target)))
    return warn(request, [each.warning for each in narrow]) or _of_names(request, programs, names, whole=whole)


def _of_names(request: PtxasCall, programs: Sequence[Program], names: Names, *, whole: bool) -> int:
    """Check what options and modules name, and warn of what they ask for."""
    kernels = {kernel.name for program in programs for kernel in program.kernels}
    for name in request.all("entry"):
        if name not in kernels:
            raise RefusedError(f"Unknown function {name}")
    open_variables = list(names.open_variables()) if whole else []
    for variable in open_variables:
        if variable.is_unsized:
            raise RefusedError(f"Unresolved extern variable '{variable.name}'")
    warned = list(_without_debugging(programs)) if request.has("device-debug") else []
    warned += [f"{OPEN} '{each.name}' {IGNORED}" for each in open_variables]
    if failed := warn(request, warned):
        return failed
    if not request.has("warn-on-local-memory-usage"):
        return 0
    return _warnings(request, _local_memory(programs, with_functions=not whole))


def warn(request: PtxasCall, warned: Sequence[str]) -> int:
    """Print warnings that have no place, and that the run ends, where they are errors."""
    if failed := _warnings(request, warned):
        write_error(f"{ABORTED}\n")
        return failed
    return 0


def _warnings(request: PtxasCall, warned: Sequence[str]) -> int:
    """Print warnings that have no place, as the options say."""
    if not warned or request.has("disable-warnings"):
        return 0
    as_errors = request.has("warning-as-error")
    word = "error  " if as_errors else "warning"
    write_error("".join(f"ptxas {word} : {each}\n" for each in warned))
    return REFUSED * as_errors


def _without_debugging(programs: Sequence[Program]) -> Iterator[str]:
    """The sections of debugging that no module has."""
    there = {each.name for program in programs for each in program.tree.statements if isinstance(each, Section)}
    yield from (f" {name} section not found" for name in DEBUGGING if name not in there)


def _local_memory(programs: Sequence[Program], *, with_functions: bool) -> list[str]:
    """What is to be said of kernels with local memory, and of functions, which in a whole program are part of them."""
    found = [each for program in programs for each in program.functions.values() if each.entry or with_functions]
    found.sort(key=lambda each: each.entry)
    sizes = {function.name: size for function in found if (size := stack_frame(function.variables))}
    return [f"Local memory used for function '{name}', size of stack frame: {size} bytes" for name, size in sizes.items()]


def stack_frame(variables: Iterable[Variable]) -> int:
    """The bytes of local variables in a row, each aligned, in whole words of the stack."""
    size, largest = 0, STACK_WORD
    for each in variables:
        if each.space is Space.LOCAL:
            size = -(-size // each.alignment) * each.alignment + each.size
            largest = max(largest, each.alignment)
    return -(-size // largest) * largest


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
        for kernel in reversed(program.kernels):
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
