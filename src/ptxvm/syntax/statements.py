"""Statements of a body by one compiled expression, for text whose comments are blanked out.

It takes the usual spelling only: what it finds is what the parser finds there, and what it does not find may be right too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_NAME = r"(?![%$_](?![\w$]))[%$_A-Za-z][\w$]*"
_NAME_OR_SINK = rf"(?:{_NAME}|_(?![\w$]))"
_NUMBER = r"(?:0|[1-9]\d{0,8})"
_PLACE = rf"{_NUMBER}[ \t]+{_NUMBER}[ \t]+{_NUMBER}"
_INTEGER = r"0[xX][0-9a-fA-F]{1,16}U?|\d{1,20}U?"
_DECIMAL = r"\d{1,15}\.\d{1,15}"

_UNCLOSED = r'(?: "(?=[^"\n]*(?:\n|\Z)) | \{ (?![^;{}]*\}) )'

BLANKS = " \t\r\n\f\x1a"
"""What divides tokens (`lexer`)."""

STATEMENT = re.compile(
    rf"""
    [{BLANKS}]*+
    (?: (?: @!?({_NAME}) [{BLANKS}]+ )? (?! call\b [^;(]* \( )
        ([a-z]\w* (?: \.\w+ (?: ::\w+ )* )*) (?! [{BLANKS}]*: )                          # 1 guard, 2 head
        (?: [{BLANKS}]++ ([^;{{}}"]* (?: \{{ [^;{{}}"]* \}} [^;{{}}"]* )*) )? ;                # 3 operands
      | ({_NAME}) [ \t]* : (?! [:{BLANKS}]* \.[bc] )                                     # 4 label, of code
      | ([{{}}])                                                                         # 5 block
      | \.loc [ \t]+ ({_PLACE})                                                          # 6 place
        (?: [ \t]*,[ \t]* function_name [ \t]+ {_NAME} [ \t]*,[ \t]* inlined_at [ \t]+ ({_PLACE}) )?  # 7 where it is inlined
        (?= [ \t]* [\r\n] )
      | [^;{{}}"]* (?: (?: "[^"\n]*" | \{{ [^;{{}}]* \}} | {_UNCLOSED} ) [^;{{}}"]* )* ;  # any other
    )""",
    re.ASCII | re.VERBOSE,
)
"""A statement, from the blanks before it to its end."""

_BEGIN = r"[\n\r;{}:][ \t\f\x1a]*+"
"""What stands before a statement, but for one behind a `.loc` on its line: of blanks over several lines, those of the last."""

LABEL = re.compile(rf"{_BEGIN}({_NAME})(?=[ \t]*:(?!:))", re.ASCII)
"""What is a label, or a part of something longer, where labels can stand."""

CODE_LABEL = re.compile(rf"{LABEL.pattern}(?![ \t]*:[{BLANKS}]*\.[bc])", re.ASCII)
"""The same, but for the names of prototypes and of lists of labels or functions."""

NAMED_LIST = re.compile(rf":[{BLANKS}]*\.[bc]")
"""What stands behind the name of a prototype or a list, and behind no label of code."""

BLOCK_BEGIN = re.compile(rf"[{BLANKS}]*\{{")
"""The begin of a block, with the blanks before it."""

LIST = re.compile(rf"({_NAME})[ \t]*:[{BLANKS}]*\.branchtargets\b", re.ASCII)
"""The begin of a list of labels, with its name."""

_DECLARES = r"\.(?:reg|sreg|param|local|shared|global|const|tex|align|attribute)\b"

DECLARATION = re.compile(
    rf"{_BEGIN}({_DECLARES}[^;{{}}]*|{_NAME}[ \t]*:[{BLANKS}]*\.[bc][^;{{}}]*)",
    re.ASCII,
)
"""What declares something in a body: variables, a prototype, or a list."""

DECLARATION_BEGIN = re.compile(rf"[{BLANKS}]*(?:{_NAME}[ \t]*:[{BLANKS}]*)?(?:{_DECLARES}|\.[bc])", re.ASCII)
"""The begin of a declaration, perhaps behind a label, with the blanks before it."""

REGISTERS = re.compile(rf"\.reg[ \t]+\.(\w+)[ \t]+({_NAME}(?:[ \t]*,[ \t]*{_NAME})*)[ \t]*", re.ASCII)
"""A declaration of registers, without its `;`: their type, and their names."""

VARIABLE = re.compile(
    rf"(\.(?:reg|local|shared)[ \t][^,=<{{}}]*[ \t])({_NAME})[ \t]*((?:\[[ \t]*\d{{1,9}}[ \t]*\][ \t]*)*)", re.ASCII
)
"""The declaration of one variable, without its `;`: what stands before the name, the name, and its dimensions."""

FAMILY = re.compile(r"(\.reg[ \t][^<>,;]*<[ \t]*)([1-9]\d{0,8})([ \t]*>[ \t]*;)", re.ASCII)
"""The declaration of one family of registers: what stands before the count, the count, and what stands behind it."""

FAMILY_STATEMENT = re.compile(rf"[{BLANKS}]*{FAMILY.pattern}", FAMILY.flags)
"""The same with the blanks before it."""

OPERAND = re.compile(
    rf"""
      (?P<name> {_NAME_OR_SINK} )
    | (?P<special> %[a-z_]\w* ) \. (?P<component> [xyzw] )
    | \[ [ \t]* (?P<base> {_NAME} ) [ \t]* (?: \+ [ \t]* -? [ \t]* (?P<offset> {_INTEGER} ) [ \t]* )? \]
    | (?P<integer> {_INTEGER} )
    | -(?P<minus> {_INTEGER} )
    | (?P<decimal> {_DECIMAL} )
    | -(?P<negative> {_DECIMAL} )
    | 0[fF] (?P<single> [0-9a-fA-F]{{8}} )
    | 0[dD] (?P<double> [0-9a-fA-F]{{16}} )
    | \{{ (?P<vector> [^{{}}\[\]|]+ ) \}}
    | (?P<sign> [!-] ) (?P<signed> {_NAME} )
    | (?P<left> {_NAME_OR_SINK} ) [ \t]* \| [ \t]* (?P<right> {_NAME_OR_SINK} )
    """,
    re.ASCII | re.VERBOSE,
)
"""One operand, without the blanks around it."""

_LITERAL = r"(?<![\w.])(?:0[xX][0-9a-fA-F]{1,16}|0|[1-9]\d{0,17})(?![\d.a-tv-zA-TV-Z_])"
_EXPRESSION = rf"(?:{_LITERAL}|[-+*&|^~!()<>=?:U \t])+"

EXPRESSION = re.compile(rf"(?:\[[ \t]*({_NAME})[ \t]*\+({_EXPRESSION})\]|({_EXPRESSION}))", re.ASCII)
"""An operand that is an expression of integers without divisions, or an address with one: its name, and the expression."""

LITERAL = re.compile(_LITERAL, re.ASCII)
"""An integer in such an expression."""

_PARTS = re.compile(r"(?:[^,{\[]+|\{[^}]*\}|\[[^\]]*\])+")


def parted(operands: str) -> list[str]:
    """The operands of an instruction, each with the blanks around it."""
    if "{" not in operands:
        return operands.split(",")
    found = _PARTS.findall(operands)
    return found if ",".join(found) == operands else [operands]


def find_labels(pattern: re.Pattern[str], text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """The matches of `LABEL` or `CODE_LABEL`, as `finditer` finds them: only lines with a colon are looked at."""
    at, last = text.find(":", start, end), start
    while at >= 0:
        first = max(last, text.rfind("\n", start, at))
        line_end = text.find("\n", at, end)
        behind = line_end = end if line_end < 0 else line_end
        while behind < end and text[behind] in BLANKS:  # what follows the colon may stand on a line below
            behind += 1
        for found in pattern.finditer(text, first, min(behind + 2, end)):
            if found.start(1) >= line_end:
                break
            yield found
            last = found.end()
        at = text.find(":", line_end, end)
