"""`ptxvm explain INSTRUCTION`: what it is in words, and what it computes from given values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from rich.text import Text

from ptxvm.algebra.types import Type, pred
from ptxvm.cli.failures import WrongCall
from ptxvm.cli.terminal import GAP, LABEL, console, filled, labelled, tinted, width
from ptxvm.engine.interp.value_text import signed
from ptxvm.reference import boolean, permutation
from ptxvm.reference.evaluation import (
    BadValue,
    Quantity,
    bits_of,
    compute,
    constants_of,
    hexadecimal,
    is_computable,
    names_an_address,
    number,
    readings,
    wanted,
)
from ptxvm.reference.instruction_parts import modifiers_of, operands_of, requirements
from ptxvm.reference.page import Page
from ptxvm.reference.reading import Reading
from ptxvm.reference.syntax_lines import syntax_lines
from ptxvm.syntax.printer import print_operand

Rows = list[tuple[str, ...]]

SHADES = ("red", "yellow", "green", "cyan", "blue", "magenta", "bright_red", "bright_blue")
"""The colours of the bytes of `a` and `b`, the lowest first."""
Bits = TypeVar("Bits", int, tuple[int, ...])


def explain_instruction(reading: Reading, values: Mapping[str, str]) -> dict[str, int]:
    """What an instruction is, and what it computes in one lane; the bits of its registers.

    `values` are those of the registers, by their names.
    """
    inputs = parse_values(reading, values)
    print_reading(reading)
    print_result(reading, inputs)
    return inputs


# ── the instruction in words ────────────────────────────────────────────────────────────


def print_reading(reading: Reading) -> None:
    """The instruction, what it does, and what each part of it is."""
    out, i = console(), reading.decoded
    page = Page(i.of)
    out.print(Text("\n".join(syntax_lines(reading.text, width())), style="bold"), soft_wrap=True)
    out.print(Text(f"\n{filled(page.summary)}\n"))
    blocks: list[tuple[str, Rows]] = [
        ("form", [*form_lines(i.form.text), (f"{page.section}; needs {requirements(i)}",)]),
        ("modifiers", modifiers_of(i)),
        ("operands", operands_of(reading.bound, constants_of(reading))),
        ("effects", [(effect,) for effect in page.effects]),
        ("accuracy", [e for e in i.of.exactness if e.word != "exact"] if {"approx", "full"} & set(i.bound) else []),
        ("note", older(reading)),
    ]
    for label, rows in blocks:
        if rows:
            out.print(labelled(label, rows))


def form_lines(form: str) -> Rows:
    """The syntax line, in lines that fit behind the label."""
    return [(line,) for line in syntax_lines(f"{form};", width() - LABEL - len(GAP))]


def older(reading: Reading) -> Rows:
    """A note where only old versions take the instruction."""
    if not reading.refused:
        return []
    major, minor = reading.version
    why = "; ".join(dict.fromkeys(d.message for d in reading.refused))
    return [(f"read as PTX {major}.{minor}, {reading.target}; later ones refuse it: {why}",)]


# ── values ──────────────────────────────────────────────────────────────────────────────


def parse_values(reading: Reading, values: Mapping[str, str]) -> dict[str, int]:
    """The bits of each register that `--set` names."""
    known = wanted(reading) if is_computable(reading) else {}
    if values and not known:
        raise WrongCall(f"--set has no use here: '{reading.text}' {no_result(reading)}")
    return chosen(values, known, "the instruction does", bits_of)


def chosen(
    values: Mapping[str, str],
    known: Mapping[str, Type],
    reader: str,
    bits: Callable[[str, Type], Bits],
    others: Mapping[str, Type] = MappingProxyType({}),
) -> dict[str, Bits]:
    """The values of the registers that are read, none or all of them; and of others, which may be given, too."""
    inputs, taken = {}, {**known, **others}
    for key, value in values.items():
        name = key if key in taken else f"%{key.lstrip('%')}"
        if name not in taken:
            raise WrongCall(f"{reader} not read {name}, but {', '.join(known) or 'none'}")
        try:
            inputs[name] = bits(value, taken[name])
        except BadValue as wrong:
            raise WrongCall(f"{name}: {wrong}") from None
    missing = [name for name in known if name not in inputs]
    if inputs and missing:
        raise WrongCall(f"values are missing: {options(missing)}")
    return inputs


def no_result(reading: Reading) -> str:
    """Why there is nothing to compute."""
    if is_computable(reading):
        return "reads no register"
    effects = Page(reading.decoded.of).effects if reading.decoded.of.effects - {"cc"} else []
    if names_an_address(reading) and not effects:
        return "takes an address, which only a loaded module has"
    return " and ".join(effects) or "reads no register"


def options(names: Sequence[str]) -> str:
    """How to give the values of some registers."""
    return " ".join(f"--set {name}=VALUE" for name in names)


def print_result(reading: Reading, inputs: Mapping[str, int]) -> None:
    """What the instruction computes, where that is known; else what has to be given."""
    out = console()
    if not is_computable(reading):
        return
    known = wanted(reading)
    print_insight(reading, inputs)
    if len(inputs) < len(known):
        out.print()
        out.print(labelled("result", [(f"depends on values: {options(list(known))}",)]))
        return
    result = compute(reading, inputs)
    out.print()
    if result.inputs:
        out.print(labelled("values", [(q.text, hexadecimal(q), number(q)) for q in result.inputs]))
    results = [row for q in result.outputs for row in shown(q)]
    if results or reading.decoded.destinations():
        out.print(labelled("result", results or [("is thrown away: `_`",)]))


def shown(quantity: Quantity) -> Rows:
    """A value: its bits, then the number of its type and other readings of the bits, each in a row."""
    type, bits = quantity.type, quantity.bits
    if type is pred:
        said = [""]
    elif type.is_float or type.is_packed:
        said = [f"{number(quantity)} as .{type.name}"]
    else:
        said = [whole_number(quantity)]
    said += [f"{numbers} as .{other.name}" for numbers, other in readings(bits, type)]
    first, *others = said
    return [(quantity.text, hexadecimal(quantity), first), *(("", "", each) for each in others)]


def whole_number(quantity: Quantity) -> str:
    """The bits as an unsigned number, and as a signed one where that is another."""
    bits, negative = quantity.bits, signed(quantity.bits, quantity.type.bits)
    return f"{bits} unsigned, {negative} signed" if negative < 0 else str(bits)


# ── what only one instruction has ───────────────────────────────────────────────────────


def print_insight(reading: Reading, inputs: Mapping[str, int]) -> None:
    """The truth table of lop3, the bytes of prmt."""
    constants = constants_of(reading)
    if reading.decoded.of.name == "lop3" and "immLut" in constants:
        print_truth_table(constants["immLut"] & boolean.ALL)
    if reading.decoded.of.name == "prmt":
        control = constants.get("c", inputs.get(print_operand(reading.bound.operands["c"])))
        if reading.decoded.mode:
            print_mode(reading.decoded.mode)
        if control is not None:
            print_bytes(reading, control, inputs)


def print_mode(mode: str) -> None:
    """The bytes that a mode of prmt takes, by the two bits of `c`, the highest first."""
    console().print()
    console().print(labelled(f".{mode}", [permutation.MODE_COLUMNS, *permutation.mode_table(mode)], right=True))


def print_truth_table(table: int) -> None:
    """The eight rows, and the shortest expression."""
    out = console()
    rows = [(name, *(str(of_name >> n & 1) for n in range(8))) for name, of_name in boolean.VARIABLES.items()]
    rows.append(("d", *(str(table >> n & 1) for n in range(8))))
    out.print()
    out.print(labelled("truth", rows, right=True))
    called = boolean.name(table)
    out.print(labelled("", [(f"0x{table:02X} is d = {boolean.expression(table)}" + (f", {called}" if called else ""),)]))


def print_bytes(reading: Reading, control: int, inputs: Mapping[str, int]) -> None:
    """Where each byte of the result comes from, the highest first."""
    out, operands = console(), reading.bound.operands
    picked = permutation.byte_selections(control, reading.decoded.mode)[::-1]
    constants = constants_of(reading)
    texts = {name: name if name in constants else print_operand(operands[name]) for name in "ab"}
    bits = {name: constants.get(name, inputs.get(texts[name])) for name in "ab"}
    rows: Rows = [
        ("byte of d", "3", "2", "1", "0"),
        ("taken from", *(p.written(texts[p.operand]) for p in picked)),
    ]
    if not reading.decoded.mode:
        rows.insert(1, ("selector", *(f"{control >> 4 * n & 0xF:x}" for n in (3, 2, 1, 0))))
    a, b = bits["a"], bits["b"]
    if a is not None and b is not None:
        rows.append(("value", *(f"0x{p.of(a, b):02x}" for p in picked)))
    shades = [SHADES[4 * (p.operand == "b") + p.byte] for p in picked]
    out.print()
    out.print(tinted("bytes", rows, [("", *shades)] * len(rows), right=True))
