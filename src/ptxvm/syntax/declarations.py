"""Declarations of variables, registers and parameters, with their initialisers.

Sources: PTX 5.1 (state spaces), 5.2 (types), 5.3 (texture, sampler and surface variables), 5.4 (variables: vectors,
arrays, initialisers, alignment, `%r<100>`, attributes), 7.1 (parameters).
"""

from __future__ import annotations

from ptxvm.algebra.state_space import Space
from ptxvm.diagnostics import codes, did_you_mean, habits, listed
from ptxvm.syntax import tree
from ptxvm.syntax.cursor import NAME_START, NO_NAME, Recover, shorten
from ptxvm.syntax.lexer import integer
from ptxvm.syntax.operands import Operands
from ptxvm.syntax.tables import Constants

SPACES = frozenset(".reg .global .const .shared .local .param .tex".split())
"""The state spaces that declare (PTX 5.1)."""

_BEHIND_NAME = frozenset((",", ";", "[", "<", "="))
"""What stands behind the name in a declaration."""

TYPES = frozenset(
    (
        ".b8 .b16 .b32 .b64 .b128 .u8 .u16 .u32 .u64 .s8 .s16 .s32 .s64 .f16 .f16x2 .f32 .f64 .pred "
        ".texref .samplerref .surfref"
    ).split()
)
"""The types of variables (PTX 5.2, 5.3)."""

LINKAGE = frozenset(f".{linkage}" for linkage in tree.Linkage)
"""The linking directives (PTX 11.6)."""

_HOLDERS = {
    ".bf16": ".b16", ".bf16x2": ".b32", ".tf32": ".b32",
    ".e4m3": ".b8", ".e5m2": ".b8", ".e4m3x2": ".b16", ".e5m2x2": ".b16", ".ue8m0x2": ".b16",
    ".e2m3x2": ".b16", ".e3m2x2": ".b16", ".e2m1x2": ".b8",
}  # fmt: skip
"""The alternative formats that instructions have, and the types that hold them (PTX 5.2.3, 5.2.4)."""

_AFTER_SPACE = (*sorted(TYPES), ".align", ".attribute", ".v2", ".v4")
_VECTORS = {".v2": 2, ".v4": 4}
_POINTED = frozenset(".global .const .shared .local .texref .samplerref .surfref".split())


def type_help(text: str) -> str:
    """The type that a word was meant to be: one without its dot, one of another language, one misspelt."""
    word = text.lower().removeprefix(".")
    if f".{word}" in TYPES:
        return f"did you mean `.{word}`?"
    meant = [f"`.{each}`" for each in habits.TYPES.get(word, ()) if f".{each}" in TYPES]
    return f"did you mean {listed(meant)}?" if meant else did_you_mean(text, _AFTER_SPACE)


