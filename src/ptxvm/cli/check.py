"""`ptxvm check`: reports what is wrong with modules."""

from __future__ import annotations

import glob
import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ptxvm.analysis.check import analyse
from ptxvm.analysis.program import Program
from ptxvm.cli.failures import FINDINGS, WrongCall
from ptxvm.cli.standard_streams import write_error
from ptxvm.cli.terminal import has_color, width, working
from ptxvm.diagnostics import FORMATS, Diagnostic, Severity, did_you_mean, render, summary
from ptxvm.diagnostics.suppressions import Suppressions
from ptxvm.isa.targets import device_target
from ptxvm.syntax.source import Source

Found = tuple[Source, list[Diagnostic]]


SUFFIX = ".ptx"  # of the modules in a folder


def check(files: Sequence[str], target: str | None, form: str, suppress: str | None = None, *, lints: bool = False) -> int:
    """Print the findings of all files, of folders those of all modules in them; 1 where there is an error among them.

    With `lints`, modules without errors are looked at for what is legal and probably not meant, or slow.
    """
    known_format(form)
    known_target(target)
    suppressions = read_suppressions(suppress)
    sources = [read(file) for name in files for file in modules(name)]
    found_now = ((source, suppressions.kept(source, each)) for source, each in findings(sources, target, lints=lints))
    if form in ("text", "ptxas"):
        found = list(printed(found_now, form))
    else:
        found = list(found_now)
        sys.stdout.write(render(found, form))
    if form == "text":
        print(verdict(found) + (f" ({suppressions.count} suppressed)" if suppressions.count else ""))
    tell_unused(suppressions, suppress)
    return FINDINGS if any(d.severity is Severity.ERROR for _, each in found for d in each) else 0


def known_format(form: str, formats: Sequence[str] = FORMATS) -> None:
    """Refuse a format that the command does not have."""
    if form not in formats:
        guess = did_you_mean(form, formats)
        raise WrongCall(f"no such format: '{form}'; {guess or 'there are ' + ', '.join(formats)}")


def read_suppressions(file: str | None) -> Suppressions:
    """The suppressions of a file, none without one."""
    if file is None:
        return Suppressions()
    from ptxvm.analysis.known_codes import is_code  # all instructions, which the command may not need

    try:
        return Suppressions.parse(Path(file).read_text(encoding="utf-8"), is_code)
    except OSError as wrong:
        raise WrongCall(f"cannot read '{file}': {wrong.strerror}") from None
    except ValueError as wrong:
        raise WrongCall(f"{file}: {wrong}") from None


def tell_unused(suppressions: Suppressions, file: str | None) -> None:
    """Name the lines of the file that have suppressed nothing, which may be left from code that is gone."""
    for rule in suppressions.unused:
        write_error(f"{file}:{rule.number}: nothing matches '{rule.text}'\n")


def modules(name: str) -> list[str]:
    """The files that a word means: the modules of a folder, those that match a pattern, or the file of that name."""
    path = Path(name)
    if path.is_dir():
        entries = (Path(folder, each) for folder, _, files in os.walk(path) for each in files)  # what vanishes is passed over
        found = sorted(str(each) for each in entries if each.suffix == SUFFIX and each.is_file())
        if not found:
            raise WrongCall(f"there is no {SUFFIX} file in '{name}'")
        return found
    if path.exists() or not glob.has_magic(name):
        return [name]
    anchor = Path(path.anchor)
    if found := sorted(str(each) for each in anchor.glob(str(path.relative_to(anchor))) if each.is_file()):
        return found
    raise WrongCall(f"no file matches '{name}'")


def read(file: str) -> Source:
    """The source in a file, or on the standard input."""
    try:
        if file == "-":
            return Source(sys.stdin.buffer.read(), "<stdin>")
        return Source.read(file)
    except FileNotFoundError:
        raise WrongCall(f"no such file: '{file}'") from None
    except IsADirectoryError:
        raise WrongCall(f"'{file}' is a directory, not a PTX module") from None
    except OSError as wrong:
        raise WrongCall(f"cannot read '{file}': {wrong.strerror}") from None


def known_target(target: str | None) -> None:
    """Refuse what is not the name of a target."""
    if target is not None:
        try:
            device_target(target)
        except ValueError as wrong:
            raise WrongCall(f"{wrong}; targets are written as sm_75 or sm_100a") from None


def findings(sources: Sequence[Source], target: str | None, *, lints: bool = False) -> Iterator[Found]:
    """Each source with what is wrong with it."""
    began, count = time.monotonic(), len(sources)
    for number, source in enumerate(sources):
        which, share = (f" ({number + 1} of {count})", number / count) if count > 1 else ("", None)
        with working(f"checking {source.name}{which}", share, began=began):
            program, report = analyse(source, target)
            found = [*report.diagnostics, *(_linted(program) if lints and not report.has_errors else ())]
        yield source, found


def _linted(program: Program) -> Iterable[Diagnostic]:
    from ptxvm.analysis.lints import lint

    return lint(program)


def printed(found: Iterator[Found], form: str) -> Iterator[Found]:
    """The same, printed on the way."""
    for source, diagnostics in found:
        text = render([(source, diagnostics)], form, width=width(), color=has_color(sys.stdout))
        if text:
            sys.stdout.write(text + ("\n" if form == "text" else ""))
        yield source, diagnostics


def verdict(found: Sequence[Found]) -> str:
    """`3 errors in 2 of 5 files`."""
    every = [d for _, each in found for d in each]
    wrong = sum(bool(each) for _, each in found)
    if not every:
        return f"{found[0][0].name}: no errors" if len(found) == 1 else f"no errors in {len(found)} files"
    if len(found) == 1:
        return f"{summary(every)} in {found[0][0].name}"
    files = f"{len(found)} files" if wrong == len(found) else f"{wrong} of {len(found)} files"
    return f"{summary(every)} in {files}"
