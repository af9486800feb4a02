"""What ptxvm has to say about a source, and the ways to print it.

`Diagnostic` is the record; `codes` explains each kind; `render` prints sources with what was found in them as text for
people, as ptxas's lines, as JSON or as SARIF.  This package needs nothing but the standard library, except that
colours come from `rich`, imported when somebody asks for them.
"""

from ptxvm.diagnostics.codes import Code, all_codes, explain, register
from ptxvm.diagnostics.diagnostic import Diagnostic, Severity, Span
from ptxvm.diagnostics.render import FORMATS, render, summary
from ptxvm.diagnostics.suggest import closest, did_you_mean

__all__ = [
    "FORMATS",
    "Code",
    "Diagnostic",
    "Severity",
    "Span",
    "all_codes",
    "closest",
    "did_you_mean",
    "explain",
    "register",
    "render",
    "summary",
]
