"""`ptxvm explain`: what a code means, what an instruction is and computes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

from rich.text import Text

from ptxvm.cli.failures import FINDINGS, WrongCall, say
from ptxvm.cli.isa import isa
from ptxvm.cli.terminal import console, filled, labelled
from ptxvm.diagnostics import KINDS, did_you_mean
from ptxvm.isa.matrix import go_together
from ptxvm.isa.model import candidates
from ptxvm.isa.special_registers import SPECIAL, lookup
from ptxvm.reference.concepts import CONCEPTS, Concept, concept
from ptxvm.reference.cuda_words import CUDA_WORDS, CudaWord, cuda_word
from ptxvm.reference.page import Page, find, opcodes

CODE = re.compile(r"[Pp]\d+")
REGISTER = re.compile(r"%(\w+)(?:\.(\w+))?")
WORD = re.compile(r"\.?\w+(::\w+)*")
KIND = re.compile(r"[a-z]+(-[a-z]+)+")
TARGET = re.compile(r"(sm|compute)_\d+[af]?")
PROSE = re.compile(r"[A-Za-z-]+( [A-Za-z-]+)+[.?]?")
OPCODE = re.compile(r"[a-z]\w*(\.[\w:]+)*;?")

JIT = """\
The JIT, which engine="auto" takes, runs every kernel that the interpreter runs, with the same bits and the same faults.

What PTX leaves open may differ: the order of threads that nothing orders, which CTAs run at once, when asynchronous copies \
end, addresses and clocks; and which NaN comes out of an f64 instruction that has several.

