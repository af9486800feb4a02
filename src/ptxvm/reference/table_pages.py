"""The pages that are tables: special registers, directives, types and targets of PTX, and environment variables of ptxvm."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from ptxvm.algebra.types import Type
from ptxvm.isa.directives import FEATURES
from ptxvm.isa.special_registers import SPECIAL, SpecialRegister
from ptxvm.isa.targets import LOWEST, Target, Version
from ptxvm.machine.settings import VARIABLES
from ptxvm.reference import type_words
from ptxvm.reference.concepts import CONCEPTS
from ptxvm.reference.cuda_words import CUDA_WORDS
from ptxvm.reference.directive_words import DIRECTIVES
from ptxvm.reference.instruction_parts import requirements
from ptxvm.reference.markdown import Files, code, escaped, table
from ptxvm.reference.modifiers import type_in_words
from ptxvm.reference.words import brought_by, need, provides, version

MANUAL = "the sections are those of the PTX ISA"


def table_pages() -> Files:
    """All of them."""
    return {
        "reference/special-registers.md": _page(
            "Special registers",
            "Predefined and read-only; `ptxvm explain %NAME` says the same. The last column has what ptxvm gives in every "
            f"launch, where that is one number; {MANUAL}.",
            ("register", "type", "meaning", "needs", "section", "in ptxvm"),
            (_register(each) for each in SPECIAL.values()),
        ),
        "reference/directives.md": _directives(),
        "reference/glossary.md": _page(
            "Glossary",
            f"Words of PTX that are no part of an instruction; `ptxvm explain WORD` says the same, and {MANUAL}.",
            ("word", "what it is", "section"),
            ((escaped(", ".join(each.names)), escaped(each.said), each.section) for each in dict.fromkeys(CONCEPTS.values())),
        ),
        "reference/cuda-words.md": _cuda_words(),
        "reference/types.md": _page(
            "Types",
            "The fundamental, alternate and packed types that operands of instructions have (PTX 5.2).",
            ("type", "bits", "elements", "what it is", "needs", "section"),
            (_type(each) for name, each in Type.named.items() if type_words.is_type(name)),
        ),
        "reference/targets.md": _targets(),
        "reference/environment.md": _page(
            "Environment variables",
            "What ptxvm takes from its environment. A wrong value is an error that names the variable.",
            ("variable", "value", "without it", "what it says"),
            ((code(each.name), each.values, each.without, each.meaning) for each in VARIABLES),
        ),
    }


def _page(title: str, said: str, head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "\n".join([f"# {title}", "", said, "", *table(head, list(rows)), ""])


def _cuda_words() -> str:
    """What words of CUDA C++ are in PTX, and the errors of CUDA by the kinds of faults."""
    words = dict.fromkeys(CUDA_WORDS.values())
    builtins = _page(
        "Words of CUDA",
        "What words of CUDA C++ are in PTX; `ptxvm explain WORD` says the same.",
        ("CUDA C++", "in PTX"),
        ((_codes(each.names), _codes(each.see)) for each in words if not each.is_error),
    )
    errors = table(("kinds of faults", "error"), [(_codes(each.see), _codes(each.names)) for each in words if each.is_error])
    return "\n".join([builtins, "## Errors", "", "What a program of CUDA gets after a fault.", "", *errors, ""])


def _codes(words: Iterable[str]) -> str:
    return ", ".join(map(code, words))


def _directives() -> str:
    """Every directive in words, and what not every version and target has."""
    every = _page(
        "Directives",
        f"What stands in a module beside instructions; {MANUAL}.",
        ("directive", "what it says", "needs", "section"),
        ((code(name), escaped(said), _needed(name), section) for name, (section, said) in DIRECTIVES.items()),
    )
    others = table(
        ("feature", "as ptxas calls it", "needs", "section"),
        [
            (code(name), escaped(each.name), need(each.need) + _until(each.until), each.section)
            for name, each in FEATURES.items()
            if name not in DIRECTIVES
        ],
    )
    return "\n".join(
        [every, "## Other features of declarations", "", "What not every version and target has.", "", *others, ""]
    )


def _needed(directive: str) -> str:
    """What a directive needs; nothing where every version and target has it."""
    feature = FEATURES.get(directive)
    return "" if feature is None else need(feature.need) + _until(feature.until)


def _register(register: SpecialRegister) -> tuple[str, ...]:
    vector = f".v{register.count}" if register.count > 1 else ""
    always = f"{register.always}: {register.because}" if register.always is not None else ""
    return (
        code(register.spelling),
        code(f"{vector}.{register.type.name}"),
        escaped(register.meaning),
        register.needs,
        register.section,
        escaped(always),
    )


def _type(type: Type) -> tuple[str, ...]:
    feature, bringing = FEATURES.get(f".{type.name}"), type_words.first(type)
    needed = need(feature.need) if feature is not None else requirements(bringing) if bringing is not None else ""
    elements = str(type.lanes) if type.is_packed else ""
    return code(f".{type.name}"), str(type.bits), elements, escaped(type_in_words(type)), needed, type_words.section(type)


def _targets() -> str:
    """The targets, with what each has brought."""
    lines = ["# Targets", "", "What `.target` may name, from the first PTX version on that has it (PTX 11.1.2).", ""]
    for suffix, targets in groupby(sorted(LOWEST, key=lambda each: (each.suffix, each.number)), key=lambda each: each.suffix):
        found = list(targets)
        lines += [f"## {_suffixed(suffix)}", "", provides(found[0]), ""]
        head = ("target", "PTX", "instructions that need it, or have modifiers that do")
        lines += [*table(head, [_target(each) for each in found]), ""]
    return "\n".join(lines)


def _suffixed(suffix: str) -> str:
    return f"With the suffix `{suffix}`" if suffix else "For every later chip"


def _target(target: Target) -> tuple[str, ...]:
    return code(str(target)), version(LOWEST[target]), ", ".join(map(code, brought_by(target)))


def _until(until: Version | None) -> str:
    return f"; until PTX {version(until)}" if until else ""
