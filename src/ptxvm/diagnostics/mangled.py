"""Demangling of C++ and Numba names: the subset of the Itanium C++ ABI (5.1) that names of kernels use."""

from __future__ import annotations

import re
from dataclasses import field
from functools import lru_cache
from zlib import crc32

from ptxvm.dataclass import dataclass

_TYPES = {
    "v": "void", "b": "bool", "c": "char", "a": "int8", "h": "uint8", "s": "int16", "t": "uint16", "i": "int32", "j": "uint32",
    "l": "int64", "m": "uint64", "x": "int64", "y": "uint64", "n": "int128", "o": "uint128", "f": "float32", "d": "float64",
    "Dh": "float16", "DF16_": "float16", "DF16b": "bfloat16", "w": "wchar_t", "z": "...",
}  # fmt: skip
_POINTERS = {"P": "*", "R": "&", "O": "&&"}
_QUALIFIERS = frozenset("KVr")
_ESCAPED = re.compile(r"_([0-9a-f]{2})")
_ARGUMENTS = re.compile(r"<[^<>]*>")
_OF_NUMBA = re.compile(r"B\d+v\d")  # the tag of a version; its names are Python's, with dots
_BETWEEN = re.compile(r"(?<=[\w>])\.(?=\w)")  # the dots between the parts of a name, not those of `<...>`
_LONGEST = 64
_DEEPEST = 64


class _NotRead(Exception):  # noqa: N818 - it says what happened
    """The name has no form that this module knows."""


@dataclass(frozen=True, slots=True)
class DemangledName:
    """A name with its dots, and the types of its parameters."""

    name: str
    types: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.name}({', '.join(self.types)})"


@lru_cache(maxsize=256)
def read(mangled: str) -> DemangledName | None:
    """A mangled name, read; None for a name that is not mangled, or has an unknown form."""
    if not mangled.startswith("_Z"):
        return None
    reader = _Reader(mangled, 2)
    try:
        name = reader.name()
        if reader.template and name.endswith(">"):
            reader.type()  # of a template the result comes first
        types = []
        while reader.at < len(mangled):
            types.append(reader.type())
    except (_NotRead, IndexError):
        return None
    return DemangledName(name, () if types == ["void"] else tuple(types))


def is_called(mangled: str, name: str) -> bool:
    """Does C++ call a function so: `fib`, `ns::fib`, whatever its template arguments and parameters are?"""
    if not mangled.startswith("_Z"):
        return False
    reader = _Reader(mangled, 2)
    try:
        whole = reader.name()
    except (_NotRead, IndexError):
        return False
    while (shorter := _ARGUMENTS.sub("", whole)) != whole:
        whole = shorter
    wanted = name.replace("::", ".")
    return whole == wanted or whole.endswith(f".{wanted}")


@lru_cache(maxsize=256)
def short_name(mangled: str) -> str:
    """A mangled name for a message: `cutlass::device_kernel<...#3f2a>`.

    Template arguments are left out where they are long; a checksum tells apart what differs in them alone.  The
    parameters are left out always.
    """
    reader = _Reader(mangled, 2)
    try:
        name = reader.name()
    except (_NotRead, IndexError):
        name = _before_arguments(mangled)
    if len(name) > _LONGEST:
        while (shorter := _ARGUMENTS.sub("...", name)) != name:
            name = shorter
        name = re.sub(r"(\.\.\.)+", "<...>", name)
    if len(name) > _LONGEST:
        return mangled
    head, left_out, tail = name.rpartition("<...>")
    if left_out:
        name = f"{head}<...#{crc32(mangled.encode()) & 0xFFFF:04x}>{tail}"
    return name if _OF_NUMBA.search(mangled) else _BETWEEN.sub("::", name)


def _unescaped(code: re.Match[str]) -> str:
    """`_5b`, as Numba writes `[`; what stands for no character that can be printed stays."""
    value = int(code[1], 16)
    return chr(value) if 32 <= value < 127 else code[0]


def _before_arguments(mangled: str) -> str:
    """A name up to its template arguments, of which some have an unknown form; the mangled name where it begins with one."""
    reader = _Reader(mangled, 2)
    nested = reader.take("N")
    parts: list[str] = []
    try:
        while not (reader.peek_is("I") or (parts and not nested)):
            parts.append(reader.source_name())
    except _NotRead:
        return mangled
    return ".".join(parts) + "<...>"


