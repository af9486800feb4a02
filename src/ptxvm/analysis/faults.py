"""The fault of a kernel as a finding in its source."""

from __future__ import annotations

from ptxvm.diagnostics import Diagnostic, Severity, Span
from ptxvm.diagnostics.errors import Fault
from ptxvm.diagnostics.kernel_names import displayed
from ptxvm.syntax.source import Source


def as_diagnostic(fault: Fault, source: Source) -> Diagnostic:
    """A fault as a finding at the instruction that did it; the kind stands where a code would."""
    place = fault.place
    span = Span(0, 0)
    line = column = 0
    if place.line and (text := source.line(place.line)).strip():
        column = len(text) - len(text.lstrip()) + 1
        start = source.offset(place.line, column)
        span, line = Span(start, start + len(text.partition("//")[0].strip())), place.line
    where = [f"in kernel {displayed(place.kernel)}"] if place.kernel else []
    if place.cta is not None:
        where.append(f"CTA {place.cta}")
    if place.thread is not None:
        where.append(f"thread {place.thread}")
    if place.function and place.function != place.kernel:
        where.append(f"function {place.function}")
    if fault.address is not None and f"{fault.address:#x}" not in fault.message:
        of_size = f" ({fault.size} byte{'s' if fault.size != 1 else ''})" if fault.size else ""
        where.append(f"address {fault.address:#x}{of_size}")
    note = ", ".join(where)
    if place.source:
        note += f"; compiled from {place.source}"
    return Diagnostic(Severity.ERROR, fault.kind, " ".join(fault.message.split()), span, line, column, note=note)


__all__ = ["as_diagnostic"]
