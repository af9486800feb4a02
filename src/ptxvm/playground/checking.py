"""Diagnostics of a module while it is written."""

from __future__ import annotations

from ptxvm.analysis.check import analyse
from ptxvm.analysis.symbols import spelling
from ptxvm.diagnostics.json import objects
from ptxvm.playground.requests import CheckRequest
from ptxvm.syntax.source import Source

NAME = "kernel.ptx"
"""What messages call the text of the editor."""


def check(request: CheckRequest) -> dict[str, object]:
    """Every diagnostic of a module, and its kernels with their parameters."""
    program, report = analyse(Source(request.source, NAME), request.target)
    kernels = [
        {"name": each.name, "parameters": [{"type": spelling(p), "name": p.name} for p in each.signature.parameters]}
        for each in program.kernels
    ]
    return {"diagnostics": objects([(program.source, report.diagnostics)]), "kernels": kernels}


__all__ = ["NAME", "check"]
