"""The components of vectors are every second, third or fourth element, whatever instructions pick them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.memory import deinterleaving


class Lists:
    """Shuffles, computed on lists of numbers."""

    def shuffle(self, _type: str, count: int, a: list[int], b: list[int] | str, order: Sequence[int]) -> list[int]:
        both = a + (b if isinstance(b, list) else [-1] * count)
        assert len(a) == count
        return [both[n] for n in order]

    def concatenate(self, _type: str, parts: list[list[int]], each: int) -> list[int]:
        assert all(len(part) == each for part in parts)
        return [n for part in parts for n in part]


@pytest.mark.parametrize("features", [("avx2",), ("avx2", "avx512f"), ()], ids=["avx2", "avx512", "none"])
@pytest.mark.parametrize(("lanes", "count", "size"), [(8, 4, 4), (16, 4, 4), (32, 4, 4), (32, 2, 4), (32, 4, 2), (16, 2, 8)])
def test_components(features: tuple[str, ...], lanes: int, count: int, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "has", lambda feature: feature in features)
    elements = list(range(lanes * count))
    found = deinterleaving.components(Lists(), "i32", size, elements, lanes, count)  # type: ignore[arg-type]
    assert found == [elements[n::count] for n in range(count)]
