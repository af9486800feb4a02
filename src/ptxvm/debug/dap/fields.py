"""Fields of requests, as the types that the specification of the protocol gives them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Arguments: TypeAlias = Mapping[str, Any]  # the specification of the protocol says what a key may have


class Refused(ValueError):  # noqa: N818 - it says what happened
    """A request cannot be carried out; the message says why."""


def needed(fields: Arguments, name: str) -> object:
    """A field that must be there."""
    if fields.get(name) is None:
        raise Refused(f"the request has no '{name}'")
    return fields[name]


def whole(fields: Arguments, name: str, default: int | None = None) -> int:
    """A whole number; Refused for anything else, and where there is none and no default."""
    found = default if fields.get(name) is None and default is not None else needed(fields, name)
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if not isinstance(found, int) or isinstance(found, bool):
        raise Refused(f"'{name}' is a whole number, not {shortened(found)}")
    return found


def text(fields: Arguments, name: str, default: str | None = None) -> str:
    """A text; Refused for anything else, and where there is none and no default."""
    found = default if fields.get(name) is None and default is not None else needed(fields, name)
    if not isinstance(found, str):
        raise Refused(f"'{name}' is a text, not {shortened(found)}")
    return found


def objects(fields: Arguments, name: str) -> list[Arguments]:
    """A list of objects, which may be missing."""
    return [an_object(each, f"an element of '{name}'") for each in sequence(fields, name)]


def texts(fields: Arguments, name: str) -> list[str]:
    """A list of texts, which may be missing."""
    return [text({name: each}, name) for each in sequence(fields, name)]


def sequence(fields: Arguments, name: str) -> list[object]:
    """A list, which may be missing."""
    found = fields.get(name) or []
    if not isinstance(found, list):
        raise Refused(f"'{name}' is a list, not {shortened(found)}")
    return found


def an_object(found: object, what: str) -> Arguments:
    """An object of JSON."""
    if not isinstance(found, dict):
        raise Refused(f"{what} is an object, not {shortened(found)}")
    return found


def shortened(found: object) -> str:
    """A value as a message shows it."""
    shown = repr(found)
    return shown if len(shown) <= 40 else f"{shown[:40]}…"


__all__ = ["Arguments", "Refused", "an_object", "needed", "objects", "sequence", "text", "texts", "whole"]
