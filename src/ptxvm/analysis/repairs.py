"""Repairs of wrong instructions: suggests valid modifiers and orders of operands that are near.

`accepts` decides whether an instruction with these modifiers and operands has no problem at all; `takes` decides only
whether a form has these modifiers and takes the operands, for this version and target.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import permutations

from ptxvm.algebra.types import Type
from ptxvm.analysis.ptxas_missing import in_its_order, missed_by_ptxas
from ptxvm.analysis.ptxas_modifiers import all_words, is_strange, long_opcode, opcode_words, refused_by_ptxas
from ptxvm.diagnostics import Diagnostic, closest, did_you_mean, edit_distance, habits, listed
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA, Decoded, Problem
from ptxvm.isa.notation import Form, Match, ModifierSlot
from ptxvm.isa.operand_types import Shape
from ptxvm.syntax.cursor import STATEMENT_DIRECTIVES

Words = tuple[str, ...]
Accepts = Callable[[Words, tuple[Shape, ...]], bool]
NEAR_NAME = re.compile(r"(?<=Parsing error )near '([A-Za-z_][\w$.:]*)'")
NO_MODIFIERS = STATEMENT_DIRECTIVES - {".global", ".const", ".shared", ".local", ".param"}
"""Words that are directives, and so no modifiers."""
MOST = 4  # suggestions of one help
MOST_OPERANDS = 4  # whose orders are tried
DIRECTIVES = frozenset("reg global const shared local param entry func visible extern weak version target pragma align".split())


# ── opcodes ─────────────────────────────────────────────────────────────────────────────


def unknown_opcode(opcode: str, refused: Sequence[str] = ()) -> Problem:
    """PTX has no such instruction: say which was probably meant; ptxas names modifiers that it does not know before that."""
    first, *more = [*(f"Unknown modifier '.{word}'" for word in refused), f"Not a name of any known instruction: '{opcode}'"]
    help = opcode_help(opcode)
    return Problem("P0301", f"unknown instruction '{opcode}'", help=help, ptxas=first, consequence="\n".join(more))


def opcode_help(opcode: str) -> str:
    """The opcode or syntax that an unknown opcode probably stands for."""
    if opcode[0] in "%$":
        return f"an instruction starts with its opcode, and a guard with `@`: `@{opcode} …`"
    if opcode.lower() in DIRECTIVES:
        return f"a directive starts with a dot: `.{opcode.lower()}`"
    if said := habits.in_ptx(opcode):
        return said
    if opcode.lower() in ISA.by_opcode:
        return f"did you mean `{opcode.lower()}`? Opcodes are in lower case"
    return glued(opcode) or did_you_mean(opcode, ISA.by_opcode)


def glued(opcode: str) -> str:
    """`addu32`, `mov32` or `add_s32`, which lack the dot before the type."""
    stem = opcode.lower().rstrip("0123456789")
    size = opcode[len(stem) :]
    for cut in range(len(stem), 1, -1):
        head, kind = stem[:cut].rstrip("_"), stem[cut:]
        known = "b" if size and not kind else kind
        if head in ISA.by_opcode and f"{known}{size}" in Type.named:
            return f"a modifier follows a dot: `{head}.{known}{size}`"
    return ""


# ── modifiers ───────────────────────────────────────────────────────────────────────────


def misfit(opcode: str, words: Words, shapes: tuple[Shape, ...], accepts: Accepts, takes: Accepts) -> Problem:
    """The problem of modifiers that no form takes: one too many, or one that is missing."""
    matches = [(form, form.match(words)) for _, form in ISA.by_opcode[opcode]]
    least = min(distance(match) for _, match in matches)
    nearest = [(form, match) for form, match in matches if distance(match) == least]
    if nearest[0][1].extra:
        return too_much(opcode, words, nearest[0], shapes, accepts)
    return missing(opcode, words, nearest, shapes, accepts, takes)


def distance(match: Match) -> tuple[int, int]:
    """How far some modifiers are from those of a form."""
    return len(match.extra) + len(match.missing), len(match.missing)


def too_much(opcode: str, words: Words, near: tuple[Form, Match], shapes: tuple[Shape, ...], accepts: Accepts) -> Problem:
    """The problem of a modifier that no form has together with the others."""
    form, match = near
    at = next((n for n in match.extra if is_strange(opcode, words, n)), match.extra[0])
    word = words[at]
    help = other_word(opcode, words, at, shapes, accepts) or f"the form nearest to this is `{form.text};`"
    ptxas, *others = refused_by_ptxas(opcode, words, at)
    return Problem("P0305", f"'.{word}' does not fit here in '{opcode}'", word=word, help=help,
                   ptxas=ptxas, consequence="\n".join(others))  # fmt: skip


def near_opcodes(syntax: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Errors of syntax; at a head ptxas names the directive within it, or the opcode: `mul.wide` of `mul.wide.u32`."""

    def opcode(match: re.Match[str]) -> str:
        load_catalog()
        name, *words = match[1].split(".")
        if directive := next((f".{word}" for word in words if f".{word}" in NO_MODIFIERS), ""):
            return f"near '{directive}'"
        return f"near '{'.'.join((name, *(opcode_words(name, tuple(words)) if name in ISA.by_opcode else ())))}'"

    return [replace(each, ptxas=NEAR_NAME.sub(opcode, each.ptxas)) if NEAR_NAME.search(each.ptxas) else each for each in syntax]


