"""Named tuples whose declaration costs little: `typing.NamedTuple` compiles the annotation of each field.

A field's annotation is a text that nothing asks for in a process that runs kernels.  Twelve named tuples of seven fields took a
sixth of the time that the first launch of a kept kernel takes.
"""

from __future__ import annotations

from collections import namedtuple
from typing import TYPE_CHECKING, Any

OF_THE_CLASS = frozenset({"__module__", "__qualname__", "__annotations__", "__classcell__"})


class _Declaration(type):
    """Makes the class of a named tuple of a class with annotated fields, as `typing.NamedTuple` does."""

    def __new__(cls, name: str, _bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:  # noqa: ANN401 - another class
        """The fields with their defaults, and whatever else the class has."""
        fields = namespace.get("__annotations__", {})
        defaults = [namespace[field] for field in fields if field in namespace]
        made: Any = namedtuple(name, fields, defaults=defaults, module=namespace["__module__"])  # type: ignore[misc]  # noqa: PYI024
        made.__qualname__, made.__annotations__ = namespace["__qualname__"], fields
        for key, value in namespace.items():
            if key not in OF_THE_CLASS and key not in fields:
                setattr(made, key, value)
        return made


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - type checkers know the standard one
else:
    NamedTuple = type.__new__(_Declaration, "NamedTuple", (), {})