@dataclass(slots=True)
class _Reader:
    """Reads a name: the next character, and the parts that substitutions may refer to."""

    text: str
    at: int
    known: list[str] = field(default_factory=list)
    template: list[str] = field(default_factory=list)
    depth: int = 0

    def peek(self) -> str:
        """The next character; IndexError at the end."""
        return self.text[self.at]

    def take(self, word: str) -> bool:
        """Skip a word if it comes next."""
        if self.text.startswith(word, self.at):
            self.at += len(word)
            return True
        return False

    def name(self) -> str:
        """`N4main3fooE`, or `3foo`, each part with its tags and template arguments."""
        if not self.take("N"):
            return self.part()
        while self.peek() in _QUALIFIERS:
            self.at += 1
        parts: list[str] = []
        while not self.take("E"):
            if self.peek() == "S":  # a substitution is none anew
                parts.append(self.substitution())
                continue
            if self.peek() == "I":
                parts[-1] += self.arguments()
            else:
                parts.append(self.plain_part())
            self.known.append(".".join(parts))
        self.known.pop()  # the whole name stands for itself only where it is a type
        return ".".join(parts)

    def part(self) -> str:
        """`3foo` with its template arguments."""
        found = self.plain_part()
        if self.peek_is("I"):
            self.known.append(found)
            found += self.arguments()
        return found

    def plain_part(self) -> str:
        """`3foo`, with tags `B2v1`, which are left out; `L` is before one of internal linkage."""
        self.take("L")
        found = self.source_name()
        while self.peek_is("B"):
            self.at += 1
            self.source_name()
        return found

    def peek_is(self, character: str) -> bool:
        """Does this character come next?"""
        return self.at < len(self.text) and self.text[self.at] == character

    def source_name(self) -> str:
        """A length and so many characters; Numba writes characters other than letters as `_5b`."""
        number = re.compile(r"[1-9]\d{0,4}").match(self.text, self.at)
        if number is None:
            raise _NotRead
        start = number.end()
        self.at = start + int(number[0])
        if self.at > len(self.text):
            raise _NotRead
        found = self.text[start : self.at]
        return _ESCAPED.sub(_unescaped, found) if _OF_NUMBA.search(self.text) else found

    def arguments(self) -> str:
        """`I…E`: `<float32, 1, C>`."""
        self.at += 1
        found = []
        while not self.take("E"):
            found += self.argument()
        if not self.depth:  # of the name itself: what `T_` stands for
            self.template = found
        return f"<{', '.join(found)}>"

    def argument(self) -> list[str]:
        """A type, a literal such as `Li1E` or `LN2ns4EnumE1E`, or a pack of them, `J…E`."""
        if self.take("J"):
            pack = []
            while not self.take("E"):
                pack += self.argument()
            return pack
        if not self.take("L"):
            return [self.type()]
        self.type()
        end = self.text.find("E", self.at)
        if end < 0:
            raise _NotRead
        value, self.at = self.text[self.at : end], end + 1
        return [value.replace("n", "-")]

    def type(self) -> str:
        """A builtin type, a pointer, a substitution, or a name."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise _NotRead
        found = self._type()
        self.depth -= 1
        return found

    def _type(self) -> str:
        character = self.peek()
        if character in _POINTERS or character in _QUALIFIERS:
            self.at += 1
            found = self.type() + _POINTERS.get(character, "")
            self.known.append(found)
            return found
        for code in ("DF16_", "DF16b", "Dh", character):
            if code in _TYPES and self.take(code):
                return _TYPES[code]
        if character == "T":
            self.known.append(self.template[self.number("T")])
            return self.known[-1]
        if character == "S" and not self.text.startswith("St", self.at):
            found = self.substitution()
            if not self.peek_is("I"):
                return found
            found += self.arguments()
        else:
            found = self.name()
        self.known.append(found)
        return found

    def substitution(self) -> str:
        """`S_`, `S0_`: an earlier part."""
        return self.known[self.number("S")]

    def number(self, letter: str) -> int:
        """`S_` is 0, `S0_` 1, and so on in base 36."""
        found = re.compile(rf"{letter}([0-9A-Z]*)_").match(self.text, self.at)
        if found is None:
            raise _NotRead
        self.at = found.end()
        return int(found[1], 36) + 1 if found[1] else 0


__all__ = ["DemangledName", "is_called", "read", "short_name"]
