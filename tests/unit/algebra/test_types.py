"""The types of PTX 5.2: one object each, also after pickling."""

from __future__ import annotations

import pickle

import pytest

from ptxvm.algebra.types import Type


@pytest.mark.parametrize("name", Type.named)
def test_a_type_is_one_object(name: str) -> None:
    type = Type.named[name]
    assert (str(type), repr(type)) == (f".{name}", name)
    assert pickle.loads(pickle.dumps(type)) is type  # noqa: S301 - made here
