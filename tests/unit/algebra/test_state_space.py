"""State spaces: which are parts of others, as PTX 5.1 says (Table 7: `.shared::cta`, `.param::entry`, ...)."""

from __future__ import annotations

import pytest

from ptxvm.algebra.state_space import Space


@pytest.mark.parametrize("space", Space)
def test_a_window_is_the_word_before_the_colons(space):
    assert space.window == str(space).partition("::")[0]
    assert isinstance(space.window, Space)
