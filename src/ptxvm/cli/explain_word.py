"""`ptxvm explain .ftz`, `.f16x2`, `.maxntid` or `sm_90a`: words of many instructions, types, directives and targets."""

from __future__ import annotations

from rich.text import Text

from ptxvm.cli.failures import FINDINGS, say
from ptxvm.cli.terminal import console, filled, labelled
from ptxvm.diagnostics import did_you_mean, listed
from ptxvm.reference import modifiers, type_words, words
from ptxvm.reference.directive_words import DIRECTIVES
from ptxvm.reference.instruction_parts import requirements

Rows = list[tuple[str, ...]]


def explain_word(word: str) -> int:
    """Print what a word behind a dot is."""
    type, directive, uses = words.type_named(word), words.directive(word), words.uses(word)
    said = DIRECTIVES.get(f".{word}")
    if type is None and directive is None and said is None and not uses:
        known = [f".{each}" for each in dict.fromkeys(words.known_words())]
        longer = [f"`{each}`" for each in known if each.endswith(f"::{word}")]
        guess = f"did you mean {listed(longer)}?" if longer else did_you_mean(f".{word}", known)
        return say(
            f"ptxvm explain: no modifier, type or directive is called '.{word}'{f'; {guess}' if guess else ''}", FINDINGS
        )
    out = console()
    blocks: list[tuple[str, Rows]] = []
    if type is not None:
        blocks.append(("a type", [(modifiers.type_in_words(type),), (f"PTX ISA {type_words.section(type)}",)]))
        uses = {}
        if (bringing := type_words.first(type)) is not None:
            blocks += [("needs", [(requirements(bringing),)]), ("first in", [(bringing.mnemonic,)])]
    if said is not None:
        blocks.append(("a directive", [(said[1],), (f"PTX ISA {said[0]}",)]))
    if directive is not None:
        gone = f"; until PTX {words.version(directive.until)}" if directive.until else ""
        if said is None and type is None:
            blocks.append(("a feature", [(f"PTX ISA {directive.section}",)]))
        blocks += [("needs", [(words.need(directive.need) + gone,)])]
    for meaning, titles in uses.items():
        blocks += [("a modifier", [(meaning or "has the meaning of its instruction",)]), ("of", [(", ".join(titles),)])]
    out.print(Text(f".{word}", style="bold"))
    out.print()
    for label, rows in blocks:
        out.print(labelled(label, rows))
    return 0


def explain_target(text: str) -> int:
    """Print what a target is."""
    found = words.target(text)
    if found is None:
        return say(f"ptxvm explain: there is no target '{text}'", FINDINGS)
    target, version = found
    out = console()
    out.print(
        Text.assemble((str(target), "bold"), f", a target; PTX {words.version(version)} and later have it; PTX ISA 11.1.2")
    )
    out.print(Text(f"\n{filled(words.provides(target))}"))
    if text != str(target):
        out.print(Text(filled(f"{text} is what nvcc calls PTX for it: the module says `.target {target}`.")))
    out.print()
    out.print(labelled("brought", [(", ".join(words.brought_by(target)) or "no instruction",)]))
    return 0
