"""The operands of instructions.

Sources: PTX 6.1-6.4 (registers, addresses, arrays, vectors, labels), 9.7.9 (textures: `[tex, {x, y}]`), and what
ptxas takes: an offset is `+` and a constant; `_` and `d|p` stand first; a negated operand has no offset.
"""

from __future__ import annotations

from ptxvm.diagnostics import codes
from ptxvm.syntax import tree
from ptxvm.syntax.cursor import NAME_START, NO_NAME, STATEMENT_DIRECTIVES, Recover, shorten
from ptxvm.syntax.expressions import Expressions
from ptxvm.syntax.keywords import is_keyword
from ptxvm.syntax.lexer import END

_NO_COMPONENT = STATEMENT_DIRECTIVES | {".unified", ".v2", ".v4"}
"""Words with a meaning of their own, which ptxas does not take for a component."""


def has_meaning(word: str) -> bool:
    """Does ptxas take a word for what it means elsewhere, and not for a component?"""
    return f".{word}" in _NO_COMPONENT or is_keyword(word) or word[:1].isdigit()


class Operands(Expressions):
    """Reads what can stand between the commas of an instruction."""

    def operand(self, *, first: bool) -> tree.Operand:
        """One operand of any form; `first` is that place of an instruction where results stand."""
        at, text = self.at, self.texts[self.at]
        if text == "_":
            return self._sink(first=first)
        if text[0] in NAME_START and text not in NO_NAME and text != "WARP_SZ":
            found: tree.Operand = self._named()
        elif text == "[":
            return self.address()
        elif text == "{":
            found = self.vector()
        elif text in {"-", "!"} and self.is_name(at + 1) and self.texts[at + 1] != "WARP_SZ":
            self.at += 1
            register = self.name() if text == "-" else self._bare_name()
            return tree.Unary(text, register, start=self.starts[at], end=register.end)
        elif self.starts_constant(at):
            return self.constant()
        else:
            raise self._no_operand()
        if self.texts[self.at] == "|" and first and isinstance(found, tree.Name | tree.Vector):
            return self._pair(found)
        return found

    def name(self) -> tree.Name:
        """An identifier with or without a component: `%tid.x`, or `%tid .x` as ptxas takes too."""
        at = self.at
        if not self.is_name(at):
            raise self.unexpected("a name")
        self.at += 1
        text, _, component = self.texts[at].partition(".")
        end = self.ends[at]
        after = self.texts[self.at]
        if not component and after[0] == "." and len(after) > 1 and not self.starts_statement(self.at):
            component, end = self.texts[self.at][1:], self.ends[self.at]
            self.at += 1
        if "." in component or (text == "WARP_SZ" and component):
            first, *others = component.split(".")
            taken = not has_meaning(first) and text != "WARP_SZ"
            near = self.near("." + (others[-1] if taken else first))
            raise self.fail(codes.BAD_OPERAND, f"`{shorten(self.texts[at])}` has a component too many", at, ptxas=near)
        if has_meaning(component):
            raise self.fail(codes.BAD_OPERAND, f"`.{shorten(component)}` is no component", at, ptxas=self.near("." + component))
        return tree.Name(text, component or None, start=self.starts[at], end=end)

    def _bare_name(self) -> tree.Name:
        """An identifier that takes no component here."""
        at = self.at
        found = self.name()
        if found.component:
            message = f"`.{shorten(found.component)}` cannot follow `{shorten(found.text)}` here"
            raise self.fail(codes.BAD_OPERAND, message, at, ptxas=self.near("." + found.component))
        return found

    def _named(self) -> tree.Name | tree.Binary | tree.Index:
        """`a`, `a.x`, `a+4` or `a[4]`."""
        found = self.name()
        text = self.texts[self.at]
        if text == "+" and not found.component:
            return self._offset(found)
        if text == "[" and not found.component:
            return self._index(found)
        if text == "-":
            raise self._negative_offset(found)
        return found

    def _offset(self, base: tree.Name | tree.Call) -> tree.Binary:
        """`base+constant`."""
        self.at += 1
        if self.is_name(self.at) and self.texts[self.at] != "WARP_SZ":
            raise self.fail(
                codes.BAD_OPERAND,
                f"{self.describe(self.at)} cannot be an offset",
                note="an address is a register or variable plus a constant; add registers with an instruction",
            )
        offset = self.constant()
        return tree.Binary("+", base, offset, start=base.start, end=offset.end)

    def _negative_offset(self, base: tree.Node) -> Recover:
        name = self.source.text[base.start : base.end]
        return self.fail(
            codes.BAD_OPERAND,
            "an offset is added, not subtracted",
            help=f"write `{shorten(name)}+-{shorten(self.texts[self.at + 1])}`",
        )

    def _index(self, name: tree.Name) -> tree.Index:
        """`a[index]`, where the index is a register with an offset, or a constant (PTX 6.4.2)."""
        opening = self.at
        self.at += 1
        index: tree.Operand
        if self.is_name(self.at) and self.texts[self.at] != "WARP_SZ":
            index = self._bare_name()
            if self.texts[self.at] == "+":
                index = self._offset(index)
            elif self.texts[self.at] == "-":
                raise self._negative_offset(index)
        else:
            index = self.constant()
        self.expect_close(opening)
        if self.texts[self.at] == "[":
            raise self.fail(
                codes.UNEXPECTED,
                f"expected `,` or `;`, found {self.describe(self.at)}",
                help="an array has one index here; `c[bank][offset]` of SASS is a parameter: `ld.param.u32 d, [name];`",
            )
        return tree.Index(name, index, start=name.start, end=self.ends[self.at - 1])

    def address(self) -> tree.Address:
        """`[a]`, `[a+4]`, `[16]`, or a list for textures and tensors: `[a, {x}]`, `[a, b, {x}, {y}]`, `[a, b, c]`."""
        texts, opening = self.texts, self.at
        at = opening + 1
        base: tree.Operand
        if texts[at][0] in NAME_START and "." not in texts[at] and texts[at] not in NO_NAME and texts[at] != "WARP_SZ":
            base = self.plain_name(at)
            self.at = at + 1
            if texts[at + 1] == "+":
                base = self._offset(base)
            elif texts[at + 1] == ",":
                return self._address_list(opening, base)
            elif texts[at + 1] == "-":
                raise self._negative_offset(base)
        else:
            self.at = at
            if "." in texts[at] and self.is_name(at):
                self._bare_name()
            base = self.constant()
        self._close_address(opening)
        unified = self.take(".unified")
        return tree.Address([base], unified, start=self.starts[opening], end=self.ends[self.at - 1])

    def _address_list(self, opening: int, base: tree.Name) -> tree.Address:
        """One more name or vector; behind a name `, c`, or `, {x}` with `, {y}` and then `, e, {z}` (PTX 9.7.9.27)."""
        items: list[tree.Operand] = [base]
        self.at += 1
        if self.texts[self.at] == "{":
            items.append(self.vector())
        else:
            items.append(self._bare_name())
            for place in range(2, 6):
                if not self.take(","):
                    break
                named = place == 4 or (place == 2 and self.texts[self.at] != "{")
                items.append(self._bare_name() if named else self._coordinates())
                if named and place == 2:
                    break
        self._close_address(opening)
        return tree.Address(items, start=self.starts[opening], end=self.ends[self.at - 1])

    def _coordinates(self) -> tree.Vector:
        if self.texts[self.at] != "{":
            raise self.unexpected("`{` and the coordinates")
        return self.vector()

    def _close_address(self, opening: int) -> None:
        text = self.texts[self.at]
        if text in {"*", "/", "<<"}:
            raise self.fail(
                codes.BAD_OPERAND,
                "a register in an address is not scaled",
                note="an address is a register or variable plus a constant",
            )
        if text == ",":
            raise self.unexpected("`]`")
        if text == "[":
            name = shorten(self.texts[self.at - 1])
            raise self.unexpected("`]`", f"write `[{name}+BYTES]`, or `{name}[INDEX]` without the brackets around it")
        self.expect_close(opening)

    def vector(self) -> tree.Vector:
        """`{a, b}`: names with or without component, sinks, constants (PTX 6.4.3)."""
        texts, opening = self.texts, self.at
        items: list[tree.Operand] = []
        at = opening + 1
        while True:
            text = texts[at]
            if text[0] in NAME_START and "." not in text and texts[at + 1] in {",", "}"} and text not in {"%", "$"}:
                items.append(self.plain_name(at))
                at += 1
            else:
                self.at = at
                items.append(self._element())
                at = self.at
            if texts[at] != ",":
                break
            at += 1
        self.at = at
        self.expect_close(opening, more=True)
        return tree.Vector(items, start=self.starts[opening], end=self.ends[at])

    def _element(self) -> tree.Operand:
        if self.is_name(self.at) and self.texts[self.at] != "WARP_SZ":
            return self.name()
        if self.starts_constant(self.at):
            return self.constant()
        raise self._no_operand()

    def group(self) -> tree.Group:
        """`(a, b)` of a call: names, sinks and constants, or nothing (PTX 9.7.12.5)."""
        opening = self.at
        self.at += 1
        items: list[tree.Operand] = []
        while self.texts[self.at] != ")" or items:
            if self.texts[self.at] == "_":
                items.append(self.plain_name(self.at))
                self.at += 1
            elif self.is_name(self.at) and self.texts[self.at] != "WARP_SZ":
                items.append(self._bare_name())
            elif self.starts_constant(self.at):
                items.append(self.constant())
            else:
                raise self._no_operand()
            if not self.take(","):
                break
        self.expect_close(opening, more=True)
        return tree.Group(items, start=self.starts[opening], end=self.ends[self.at - 1])

    def _sink(self, *, first: bool) -> tree.Operand:
        """`_`, or `_|p`."""
        if not first:
            raise self.fail(codes.BAD_SINK, "`_` is no value to read", note="it stands for a result that is discarded")
        sink = self.plain_name(self.at)
        self.at += 1
        return self._pair(sink) if self.texts[self.at] == "|" else sink

    def _pair(self, left: tree.Name | tree.Vector) -> tree.Pair:
        """`d|p`, with `_` for one of them."""
        self.at += 1
        if self.texts[self.at] == "_":
            if left == tree.Name("_"):
                raise self.fail(codes.BAD_SINK, "only one half of a pair can be `_`")
            right = self.plain_name(self.at)
            self.at += 1
        else:
            right = self._bare_name()
        return tree.Pair(left, right, start=left.start, end=right.end)

    def _no_operand(self) -> Recover:
        """Report what stands where an operand should."""
        text = self.texts[self.at]
        if text == "_":
            return self.fail(codes.BAD_SINK, "`_` is no value to read", note="it stands for a result that is discarded")
        if text in {",", ";", "}", ")", "]", END}:
            return self.fail(codes.MISSING_OPERAND, f"expected an operand, found {self.describe(self.at)}")
        if text[0] == '"' and len(text) > 1:
            return self.fail(codes.BAD_OPERAND, "a string is no operand")
        if text == "&":
            return self.fail(
                codes.BAD_OPERAND, "PTX has no operator for an address", help="the name of a variable is its address"
            )
        return self.unexpected("an operand")
