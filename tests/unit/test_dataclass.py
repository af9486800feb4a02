"""Data classes with lazy methods do what the standard library's own do: each case is declared by both decorators."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any, ClassVar

import pytest

from ptxvm.dataclass import dataclass

Decorator = Callable[..., Any]
OPTIONS: list[dict[str, bool]] = [
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "order": True},
    {"eq": False, "slots": True},
    {"repr": False, "kw_only": True},
]


def declared(decorator: Decorator, **options: bool) -> Any:
    class Sample:
        """A sample."""

        x: int
        y: list[int] = dataclasses.field(default_factory=list, compare=False)
        z: str = dataclasses.field(default="z", repr=False, kw_only=True)
        made: int = dataclasses.field(default=3, init=False)
        kind: ClassVar[str] = "sample"

    return decorator(**options)(Sample)


def outcome(run: Callable[[], object]) -> object:
    try:
        return run()
    except (TypeError, AttributeError) as error:
        return type(error), str(error)


@pytest.fixture(params=OPTIONS, ids=lambda options: "-".join(options) or "plain")
def both(request: pytest.FixtureRequest) -> tuple[Any, Any]:
    return declared(dataclass, **request.param), declared(dataclasses.dataclass, **request.param)


CALLS: list[Callable[[Any], object]] = [
    lambda cls: cls(x=1, y=[2]),
    lambda cls: cls(1),
    inspect.signature,
    lambda cls: cls(x=1) == cls(x=1, y=[3]),
    lambda cls: cls(x=1) == cls(x=1, z="other"),
    lambda cls: cls(x=1) == 1,
    lambda cls: cls(x=1) < cls(x=2),
    lambda cls: len({cls(x=1), cls(x=1, y=[3])}),
    lambda cls: cls.__hash__ is None,
    lambda cls: setattr(cls(x=1), "x", 2),
    lambda cls: delattr(cls(x=1), "x"),
    lambda cls: dataclasses.asdict(dataclasses.replace(cls(x=1), x=5)),
    lambda cls: cls(x=1).made,
    lambda cls: dataclasses.asdict(copy.copy(cls(x=1, y=[4]))),
    lambda cls: (cls.__match_args__, cls.__init__.__qualname__, cls.kind),
    lambda cls: cls(),
    lambda cls: cls(x=1, w=2),
]


@pytest.mark.parametrize("number", range(len(CALLS)))
def test_like_the_standard_one(both: tuple[Any, Any], number: int) -> None:
    lazy, standard = (outcome(lambda cls=cls: CALLS[number](cls)) for cls in both)
    assert str(lazy).partition(" object at ")[0] == str(standard).partition(" object at ")[0]


@dataclass(frozen=True, slots=True)
class Base:
    """A class of the module, which can be pickled."""

    a: int

    def __post_init__(self) -> None:
        """The object is looked at."""
        if self.a < 0:
            raise ValueError("negative")


@dataclass(frozen=True, slots=True)
class Derived(Base):
    """It inherits a field, and what runs after the making."""

    b: str = "b"

    def __eq__(self, other: object) -> bool:
        """By the first field alone."""
        return isinstance(other, Base) and self.a == other.a

    def __hash__(self) -> int:
        """As equal objects have it."""
        return 7


class Plain(Base):
    """A class that is no data class itself may have attributes of its own."""


def test_a_method_is_written_when_it_is_asked_for() -> None:
    cls = declared(dataclass)
    assert not inspect.isfunction(vars(cls)["__repr__"])
    assert "x=1" in repr(cls(1))
    assert inspect.isfunction(vars(cls)["__repr__"])
    assert not inspect.isfunction(vars(cls)["__eq__"])


def test_pickled_and_inherited() -> None:
    assert dataclasses.astuple(pickle.loads(pickle.dumps(Derived(1, "c")))) == (1, "c")  # noqa: S301 - our own bytes
    with pytest.raises(ValueError, match="negative"):
        Derived(-1)


def test_own_comparison_stays() -> None:
    assert Derived(1, "x") == Base(1)
    assert hash(Derived(1)) == 7
    assert Base(1) != Base(2)


def test_plain_subclass_of_a_frozen_class() -> None:
    plain = Plain(1)
    plain.more = 2  # type: ignore[attr-defined]
    with pytest.raises(dataclasses.FrozenInstanceError):
        plain.a = 2  # type: ignore[misc]
    with pytest.raises(dataclasses.FrozenInstanceError):
        Base(1).more = 2  # type: ignore[attr-defined]