def other_word(opcode: str, words: Words, at: int, shapes: tuple[Shape, ...], accepts: Accepts) -> str:
    """A help that replaces or removes a modifier; empty if nothing fits."""
    word = words[at]
    known = [c for c in all_words(opcode) if c not in words]
    fitting = [c for c in known if accepts((*words[:at], c, *words[at + 1 :]), shapes)]
    for group in (alike(word, fitting), known):
        if meant := [c for c in habits.modifiers(word) if c in group]:
            return question(meant)
        if near := nearest_of(word, alike(word, group)):
            return question(near)
    if accepts((*words[:at], *words[at + 1 :]), shapes):
        return f"leave `.{word}` out"
    return question(fitting) if 0 < len(fitting) <= MOST else ""


def alike(word: str, choices: list[str]) -> list[str]:
    """The choices that are floats, or integers, as the type is; all choices if none is, or if they are no types."""
    if word not in Type.named or any(c not in Type.named for c in choices):
        return choices
    return [c for c in choices if Type.named[c].is_float == Type.named[word].is_float] or choices


def nearest_of(word: str, choices: Sequence[str]) -> list[str]:
    """The choices that are nearest by edit distance, near enough to be meant."""
    if not closest(word, choices):
        return []
    least = min(edit_distance(word, c) for c in choices)
    return [c for c in choices if edit_distance(word, c) == least][:MOST]


def missing(
    opcode: str,
    words: Words,
    nearest: list[tuple[Form, Match]],
    shapes: tuple[Shape, ...],
    accepts: Accepts,
    takes: Accepts,
) -> Problem:
    """The problem of a missing modifier: names all choices, and suggests those that fit the operands."""
    choices = dict.fromkeys(f".{c}" for _, match in nearest for c in match.missing[0].order)
    heads = dict.fromkeys(head for form, match in nearest for head in completed(form, match, match.missing[0]))
    fitting = sorted((head for head in heads if takes(head, shapes)), key=unlikelihood)
    if len(fitting) <= MOST:  # a longer list is not shown, so rules need not shorten it
        fitting = [head for head in fitting if accepts(head, shapes)] or fitting
    one_of = "one of " if len(choices) > 1 else ""
    form, match = nearest[0]
    help = heads_help(opcode, fitting) or f"the form is `{form.text};`"
    ptxas, *others = in_its_order(missed_by_ptxas(long_opcode(opcode, words), match.missing, words))
    return Problem("P0308", f"'{opcode}' lacks a modifier: {one_of}{listed(list(choices))}", help=help,
                   ptxas=ptxas, consequence="\n".join(others))  # fmt: skip


