"""The options of `ptxvm-ptxas`: those of ptxas 13, in the grammar of NVIDIA's compilers.

An option has a long name and a short one, which stands behind one dash also where it has several letters.  Its value follows
as the next word or behind `=`, that of `-m` also at once, and that of `-O` only so; lists are separated by commas.
"""

from __future__ import annotations

import enum
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path

from ptxvm.dataclass import dataclass
from ptxvm.isa.targets import LOWEST, parse_target

DEFAULT_TARGET = "sm_75"
REAL = "sm_"
BITS = "64"  # of an address on the host
DEEPEST = 16  # options files within options files


class Takes(enum.Enum):
    """What follows an option."""

    NOTHING = enum.auto()
    TEXT = enum.auto()
    LIST = enum.auto()
    MODULE = enum.auto()
    NUMBER = enum.auto()
    BOOL = enum.auto()
    REGISTERS = enum.auto()
    TARGET = enum.auto()
    BITS = enum.auto()
    TOOL = enum.auto()


class RefusedError(Exception):
    """A call that ptxas refuses; the message is what it prints behind `ptxas fatal   : `."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option; without `help` it is about machine code, of which there is none, and is taken and has no effect."""

    name: str
    short: str
    takes: Takes = Takes.NOTHING
    help: str = ""


OPTIONS = (
    Option("compile-only", "c", help="Leave functions and variables of other modules open."),
    Option("disable-warnings", "w", help="Print no warnings."),
    Option("entry", "e", Takes.LIST, "Kernels that must be there."),
    Option("gpu-name", "arch", Takes.TARGET, "The target to check for: sm_90a; compute_90a is only checked."),
    Option("help", "h", help="Print this page."),
    Option("input-as-string", "ias", Takes.MODULE, "A module as text; may be repeated."),
    Option("list-version", "version-ls", help="Print the versions of PTX."),
    Option("machine", "m", Takes.BITS, "Bits of the host's addresses: 64."),
    Option("options-file", "optf", Takes.LIST, "Read further options from files."),
    Option("output-file", "o", Takes.TEXT, "Write the checked PTX to this file, not to elf.o."),
    Option("verbose", "v", help="Print the memory of the module and of each kernel."),
    Option("version", "V", help="Print the version."),
    Option("warn-on-double-precision-use", "warn-double-usage", help="Warn of instructions on f64."),
    Option("warn-on-local-memory-usage", "warn-lmem-usage", help="Warn of kernels that declare local memory."),
    Option("warning-as-error", "Werror", help="Make errors of warnings."),
    Option("Ofast-compile", "Ofc", Takes.TEXT),
    Option("allow-expensive-optimizations", "allow-expensive-optimizations", Takes.BOOL),
    Option("compile-as-tools-patch", "astoolspatch"),
    Option("compiler-annotations", "annotate"),
    Option("def-load-cache", "dlcm", Takes.TEXT),
    Option("def-store-cache", "dscm", Takes.TEXT),
    Option("device-debug", "g", help="Say which debugging sections are missing; needs -O0."),
    Option("device-function-maxrregcount", "func-maxrregcount", Takes.REGISTERS),
    Option("device-stack-protector", "device-stack-protector", Takes.BOOL),
    Option("disable-optimizer-constants", "disable-optimizer-consts"),
    Option("dont-merge-basicblocks", "no-bb-merge"),
    Option("extensible-whole-program", "ewp"),
    Option("fmad", "fmad", Takes.BOOL),
    Option("force-load-cache", "flcm", Takes.TEXT),
    Option("force-store-cache", "fscm", Takes.TEXT),
    Option("g-tensor-memory-access-check", "g-tmem-access-check"),
    Option("generate-line-info", "lineinfo"),
    Option("gno-tensor-memory-access-check", "gno-tmem-access-check"),
    Option("legacy-bar-warp-wide-behavior", "legacy-bar-warp-wide-behavior"),
    Option("make-errors-visible-at-exit", "make-errors-visible-at-exit"),
    Option("maxntid", "maxntid", Takes.LIST),
    Option("maxrregcount", "maxrregcount", Takes.REGISTERS),
    Option("minnctapersm", "minnctapersm", Takes.NUMBER),
    Option("opt-level", "O", Takes.NUMBER, "The level of optimization; with -g, and for `.target debug`, 0."),
    Option("optimize-float-atomics", "opt-fp-atomics"),
    Option("override-directive-values", "override-directive-values"),
    Option("position-independent-code", "pic", Takes.BOOL),
    Option("preserve-relocs", "preserve-relocs"),
    Option("register-usage-level", "regUsageLevel", Takes.NUMBER),
    Option("return-at-end", "ret-end"),
    Option("sanitize", "sanitize", Takes.TOOL),
    Option("sp-bounds-check", "sp-bounds-check"),
    Option("split-compile", "split-compile", Takes.NUMBER),
    Option("suppress-async-bulk-multicast-advisory-warning", "suppress-async-bulk-multicast-advisory-warning"),
    Option("suppress-debug-info", "suppress-debug-info"),
    Option("suppress-double-demote-warning", "suppress-double-demote-warning"),
    Option("suppress-sparse-mma-advisory-info", "suppress-sparse-mma-advisory-info"),
    Option("suppress-stack-size-warning", "suppress-stack-size-warning"),
    Option("warn-on-spills", "warn-spills"),
)
NAMED = {f"--{each.name}": each for each in OPTIONS} | {f"-{each.short}": each for each in OPTIONS}
JOINED = "-O"  # whose value stands in the same word, or nowhere
WORDS = {  # where only some values are allowed
    Takes.BITS: (BITS,),
    Takes.TOOL: ("memcheck", "threadsteer"),
}


