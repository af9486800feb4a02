"""The head of a module: `.version`, `.target` and `.address_size` (PTX 11.1)."""

from __future__ import annotations

import re

from ptxvm.analysis import codes
from ptxvm.analysis.checks import Checks, written
from ptxvm.diagnostics import did_you_mean
from ptxvm.diagnostics.codes import NOT_TEXT
from ptxvm.diagnostics.ptxas import NOT_IN_VERSION
from ptxvm.isa.targets import LOWEST, VERSIONS, Target, gives, parse_target, parse_version
from ptxvm.syntax import tree

TEXTURE_MODES = ("texmode_unified", "texmode_independent")
OPTIONS = (*TEXTURE_MODES, "debug", "map_f64_to_f32")
ASSUMED = Target(100, "a")  # where a module names none
HAS_F64 = 13  # sm_13 is the first target with f64
UNCLEAR = "at start of file"
ARCHITECTURES = ("sm_", "compute_")


MISSING = (
    ("version", codes.VERSION, "the first line is `.version 6.4` or so"),
    ("target", codes.TARGET, "the second line is `.target sm_75` or so"),
)


def header(checks: Checks) -> None:
    """Read the head of the module; what is missing is reported at its first character."""
    found: dict[str, list[tree.Directive]] = {"version": [], "target": [], "address_size": []}
    for statement in checks.program.tree.statements:
        if isinstance(statement, tree.Directive) and statement.name in found:
            found[statement.name].append(statement)
    checks.program.version = VERSIONS[-1]  # so that a missing version is not reported again at each instruction
    for node in found["version"][:1]:
        version(checks, node)
    for node in found["target"]:
        target(checks, node)
    for node in found["address_size"][:1]:
        address_size(checks, node)
    if not checks.program.target.number:
        checks.program.target = ASSUMED
    if is_binary(checks):
        return
    for name, code, help in MISSING:
        if not found[name] and f".{name}" not in checks.report.source.text:
            checks.report.error(
                code,
                f"the module has no .{name}",
                help=help,
                ptxas=f"Missing .{name} directive at start of file '{checks.report.source.name}'",
            )


def is_binary(checks: Checks) -> bool:
    """Is the source a binary file, of which nothing is read?"""
    return not checks.program.tree.statements and any(each.code == NOT_TEXT for each in checks.report.diagnostics)


def version(checks: Checks, node: tree.Directive) -> None:
    """`.version 6.4`"""
    argument = node.arguments[0]
    text = argument.text if isinstance(argument, tree.Float) else ""
    if not re.fullmatch(r"\d{1,4}\.\d{1,4}", text):
        checks.error(codes.VERSION, "a version is written as `6.4`", argument)
        return
    asked = parse_version(text)
    checks.program.version = near = max((v for v in VERSIONS if v <= asked), default=VERSIONS[0])
    if near != asked:
        checks.error(
            codes.VERSION,
            f"there is no PTX {text}",
            argument,
            help=f"the versions are 1.0 to {written(VERSIONS[-1])}; the nearest below is {written(near)}",
            ptxas=f"Unsupported .version {text}; current version is '{written(VERSIONS[-1])}'",
        )


# ── .target (PTX 11.1.2) ────────────────────────────────────────────────────────────────


def target(checks: Checks, node: tree.Directive) -> None:
    """`.target sm_90a, texmode_independent`: the last architecture counts, and all options."""
    program = checks.program
    first = not program.target.number
    for place in node.arguments:
        word = place.text if isinstance(place, tree.Name) else ""
        if word in OPTIONS:
            if first and not program.target.number:
                checks.error(
                    codes.TARGET,
                    f"an architecture stands before '{word}'",
                    place,
                    help=f"write `.target sm_75, {word}`",
                    ptxas=not_defined(checks),
                )
                first = False
            option(checks, word, place)
        else:
            architecture(checks, word, place)


def architecture(checks: Checks, word: str, place: tree.Node) -> None:
    """One name of an architecture."""
    try:
        found = parse_target(word)
    except ValueError:
        found = Target(0)
    lowest = LOWEST.get(found)
    if lowest is None:
        known = [*map(str, LOWEST), *OPTIONS]
        no_architecture = not checks.program.target.number and not word.startswith(ARCHITECTURES)
        checks.error(
            codes.TARGET,
            f"there is no target '{word}'",
            place,
            help=did_you_mean(word, known),
            ptxas=not_defined(checks) if no_architecture else f"Unsupported .target '{word}'",
        )
    elif not gives(checks.program.version, lowest):
        said = written(checks.program.version)
        checks.error(
            codes.TARGET,
            f"PTX {said} does not know {found}, which came with {written(lowest)}",
            place,
            help=f"write `.version {written(lowest)}`",
            ptxas=f"{NOT_IN_VERSION} {said} does not support .target {found}",
        )
    if found.number:
        checks.program.target = found


