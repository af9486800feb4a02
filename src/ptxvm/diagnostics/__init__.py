"""What ptxvm has to say about a source, and the ways to print it.

`Diagnostic` is the record; `codes` explains each kind; `render` prints sources with what was found in them as text for
people, as ptxas's lines, as JSON or as SARIF.  This package needs nothing but the standard library, except that
colours come from `rich`, imported on first use.
"""

from ptxvm.diagnostics.code import DiagnosticCode
from ptxvm.diagnostics.codes import all_codes, explain, register, register_lookup
from ptxvm.diagnostics.diagnostic import Diagnostic, Severity, Span
from ptxvm.diagnostics.kinds import KINDS
from ptxvm.diagnostics.render import FORMATS, render, summary
from ptxvm.diagnostics.suggest import closest, did_you_mean, edit_distance, listed

__all__ = [
    "FORMATS",
    "KINDS",
    "Diagnostic",
    "DiagnosticCode",
    "Severity",
    "Span",
    "all_codes",
    "closest",
    "did_you_mean",
    "edit_distance",
    "explain",
    "listed",
    "register",
    "register_lookup",
    "render",
    "summary",
]
