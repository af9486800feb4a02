"""The directives that are neither declarations nor functions.

Sources: PTX 11.1 (module), 11.4 and 11.7 (performance, clusters), 11.5 (debugging), 11.2.3 (alias).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxvm.diagnostics import codes
from ptxvm.syntax import tree
from ptxvm.syntax.cursor import NAME_START, STATEMENT_DIRECTIVES
from ptxvm.syntax.declarations import TYPES, Declarations
from ptxvm.syntax.lexer import END, INTERMEDIATE_SOURCES, integer
from ptxvm.syntax.tables import section_lines

_MOST_TARGETS = 65_536

HEADER = (".version", ".target", ".address_size")
"""The directives that open a module, in this order (PTX 11.1)."""

_UP_TO_THREE = frozenset(".maxntid .reqntid .reqnctapercluster".split())
_ONE = frozenset(".maxnreg .minnctapersm .maxnctapersm .maxclusterrank .abi_preserve .abi_preserve_control".split())
_BARE = frozenset(".explicitcluster .blocksareclusters .noreturn".split())
_LISTS = frozenset((".language",))

KERNEL_DIRECTIVES = (
    ".maxntid .reqntid .maxnreg .minnctapersm .maxnctapersm .reqnctapercluster .maxclusterrank .explicitcluster "
    ".blocksareclusters .pragma .language"
).split()
"""What may stand between the parameters and the body of a kernel (PTX 11.4, 11.7, 11.8)."""

PROTOTYPE_DIRECTIVES = [".noreturn", ".abi_preserve", ".abi_preserve_control"]
"""The same for the prototype of a call: in this order."""

FUNCTION_DIRECTIVES = [*PROTOTYPE_DIRECTIVES, ".language"]
"""The same for a function: in this order."""

_DIRECTIVES = {"kernel": KERNEL_DIRECTIVES, "function": FUNCTION_DIRECTIVES, "prototype": PROTOTYPE_DIRECTIVES}

_BYTES = frozenset(map(str, range(256)))
_DWARF_TYPES = frozenset(
    (".b8", ".b16", ".b32", ".b64", ".u8", ".u16", ".u32", ".u64", ".s8", ".s16", ".s32", ".s64", ".f32", ".f64")
)
_NO_SECTION = TYPES.union(STATEMENT_DIRECTIVES, KERNEL_DIRECTIVES, FUNCTION_DIRECTIVES) - {".version"}
"""Words of PTX that name no section; ptxas lets `.version` pass."""


class Directives(Declarations):
    """Reads directives, each at its own word."""

    def directive(self) -> tree.Directive | tree.Location | tree.Section | tree.IntermediateSources:
        """Any directive whose word has a method here; the caller knows that it has."""
        methods: dict[str, Callable[[], tree.Directive | tree.Location | tree.Section | tree.IntermediateSources]] = {
            ".version": self._version,
            ".target": self._target,
            ".address_size": self._address_size,
            ".file": self._file,
            ".pragma": self._pragma,
            ".alias": self._alias,
            ".loc": self._location,
            ".loc_intermediate": self._intermediate_location,
            ".section": self._section,
            INTERMEDIATE_SOURCES: self._intermediate_sources,
        }
        return methods[self.texts[self.at]]()

    def _finish(self, first: int, arguments: list[tree.Operand]) -> tree.Directive:
        name = self.texts[first][1:]
        return tree.Directive(name, arguments, start=self.starts[first], end=self.ends[self.at - 1])

    def _integer(self, expected: str) -> tree.Integer:
        """An integer literal without a sign."""
        at, text = self.at, self.texts[self.at]
        value = integer(text)
        if value is None:
            raise self.unexpected(expected)
        self.at += 1
        return tree.Integer(value[0], text, value[1], start=self.starts[at], end=self.ends[at])

    def _string(self, expected: str) -> tree.String:
        at, text = self.at, self.texts[self.at]
        if text[0] != '"' or len(text) == 1:
            raise self.unexpected(expected)
        self.at += 1
        return tree.String(text[1:-1], start=self.starts[at], end=self.ends[at])

    # ── the head of a module (PTX 11.1) ─────────────────────────────────────────────────

    def _version(self) -> tree.Directive:
        """`.version 8.7`: the argument is a Float whose `text` keeps the spelling."""
        first = self.at
        self.at += 1
        text = self.texts[self.at]
        major, dot, minor = text.partition(".")
        if not (dot and major.isdigit() and minor.isdigit()):
            raise self.unexpected("a version, such as `8.7`", f"write `{text}.0`" if text.isdigit() else "")
        return self._finish(first, [self.number()])

    def _target(self) -> tree.Directive:
        """`.target sm_90a, debug`"""
        first = self.at
        self.at += 1
        text = self.texts[self.at]
        if text.isdigit():
            raise self.unexpected("a target, such as `sm_90`", f"write `sm_{text}`")
        return self._finish(first, self._names("a target, such as `sm_90`"))

    def _address_size(self) -> tree.Directive:
        """`.address_size 64`"""
        first = self.at
        self.at += 1
        return self._finish(first, [self._integer("32 or 64")])

    def _names(self, expected: str) -> list[tree.Operand]:
        """One or more plain names with commas."""
        found: list[tree.Operand] = []
        while True:
            if not self.is_plain_name(self.at):
                raise self.unexpected(expected)
            found.append(self.plain_name(self.at))
            self.at += 1
            if not self.take(","):
                return found

    # ── kernels and functions (PTX 11.4, 11.7, 11.8) ────────────────────────────────────

    def performance(self, owner: str) -> list[tree.Directive]:
        """The directives between the parameters and the body; only those of a kernel may stand in any order, and twice."""
        allowed = _DIRECTIVES[owner]
        found: list[tree.Directive] = []
        last = -1
        while True:
            at, text = self.at, self.texts[self.at]
            if text not in _UP_TO_THREE | _ONE | _BARE | _LISTS and text != ".pragma":
                return found
            found.append(self._performance(text))
            if text not in allowed:
                said = f"a {'kernel' if owner == 'kernel' else 'function'} takes no `{text}`"
                self.report(codes.MISPLACED, said, self.span(at), noticed=at)
            elif owner != "kernel" and allowed.index(text) <= last:
                self.report(codes.MISPLACED, f"`{text}` stands too late, or twice", self.span(at), noticed=at)
            elif owner != "kernel":
                last = allowed.index(text)

    def _performance(self, text: str) -> tree.Directive:
        if text == ".pragma":
            return self._pragma()
        first = self.at
        self.at += 1
        arguments: list[tree.Operand] = []
        if text in _UP_TO_THREE and self.texts[self.at] == "(":
            raise self.unexpected(f"an integer after `{text}`", f"its numbers are in no brackets: `{text} 256`")
        if text not in _BARE:
            arguments = [self._integer(f"an integer after `{text}`")]
        while (text in _LISTS or (text in _UP_TO_THREE and len(arguments) < 3)) and self.take(","):
            arguments.append(self._integer("an integer"))
        return self._finish(first, arguments)

    def _pragma(self) -> tree.Directive:
        """`.pragma "nounroll";` (PTX 11.4.7)"""
        first = self.at
        self.at += 1
        arguments: list[tree.Operand] = [self._string("a string after `.pragma`")]
        while self.take(","):
            arguments.append(self._string("a string"))
        self.expect_semicolon("`.pragma`")
        return self._finish(first, arguments)

    def _alias(self) -> tree.Directive:
        """`.alias f, g;` (PTX 11.2.3)"""
        first = self.at
        self.at += 1
        arguments: list[tree.Operand] = []
        for expected in ("the name of the alias", "the name of a function"):
            if not self.is_plain_name(self.at):
                raise self.unexpected(expected)
            arguments.append(self.plain_name(self.at))
            self.at += 1
            if len(arguments) == 1:
                self.expect(",", "the name of the alias")
        self.expect_semicolon("`.alias`")
        return self._finish(first, arguments)

    # ── what a label names (PTX 11.3) ───────────────────────────────────────────────────

    def targets(self, label: int) -> tree.Targets:
        """`label: .branchtargets a, b;` or `label: .calltargets f, g;`"""
        word = self.texts[self.at]
        self.at += 1
        names = self._target_list("a label" if word == ".branchtargets" else "a function")
        self.expect_semicolon(f"`{word}`")
        return tree.Targets(self.texts[label], word[1:], names, start=self.starts[label], end=self.ends[self.at - 1])

    def _target_list(self, expected: str) -> list[tree.Name]:
        """`a, b, L<3>`, where the last is short for `L0, L1, L2` (PTX 11.3.1, 5.4.6)."""
        found: list[tree.Name] = []
        while True:
            at = self.at
            if not self.is_plain_name(at):
                raise self.unexpected(expected)
            self.at += 1
            if self.take("<"):
                count = self.literal_size("the count in `<n>`", allow_warp_size=False)
                self.expect(">", "the count")
                if not isinstance(count, tree.Integer) or count.value > _MOST_TARGETS:
                    raise self.fail(codes.BAD_SIZE, f"more than {_MOST_TARGETS} targets", at, self.at - 1)
                end = self.ends[self.at - 1]
                found += [tree.Name(f"{self.texts[at]}{i}", start=self.starts[at], end=end) for i in range(count.value)]
            else:
                found.append(self.plain_name(at))
            if not self.take(","):
                return found

    def prototype(self, label: int) -> tree.Prototype:
        """`label: .callprototype (results) _ (parameters) .noreturn;` (PTX 11.3.3)"""
        self.at += 1
        results = self.parameters() if self.texts[self.at] == "(" else []
        self.expect("_", "`.callprototype`")
        parameters = self.parameters() if self.texts[self.at] == "(" else []
        directives = self.performance("prototype")
        self.expect_semicolon("`.callprototype`")
        end = self.ends[self.at - 1]
        return tree.Prototype(self.texts[label], results, parameters, directives, start=self.starts[label], end=end)

    # ── debugging (PTX 11.5) ────────────────────────────────────────────────────────────

    def _file(self) -> tree.Directive:
        """`.file 1 "a.cu", 1700000000, 4096`"""
        first = self.at
        self.at += 1
        arguments: list[tree.Operand] = [self._integer("the index of the file"), self._string("the name of the file")]
        if self.take(","):
            arguments.append(self._integer("the time of the last change"))
            if self.take(","):
                arguments.append(self._integer("the size of the file"))
        return self._finish(first, arguments)

    def _location(self) -> tree.Location:
        """`.loc 1 20 5`, with `, function_name $L+4, inlined_at 1 30 2` for inlined code."""
        first = self.at
        self.at += 1
        file, line, column = self._triple()
        function: tree.Operand | None = None
        inlined: tuple[int, int, int] | None = None
        if self.texts[self.at] == "," and self.texts[self.at + 1] == "function_name":
            self.at += 2
            if not self.is_plain_name(self.at):
                raise self.unexpected("a label of `.debug_str`")
            name = self.plain_name(self.at)
            self.at += 1
            function = self._offset(name) if self.texts[self.at] == "+" else name
            self.expect(",", "the name of the function")
            self.expect("inlined_at", "the name of the function")
            inlined = self._triple()
        elif self.texts[self.at] == ",":
            self.at += 1
            raise self.unexpected("`function_name`")
        return tree.Location(file, line, column, function, inlined, start=self.starts[first], end=self.ends[self.at - 1])

    def _intermediate_location(self) -> tree.Directive:
        """`.loc_intermediate 2 15 4`: the place in what a compiler made of the source (PTX 9.4)."""
        first = self.at
        self.at += 1
        arguments = [self._integer(f"the {each}") for each in ("index of a file", "line", "column")]
        return self._finish(first, list(arguments))

    def _intermediate_sources(self) -> tree.IntermediateSources:
        """`.nv_intermediate_source_section { .code_block { .ir_name: "tile ir" .sourceFileName: 2 … } }` (PTX 9.4)"""
        first = self.at
        self.at += 1
        self.expect("{", f"`{INTERMEDIATE_SOURCES}`")
        blocks = []
        while self.texts[self.at] == ".code_block":
            blocks.append(self._code_block())
        self.expect("}")
        return tree.IntermediateSources(blocks, start=self.starts[first], end=self.ends[self.at - 1])

    def _code_block(self) -> tree.CodeBlock:
        """Its text stands on lines of its own between `.source_begin` and `.source_end`, and is none of PTX."""
        first = self.at
        self.at += 1
        self.expect("{", "`.code_block`")
        self._key(".ir_name")
        language = self._string("the name of an intermediate language")
        self._key(".sourceFileName")
        file = self._integer("the index of a file")
        self.expect(".source_begin", "the index of the file")
        begin, end = self.ends[self.at - 1], self.starts[self.at]
        self.expect(".source_end", "a text from the line below `.source_begin` on")
        self.expect("}", "`.source_end`")
        text = self.source.text[begin:end].partition("\n")[2].rpartition("\n")[0]
        return tree.CodeBlock(language, file, text, start=self.starts[first], end=self.ends[self.at - 1])

    def _key(self, key: str) -> None:
        """`.ir_name:`, in one piece."""
        if self.texts[self.at] != key or self.texts[self.at + 1] != ":" or self.starts[self.at + 1] != self.ends[self.at]:
            raise self.unexpected(f"`{key}:`")
        self.at += 2

    def _triple(self) -> tuple[int, int, int]:
        return (
            self._integer("the index of a file").value,
            self._integer("a line").value,
            self._integer("a column").value,
        )

    def _section(self) -> tree.Section:
        """`.section .debug_str { label: .b8 1, 2 … }`"""
        first = self.at
        self.at += 1
        name = self.texts[self.at]
        if not self._is_section(name):
            raise self.unexpected("the name of a section, with its dot")
        self.at += 1
        opening = self.at
        self.expect("{", "the name of the section")
        if self.starts[opening] in self.unread:
            self.unread_tables.add(self.starts[opening])
            lines = section_lines(self.tokens.text, self.ends[opening], self.starts[self.at])
        else:
            lines = list(self._section_lines(opening))
        self.at += 1
        return tree.Section(name, lines, start=self.starts[first], end=self.ends[self.at - 1])

    def _is_section(self, text: str) -> bool:
        """May a word be the name of a section: no word that PTX has for something else?"""
        return text[0] == "." and len(text) > 1 and text not in _NO_SECTION

    def _section_lines(self, opening: int) -> Iterator[str]:
        while self.texts[self.at] != "}":
            start = self.at
            self._section_line(opening)
            yield self._spelled(start, self.at)

    def _section_line(self, opening: int) -> None:
        """`label:`, or a type with numbers, or one label, section or difference of labels."""
        if self.is_plain_name(self.at) and self.texts[self.at + 1] == ":":
            self.at += 2
            return
        if self.texts[self.at] not in _DWARF_TYPES:
            if self.texts[self.at] == ";" or self.starts_statement(self.at):
                self.expect_close(opening)
            raise self.unexpected("a label, or `.b8` and the like")
        self.at += 1
        text = self.texts[self.at]
        if text[0] in NAME_START or self._is_section(text):
            self.at += 1
            if self.texts[self.at] == "-" and text[0] in NAME_START:
                self.at += 1
                if not self.is_plain_name(self.at):
                    raise self.unexpected("a label")
                self.at += 1
            elif self.take("+"):
                self._integer("an integer")
            return
        self._numbers()

    def _numbers(self) -> None:
        """Integers with commas between; most are bytes, and a node for each would take time."""
        while True:
            self.take("-")
            if self.texts[self.at] in _BYTES:
                self.at += 1
            else:
                self._integer("an integer, a label or a section")
            if not self.take(","):
                return

    def _spelled(self, first: int, after: int) -> str:
        """Tokens as text, with one blank where there was any."""
        found = self.texts[first]
        for at in range(first + 1, after):
            found += self.texts[at] if self.touches(at) else " " + self.texts[at]
        return found

    def dwarf(self) -> tree.Section:
        """Successive lines `@@DWARF …`, the debugging sections of PTX 1.x (PTX 11.5.1)."""
        first, lines = self.at, []
        text = self.tokens.text
        while self.texts[self.at : self.at + 2] == ["@", "@"] and self.texts[self.at + 2] in {"@@DWARF", "DWARF"}:
            start = self.ends[self.at + 2]
            stop = text.find("\n", start)
            stop = len(text) if stop < 0 else stop
            lines.append(text[start:stop].strip())
            while self.starts[self.at] < stop and self.texts[self.at] != END:
                self.at += 1
        return tree.Section("@@DWARF", lines, start=self.starts[first], end=self.ends[self.at - 1])
