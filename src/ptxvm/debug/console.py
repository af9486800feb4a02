"""The console: carries out one line after the other, and says what happens.  It reads and writes nothing itself."""

from __future__ import annotations

import string
from collections.abc import Iterable, Iterator
from typing import Protocol

import ptxvm.debug.commands.breaking
import ptxvm.debug.commands.cuda
import ptxvm.debug.commands.data
import ptxvm.debug.commands.help
import ptxvm.debug.commands.running  # noqa: F401 - each declares commands
from ptxvm.analysis.program import Function
from ptxvm.debug import inspection
from ptxvm.debug.commands.command import COMMANDS, GAP, TAB, BadCommand, Line, Style
from ptxvm.debug.focus import Focus, NotThere, shown
from ptxvm.debug.session import Session
from ptxvm.debug.stops import Reason, Stop
from ptxvm.debug.values import NoValue
from ptxvm.diagnostics.errors import Fault, Unsupported
from ptxvm.diagnostics.kernel_names import displayed
from ptxvm.isa.special_registers import SPECIAL
from ptxvm.machine.launch import LaunchShape

WITHOUT_FOCUS = frozenset({Reason.ENDED})
NAME_CHARACTERS = f"{string.ascii_letters}{string.digits}_$%."
COMPONENTS = (".x", ".y", ".z")


class Files(Protocol):
    """The files that commands read and write."""

    def write(self, path: str, text: str) -> None:
        """Write a file; BadCommand where it cannot be."""

    def read(self, path: str) -> str:
        """The text of a file; BadCommand where there is none."""
        ...


class Console:
    """Commands over a session."""

    def __init__(self, session: Session, files: Files | None = None) -> None:
        self.session, self.files = session, files
        self.is_done = False
        self.columns: int | None = None
        self.breaks_on_launch = True
        self.listed = 0
        self.grid = 0  # the number of the grid of which was spoken last
        self.focus: Focus | None = None  # that was told last
        self.last = ""
        self.failed = False
        """Did the last command fail?"""

    @property
    def described(self) -> str:
        """The kernel that runs, as it was launched."""
        return launched(*self.session.launch[1:])

    def execute(self, line: str) -> Iterator[Line]:
        """Carry out a command; an empty line repeats the last one."""
        line = line.strip() or self.last
        self.last, self.failed = line, False
        if not line or line.startswith("#"):
            return
        try:
            found, rest = COMMANDS.find(line)
            if found.name not in ("list", "help"):
                self.listed = 0
            yield from found.action(self, rest)
        except (BadCommand, NotThere, NoValue) as wrong:
            self.failed = True
            yield Line(str(wrong), Style.ERROR)
        except (Fault, Unsupported, TypeError, ValueError) as wrong:  # a kernel that cannot start
            self.failed = True
            yield from (Line(each, Style.ERROR) for each in str(wrong).splitlines())

    def complete(self, text: str) -> list[str]:
        """What a line may become: names of commands, then of registers and variables, also within an expression."""
        commands = COMMANDS.begins_with(text)
        word = text[len(text.rstrip(NAME_CHARACTERS)) :]
        head = text[: len(text) - len(word)]
        if " " not in head or not word:
            return commands
        names = [each.name for each in self.session.here.function.registers]
        names += [each.name for each in inspection.variables(self.session)]
        names += [f"%{name}{part}" for name, each in SPECIAL.items() for part in (("",) if each.count == 1 else COMPONENTS)]
        return commands + [f"{head}{name}" for name in names if name.startswith(word)]

    def write(self, path: str, text: str) -> None:
        """Write a file, where the front end has any."""
        if self.files is None:
            raise BadCommand("there are no files here")
        self.files.write(path, text)

    def read(self, path: str) -> str:
        """The text of a file, where the front end has any."""
        if self.files is None:
            raise BadCommand("there are no files here")
        return self.files.read(path)

    # ── what is said ────────────────────────────────────────────────────────────────────

    def stopped(self, stop: Stop) -> Iterator[Line]:
        """What is said about a stop: why, the thread, and where it is."""
        self.listed = 0
        number = self.session.launch[0]
        if number != self.grid and stop.reason not in WITHOUT_FOCUS:
            yield Line(f"[Grid {number + 1}: {self.described}]", Style.STOP)
        self.grid = number
        yield from self.reason(stop)
        has_ended = stop.reason is Reason.FAULT and not inspection.stack(self.session)  # a grid that it launched has the fault
        if stop.reason not in WITHOUT_FOCUS and not has_ended:
            if stop.reason is not Reason.STEP or self.session.execution.focus != self.focus:
                yield from self.tell_focus()
            yield from self.where()

    def tell_focus(self) -> Iterator[Line]:
        """Name the thread in focus."""
        self.focus = self.session.execution.focus
        yield Line(f"[Focus: {inspection.focus_text(self.session)}]", Style.STOP)

    def reason(self, stop: Stop) -> Iterator[Line]:
        """Why it has stopped."""
        kinds = {Reason.BREAKPOINT: "Breakpoint", Reason.WATCHPOINT: "Watchpoint", Reason.CATCHPOINT: "Catchpoint"}
        numbers = ", ".join(map(str, stop.numbers))
        match stop.reason:
            case Reason.ENDED:
                found = f", and the checks have found {count}" if (count := len(stop.message.splitlines())) else ""
                described = launched(self.session.kernel, self.session.launch_shape)
                yield Line(f"[{described} has ended after {self.session.time} instructions{found}]", Style.STOP)
                yield from (Line(each, Style.ERROR) for each in stop.message.splitlines())
            case Reason.BEGIN:
                yield Line("No more history: this is the beginning of the kernel.", Style.STOP)
            case Reason.INTERRUPT:
                yield Line("Interrupted.", Style.STOP)
            case Reason.FAULT:
                yield from (Line(each, Style.ERROR) for each in stop.message.splitlines())
            case Reason.BREAKPOINT | Reason.WATCHPOINT | Reason.CATCHPOINT:
                head = f"{kinds[stop.reason]} {numbers}".rstrip()
                yield Line(f"{head}, {stop.message or self.described}", Style.STOP)
                for each in stop.changes:
                    yield Line(f"{each.subject}: line {each.line}, old value {each.old}, new value {each.new}", Style.STOP)
            case Reason.ENTRY:
                yield Line(f"{self.described} begins.", Style.STOP)

    def where(self) -> Iterator[Line]:
        """Where the thread in focus is."""
        frames = inspection.stack(self.session)
        if not frames:
            self.session.view()  # raises why there are none
        each = frames[min(self.session.frame, len(frames) - 1)]
        origin = f"  ({each.origin})" if each.origin else ""
        yield Line(f"{each.file}:{each.line}\t{each.text}{origin}", Style.CURRENT, hang=TAB)

    def table(self, headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[Line]:
        """A table; rows may have a mark before the columns of the headings."""
        head, body = list(headings), [list(row) for row in rows]
        if body and len(body[0]) > len(head):
            head.insert(0, " ")
        widths = [max(len(row[n]) for row in [head, *body]) for n in range(len(head))]
        hang = sum(widths[:-1]) + len(GAP) * len(widths[:-1])
        for n, row in enumerate([head, *body]):
            text = GAP.join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
            yield Line(text, Style.HEADING if not n else Style.CURRENT if row[0] == "*" else Style.PLAIN, hang)


__all__ = ["Console", "Files"]


def launched(kernel: Function, shape: LaunchShape) -> str:
    """A kernel and its shape, as CUDA C++ writes a launch."""
    return f"{displayed(kernel.name)}<<<{shown(shape.grid)},{shown(shape.block)}>>>"
