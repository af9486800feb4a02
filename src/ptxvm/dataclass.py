"""Data classes with lazily generated methods.

The standard decorator compiles the text of four to eight methods for each class that is declared, which made a third of the
time that `import ptxvm.api` took.  Most classes are never compared, printed or hashed in a process, and many never made.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

ORDER = ("__lt__", "__le__", "__gt__", "__ge__")
NO_METHODS = {"init": False, "repr": False, "eq": False}


class LazyMethod:
    """A method of a data class, which the standard decorator writes when the method is first asked for."""

    __slots__ = ("cls", "name", "options")

    def __init__(self, cls: type, name: str, **options: bool) -> None:
        self.cls, self.name, self.options = cls, name, options

    def __get__(self, instance: object, owner: type | None = None) -> Any:  # noqa: ANN401 - the function, bound or not
        """Write the method into its class; this object is not asked again."""
        method = self.written()
        method.__qualname__ = f"{self.cls.__qualname__}.{self.name}"
        setattr(self.cls, self.name, method)
        return method.__get__(instance, owner)

    def written(self) -> Any:  # noqa: ANN401 - a function
        """The method as it stands in a class that has the same fields, and nothing else."""
        cls = self.cls
        fields = dataclasses.fields(cls)
        namespace: dict[str, Any] = {field.name: field for field in fields}
        namespace |= {"__module__": cls.__module__, "__doc__": cls.__doc__}
        namespace["__annotations__"] = {field.name: field.type for field in fields}
        if hasattr(cls, "__post_init__"):
            namespace["__post_init__"] = cls.__post_init__
        alike: type = type(cls.__name__, (), namespace)
        return vars(dataclasses.dataclass(alike, **{**NO_METHODS, **self.options}))[self.name]


def _lazy(
    cls: type | None = None,
    /,
    *,
    init: bool = True,
    repr: bool = True,
    eq: bool = True,
    order: bool = False,
    frozen: bool = False,
    kw_only: bool = False,
    slots: bool = False,
) -> Any:  # noqa: ANN401 - the class, or what decorates it
    """`dataclasses.dataclass`, with methods that are written when they are first asked for."""

    def decorated(cls: type) -> type:
        has_hash = cls.__dict__.get("__hash__") is not None
        cls = dataclasses.dataclass(cls, **NO_METHODS, kw_only=kw_only, slots=slots)
        methods: dict[str, object] = {}
        if init:
            methods["__init__"] = LazyMethod(cls, "__init__", init=True, frozen=frozen, slots=slots)
        if repr:
            methods["__repr__"] = LazyMethod(cls, "__repr__", repr=True)
        if eq:
            methods["__eq__"] = LazyMethod(cls, "__eq__", eq=True)
        if eq and not has_hash:
            cls.__hash__ = LazyMethod(cls, "__hash__", unsafe_hash=True) if frozen else None  # type: ignore[assignment]
        if order:
            methods |= {name: LazyMethod(cls, name, eq=True, order=True) for name in ORDER}
        if frozen:
            methods |= _frozen(cls, slots=slots)
        for name in methods.keys() - vars(cls).keys():
            setattr(cls, name, methods[name])
        return cls

    return decorated if cls is None else decorated(cls)


def _frozen(cls: Any, *, slots: bool) -> dict[str, Callable[..., Any]]:  # noqa: ANN401 - a class, which mypy does not take for one in `super`
    """What refuses to assign to fields, and what pickles and copies a frozen object with slots in spite of it."""
    names = {field.name for field in dataclasses.fields(cls)}

    def setattr_(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def delattr_(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    methods: dict[str, Callable[..., Any]] = {"__setattr__": setattr_, "__delattr__": delattr_}
    return {**methods, "__getstate__": _state, "__setstate__": _restore} if slots else methods


def _state(self: Any) -> list[object]:  # noqa: ANN401 - any frozen data class with slots
    """The values of the fields."""
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _restore(self: Any, state: list[object]) -> None:  # noqa: ANN401 - as above
    """The fields get these values, past the refusal."""
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - type checkers know the standard one
else:
    dataclass = _lazy
