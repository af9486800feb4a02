"""Signature help: the forms of the instruction that is being written, and the role of each operand."""

from __future__ import annotations

from lsprotocol import types

from ptxvm.isa.model import Decoded
from ptxvm.lsp.context import CursorPart, context_at, fitting
from ptxvm.lsp.document import Document
from ptxvm.reference.page import Page

MOST_FORMS = 16
"""The forms that are shown of one instruction."""


def signature_help(document: Document, position: types.Position) -> types.SignatureHelp | None:
    """The forms that fit what is written before a position; None where no operand is written."""
    context = context_at(document.module, document.text.offset(position))
    if context is None or context.part not in (CursorPart.OPERAND, CursorPart.COMPONENT):
        return None
    forms = list(fitting(context.forms))[:MOST_FORMS]
    if not forms:
        return None
    enough = next((n for n, i in enumerate(forms) if i.form.counts[1] > context.operand), 0)
    return types.SignatureHelp([_signature(i) for i in forms], enough, context.operand)


def _signature(i: Decoded) -> types.SignatureInformation:
    """A form with its modifiers chosen; the places of its operands are those in the label."""
    text = i.form.text.partition(" ")[2].strip()
    label = f"{i.mnemonic} {text};"
    page, roles = Page(i.of), dict(Page(i.of).operands)
    parameters, at = [], len(i.mnemonic) + 1
    for operand in i.form.operands:
        names = operand.names
        start = _find(label, names[0], at)
        end = _find(label, names[-1], start) + len(names[-1])
        at = end
        parameters.append(types.ParameterInformation((start, end), _roles(i, names, roles)))
    return types.SignatureInformation(label, page.headline, parameters)


def _find(label: str, name: str, at: int) -> int:
    found = label.find(name, at)
    return found if found >= 0 else at


def _roles(i: Decoded, names: tuple[str, ...], roles: dict[str, str]) -> str:
    """What each name of an operand is; with the type that the modifiers choose."""
    said = []
    for name in names:
        type = i.type_of(name)
        role = roles.get(name, "")
        said.append(f"{name}: {role}" + (f" ({type})" if type is not None and str(type) not in role else ""))
    return "; ".join(said)