def unlikelihood(head: Words) -> int:
    """A rank for sorting: integers are more likely than floats, and floats more likely than packed types."""
    types = [Type.named[word] for word in head if word in Type.named]
    return max((2 * t.is_packed + t.is_float for t in types), default=0)


def heads_help(opcode: str, heads: Sequence[Words]) -> str:
    """A help that lists some heads; empty if there are none, or too many."""
    shown = [f"`{'.'.join((opcode, *head))}`" for head in heads]
    return f"write {listed(shown)}" if 0 < len(shown) <= MOST else ""


def completed(form: Form, match: Match, slot: ModifierSlot) -> Iterable[Words]:
    """The modifiers with one more, in the order of the form."""
    for choice in slot.order:
        bound = match.bound | {slot.name: choice}
        yield tuple(bound[s.name] for s in form.slots if s.name in bound)


def question(words: Sequence[str]) -> str:
    """Did you mean one of these?"""
    return f"did you mean {listed([f'`.{word}`' for word in words[:MOST]])}?"


# ── operands ────────────────────────────────────────────────────────────────────────────


def written(decoded: Decoded) -> str:
    """The syntax line with the modifiers chosen: `ld.global.u32 d, [a];`."""
    return f"{decoded.mnemonic} {decoded.form.text.partition(' ')[2]};"


def reordered(decoded: Decoded, words: Words, shapes: tuple[Shape, ...], accepts: Accepts) -> Problem | None:
    """The problem of operands that fit in another order; None if none does."""
    count = len(shapes)
    if not 2 <= count <= MOST_OPERANDS or not any(accepts(words, order) for order in permutations(shapes) if order != shapes):
        return None
    opcode = decoded.form.opcode
    return Problem("P0303", f"the operands of '{opcode}' stand in another order", help=f"the form is `{written(decoded)}`",
                   ptxas=f"Arguments mismatch for instruction '{opcode}'")  # fmt: skip


def other_type(decoded: Decoded, words: Words, shapes: tuple[Shape, ...], accepts: Accepts) -> Problem | None:
    """The problem of a type that fits no operand, if another type fits all of them."""
    opcode = decoded.form.opcode
    for at, word in enumerate(words):
        if word in Type.named:
            fitting = [c for c in all_words(opcode) if c in Type.named and accepts((*words[:at], c, *words[at + 1 :]), shapes)]
            fitting = alike(word, fitting)
            if fitting:
                types = dict.fromkeys(str(s.type) for s in shapes if s.kind == "register")
                said = f"'.{word}' does not fit the operands, which are {listed(list(types), 'and')} registers"
                return Problem("P0304", said, word=word, help=question(fitting),
                               ptxas=f"Arguments mismatch for instruction '{opcode}'")  # fmt: skip
    return None


def rule_help(found: Problem, decoded: Decoded, words: Words, shapes: tuple[Shape, ...], accepts: Accepts) -> str:
    """A help for a broken rule: modifiers with which there is no problem."""
    opcode = decoded.form.opcode
    word = found.word.lstrip(".")
    if word in words:
        return other_word(opcode, words, words.index(word), shapes, accepts)
    fitting = [head for head in with_one_more(opcode, words) if accepts(head, shapes)]
    return heads_help(opcode, fitting)


def with_one_more(opcode: str, words: Words) -> Iterable[Words]:
    """The heads with one more modifier, each once."""
    found: dict[Words, None] = {}
    for _, form in ISA.by_opcode[opcode]:
        match = form.match(words)
        if not match.extra and len(match.missing) <= 1:
            free = match.missing or tuple(s for s in form.slots if s.name not in match.bound)
            found |= dict.fromkeys(head for slot in free for head in completed(form, match, slot))
    return found
