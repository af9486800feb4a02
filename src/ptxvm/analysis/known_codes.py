"""Every diagnostic code: of the syntax, of the analysis and its lints, of the rules of instructions, of faults."""

from __future__ import annotations

from ptxvm.analysis import codes as _codes, instruction_codes as _instruction_codes, lints as _lints  # noqa: F401 - enter theirs
from ptxvm.diagnostics import DiagnosticCode, explain
from ptxvm.isa.catalog import load_catalog


def code_entry(code: str) -> DiagnosticCode | None:
    """The entry of a code, in either case of its letter, or of a kind of fault; None where there is none.

    `diagnostics.explain` answers for the rooms that are imported; this imports all that have codes.
    """
    load_catalog()
    return explain(code)


def is_code(code: str) -> bool:
    """May a finding have this code?"""
    return code_entry(code) is not None
