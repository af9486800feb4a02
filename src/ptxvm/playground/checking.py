"""Diagnostics of a module while it is written."""

from __future__ import annotations

from ptxvm.analysis.check import analyse
from ptxvm.analysis.symbols import spelling
from ptxvm.diagnostics.json import objects
from ptxvm.machine.launch import required_block
from ptxvm.playground.requests import CheckRequest
from ptxvm.syntax.source import Source

NAME = "kernel.ptx"
"""What messages call the text of the editor."""


def check(request: CheckRequest) -> dict[str, object]:
    """Every diagnostic of a module, and its kernels with their parameters, and the block where they require one."""
    program, report = analyse(Source(request.source, NAME), request.target)
    kernels = [
        {
            "name": each.name,
            "parameters": [{"type": spelling(p), "name": p.name} for p in each.signature.parameters],
            "block": ",".join(map(str, required_block(each) or ())),
        }
        for each in program.kernels
    ]
    return {"diagnostics": objects([(program.source, report.diagnostics)]), "kernels": kernels}


__all__ = ["NAME", "check"]
