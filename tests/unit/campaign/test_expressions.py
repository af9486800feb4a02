import pytest

from ptxvm.campaign.expressions import substituted


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{n}", 10),
        ("{cdiv(n, 4)}", 3),
        ("{n - 1 if n > 5 else n}", 9),
        ("{min(n, 3) + max(n, 3) * 2}", 23),
        ("{-n // 3}", -4),
        ("f32[{n},{n*2}]=arange", "f32[10,20]=arange"),
        ("{engine}", "jit"),
        ("no braces", "no braces"),
        (["{n}", 5, "x{n}"], [10, 5, "x10"]),
        (5, 5),
    ],
)
def test_an_expression_has_the_value_that_python_gives(text: object, value: object) -> None:
    assert substituted(text, {"n": 10, "engine": "jit"}) == value


@pytest.mark.parametrize(
    "text",
    [
        "{}", "{n +}", "{m}", "{n.real}", "{__import__('os')}", "{(lambda: 1)()}", "{[n]}", "{n ** n}", "{1 << n}", "{n / 0}",
        "{open('x')}", "{(n := 5)}", "{min(*n)}", "{" + "(" * 150 + "n" + ")" * 150 + "}", "{" + "n+" * 200 + "n}",
    ],
)  # fmt: skip
def test_nothing_else_is_computed(text: str) -> None:
    with pytest.raises(ValueError, match=r"^\{"):
        substituted(text, {"n": 10})
