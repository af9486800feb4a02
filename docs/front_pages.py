"""The pages of the reference that are made from the command line and from the package's own interface."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
from sessions import printed_by

import ptxvm
from ptxvm.cli.app import app
from ptxvm.debug.commands.command import COMMANDS
from ptxvm.debug.console import Console  # noqa: F401 - which declares the commands
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.argument_texts import DTYPES, FILLS
from ptxvm.reference import pictures
from ptxvm.reference.accesses import access_of, place_of
from ptxvm.reference.drawings import memory_of_access
from ptxvm.reference.markdown import Files, code, escaped, table, toctree
from ptxvm.reference.reading import read

ROOT = Path(__file__).parents[1]
ROOMS_WIDTH, ROOM_HEIGHT = 680.0, 30.0

GROUPS = {
    "Modules and kernels": "load check link Module Kernel LaunchResult launch_report LaunchReport Trace Diagnostic",
    "Memory of the device": "DeviceArray",
    "Devices": "devices Device StartedLaunch",
    "Streams": "Stream Event",
    "Textures and surfaces": "Texture Sampler Surface",
    "Tensor maps": "TensorMap TensorType Interleave Swizzle L2Promotion OobFill",
    "Campaigns": "campaign spread",
    "Errors": "PTXVMError InvalidPTX Fault Unsupported Crash",
}
"""The public names, in the order in which they are met."""

REFERENCE = {
    "Python interface": "api",
    "Command line": "commands/index",
    "Commands of the debugger": "debugger",
    "Arguments of kernels": "arguments",
    "Campaigns": "campaigns",
    "Environment variables": "environment",
    "Instructions": "instructions/index",
    "Special registers": "special-registers",
    "Directives": "directives",
    "Types": "types",
    "Targets": "targets",
    "Numerics": "numerics",
    "Faults and findings": "faults",
    "Diagnostics": "diagnostics/index",
}


SESSIONS = {
    "examples": "ptxvm examples",
    "isa": "ptxvm isa shfl.sync",
    "explain": "ptxvm explain 'lop3.b32 %r1, %r2, %r3, %r4, 0xCA;' --set %r2=0xF0 --set %r3=0x12 --set %r4=0x34",
}
"""What the page of a command shows, run by the build."""


def front_pages() -> Files:
    """All of them, and the list of the reference."""
    said = "Every page here is made from the declarations that the machine itself reads."
    index = ["# Reference", "", said, "", *(f"- [{title}]({path}.md)" for title, path in REFERENCE.items()), ""]
    return {
        "reference/index.md": "\n".join(index),
        "reference/api.md": _interface(),
        "reference/arguments.md": _arguments(),
        "reference/debugger.md": _debugger(),
        **_commands(),
        **_pictures(),
        "reference/beside/transpose-profile.html": _profile(),
    }


# ── Python ──────────────────────────────────────────────────────────────────────────────


def _pictures() -> Files:
    """What the front page shows, in the colours of the page."""
    return {
        "reference/pictures/prmt.svg": pictures.bytes_of_prmt(0x5A10),
        "reference/pictures/rooms.svg": _rooms(),
        "reference/pictures/banks.svg": _banks(),
    }


def _profile() -> str:
    """The page of a profile, of the guide's example."""
    matrix = np.arange(128 * 128, dtype=np.uint32).reshape(128, 128)
    kernel = ptxvm.load(ROOT / "docs" / "transpose.ptx").kernel()
    return ptxvm.launch_report(kernel, (4, 4), (32, 32), [np.zeros_like(matrix), matrix, 128]).html


def _banks() -> str:
    """Words of shared memory that lie eight bytes apart."""
    place = place_of(read("ld.shared.f32 %f1, [%r1];"))
    if place is None:
        raise ValueError("an access with an address in a register has a place")
    return memory_of_access(access_of(place, [8 * lane for lane in range(WARP)]))


