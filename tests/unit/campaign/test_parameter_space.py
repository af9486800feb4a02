import json
import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from ptxvm.campaign.parameter_space import ParameterSpace, axes

AXES = {"n": [1, 2, 3], "engine": ["jit", "interp"], "seed": range(5)}


def test_a_product_has_each_combination_once_and_the_last_parameter_is_the_fastest() -> None:
    space = ParameterSpace(AXES)
    positions = [space.position(number) for number in range(space.cases)]
    assert space.cases == 30
    assert positions == [(n, e, s) for n in range(3) for e in range(2) for s in range(5)]
    assert space.parameters((2, 1, 4)) == {"n": 3, "engine": "interp", "seed": 4}


def test_no_parameters_are_one_case() -> None:
    space = ParameterSpace({})
    assert (space.cases, space.position(0), space.parameters(())) == (1, (), {})


def test_a_sample_is_the_same_for_the_same_seed_and_even() -> None:
    """Each of 64 values is expected n / 64 times, with the deviation of a binomial distribution."""
    cases = 6400
    space = ParameterSpace({"a": range(64), "b": range(1 << 40)}, sample=cases, seed=7)
    drawn = [space.position(number) for number in range(space.cases)]
    assert drawn == [ParameterSpace(space.axes, cases, 7).position(number) for number in range(cases)]
    assert drawn != [ParameterSpace(space.axes, cases, 8).position(number) for number in range(cases)]
    deviation = math.sqrt(cases / 64)
    assert max(abs(count - cases / 64) for count in Counter(a for a, _ in drawn).values()) < 6 * deviation


@pytest.mark.parametrize("cases", [1, 7, 29])
def test_no_combination_is_drawn_twice(cases: int) -> None:
    space = ParameterSpace(AXES, sample=cases, seed=3)
    assert len({space.position(number) for number in range(space.cases)}) == cases


def test_a_sample_of_as_many_as_there_are_is_all_of_them() -> None:
    space = ParameterSpace(AXES, sample=1000)
    assert len({space.position(number) for number in range(space.cases)}) == space.cases == 30


def test_ranges_end_as_those_of_python() -> None:
    found = axes({"n": {"range": [32, 129, 32]}, "seed": {"range": [3]}, "word": ["a"]})
    assert {name: list(values) for name, values in found.items()} == {"n": [32, 64, 96, 128], "seed": [0, 1, 2], "word": ["a"]}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"n": []}, "n has no values"),
        ({"n": {"range": [5, 5]}}, "n has no values"),
        ({"n": 5}, "n is a list of values"),
        ({"n": "abc"}, "n is a list of values"),
        ({"n": {"range": [1, 2, 0]}}, "a range is one to three integers"),
        ({"n": {"range": 5}}, "a range is one to three integers"),
        ({"a b": [1]}, "the name of a parameter is an identifier"),
    ],
)
def test_what_has_no_values_is_refused(table: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        axes(table)


@pytest.mark.parametrize("sample", [0, 7])
@pytest.mark.parametrize("sizes", [(3, 4, 2), (1 << 40, 1 << 40, 3)])
def test_the_positions_of_many_cases_are_those_of_each(sizes: tuple[int, ...], sample: int) -> None:
    space = ParameterSpace({name: range(size) for name, size in zip("abc", sizes, strict=True)}, sample, 5)
    numbers = [0, 1, 2, 5, 6]
    assert [*zip(*(each.tolist() for each in space.positions(np.array(numbers))), strict=True)] == [
        *map(space.position, numbers)
    ]


def test_the_json_of_a_case_is_that_of_its_parameters() -> None:
    """Oracle: Python's encoder, on values of all kinds, few and many."""
    values = [1, -2, True, None, 1.5, 'a "b"', [1, [2]], {"x": 1}, Path("y")]
    space = ParameterSpace({"a": values, 'b"': range(2000), "c": [False, 2]})
    for number in (0, 1, 3999, 4000, 12345, space.cases - 1):
        position = space.position(number)
        assert space.json(position) == json.dumps(space.parameters(position), default=str)