def not_defined(checks: Checks) -> str:
    """What ptxas says of an option where an architecture must stand."""
    return f"Target architecture not defined {UNCLEAR} '{checks.report.source.name}'"


def option(checks: Checks, word: str, place: tree.Node) -> None:
    """A texturing mode, `debug` or `map_f64_to_f32`."""
    program = checks.program
    other = [mode for mode in TEXTURE_MODES if mode != word]
    if word in TEXTURE_MODES and other[0] in program.target_options:
        checks.error(
            codes.TARGET_OPTION,
            f"'{word}' contradicts '{other[0]}'",
            place,
            ptxas=f"Conflicting .target option '{word}'",
        )
    elif word in ("debug", "texmode_independent"):
        checks.needs(word, place)
    elif word == "map_f64_to_f32" and program.target.number >= HAS_F64:
        checks.error(
            codes.TARGET_OPTION,
            f"{program.target} has f64, so there is nothing to map",
            place,
            ptxas="Directive map_f64_to_f32 is not supported with SM 1.3 or higher",
        )
    if word == "debug" and not any(isinstance(s, tree.Section) for s in program.tree.statements):
        checks.error(
            codes.TARGET_OPTION,
            "'debug' asks for debugging sections, and there are none",
            place,
            help="leave `debug` out, or add `.section .debug_info {…}`",
            ptxas="Debug information not found in presence of .target debug",
        )
    program.target_options = (*program.target_options, word)


def compile_for(checks: Checks, wanted: Target) -> None:
    """Check for another target than that of the module: one that has what the module may ask for."""
    own = checks.program.target
    refuse_other(checks, wanted)
    checks.program.target = Target(wanted.number, wanted.suffix or (own.suffix if own.suffix == "f" else ""))


def refuse_other(checks: Checks, wanted: Target) -> None:
    """Report that code for the target of the module is none for another one, as `ptxas -arch` does."""
    found = (s for s in checks.program.tree.statements if isinstance(s, tree.Directive) and s.name == "target")
    if refused := refusal(checks.program.target, wanted):
        said, ptxas = refused
        checks.report.error(codes.OTHER_TARGET, said, next(found, None), ptxas=ptxas)


def refusal(own: Target, wanted: Target) -> tuple[str, str] | None:
    """Why code for one target is none for another: in our words, and in those of ptxas 13.5."""
    no_code = f"a module for {own} is not compiled for {wanted}"
    if wanted.number < own.number:
        return f"{no_code}, which is older", "SM version specified by .target is higher than default SM version assumed"
    if own.suffix == "a" and wanted != own:
        if wanted.number > own.number:
            ptxas = f"Program with .target '{own}' cannot be compiled to future architecture"
        else:
            ptxas = f"PTX with .target '{own}' cannot be compiled for architecture '{wanted}'"
        return f"{no_code}: what ends in 'a' is for that chip alone", ptxas
    if own.suffix == "f" and wanted.number // 10 != own.number // 10:
        ptxas = f"Program with .target '{own}' cannot be compiled to different SM-family architecture"
        return f"{no_code}, which is of another family", ptxas
    return None


def target_in_body(checks: Checks, node: tree.Directive) -> None:
    """`.target` in a function, where ptxas lets an architecture stand."""
    kept = checks.program.target
    for place in node.arguments:
        word = place.text if isinstance(place, tree.Name) else ""
        if word in OPTIONS:
            checks.error(
                codes.TARGET_OPTION,
                f"'{word}' stands at the head of the module",
                place,
                ptxas=f"Conflicting .target option '{word}'",
            )
        else:
            architecture(checks, word, place)
    checks.program.target = kept


def address_size(checks: Checks, node: tree.Directive) -> None:
    """`.address_size 64`"""
    argument = node.arguments[0]
    bits = argument.value if isinstance(argument, tree.Integer) else 0
    checks.needs("address_size", node)
    if bits in (32, 64):
        checks.program.address_size = bits
    else:
        checks.error(
            codes.ADDRESS_SIZE,
            f"addresses have 32 or 64 bits, not {bits}",
            argument,
            ptxas="Illegal value for .address_size directive (must be 32 or 64)",
        )
