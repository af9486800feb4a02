"""What the conformance files exercise: every instruction, and of PTX 6.4 every word that it may have in each of its forms."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from random import Random

from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA, Decoded, Form, Instruction, candidates
from ptxvm.isa.targets import Target, parse_need

HERE = Path(__file__).parent
MACHINES = [((6, 4), Target(75)), ((6, 4), Target(70)), ((6, 4), Target(61)), ((1, 3), Target(10))]
INSTRUCTION = re.compile(r"(?:^|[;{}:])\s*(?:@!?[%\w]+\s+)?(?P<head>[a-z]\w*(?:\.[\w:]+)*)(?P<operands>[^;]*);", re.MULTILINE)

DRAWS = 60

Word = tuple[str, str, str]  # the instruction's name, its form, and the word


def words_of(of: str, form: Form, decoded: Decoded) -> Iterator[Word]:
    """Every word that the variant has: `.slot=word`; the bare form counts too."""
    yield of, form.text, ""
    for slot in form.slots:
        if slot.name in decoded.bound:
            yield of, form.text, f".{decoded.bound[slot.name]}" if slot.literal else f"{slot.name}=.{decoded.bound[slot.name]}"


def legal(decoded: Decoded) -> bool:
    """Does some machine of 6.4 know the variant?  What asks about operands, of which there are none, has no say."""
    for version, target in MACHINES:
        variant = Decoded(decoded.of, decoded.form, decoded.bound, version=version, target=target)
        later = [need for condition, need in variant.of.conditional_needs if says(condition, variant)]
        unmet = (n.version > version or not n.met_by(target) for n in map(parse_need, later))
        if known(variant) and not any(unmet) and not any(says(rule.check, variant) for rule in variant.of.rules):
            return True
    return False


def says(condition: Callable[[Decoded], object], variant: Decoded) -> bool:
    """Does it hold, as far as that does not depend on operands?"""
    try:
        return bool(condition(variant))
    except (AttributeError, ValueError):
        return False


def known(variant: Decoded) -> bool:
    """Does the machine meet what the words need, whatever the operands?"""
    present = {"", *variant.bound, *variant.bound.values()}
    needs = (parse_need(need) for words, need in variant.of.needs.items()
             if any(w.lstrip(".") in present for w in words.split() or [""]))  # fmt: skip
    return all(need.version <= variant.version and need.met_by(variant.target) for need in needs)


def drawn(of: Instruction, form: Form) -> Iterator[Decoded]:
    """Variants of a form: for each word several, the other words drawn by chance; all of them would be millions."""
    random = Random(form.text)
    options = [(*((None,) if s.optional else ()), *s.order) for s in form.slots]
    for at, choices in enumerate(options or [(None,)]):
        for word in choices:
            for _ in range(DRAWS):
                words = [word if n == at else random.choice(o) for n, o in enumerate(options)]
                yield Decoded(of, form, {s.name: w for s, w in zip(form.slots, words, strict=True) if w})


def of_6_4() -> list[Instruction]:
    """The instructions of PTX 6.4."""
    return [of for of in ISA.instructions if parse_need(of.needs.get("", "PTX 1.0")).version <= (6, 4)]


def declared() -> set[Word]:
    """Every word of every form that PTX 6.4 has."""
    load_catalog()
    found: set[Word] = set()
    for of in of_6_4():
        for form in of.forms:
            for variant in drawn(of, form):
                words = set(words_of(of.name, form, variant))
                if not words <= found and legal(variant):
                    found |= words
    return found


def operands(text: str) -> int:
    """How many operands stand there: commas outside of brackets."""
    text = re.sub(r"[\[{(][^\[\](){}]*[\]})]", "x", re.sub(r"\{[^{}]*\}", "x", text))
    return text.count(",") + 1 if text.strip() else 0


def words_in(text: str) -> Iterator[Word]:
    """The words of every instruction of a text, in every form that takes them."""
    for m in INSTRUCTION.finditer(re.sub(r"//[^\n]*", "", text).replace(";", ";;")):
        yield from words_of_an_instruction(m["head"], operands(m["operands"]))


@cache
def words_of_an_instruction(head: str, count: int) -> frozenset[Word]:
    """The words of an opcode with modifiers, in every form that takes so many operands."""
    opcode, *words = head.split(".")
    forms = (each for each in candidates(opcode, tuple(words)) if each.form.counts[0] <= count <= each.form.counts[1])
    return frozenset(word for each in forms for word in words_of(each.of.name, each.form, each))


@cache
def exercised(folder: Path = HERE) -> set[Word]:
    """The words that the files with `run` lines use, in every form that takes them."""
    load_catalog()
    texts = (path.read_text() for path in folder.rglob("*.ptx"))
    return {word for text in texts if "//: run" in text for word in words_in(text)}


# What no run can show.
BEYOND = {
    ("cvta", "type=.u32"): "needs addresses of 32 bits, and a run passes its results in 64",
    ("cvta_to", "type=.u32"): "the same",
    ("bar_sync", "all=.any"): "not in the manual, so no source says what a run gives",
    ("bar_sync", "all=.all"): "the same",
}


def gaps(words: set[Word]) -> list[str]:
    """Those of the words that no run exercises."""
    return [" ".join(w) for w in sorted(words - exercised()) if (w[0], w[2]) not in BEYOND]


def test_every_word_of_6_4_is_exercised() -> None:
    """A form or a modifier without a run is a gap."""
    missing = gaps(declared())
    assert not missing, "\n".join(missing)


def accepted(folder: Path) -> Iterator[str]:
    """The variants that ptxas takes in a module of PTX 6.4."""
    profiles = json.loads((folder / "profiles.json").read_text())
    with gzip.open(folder / "variants.jsonl.gz", "rt") as lines:
        for row in map(json.loads, lines):
            since = profiles.get(row.get("profile") or "", {})
            oldest = [since[target] for target in ("sm_75", "sm_70", "sm_50", "sm_30") if target in since]
            if any(tuple(map(int, version.split("."))) <= (6, 4) for version in oldest):
                yield row["text"]


def test_every_word_that_ptxas_takes_is_exercised(shared: Path) -> None:
    """The same of what was seen to be accepted, where `legal` might be wrong."""
    load_catalog()
    old = {(of.name, form.text) for of in of_6_4() for form in of.forms}
    missing = gaps({word for text in accepted(shared / "isa") for word in words_in(text) if word[:2] in old})
    assert not missing, "\n".join(missing)


WITH_MAPS_OF_THE_DRIVER = {"cp_async_bulk_tensor_im2col", "cp_async_bulk_prefetch_tensor_im2col"}
"""What needs a tensor map that no kernel can make: tests/unit/engine/test_tensor_copies.py has it."""


def test_every_later_instruction_is_exercised() -> None:
    """An instruction that came after PTX 6.4 and executes has a run with an expectation, in some form."""
    load_catalog()
    later = {of.name for of in ISA.instructions if of.executes} - {of.name for of in of_6_4()}
    assert later - {name for name, _, _ in exercised()} == WITH_MAPS_OF_THE_DRIVER
