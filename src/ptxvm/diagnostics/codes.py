"""The registry of diagnostic codes: what `ptxvm explain P0101` prints.

The codes of the syntax stand below, one call each.  A rule about instructions declares its
code where the rule stands, in `ptxvm.isa`, through `register`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable

from ptxvm.diagnostics.code import DiagnosticCode
from ptxvm.diagnostics.kinds import KINDS

_FORM = re.compile(r"P\d{4}")


_CODES: dict[str, DiagnosticCode] = {}
_LOOKUPS: list[Callable[[str], DiagnosticCode | None]] = []


def register(code: str, title: str, explanation: str, *, stops_ptxas: bool = False) -> str:
    """Enter a code and return it; two different meanings for one code are a bug of ours.

    `explanation` may be an indented docstring.
    """
    if not _FORM.fullmatch(code):
        message = f"a diagnostic code has the form Pnnnn, not {code!r}"
        raise ValueError(message)
    entry = DiagnosticCode(code, title, inspect.cleandoc(explanation), stops_ptxas)
    if _CODES.setdefault(code, entry) != entry:
        message = f"{code} is already the code of {_CODES[code].title!r}"
        raise ValueError(message)
    return code


def register_lookup(lookup: Callable[[str], DiagnosticCode | None]) -> None:
    """Let a room above answer for codes of its own: those that instructions declare with their rules."""
    _LOOKUPS.append(lookup)


def explain(code: str) -> DiagnosticCode | None:
    """The entry of a code, in either case of its letter, or of a kind of fault; None if there is none."""
    entry = _CODES.get(code.upper()) or KINDS.get(code.lower())
    return entry or next((found for lookup in _LOOKUPS if (found := lookup(code.upper()))), None)


def all_codes() -> list[DiagnosticCode]:
    """Every code entered so far, in order."""
    return [_CODES[code] for code in sorted(_CODES)]


def _syntax(code: str, title: str, explanation: str) -> str:
    return register(code, title, explanation, stops_ptxas=True)


# ── P01xx: the text cannot be read as PTX ───────────────────────────────────────────────

UNEXPECTED = _syntax(
    "P0101",
    "unexpected token",
    """
    The text does not fit the grammar at this place.  The message says what could have stood there; the rest of
    the statement is skipped, and reading goes on with the next one.

        add.u32 %r1 %r2, %r3;      // a comma is missing between the operands
        add.u32 %r1, %r2, %r3;     // right
    """,
)
MISSING_SEMICOLON = _syntax(
    "P0102",
    "missing semicolon",
    """
    Instructions and declarations end with `;` (PTX 4.3).  The carets stand where it is missing: mostly at the
    end of the line before the one that ptxas names.

        mov.u32 %r1, 5             // here
        add.u32 %r2, %r1, 1;
    """,
)
UNCLOSED = _syntax(
    "P0103",
    "unclosed bracket",
    """
    A `{`, `[` or `(` has no partner.  A second place shows the bracket that is still open.
    """,
)
UNKNOWN_DIRECTIVE = _syntax(
    "P0104",
    "unknown directive",
    """
    A word with a dot at the start of a statement is a directive (PTX 11) or a state space (PTX 5.1), and this
    is neither.  Names are in lower case.

        .visable .entry k() { ret; }     // .visible
    """,
)
MISPLACED = _syntax(
    "P0105",
    "directive in a wrong place",
    """
    The directive exists, but not here: `.version`, `.target` and `.address_size` open a module, in this order
    and once each (PTX 11.1); performance and cluster directives stand between the parameters and the body of a
    kernel (PTX 11.4, 11.7); `.loc` stands in a body (PTX 11.5.4); a kernel or function with a body stands at
    module level only (PTX 11.2).
    """,
)
BAD_NUMBER = _syntax(
    "P0106",
    "malformed number",
    """
    Integers are decimal, octal (`017`), hexadecimal (`0x1F`) or binary (`0b101`), with an optional capital `U`;
    floats are decimal with a point or an exponent, or exact bits: `0f` and eight hexadecimal digits, `0d` and
    sixteen (PTX 4.5.1, 4.5.2).  Exact bits take no sign and no part in arithmetic.

        mov.f32 %f1, 0f3F80000;      // seven digits
        mov.u32 %r1, 09;             // a leading 0 means octal
        mov.u32 %r1, 1u;             // only a capital U
    """,
)
STRAY_CHARACTER = _syntax(
    "P0107",
    "stray character",
    """
    The source of a module is ASCII text (PTX 4.1); other characters may stand in comments only, and a few ASCII
    characters (`'`, `` ` ``, `\\`, `?` alone) have no meaning in PTX.
    """,
)
UNCLOSED_COMMENT = _syntax(
    "P0108",
    "comment without an end",
    """
    A comment that starts with `/*` ends with the next `*/`; comments do not nest (PTX 4.2).
    """,
)
UNCLOSED_STRING = _syntax(
    "P0109",
    "string without an end",
    """
    A string ends on the line where it starts, and has no escapes: a backslash is a backslash.
    """,
)
NOT_TEXT = _syntax(
    "P0110",
    "not a PTX text",
    """
    The source holds a NUL character, so it is no text: perhaps a cubin, a fat binary or an archive. NULs at the
    very end are no error, for drivers pass PTX as a C string. `cuobjdump -ptx FILE` takes the PTX out of a fat
    binary.
    """,
)
TOO_DEEP = _syntax(
    "P0111",
    "nested too deeply",
    """
    The reader takes 128 levels of brackets or blocks and 128 operators in one expression.  It is a limit of
    ptxvm, not of PTX, and keeps any text from exhausting the stack.
    """,
)
MISSING_OPERAND = _syntax(
    "P0112",
    "missing operand",
    """
    There is nothing between two commas, or after the last one.

        add.u32 %r1, , %r2;
        add.u32 %r1, %r2, ;
    """,
)
BAD_SINK = _syntax(
    "P0113",
    "`_` in a wrong place",
    """
    The sink `_` throws a result away, so it stands where an instruction writes: as the first operand, as one
    half of `d|p`, or inside `{…}`.  It is neither a value nor a name to declare (PTX 6.1).
    """,
)
UNMATCHED = _syntax(
    "P0114",
    "unmatched closing bracket",
    """
    A `}`, `]` or `)` closes nothing.  At module level it is mostly one `}` too many above.
    """,
)
BAD_TYPE = _syntax(
    "P0115",
    "not the type of a variable",
    """
    A declaration names a fundamental type of PTX 5.2 (`.b8 .b16 .b32 .b64 .b128 .u8 … .s64 .f16 .f16x2 .f32
    .f64 .pred`) or an opaque one (`.texref .samplerref .surfref`).  The alternative formats `.bf16`, `.tf32`,
    `.e4m3` and the like are types of instructions: their values live in `.b16` and `.b32` registers (PTX
    5.2.3).
    """,
)
SPLIT_MODIFIER = _syntax(
    "P0116",
    "blank inside a modifier",
    """
    A blank may stand before the dot of a modifier, not after it.

        mov. b32 %r1, 1;     // wrong
        mov .b32 %r1, 1;     // taken, if unusual
    """,
)
BAD_GUARD = _syntax(
    "P0117",
    "misused guard",
    """
    `@p` and `@!p` stand before one instruction: not before a label, a block, a declaration, a directive or
    another guard (PTX 9.3).
    """,
)
BAD_OPERAND = _syntax(
    "P0118",
    "operand not allowed",
    """
    The operand is of no form that PTX 6.4 has: an address is `[a]` or `[a+constant]`, or `[a, b, {c, d}]` for
    textures and tensors; an offset is added, and a negative one is written `[a+-4]`; registers are not added to
    each other; `%` directly before a word makes it a name, so a remainder is written `7 % 3`, with blanks.
    """,
)
BAD_SIZE = _syntax(
    "P0119",
    "a size that is no literal",
    """
    The size of an array, the count in `%r<100>` and the number after `.align` are integer literals or
    `WARP_SZ`: no expression, no sign.
    """,
)
BAD_LINKAGE = _syntax(
    "P0120",
    "linkage directives that exclude each other",
    """
    An identifier takes at most one of `.extern`, `.visible`, `.weak` and `.common`, and the directive comes
    first (PTX 11.6).
    """,
)
TWO_SPACES = register(
    "P0121",
    "several state spaces",
    """
    A variable lies in one state space (PTX 5.1): one of `.reg`, `.global`, `.const`, `.shared`, `.local` and
    `.param` stands before its type.
    """,
)
TOO_MANY = _syntax(
    "P0199",
    "too many errors",
    """
    Reading stopped after very many errors; what follows was not looked at.
    """,
)
