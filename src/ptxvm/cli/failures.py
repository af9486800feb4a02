"""Failures of commands: the message, and the exit status by whose fault it is."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from click import UsageError

from ptxvm.cli.standard_streams import OutputLost, write_error
from ptxvm.diagnostics import Severity, render, summary
from ptxvm.diagnostics.errors import Fault, InvalidPTX, Unsupported

if TYPE_CHECKING:
    from ptxvm.syntax.source import Source

FINDINGS, WRONG_CALL, OUR_BUG = 1, 2, 3
TRACEBACK = "--traceback"


class WrongCall(Exception):  # noqa: N818 - it says what happened
    """The command was called in a way that it does not understand; the message is one line."""


class InFile(Exception):  # noqa: N818
    """Something went wrong in a module: the cause, with the source that it is about."""

    def __init__(self, source: Source, cause: InvalidPTX | Fault) -> None:
        super().__init__(str(cause))
        self.source, self.cause = source, cause


def report(wrong: Exception, words: Sequence[str], *, traceback: bool = False) -> int:
    """Print the failure of a command that was called with these words; the exit code."""
    command = next((f"ptxvm {word}" for word in words if not word.startswith("-")), "ptxvm")
    if isinstance(wrong, WrongCall):
        return say(f"{command}: {one_line(str(wrong))}", WRONG_CALL)
    if isinstance(wrong, UsageError):
        known = wrong.ctx.command_path if wrong.ctx else command
        return say(f"{known}: {normalised(wrong.format_message())}; see '{known} --help'", WRONG_CALL)
    if isinstance(wrong, OutputLost):
        return FINDINGS if wrong.quiet else say(f"{command}: {wrong}", WRONG_CALL)
    if isinstance(wrong, InFile):
        write_error(rendered(wrong.source, wrong.cause))
        return FINDINGS
    if isinstance(wrong, Unsupported):
        return say(f"{command}: {one_line(str(wrong))}", FINDINGS)
    if traceback:
        import traceback as tracebacks

        write_error("".join(tracebacks.format_exception(wrong)))
    how = "" if traceback else "; PTXVM_TRACEBACK=1 shows where"
    kind = type(wrong).__name__
    said = one_line(str(wrong)) if kind == "Crash" else f"{kind}: {one_line(str(wrong))}".rstrip(": ")
    return say(f"Crash: {said}: a bug of ptxvm, please report it{how}", OUR_BUG)


def say(line: str, code: int) -> int:
    """One line on stderr; gives the exit code back."""
    with suppress(OutputLost):
        sys.stdout.flush()
    write_error(f"{line}\n")
    return code


def one_line(text: str) -> str:
    """The text without line breaks."""
    return " ".join(text.split())


def normalised(message: str) -> str:
    """A message of click in our way: no full stop, no capital."""
    message = one_line(message).removesuffix(".")
    return message[:1].lower() + message[1:]


# ── modules and kernels that are wrong ──────────────────────────────────────────────────


def rendered(source: Source, cause: InvalidPTX | Fault) -> str:
    """The findings of a module, or the fault of a kernel at its line, as `ptxvm check` prints findings."""
    from ptxvm.analysis.faults import as_diagnostic
    from ptxvm.cli.terminal import has_color, width

    how = {"width": width(), "color": has_color(sys.stderr)}
    if isinstance(cause, Fault):
        return render([(source, [as_diagnostic(cause, source)])], **how)  # type: ignore[arg-type]
    errors = [d for d in cause.diagnostics if d.severity is Severity.ERROR]
    if not errors:
        return f"{source.name}: {one_line(str(cause))}\n"
    return render([(source, errors)], **how) + f"\n{summary(errors)} in {source.name}\n"  # type: ignore[arg-type]