@dataclass(slots=True)
class PtxasCall:
    """A call: the files, and the values of each option by its long name."""

    files: list[str] = field(default_factory=list)
    values: dict[str, list[str]] = field(default_factory=dict)
    again: list[str] = field(default_factory=list)  # options that have several different values, of which the last counts

    @property
    def target(self) -> str:
        """The target, real or virtual."""
        return self.last("gpu-name", DEFAULT_TARGET)

    @property
    def compiles(self) -> bool:
        """Is code asked for?  For a virtual target modules are only read."""
        return self.target.startswith(REAL)

    def has(self, name: str) -> bool:
        """Is an option there?"""
        return name in self.values

    def all(self, name: str) -> list[str]:
        """All values of a list."""
        return self.values.get(name, [])

    def last(self, name: str, default: str = "") -> str:
        """The value of an option."""
        return self.values.get(name, [default])[-1]


def parse(words: Sequence[str]) -> PtxasCall:
    """The request that the words of a command line make; RefusedError where ptxas refuses them."""
    request = PtxasCall()
    _take(request, iter(words), 0)
    return request


def _take(request: PtxasCall, words: Iterator[str], depth: int) -> None:
    for word in words:
        if not word.startswith("-") or word == "-":
            request.files.append(word)
            continue
        option, text = _option(word)
        if option.takes is Takes.NOTHING:
            if text is not None:
                raise RefusedError(f"no argument expected after '{word.partition('=')[0]}'")
            request.values[option.name] = [""]
            continue
        if text is None and word == JOINED:
            continue
        if text is None:
            text = next(words, None)
        if text is None:
            raise RefusedError(f"argument expected after '{word}'")
        _add(request, option, text, depth)


def _option(word: str) -> tuple[Option, str | None]:
    """The option that a word names, and the value that stands in the same word."""
    name, equals, text = word.partition("=")
    if name in NAMED:
        return NAMED[name], text if equals else None
    short = NAMED.get(word[:2])
    if short is not None and short.takes in (Takes.NUMBER, Takes.BITS):
        return short, word[2:]
    raise RefusedError(f"Unknown option '{name[1:]}'")


def _add(request: PtxasCall, option: Option, text: str, depth: int) -> None:
    _verify(option, text)
    if option.name == "options-file":
        for file in text.split(","):
            _include(request, file, depth + 1)
        return
    before = request.values.setdefault(option.name, [])
    if option.takes is Takes.MODULE:
        before.append(text)
    elif option.takes is Takes.LIST:
        before += filter(None, text.split(","))
    else:
        if before and before[-1] != text:
            request.again.append(option.name)
        before.append(text)


def _include(request: PtxasCall, file: str, depth: int) -> None:
    """Take the options of a file."""
    if depth > DEEPEST:
        raise RefusedError(f"Options file '{file}' includes itself")
    try:
        words = shlex.split(Path(file).read_text(encoding="utf-8"), comments=True)
    except (OSError, UnicodeDecodeError):
        raise RefusedError(f"Could not open options file '{file}'") from None
    except ValueError as wrong:
        raise RefusedError(f"Options file '{file}': {wrong}") from None
    _take(request, iter(words), depth)


def _verify(option: Option, text: str) -> None:
    """Refuse a value that the option cannot have."""
    takes = option.takes
    if takes is Takes.BOOL and text not in ("true", "false"):
        raise RefusedError(f"'{text}': expected true or false")
    if takes in (Takes.NUMBER, Takes.BITS):
        try:
            value = number(text)
        except ValueError:
            raise RefusedError(f"'{text}': expected a number") from None
        if value != as_int(value):
            raise RefusedError(f"32-bit integer value ({text}) out of range")
    allowed = WORDS.get(takes)
    if (allowed is not None and text.strip() not in allowed) or (takes is Takes.TARGET and not is_target(text)):
        raise RefusedError(f"Value '{text}' is not defined for option '{option.name}'")


def number(text: str) -> int:
    """The value of a number, decimal or `0x`, with or without a sign; ValueError for other texts."""
    return int(text, 0) if "x" in text.lower() else int(text)


def as_int(value: int) -> int:
    """A value modulo 2^32, as an `int` of C++ holds it."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


def is_target(text: str) -> bool:
    """Is a word the name of a target, real or virtual?"""
    kind, _, number = text.partition("_")
    if kind not in ("sm", "compute", "lto"):
        return False
    try:
        return f"sm_{number}" == str(found := parse_target(f"sm_{number}")) and found in LOWEST
    except ValueError:
        return False