def _rooms() -> str:
    """The packages by layers, as import-linter holds them: a package may use what stands below it."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = next(each for each in settings["tool"]["importlinter"]["contracts"] if each["id"] == "layers")
    layers = [
        [name for name in map(str.strip, layer.split("|")) if "(" not in name or _is_there(name)]
        for layer in contract["layers"]
    ]
    parts, top = [], 8.0
    for n, layer in enumerate(layer for layer in layers if layer):
        width = ROOMS_WIDTH / len(layer)
        for k, name in enumerate(layer):
            parts += [
                pictures.box(8 + k * width, top, width - 8, ROOM_HEIGHT, pictures.color(n / len(layers))),
                pictures.label(4 + (k + 0.5) * width, top + ROOM_HEIGHT / 2, name.strip("()")),
            ]
        top += ROOM_HEIGHT + 8
    return pictures.picture(ROOMS_WIDTH + 8, top, "The packages of ptxvm by layers", parts)


def _is_there(name: str) -> bool:
    """Is there a package or module of this name?  The contract puts names in parentheses that may come later."""
    return any((ROOT / "src" / "ptxvm").glob(f"{name.strip('()')}*"))


def _interface() -> str:
    """The names of the package, with their docstrings; ValueError where one has no group."""
    grouped = {name for names in GROUPS.values() for name in names.split()}
    if grouped != set(ptxvm.__all__):
        raise ValueError(f"the groups of the interface differ from ptxvm.__all__: {grouped ^ set(ptxvm.__all__)}")
    lines = ["# Python interface", "", "The names of the package `ptxvm`; each is imported when it is first used.", ""]
    for title, names in GROUPS.items():
        documented = [line for name in names.split() for line in _documented(name)]
        lines += [f"## {title}", "", "```{eval-rst}", *documented, "```", ""]
    return "\n".join(lines)


def _documented(name: str) -> Iterator[str]:
    """The directive of autodoc for a name."""
    found = getattr(ptxvm, name)
    if inspect.ismodule(found):  # `campaign`, a room that is called like its function
        yield from (f".. autofunction:: {found.__name__}.session.{name}", "")
        return
    if not inspect.isclass(found):
        yield from (f".. autofunction:: ptxvm.{name}", "")
        return
    yield from (f".. autoclass:: ptxvm.{name}", "   :members:", "")


# ── the debugger ────────────────────────────────────────────────────────────────────────


def _debugger() -> str:
    """The commands of `ptxvm debug`, by what they are for, with what `help` says of each."""
    lines = [
        "# Commands of the debugger",
        "",
        "[A guide](../how-to/debugger.md) shows them in use.  The beginning of a name is enough,",
    ]
    lines += ["where it means only one; an empty line repeats the last command.", ""]
    for group in dict.fromkeys(each.group for each in COMMANDS.all.values()):
        lines += [f"## {group}", ""]
        for each in COMMANDS.all.values():
            if each.group == group:
                also = f" (also {', '.join(map(code, each.aliases))})" if each.aliases else ""
                lines += [f"### {code(f'{each.name} {each.usage}'.strip())}", "", f"{each.help}{also}", ""]
    return "\n".join(lines)


# ── arguments ───────────────────────────────────────────────────────────────────────────


def _arguments() -> str:
    """The words that `ptxvm run` takes for arguments, and the types of arrays."""
    forms = next(part for part in _paragraphs(app.commands["run"].help or "") if part.startswith("\b"))
    rows = [(code(name), code(str(dtype)), str(dtype.itemsize)) for name, dtype in DTYPES.items()]
    lines = ["# Arguments of kernels", "", "`ptxvm run` takes an argument of the kernel in each of these words:", ""]
    lines += ["```text", forms.removeprefix("\b\n"), "```", "", "## Types of arrays", ""]
    lines += [*table(("type", "in NumPy", "bytes"), rows), "", "## What an array is filled with", ""]
    lines += [f"{', '.join(map(code, FILLS))}, or any number.", "", "## In Python", ""]
    lines += ["`args` of [](#ptxvm.Kernel.launch) takes Python's own values and NumPy's arrays.", ""]
    return "\n".join(lines)


# ── the command line ────────────────────────────────────────────────────────────────────


def _commands() -> Files:
    """A page for each command, from the parser."""
    context = click.Context(app, info_name="ptxvm")
    names = app.list_commands(context)
    rows = [(f"[`ptxvm {name}`]({name}.md)", escaped(app.commands[name].get_short_help_str(200))) for name in names]
    lines = ["# Command line", "", "`ptxvm` alone, and `--help` behind any command, print the same.", ""]
    lines += [*table(("command", "what it does"), rows), "", "Of `ptxvm` itself:", "", *_options(app), ""]
    lines += toctree(f"ptxvm {name} <{name}>" for name in names)
    pages = {f"reference/commands/{name}.md": _command(name, app.commands[name], context) for name in names}
    return {"reference/commands/index.md": "\n".join(lines), **pages}


def _command(name: str, command: click.Command, parent: click.Context) -> str:
    """What a command does, its usage and its options."""
    context = click.Context(command, info_name=name, parent=parent)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    lines = [f"# `ptxvm {name}`", "", "```text", usage, "```", "", *_help(command.help or ""), *_options(command), ""]
    if name in SESSIONS:
        lines += ["## Example", "", "```console", f"$ {SESSIONS[name]}", *printed_by(SESSIONS[name]).splitlines(), "```", ""]
    return "\n".join(lines)


def _help(text: str) -> Iterator[str]:
    r"""The paragraphs of a help text; those behind `\b` are laid out already."""
    for paragraph in _paragraphs(text):
        if paragraph.startswith("\b"):
            yield from ("```text", paragraph.removeprefix("\b\n"), "```", "")
        else:
            yield from (escaped(paragraph), "")


def _paragraphs(text: str) -> list[str]:
    return inspect.cleandoc(text).split("\n\n")


def _options(command: click.Command) -> list[str]:
    """The options in a table, with what they are without being given."""
    rows = [_option(each) for each in command.params if isinstance(each, click.Option)]
    return table(("option", "value", "what it does", "default"), rows) if rows else []


def _option(option: click.Option) -> tuple[str, ...]:
    """The row of an option; a flag has neither value nor default."""
    named, said = ", ".join(code(each) for each in option.opts), escaped(option.help or "")
    if option.is_flag:
        return named, "", said, ""
    default = option.to_info_dict()["default"]
    return named, code(option.metavar or ""), said, code("" if default is None else str(default))
