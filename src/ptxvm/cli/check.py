"""`ptxvm check`: reports what is wrong with modules."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from ptxvm.analysis.check import analyse
from ptxvm.cli.failures import FINDINGS, WrongCall
from ptxvm.cli.terminal import has_color, width, working
from ptxvm.diagnostics import FORMATS, Diagnostic, Severity, did_you_mean, render, summary
from ptxvm.isa.targets import device_target
from ptxvm.syntax.source import Source

Found = tuple[Source, list[Diagnostic]]


def check(files: Sequence[str], target: str | None, form: str) -> int:
    """Print the findings of all files; 1 where there is an error among them."""
    if form not in FORMATS:
        guess = did_you_mean(form, FORMATS)
        raise WrongCall(f"no such format: '{form}'; {guess or 'there are ' + ', '.join(FORMATS)}")
    known_target(target)
    sources = [read(file) for file in files]
    if form in ("text", "ptxas"):
        found = list(printed(findings(sources, target), form))
    else:
        found = list(findings(sources, target))
        sys.stdout.write(render(found, form))
    if form == "text":
        print(verdict(found))
    return FINDINGS if any(d.severity is Severity.ERROR for _, each in found for d in each) else 0


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


def findings(sources: Sequence[Source], target: str | None) -> Iterator[Found]:
    """Each source with what is wrong with it."""
    for number, source in enumerate(sources, 1):
        which = f" ({number} of {len(sources)})" if len(sources) > 1 else ""
        with working(f"checking {source.name}{which}"):
            _, report = analyse(source, target)
        yield source, report.diagnostics


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