class Declarations(Operands):
    """Reads what comes between a state space and its `;` or `)`."""

    def variable(self, linkage: tree.Linkage | None = None, start: int | None = None) -> tree.Variable:
        """A whole declaration with its `;`, at its state space or an alignment before it."""
        first = self.at if start is None else start
        found = self._specifiers(linkage)
        while self.texts[self.at] != ";" or found.declarators:
            found.declarators.append(self._declarator())
            if not self.take(","):
                break
        self.expect_semicolon("the declaration")
        found.start, found.end = self.starts[first], self.ends[self.at - 1]
        return found

    def parameters(self) -> list[tree.Variable]:
        """`(.param .b32 a, .reg .f32 b)`: the parameters or results of a function (PTX 5.1.6, 7.1)."""
        opening = self.at
        self.expect("(")
        found: list[tree.Variable] = []
        while self.texts[self.at] != ")" or found:
            found.append(self._parameter())
            if self.texts[self.at] == ";" and self.texts[self.at + 1] in {".param", ".reg"}:
                self.report(codes.UNEXPECTED, "expected `,` or `)`, found `;`", self.span(self.at),
                            help="parameters are divided by commas")  # fmt: skip
                self.at += 1
            elif not self.take(","):
                break
        self.expect_close(opening, more=True)
        return found

    def _parameter(self) -> tree.Variable:
        first = self.at
        found = self._specifiers(None, parameter=True)
        if self.texts[self.at] == ".ptr":
            found.pointer = self._pointer()
        elif self.take(".align"):
            found.alignment = self.literal_size("the alignment", allow_warp_size=False)
        at = self.at
        name = self._declared_name(sink=True)
        dimensions: list[tree.Operand | None] = []
        if self.texts[self.at] == "[":
            dimensions = self._dimensions(most=1)
        if self.texts[self.at] in {"=", "<"}:
            raise self.fail(codes.UNEXPECTED, f"a parameter takes no `{self.texts[self.at]}`")
        end = self.ends[self.at - 1]
        found.declarators.append(tree.Declarator(name, None, dimensions, None, start=self.starts[at], end=end))
        found.start, found.end = self.starts[first], end
        return found

    # ── what stands before the names ────────────────────────────────────────────────────

    def _specifiers(self, linkage: tree.Linkage | None, *, parameter: bool = False) -> tree.Variable:
        """Space, alignment and attributes in any order, then the vector size and the type."""
        space, alignment = "", None
        attributes: list[tree.Attribute] = []
        while True:
            text = self.texts[self.at]
            if text in SPACES:
                if space:
                    self.report(codes.TWO_SPACES, f"a second state space: `{text}`", self.span(self.at),
                                help=f"leave one out: the declaration has `.{space}`",
                                ptxas="Multiple state spaces specified")  # fmt: skip
                space = self._space()
            elif text == ".align":
                self.at += 1
                alignment = self.literal_size("the alignment", allow_warp_size=False)
            elif text == ".attribute":
                attributes += self.attributes()
            else:
                break
        if text in LINKAGE:
            message = f"`{text}` must come first" if not linkage else f"`{text}` excludes `.{linkage}`"
            raise self.fail(codes.BAD_LINKAGE, message)
        if not space and not parameter and not self.is_bare_type():
            if self.is_type(text):
                raise self.without_space()
            raise self.unexpected("a state space", did_you_mean(text, SPACES))
        vector = self._vector()
        kind = self._type()
        return tree.Variable(space, kind, [], linkage, alignment, vector, None, attributes)

    def is_bare_type(self) -> bool:
        """`.b64;` or `.v2 .b32;`: without names a declaration needs no state space, as ptxas reads it."""
        at = self.at + (self.texts[self.at] in _VECTORS)
        return self.texts[at] in TYPES and self.texts[at + 1] == ";"

    def is_type(self, text: str) -> bool:
        """Does it begin what is declared: a type, or the size of a vector?"""
        return text in TYPES or text in _VECTORS

    def without_space(self) -> Recover:
        """A type where a state space should stand: ptxas reads it, and what follows, as a declaration."""
        at = self.at
        last = at + (self.texts[at] in _VECTORS)
        name, _, tail = self.texts[last + 1].partition(".")
        noticed = last + 1
        near = f".{tail.partition('.')[0]}" if name[:1] in NAME_START and tail else self.texts[noticed]
        if name[:1] in NAME_START and not tail:
            noticed, near = last + 2, self.texts[last + 2]
        declares = noticed == last + 2 and near in _BEHIND_NAME
        return self.fail(
            codes.UNKNOWN_DIRECTIVE,
            f"expected a state space, found {self.describe(at)}",
            at,
            help=f"say where it is: `.reg {self.texts[at]} …;` in registers, `.shared` or `.global` in memory",
            ptxas="No variable storage specified" if declares else self.near(near),
            related=((f"before {self.describe(noticed)}", self.span(noticed)),) * (not declares),
        )

    def _space(self) -> str:
        """A state space with its bank, if any: `const[3]` (PTX 5.1.3, up to 2.2)."""
        space = self.texts[self.at][1:]
        self.at += 1
        if space == Space.CONST and self.texts[self.at] == "[" and self.touches(self.at):
            bank = self.texts[self.at + 1]
            if integer(bank) is None or self.texts[self.at + 2] != "]":
                raise self.fail(codes.UNEXPECTED, "the bank of `.const[n]` is an integer", self.at + 1)
            self.at += 3
            space = f"const[{bank}]"
        return space

    def _vector(self) -> int | None:
        """`.v2` or `.v4` (PTX 5.4.2)."""
        text = self.texts[self.at]
        if text in _VECTORS:
            self.at += 1
            return _VECTORS[text]
        if text[:2] == ".v" and text[2:].isdigit():
            raise self.fail(
                codes.BAD_TYPE,
                f"`{shorten(text)}` is no size of a vector",
                help="variables have vectors of 2 or 4 elements",
            )
        return None

    def _type(self) -> str:
        text = self.texts[self.at]
        if text in TYPES:
            self.at += 1
            return text[1:]
        if text[0] != "." or text == ".":
            raise self.unexpected("a type", type_help(text))
        if text in {".align", ".attribute"} | SPACES:
            raise self.fail(codes.UNEXPECTED, f"expected a type, found {self.describe(self.at)}")
        holder = _HOLDERS.get(text)
        advice = f"its values live in variables of type `{holder}`" if holder else type_help(text)
        raise self.fail(codes.BAD_TYPE, f"`{shorten(text)}` is not the type of a variable", help=advice)

    def attributes(self, allowed: tuple[str, ...] = (".managed", ".unified")) -> list[tree.Attribute]:
        """`.attribute(.managed, .unified(u, v))` (PTX 5.4.8)."""
        self.at += 1
        opening = self.at
        self.expect("(", "`.attribute`")
        found = []
        while True:
            at = self.at
            text = self.texts[at]
            if text not in allowed:
                raise self.unexpected(" or ".join(f"`{name}`" for name in allowed), did_you_mean(text, allowed))
            self.at += 1
            arguments: list[tree.Operand] = []
            if text == ".unified":
                self.expect("(", "`.unified`")
                arguments.append(self.literal_size("the first half of the identity", allow_warp_size=False))
                self.expect(",", "the first half of the identity")
                arguments.append(self.literal_size("the second half of the identity", allow_warp_size=False))
                self.expect(")", "the second half of the identity")
            found.append(tree.Attribute(text[1:], arguments, start=self.starts[at], end=self.ends[self.at - 1]))
            if not self.take(","):
                break
        self.expect_close(opening, more=True)
        return found

    def _pointer(self) -> tree.Pointer:
        """`.ptr .global .align 16` or `.ptr .texref`: what a kernel parameter points to (PTX 7.1, 5.1.6.2)."""
        at = self.at
        self.at += 1
        space = alignment = None
        if self.texts[self.at] in _POINTED:
            space = self.texts[self.at][1:]
            self.at += 1
        if self.take(".align"):
            alignment = self.literal_size("the alignment", allow_warp_size=False)
        return tree.Pointer(space, alignment, start=self.starts[at], end=self.ends[self.at - 1])

    # ── the names ───────────────────────────────────────────────────────────────────────

    def _declared_name(self, *, sink: bool = False) -> str:
        text = self.texts[self.at]
        if text == "_" and not sink:
            raise self.fail(codes.BAD_SINK, "`_` cannot be declared")
        if text[0] not in NAME_START or (text in NO_NAME and text != "_"):
            advice = "a pointer is an integer of the size of an address: `.u64 name`" if text == "*" else ""
            raise self.unexpected("a name", advice)
        if "." in text:
            raise self.fail(
                codes.UNEXPECTED,
                f"a name cannot hold a dot: `{shorten(text)}`",
                ptxas=self.near(text[text.index(".") :]),
            )
        if text == "WARP_SZ":
            raise self.fail(codes.UNEXPECTED, "`WARP_SZ` is a constant, not a name to declare")
        self.at += 1
        return text

    def _declarator(self) -> tree.Declarator:
        """`a`, `%r<100>` or `a[2][3] = {…}`."""
        at = self.at
        name = self._declared_name()
        count: tree.Operand | None = None
        dimensions: list[tree.Operand | None] = []
        initial: tree.Operand | None = None
        text = self.texts[self.at]
        if text == "<":
            self.at += 1
            count = self.literal_size("the count in `<n>`")
            self.expect(">", "the count")
        elif text == "[":
            dimensions = self._dimensions()
        if self.take("="):
            initial = self._initial()
        return tree.Declarator(name, count, dimensions, initial, start=self.starts[at], end=self.ends[self.at - 1])

    def _dimensions(self, most: int = 1 << 30) -> list[tree.Operand | None]:
        """`[2][3]`; only the first may be empty (PTX 5.4.3)."""
        found: list[tree.Operand | None] = []
        while self.texts[self.at] == "[":
            if len(found) == most:
                raise self.fail(codes.UNEXPECTED, "a parameter has one dimension at most")
            opening = self.at
            self.at += 1
            if self.texts[self.at] == "]" and not found:
                found.append(None)
            else:
                found.append(self.literal_size("the size of an array"))
            self.expect_close(opening)
        return found

    # ── initialisers (PTX 5.4.4) ────────────────────────────────────────────────────────

    def _initial(self) -> tree.Operand:
        if self.texts[self.at] == "{":
            return self.nested(self._initial_list)
        if self.texts[self.at] == "[":
            raise self.unexpected("an initial value", "the values of an array stand in braces: `{1, 2}`")
        return self._initial_scalar()

    def _initial_list(self) -> tree.Operand:
        opening = self.at
        if self.starts[opening] in self.unread:
            return self._unread_list()
        self.at += 1
        items: list[tree.Operand] = []
        while self.texts[self.at] != "}" or items:
            items.append(self._initial())
            if not self.take(","):
                break
        self.expect_close(opening, more=True)
        return tree.Vector(items, start=self.starts[opening], end=self.ends[self.at - 1])

    def _unread_list(self) -> tree.Vector:
        start, end = self.starts[self.at], self.ends[self.at + 1]
        self.at += 2
        self.unread_tables.add(start)
        return tree.Vector(Constants(self.tokens.text, start, end), start=start, end=end)

    def _initial_scalar(self) -> tree.Operand:
        """A constant, an address, a byte of an address `0xFF00(a)`, or a field `width = 5` of a texture (PTX 5.3)."""
        at = self.at
        if self.is_plain_name(at) and self.texts[at] != "WARP_SZ":
            if self.texts[at + 1] == "=":
                return self._field()
            return self._symbol()
        if self.texts[at + 1] == "(" and self.texts[at][0].isdigit():
            return self._byte()
        if self.texts[at][0] == '"' and len(self.texts[at]) > 1:
            raise self.fail(
                codes.UNEXPECTED,
                "a string is no initialiser",
                help="write its characters as numbers, and a 0 behind them",
            )
        if self.is_name(at) and "." in self.texts[at]:
            raise self.fail(codes.UNEXPECTED, f"{self.describe(at)} is no address of a variable")
        return self.constant()

    def _symbol(self) -> tree.Operand:
        """`a`, `a+4` or `generic(a)+4`."""
        at = self.at
        self.at += 1
        name = self.plain_name(at)
        found: tree.Name | tree.Call = name
        if self.texts[self.at] == "(":
            if name.text != "generic":
                raise self.fail(
                    codes.UNEXPECTED,
                    f"`{shorten(name.text)}` is no function",
                    at,
                    noticed=at,
                    help=did_you_mean(name.text, ["generic"]),
                )
            opening = self.at
            self.at += 1
            argument = self._bare_name()
            self.expect_close(opening)
            found = tree.Call(name, argument, start=name.start, end=self.ends[self.at - 1])
        if self.texts[self.at] == "+":
            return self._offset(found)
        if self.texts[self.at] == "-":
            raise self._negative_offset(found)
        return found

    def _byte(self) -> tree.Call:
        """`0xFF00(a)`: eight bits of an address, chosen by a mask."""
        mask = self.number()
        if not isinstance(mask, tree.Integer):
            raise self.fail(codes.UNEXPECTED, "a mask is an integer, such as `0xFF00`", self.at - 1)
        opening = self.at
        self.at += 1
        is_symbol = self.is_plain_name(self.at) and self.texts[self.at] != "WARP_SZ"
        argument = self._symbol() if is_symbol else self.constant()
        self.expect_close(opening)
        return tree.Call(mask, argument, start=mask.start, end=self.ends[self.at - 1])

    def _field(self) -> tree.Binary:
        """`width = 512` or `addr_mode_0 = clamp_to_edge`."""
        left = self.plain_name(self.at)
        self.at += 2
        right: tree.Operand
        if self.is_plain_name(self.at) and self.texts[self.at] != "WARP_SZ":
            right = self.plain_name(self.at)
            self.at += 1
        else:
            right = self.constant()
        return tree.Binary("=", left, right, start=left.start, end=right.end)
