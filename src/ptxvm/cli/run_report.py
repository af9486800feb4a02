"""The JSON report of `ptxvm run`: how a launch ended, its results, counters and findings."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import field
from functools import cached_property

import numpy as np

import ptxvm
from ptxvm.analysis.faults import as_diagnostic
from ptxvm.cli import arguments
from ptxvm.cli.failures import one_line
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Diagnostic, Severity, render
from ptxvm.diagnostics.errors import Place
from ptxvm.diagnostics.json import objects
from ptxvm.diagnostics.suppressions import Suppressions
from ptxvm.machine.argument_texts import Argument
from ptxvm.machine.per_lane import Array
from ptxvm.syntax.source import Source

FIRST = 8  # values of an array that are shown
PLACE = ("line", "column", "end_line", "end_column", "start", "end")
EXACT = 1 << 53  # integers up to which every reader of JSON keeps all digits


@dataclass
class RunReport:
    """A run of the command: filled as far as it comes."""

    source: Source
    kernel: ptxvm.Kernel | None = None
    args: Sequence[Argument] = ()
    saved: list[tuple[int, str]] = field(default_factory=list)
    result: ptxvm.LaunchResult | None = None
    output: str = ""
    wrong: ptxvm.PTXVMError | None = None
    compiling: float = 0.0
    suppressions: Suppressions = field(default_factory=Suppressions)

    @property
    def outcome(self) -> str:
        """How it ended, in a word."""
        if self.wrong is None:
            return "done"
        return {"InvalidPTX": "invalid", "Fault": "fault"}.get(type(self.wrong).__name__, "unsupported")

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What was found in the module, or in the launch, with the fault that ended it."""
        if isinstance(self.wrong, ptxvm.InvalidPTX):
            return list(self.wrong.diagnostics)
        found = self.findings
        return [*found, as_diagnostic(self.wrong, self.source)] if isinstance(self.wrong, ptxvm.Fault) else found

    @cached_property
    def findings(self) -> list[Diagnostic]:
        """What the checks found, but for what is suppressed."""
        found = self.result.findings if self.result is not None else ()
        return self.suppressions.kept(self.source, [each.diagnostic() for each in found])

    @property
    def exit_code(self) -> int:
        """1 where anything is wrong with the module or the kernel."""
        return int(self.wrong is not None or any(each.severity is Severity.ERROR for each in self.diagnostics))

    def rendered(self, form: str) -> str:
        """All of it as `json`, or what was found in one of the formats of findings."""
        if form == "json":
            return json.dumps(self.fields(), indent=2, allow_nan=False) + "\n"
        return render([(self.source, self.diagnostics)], form)

    def fields(self) -> dict[str, object]:
        """The document; the same fields whatever happened."""
        kernel, result = self.kernel, self.result
        invalid = isinstance(self.wrong, ptxvm.InvalidPTX)
        return {
            "file": self.source.name,
            "kernel": kernel.name if kernel is not None else None,
            "outcome": self.outcome,
            "message": one_line(str(self.wrong).partition("\n")[0]) if self.wrong is not None else "",
            "exit_code": self.exit_code,
            "grid": list(result.grid) if result is not None else None,
            "block": list(result.block) if result is not None else None,
            "arguments": [self.argument(number) for number in range(len(self.args))] if kernel is not None else [],
            "saved": [{"argument": number, "name": self.name(number), "file": path} for number, path in self.saved],
            "counters": counters(result, self.compiling) if result is not None else None,
            "output": self.output,
            "findings": [] if invalid else objects([(self.source, [d for d in self.diagnostics if d.details])]),
            "fault": fault(self.wrong, self.source) if isinstance(self.wrong, ptxvm.Fault) else None,
            "diagnostics": objects([(self.source, self.diagnostics)]) if invalid else [],
        } | self.profile

    @property
    def profile(self) -> dict[str, object]:
        """The profile, where one was asked for."""
        found = self.result.profile if self.result is not None else None
        return {"profile": found.details} if found is not None else {}

    def name(self, number: int) -> str:
        """The name of a parameter, as the table of `--format text` has it."""
        return short_name(self.kernel, number) if self.kernel is not None else ""

    def argument(self, number: int) -> dict[str, object]:
        """An argument after the launch."""
        value = self.args[number]
        head = {"number": number, "name": self.name(number)}
        if isinstance(value, np.ndarray):
            return {**head, **array(value)}
        return {**head, "value": value.hex() if isinstance(value, bytes) else plain(value)}


def short_name(kernel: ptxvm.Kernel, number: int) -> str:
    """The name of a parameter without the name of the kernel, which compilers put before it."""
    name: str = kernel.function.signature.parameters[number].name
    return name.removeprefix(f"{kernel.name}_")


def array(values: Array) -> dict[str, object]:
    """An array in few numbers."""
    flat = values.reshape(-1)
    described = {"array": arguments.described(values), "shape": list(values.shape), "size": int(flat.size)}
    if not flat.size:
        return {**described, "first": [], "last": None, "min": None, "max": None, "sum": None}
    if values.dtype.kind in "iu":
        least, greatest, total = plain(values.min()), plain(values.max()), plain(int(arguments.statistics(values)[2]))
    else:
        wide = flat.astype(np.float64)
        with np.errstate(all="ignore"):
            least, greatest, total = plain(wide.min()), plain(wide.max()), plain(wide.sum())
    first, last = [plain(x) for x in flat[:FIRST]], plain(flat[-1])
    return {**described, "first": first, "last": last, "min": least, "max": greatest, "sum": total}


def plain(value: np.generic | float) -> int | float | str:
    """A number as JSON has it; what it has not, infinities, NaN and integers of more than 53 bits, as text."""
    if isinstance(value, int) or getattr(getattr(value, "dtype", None), "kind", "") in ("i", "u", "b"):
        return int(value) if abs(int(value)) <= EXACT else str(int(value))
    number = float(value)
    return number if math.isfinite(number) else str(number)


def counters(result: ptxvm.LaunchResult, compiling: float) -> dict[str, object]:
    """What the launch did."""
    return {
        "ctas": math.prod(result.grid),
        "threads": math.prod(result.grid) * math.prod(result.block),
        "instructions": result.instructions,
        "thread_instructions": result.thread_instructions,
        "steps": result.steps,
        "schedules": result.schedules,
        "seconds": result.seconds,
        "compiling_seconds": compiling,
    }


def fault(wrong: ptxvm.Fault, source: Source) -> dict[str, object]:
    """A fault: its kind, where it was, and which thread did it."""
    (shown,) = objects([(source, [as_diagnostic(wrong, source)])])
    placed = {name: shown[name] if wrong.place.line else None for name in PLACE}
    head = {"kind": wrong.kind, "message": wrong.message, "address": wrong.address, "size": wrong.size, "file": source.name}
    return {**head, **placed, **place(wrong.place)}


def place(at: Place) -> dict[str, object]:
    """The kernel, the function, the thread, and the launch of a grid that a kernel launched."""
    return {
        "kernel": at.kernel,
        "function": at.function,
        "text": at.text,
        "cta": list(at.cta) if at.cta is not None else None,
        "thread": list(at.thread) if at.thread is not None else None,
        "source": at.source,
        "grid": at.grid,
        "launched": {"line": at.launched.line, **place(at.launched)} if at.launched is not None else None,
    }


__all__ = ["RunReport", "short_name"]
