"""The page on metrics: what a profile counts, from the table that it counts by."""

from __future__ import annotations

from collections.abc import Iterable

from ptxvm.profile.metrics import COUNTED, DERIVED, Metric
from ptxvm.reference.markdown import Files, code, escaped, table

SAID = [
    "A profile (`ptxvm profile`, `launch(..., profile=True)`) has these metrics, of the launch, of each line and of each kind",
    "of instruction. Where Nsight Compute counts the same, its name stands below. [A guide](../how-to/profiling.md) says how.",
]


def metrics_page() -> Files:
    """A table of the metrics that are counted, and one of those that are derived."""
    lines = ["# Metrics", "", *SAID, "", "## Counted", "", *table(("metric", "unit", "what it counts"), list(_rows(COUNTED)))]
    head = ("metric", "unit", "what it is", "formula")
    derived = [(*row, code(str(DERIVED[name].formula))) for name, row in zip(DERIVED, _rows(DERIVED), strict=True)]
    return {"reference/metrics.md": "\n".join([*lines, "", "## Derived", "", *table(head, derived), ""])}


def _rows(names: Iterable[str]) -> list[tuple[str, ...]]:
    every = COUNTED | DERIVED
    return [(code(name), every[name].unit, _said(every[name])) for name in names]


def _said(metric: Metric) -> str:
    """What it is, its name in Nsight Compute, and where that may differ."""
    name = f"<br>{code(metric.ncu)}" if metric.ncu else ""
    return f"{escaped(metric.description)}{name}{f'<br>{escaped(metric.note)}' if metric.note else ''}"


__all__ = ["metrics_page"]
