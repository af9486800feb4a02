"""Code lenses: above each kernel, commands that run, profile or debug it in a terminal."""

from __future__ import annotations

import re
import shlex
from urllib.parse import unquote, urlparse
from urllib.request import url2pathname

from lsprotocol import types

from ptxvm.algebra.types import Type
from ptxvm.isa.special_registers import WARP
from ptxvm.lsp.document import Document
from ptxvm.lsp.names import NameKind
from ptxvm.syntax import tree

TERMINAL = "ptxvm.terminal"
"""The command that the editor has to know: it puts its argument, a command line, into a terminal."""

LENSES = (("Run", "run"), ("Profile", "profile"), ("Debug", "debug"))
"""The title of each lens, and the command of ptxvm that it runs."""

_LITMUS = re.compile(r"^[ \t]*//: litmus\b[^\n]*", re.MULTILINE)

ARRAY = "f32[1024]"
"""What a parameter of 64 bits is taken for, until one says what it is."""


def lenses(document: Document) -> list[types.CodeLens]:
    """The lenses of a document: three above each kernel, and one at each litmus test."""
    found = []
    for kernel in document.module.names.every:
        if kernel.kind is NameKind.KERNEL and isinstance(kernel.node, tree.Function) and not kernel.is_declaration:
            at = document.text.range(kernel.start, kernel.end)
            for title, command in LENSES:
                line = shlex.join(["ptxvm", command, path_of(document.uri), "--entry", kernel.name, *arguments(kernel.node)])
                found.append(types.CodeLens(at, types.Command(title, TERMINAL, arguments=[line])))
    for test in _LITMUS.finditer(document.source.text):
        line = shlex.join(["ptxvm", "litmus", path_of(document.uri)])
        at = document.text.range(*test.span())
        found.append(types.CodeLens(at, types.Command("Litmus test", TERMINAL, arguments=[line])))
    return found


def arguments(kernel: tree.Function) -> list[str]:
    """The smallest grid that the kernel may have, and an argument for each parameter, to be edited."""
    grid, block = "1", str(WARP)
    for directive in kernel.directives:
        sizes = ",".join(str(each.value) for each in directive.arguments if isinstance(each, tree.Integer))
        if directive.name in ("reqntid", "maxntid") and sizes:
            block = sizes
        elif directive.name == "reqnctapercluster" and sizes:
            grid = sizes
    return ["--grid", grid, "--block", block, *(argument(each) for each in kernel.parameters)]


def argument(parameter: tree.Variable) -> str:
    """An argument that a parameter takes: bytes of a structure, an array, or the number 1."""
    type = Type.named.get(parameter.type)
    sizes = [
        each.value for declarator in parameter.declarators for each in declarator.dimensions if isinstance(each, tree.Integer)
    ]
    if sizes:
        return f"hex:{'00' * sizes[0]}"
    return ARRAY if type is not None and type.bits == 64 and type.is_int else "1"


def path_of(uri: str) -> str:
    """The path of a file; of anything else its URI."""
    parts = urlparse(uri)
    return url2pathname(unquote(parts.path)) if parts.scheme == "file" else uri
