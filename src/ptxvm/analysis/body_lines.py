"""The lines of a body that is checked: which of them are known, and what is remembered of those that turn out right."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from functools import cached_property

from ptxvm.algebra.types import Type
from ptxvm.analysis.known_lines import (
    LONGEST_BLOCK,
    STRETCH,
    Known,
    Normalisation,
    Stretch,
    TooLarge,
    UnifiedFamily,
    own_names,
    unified,
    unified_families,
    with_tokens,
)
from ptxvm.analysis.memo import Key, Left, Memo
from ptxvm.analysis.names_ahead import (
    MARKS,
    NAME_MARK,
    OWN_MARK,
    PARAMETER_MARK,
    Declared,
    Tokens,
    ahead,
    declarations,
    is_opcode,
)
from ptxvm.analysis.operand_forms import Form, OperandForms
from ptxvm.analysis.program import STACK, Function
from ptxvm.analysis.scope import NameScope, register_shape
from ptxvm.analysis.symbols import Register, Symbol, Table, Variable
from ptxvm.isa.operand_types import Shape
from ptxvm.syntax import tree
from ptxvm.syntax.alike import KEPT_NAMES
from ptxvm.syntax.chunks import chunk_end
from ptxvm.syntax.statements import BLANKS

MOST_CHANGES = 8
"""A body whose registers are declared again and again has no known lines."""

LABELS = Shape("table", detail="branchtargets")
"""The shape of a list of labels."""


class BlockCheck:
    """A block under check: the scope of its names, its labels, and whether an instruction stands above.

    `lines` are those that are right in this block; `hides`: in it, a name with `%` means something else than around it.
    `first` is the number of its first line, and `mentioned` what it mentions, where it can be known as a whole, else -1.
    Where it `passes` arguments it is known in its function alone: what that calls and loads is looked at together.
    """

    __slots__ = ("first", "forms", "hides", "labels", "lines", "mentioned", "passed", "passes", "scope")

    def __init__(self, scope: NameScope, forms: OperandForms, *, hides: bool = False, first: int = -1) -> None:
        self.scope, self.forms, self.hides, self.first = scope, forms, hides, first
        self.passed = self.passes = False
        self.mentioned: set[str] = set()
        self.labels: set[str] = set()
        self.lines: set[str] = set()

    def forget(self) -> None:
        """Forget what names mean, as others may be declared by now."""
        self.forms.forget()
        self.lines.clear()


class BodyLines:
    """The lines of one body, a stretch at a time.

    `frames` are the blocks that are open, `labels` the names of all labels, and `labels_ahead` of those that are entered
    before they are reached.  `variable` gives what a declaration like one that is right declares; `statics` are the variables
    outside of the stack that are entered ahead.  `normalisation` takes stretches apart.  `numbers_names`: blocks are known
    whatever the names are that they declare.
    """

    def __init__(
        self,
        text: str,
        end: int,
        memo: Memo,
        frames: Sequence[BlockCheck],
        labels: Collection[str],
        function: Function,
        *,
        variable: Callable[[Declared], Register | Variable | None],
        normalisation: Normalisation,
        usual: bool,
        numbers: bool = True,
    ) -> None:
        self.text, self.end, self.memo, self.frames, self.labels = text, end, memo, frames, labels
        self.function, self.has_usual_names, self.numbers_names = function, usual, numbers
        self.variable, self.normalisation = variable, normalisation
        self.statics: list[Variable] = []
        signature = function.signature
        self.formals = {each for each in (*signature.results, *signature.parameters) if isinstance(each, Variable)}
        self.labels_ahead: set[str] = set()
        self.known: Known | None = None
        self.stretch: Stretch | None = None
        self.families: list[UnifiedFamily] | None = None
        self.tokens = Tokens()
        self.changes = 0
        self.depends_on_constants = False

    def constants_matter(self) -> bool:
        """Were known lines right because of their constants?"""
        return self.depends_on_constants or (self.stretch is not None and self.stretch.depends_on_constants)

    def skip(self, at: int, *, skips_declarations: bool) -> tuple[int, int]:
        """The place behind the known lines from here on, and the number of the line there; -1 where there is none.

        `skips_declarations`: those of names ahead need not be looked at again.
        """
        end, frame, stretch, start = self.end, self.frames[-1], self.stretch, at
        if frame.hides:
            return at, -1
        if stretch is not None and at < stretch.starts[-1] and at != stretch.starts[number := stretch.number(at)]:
            start = stretch.starts[number + 1]
            if self.text[at:start].strip(BLANKS):
                return at, -1
        while start < end:
            if self.stretch is None or start >= self.stretch.starts[-1]:
                self.depends_on_constants = self.constants_matter()
                self.stretch = self.stretch_from(start)
                for each in self.frames:
                    each.first = -1
            if self.stretch is None or self.known is None:
                return at, -1
            number = self.stretch.number(start)
            declaring = self.known.declaring if skips_declarations else frozenset()
            first = self.stretch.first_unknown(number, self.known, frame.lines, declaring)
            frame.passed = frame.passed or first > number
            at = start = self.stretch.starts[first]
            if first < len(self.stretch.plain):
                return at, first
        return at, -1

    def stretch_from(self, start: int) -> Stretch | None:
        """The lines from a place on; None where the names of the body are such that no line of another is right here."""
        if self.families is None and self.changes < MOST_CHANGES:
            self.see_names()
        if self.known is not None and self.families is not None:
            with suppress(TooLarge):
                return self.look_ahead(start, chunk_end(self.text, start, self.end, STRETCH), self.families)
        self.known, self.families, self.changes = None, None, MOST_CHANGES
        return None

    def see_names(self) -> None:
        """See what the names of the outermost block stand for in lines."""
        self.changes += 1
        if not self.has_usual_names:
            return
        scope = self.frames[0].scope
        self.families = unified_families(scope, self.memo.forms)
        self.known = self.memo.lines.of(entry=self.function.entry)
        self.tokens = Tokens()
        labels = self.labels_ahead
        if labels:
            token = f"{NAME_MARK}{self.memo.forms.label}"
            self.tokens.enter_all([name for name in labels if not is_opcode(name)], token)
        for name, symbol in scope.names.items():
            if name not in labels:
                self.enter_token(name, symbol)

    def token(self, name: str, symbol: Symbol) -> str:
        """What stands for a name of the outermost block: variables other than parameters and results are the body's own."""
        if isinstance(symbol, Register | Table):
            return f"{NAME_MARK}{self.memo.forms['name', symbol.shape]}"
        if symbol in self.formals and (form := self.frames[0].forms.variable("name", symbol, name)) is not None:
            return f"{PARAMETER_MARK}{self.memo.forms[form]}"
        return OWN_MARK + name

    def look_ahead(self, start: int, end: int, families: Sequence[UnifiedFamily]) -> Stretch:
        """Some lines; names that they declare in the outermost block are entered where their meaning is certain."""
        text, tokens = self.text, self.tokens
        declared = list(declarations(text, start, end, len(self.frames) - 1))
        own = {name for frame in self.frames[1:] for name in frame.scope.names}
        certain: set[str] = set()
        names = own.union(*[each.names for each in declared])
        if not (
            tokens.are_needed_in(text, start, end)
            or any(each.kind for each in declared)
            or any(name[0] == "%" for name in names)
        ):
            stretch = Stretch(text, start, end, families, self.normalisation)
            stretch.own, stretch.inner = names, self.inner_names(declared)
            return stretch

        def look(words: list[str]) -> list[str]:
            found = ahead(declared, words, self.new_names, self.is_right)
            for name, each in found.certain.items():
                self.foresee(name, each)
            own.update(found.own)
            certain.update(found.certain)
            return tokens.of_all(words, own)

        inner = self.inner_names(declared)
        stretch = Stretch(text, start, end, families, self.normalisation, look)
        stretch.ahead, stretch.own, stretch.inner = certain, own, inner
        return stretch

    def inner_names(self, declared: Sequence[Declared]) -> frozenset[str]:
        """The names that blocks of some lines declare, labels among them, and that mean nothing around these blocks."""
        if not self.numbers_names:
            return frozenset()
        found = self.inner_labels.union(*[each.names for each in declared if each.is_inner])
        if not found:
            return found
        outer = KEPT_NAMES.union(*[each.names for each in declared if not each.is_inner])
        scope = self.frames[-1].scope
        return frozenset(
            name for name in found - outer if name[0] != "%" and not is_opcode(name) and scope.declared(name) is None
        )

    @cached_property
    def inner_labels(self) -> frozenset[str]:
        """The labels that are not certain to be those of the outermost block."""
        return frozenset(self.labels).difference(self.labels_ahead)

    def new_names(self, names: Collection[str]) -> set[str]:
        """The names that have no meaning yet in the outermost block."""
        return self.frames[0].scope.undeclared(names).difference(self.labels)

    def is_right(self, declared: Declared) -> bool:
        """Is the declaration of a variable right, which is one of a sort of its own?"""
        return self.variable(declared) is not None

    def foresee(self, name: str, declared: Declared) -> None:
        """Enter a register, a variable or a list of labels that is declared below."""
        scope, kind = self.frames[0].scope, declared.kind
        form: Form
        if isinstance(kind, tuple):
            made = scope.names[name] = self.made(name, declared)
            if isinstance(made, Variable) and made.space not in STACK:
                self.statics.append(made)
            form = "declared", kind
        elif kind == "list":
            scope.names[name] = Table(name, "branchtargets", (), shape=LABELS)
            form = "name", LABELS
        else:
            type = Type.named[kind]
            symbol = scope.names[name] = Register(name, type, shape=register_shape(type, 1))
            form = "name", symbol.shape
        self.tokens.enter(name, f"{NAME_MARK}{self.memo.forms[form]}")

    def made(self, name: str, declared: Declared) -> Register | Variable | None:
        """The variable of a name that is declared like one that is right."""
        model = self.variable(declared)
        if not isinstance(model, Variable) or not isinstance(model.node, tree.Declarator):
            return model and model.renamed(name)
        node, start = model.node, declared.start + len(declared.kind[0])
        end = start + len(name) + node.end - node.start - len(model.name)
        declarator = tree.Declarator(name, node.count, node.dimensions, node.initial, start=start, end=end)
        return model.renamed(name, node=declarator)

    def enter_token(self, name: str, symbol: Symbol) -> None:
        """Let lines have what stands for a name of the outermost block."""
        if not is_opcode(name):
            self.tokens.enter(name, self.token(name, symbol))

    def line(self, number: int, at: int) -> tuple[int, int] | None:
        """The numbers of the first and last line of a statement that ends at a place, if it has them for itself."""
        stretch = self.stretch
        if number < 0 or stretch is None or self.known is None or self.frames[-1].hides or at > stretch.starts[-1]:
            return None
        last = stretch.number(at - 1)
        alone = not self.text[at : stretch.starts[last + 1]].strip(BLANKS)
        return (number, last) if alone and last - number < LONGEST_BLOCK else None

    def remember(self, number: int, found: re.Match[str], left: Left, key: Key) -> None:
        """Remember the lines of an instruction that is right, where it has them for itself."""
        frame, stretch, known = self.frames[-1], self.stretch, self.known
        if stretch is None or known is None:
            return
        lines = self.line(number, found.end())
        if lines is not None and left is Left.CONSTANTS and stretch.is_exact(*lines):
            left = Left.NOTHING
        text = "" if lines is None else stretch.text(*lines)
        named = own_names(text.replace(found[2], "", 1) if text else self.with_forms(f"{found[1] or ''} {found[3] or ''}"))
        if left is Left.CONSTANTS:
            frame.first = -1
        else:
            frame.mentioned.update(named)
            frame.passes = frame.passes or left is Left.PARAMETER
        if lines is None:
            return
        if left is Left.CONSTANTS:
            if not named and lines[0] == lines[1] and PARAMETER_MARK not in text:
                known.add(known.exact, stretch.lines[number].rstrip(BLANKS))
        elif named or left is Left.PARAMETER:
            frame.lines.add(text)
        else:
            known.add(known.plain, text)
            if (shared := self.memo.shared.get(key)) is not None:
                known.share(text, shared[1])

    def with_forms(self, text: str) -> str:
        """A piece of a text that is right, with the forms of names."""
        for family in self.families or ():
            text = unified(text, family)
        own = self.stretch.own if self.stretch is not None else ()
        return with_tokens(text, lambda words: [self.tokens.of(word, own) for word in words])

    def remember_declaring(self, number: int, at: int) -> None:
        """Remember the lines of a declaration of names ahead, where it has them for itself."""
        lines = self.line(number, at)
        if lines is not None and self.stretch is not None and self.known is not None:
            text = self.stretch.text(*lines)
            if not own_names(text):
                self.known.add(self.known.declaring, text)

    def remember_block(self, block: BlockCheck, at: int) -> None:
        """Remember a block that is right and leaves no trace around it, where it has its lines for itself."""
        around, stretch, known = self.frames[-1], self.stretch, self.known
        others = {name for name in block.mentioned if name not in block.scope.names and not block.scope.family_of(name)}
        around.mentioned |= others
        around.passes = around.passes or block.passes
        if not block.hides and (lines := self.line(block.first, at)) is not None and stretch is not None and known is not None:
            text = stretch.text(*lines)
            if stretch.inner and stretch.inner.isdisjoint(others):
                text = stretch.numbered(text)
            (around.lines if others or block.passes else known.plain).add(text)

    def is_inner(self, name: str) -> bool:
        """Does a name mean nothing around the block that declares it?"""
        return self.stretch is not None and name in self.stretch.inner

    def remember_here(self, number: int, at: int) -> None:
        """Remember the lines of a statement that is right in its block: a `.loc`, or a call of which the names are passed."""
        if (lines := self.line(number, at)) is not None and self.stretch is not None:
            self.frames[-1].lines.add(self.stretch.text(*lines))

    def remember_pragma(self, number: int, at: int) -> None:
        """Remember the line of a pragma, if its string holds no number, and nothing that is taken for a name."""
        lines, stretch = self.line(number, at), self.stretch
        if lines is not None and stretch is not None and stretch.is_exact(*lines):
            text = stretch.text(*lines)
            if not any(mark in text for mark in MARKS):
                self.frames[-1].lines.add(text)

    # ── names that are declared ────────────────────────────────────────────────────────────────────

    def is_own(self, name: str) -> bool:
        """Does a name that is declared stand as itself in the lines at hand, and in those that follow?"""
        lines = self.stretch
        return (lines is None or name in lines.own) and self.frames[0].scope.family_of(name) is None

    def declared(self, names: Sequence[str], *, families: bool) -> None:
        """Names are declared in the outermost block."""
        if families or not all(self.is_own(name) for name in names):
            self.known = self.stretch = self.families = None
        else:
            for name in names:
                self.enter_token(name, self.frames[0].scope.names.get(name))