numerics="fast" gives up the bits of what the manual has only a bound for. A check of what compiled code cannot clear runs on \
the interpreter."""
"""What `explain jit` says."""


def explain(subject: str, values: Sequence[str], svg: str | None = None) -> int:
    """Print the page of a code, a special register, an opcode, a word or a target, or explain instructions."""
    subject = subject.strip()
    if not subject:
        raise WrongCall("name a code, a word or an instruction")
    page = _page_of(subject)
    if page is not None and svg is not None:
        raise WrongCall(f"--svg: there is no picture of '{subject}'")
    if page is not None:
        return page()
    from ptxvm.cli.explain_text import explain_text  # which needs NumPy

    return explain_text(subject, values, svg)


def _page_of(subject: str) -> Callable[[], int] | None:
    """What prints the page of a word; None for a text of instructions."""
    kind = re.sub("[_ ]", "-", subject)
    if CODE.fullmatch(subject) or kind in KINDS:
        return partial(explain_kind_and_opcode if find(subject) else explain_code, kind)
    if (word := cuda_word(subject)) is not None:
        return partial(explain_cuda_word, word)
    if KIND.fullmatch(subject) and concept(subject) is None:
        return partial(unknown_kind, subject)
    if register := REGISTER.fullmatch(subject):
        return partial(explain_register, register[1], register[2])
    if subject == "jit":
        return explain_jit
    if TARGET.fullmatch(subject):
        from ptxvm.cli.explain_word import explain_target  # which loads the catalog

        return partial(explain_target, subject)
    return _page_of_name(subject)


def _page_of_name(subject: str) -> Callable[[], int] | None:
    """What prints the page of an instruction, a special register, a modifier, a type or a directive."""
    name, _, component = subject.partition(".")
    known = concept(subject)
    if known is not None and not WORD.fullmatch(subject):
        return partial(explain_concept, known)
    if subject.startswith(".") and WORD.fullmatch(subject):
        from ptxvm.cli.explain_word import explain_word  # which loads the catalog

        return partial(explain_word, subject[1:])
    if find(subject):
        return None if is_whole(subject) else partial(explain_mnemonic, subject)
    if lookup(name, component or None) is not None:
        return partial(explain_register, name, component or None)
    if known is not None:
        return partial(explain_concept, known)
    if WORD.fullmatch(subject):
        from ptxvm.cli.explain_word import explain_word
        from ptxvm.reference.words import is_known

        if is_known(subject):
            return partial(explain_word, subject)
    return partial(unknown_word, subject.rstrip(";")) if OPCODE.fullmatch(subject) or is_prose(subject) else None


def unknown_kind(subject: str) -> int:
    """Say that there is no such kind of fault or finding, and which was probably meant."""
    part = next((f"did you mean `{word}`?" for word in subject.split("-") if word in KINDS), "")
    guess = did_you_mean(subject, KINDS) or part
    return say(f"ptxvm explain: no fault or finding is called '{subject}'{f'; {guess}' if guess else ''}", FINDINGS)


def unknown_word(subject: str) -> int:
    """Say that it is nothing that can be explained, and which was probably meant: `shfl` for `shuffle`."""
    from ptxvm.reference.words import opcodes_called

    if called := opcodes_called(subject):
        meant = " or ".join(f"`{opcode}`" for opcode in called)
        return say(f"ptxvm explain: no instruction is called '{subject}'; did you mean {meant}?", FINDINGS)
    kind = subject.replace("_", "-")
    guess = did_you_mean(subject.partition(".")[0], [*CONCEPTS, *SPECIAL, *KINDS, *opcodes(), *CUDA_WORDS]) or did_you_mean(
        kind, KINDS
    )
    return say(f"ptxvm explain: nothing is called '{subject}'{f'; {guess}' if guess else ''}", FINDINGS)


def explain_mnemonic(subject: str) -> int:
    """The pages of an opcode with modifiers; where it has all of them, what they say, and which lane holds what."""
    found = isa(subject)
    opcode, *words = subject.rstrip(";").split(".")
    if not words:
        return found
    from ptxvm.reference.instruction_parts import modifiers_of  # which needs the analysis

    whole = candidates(opcode, tuple(words))
    readings = [modifiers_of(i) for i in whole]
    for n, modifiers in enumerate(readings):
        if modifiers not in readings[:n]:
            console().print(labelled("modifiers", modifiers))
    if any(i.of.effects & {"warp", "tmem"} for i in whole) and go_together(whole[-1]):
        from ptxvm.cli.explain_text import print_fragments  # which needs NumPy

        print_fragments(whole[-1])  # the form whose operands are all in registers is the last
    return found


def explain_concept(known: Concept) -> int:
    """What a word of PTX means that is no part of an instruction."""
    out = console()
    where = f", PTX ISA {known.section}" if known.section else ""
    out.print(Text.assemble((known.name, "bold"), where))
    out.print(Text(f"\n{filled(known.said)}\n"))
    out.print(labelled("explain", [(", ".join(known.see),)]))
    return 0


def explain_cuda_word(word: CudaWord) -> int:
    """What stands in PTX for a word of CUDA C++, or which faults are an error of CUDA."""
    out = console()
    out.print(Text.assemble((word.names[0], "bold"), ", an error of CUDA" if word.is_error else ", CUDA C++"))
    out.print(Text(f"\n{filled(word.said)}\n"))
    out.print(labelled("explain", [(", ".join(word.see),)]))
    return 0


def is_prose(subject: str) -> bool:
    """Is it words, of which the first one is no opcode, nor nearly one?"""
    first = subject.partition(" ")[0]
    return PROSE.fullmatch(subject) is not None and not find(first) and not did_you_mean(first, opcodes())


def is_whole(subject: str) -> bool:
    """Is it a whole instruction without operands (`ret;`, `membar.gl`), and not only an opcode?"""
    words = subject.rstrip(";").split(".")[1:]
    return any(not form.operands and form.match(words).fits for page in find(subject) for form in page.of.forms)


# ── codes and registers ─────────────────────────────────────────────────────────────────


def explain_jit() -> int:
    """What the JIT does as the interpreter does, and what it need not."""
    console().print(Text(filled(JIT)))
    return 0


def explain_kind_and_opcode(name: str) -> int:
    """The page of a fault, and that of the instruction of the same name: `trap`."""
    explain_code(name)
    console().print()
    return isa(name)


def explain_code(code: str) -> int:
    """The page of a diagnostic code."""
    from ptxvm.reference.codes import page_of  # where all codes are entered

    page = page_of(code)
    if page is None:
        return say(f"ptxvm explain: no diagnostic has the code {code.upper()}", FINDINGS)
    out = console()
    out.print(Text.assemble((page.code, "bold"), f": {page.title}"))
    if page.explanation:
        out.print(Text(f"\n{filled(page.explanation)}"))
    if page.instructions:
        pages = [Page(instruction) for instruction in page.instructions]
        rows = list(dict.fromkeys((p.title, p.section) for p in pages))
        out.print()
        out.print(labelled("a rule of", rows))
    return 0


def explain_register(name: str, component: str | None) -> int:
    """A special register."""
    found = lookup(name, component)
    if found is None:
        guess = did_you_mean(f"%{name}", [f"%{known}" for known in SPECIAL]) or "registers that `.reg` declares have no page"
        return say(f"ptxvm explain: no special register is called '%{name}'; {guess}", FINDINGS)
    out = console()
    vector = f".v{found.count}" if found.count > 1 else ""
    full = found.spelling + (f".{component}" if component else "")
    out.print(Text.assemble((full, "bold"), f", {found.noun}, {vector}.{found.type.name}; PTX ISA {found.section}"))
    out.print(Text(f"\n{found.meaning}\n"))
    out.print(labelled("needs", [(found.needs,)]))
    if found.always is not None:
        out.print(labelled("in ptxvm", [(f"always {found.always}: {found.because}",)]))
    return 0
