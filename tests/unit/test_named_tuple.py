"""Named tuples are those of the standard library (`typing.NamedTuple`), but for what they cost to declare."""

from __future__ import annotations

import copy
import pickle
import typing

import pytest

from ptxvm.named_tuple import NamedTuple


class Point(NamedTuple):
    """A place."""

    x: int
    y: int = 2
    name: str = "here"

    @property
    def total(self) -> int:
        """A sum."""
        return self.x + self.y

    @classmethod
    def origin(cls) -> Point:
        """Where all begins."""
        return cls(0, 0)


class Expected(typing.NamedTuple):
    """A place."""

    x: int
    y: int = 2
    name: str = "here"


def test_it_has_what_the_standard_one_has():
    assert Point(1) == (1, 2, "here") == Expected(1)
    assert repr(Point(1)) == repr(Expected(1)).replace("Expected", "Point")
    for name in ("_fields", "_field_defaults", "__doc__", "__match_args__", "__bases__", "__module__"):
        assert getattr(Point, name) == getattr(Expected, name), name
    assert typing.get_type_hints(Point) == typing.get_type_hints(Expected)
    assert Point(3)._replace(y=4)._asdict() == {"x": 3, "y": 4, "name": "here"}


def test_it_has_methods_of_its_own():
    assert (Point(3).total, Point.origin()) == (5, (0, 0, "here"))


def test_it_can_be_copied_and_pickled():
    assert pickle.loads(pickle.dumps(Point(5))) == copy.deepcopy(Point(5)) == Point(5)  # noqa: S301 - our own


def test_a_field_without_a_default_must_be_given():
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        Point()
