from collections.abc import Callable
from html.parser import HTMLParser

from ptxvm.campaign.session import Campaign


class Cells(HTMLParser):
    """The texts of the cells of a page's tables, a list for each table."""

    def __init__(self) -> None:
        super().__init__()
        self.tables: list[list[str]] = []
        self.inside = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "table":
            self.tables.append([])
        self.inside = tag == "td"

    def handle_data(self, data: str) -> None:
        if self.inside and data.strip():
            self.tables[-1].append(data)


def test_the_page_counts_failures_where_they_are(run: Callable[..., Campaign]) -> None:
    """`fails_from` fails from 7 on whatever m is: two of three rows of n fail in each column of m."""
    found = run("fails_from", {"n": [1, 7, 8], "m": [0, 1]})
    cells = Cells()
    cells.feed(found.page.read_text())
    assert cells.tables == [["1", "1", "1/1", "1/1", "1/1", "1/1"]]


def test_what_a_user_wrote_is_no_markup(run: Callable[..., Campaign]) -> None:
    found = run("odd_fails", {"n": ["<script>alert(1)</script>", "<b>"]})
    text = found.page.read_text()
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_an_axis_with_many_values_is_divided(run: Callable[..., Campaign]) -> None:
    found = run("odd_fails", {"n": {"range": [240]}})
    cells = Cells()
    cells.feed(found.page.read_text())
    assert cells.tables == [["5/10"] * 24]


def test_each_of_several_failures_has_a_field_of_its_own(run: Callable[..., Campaign]) -> None:
    """Of n = 1 both columns of m fail; elsewhere the second one does."""
    found = run("fails_in_two_ways", {"n": [0, 1, 2], "m": [0, 1]})
    cells = Cells()
    cells.feed(found.page.read_text())
    assert cells.tables == [
        ["1", "1/1", "1", "1", "1", "1/1"],
        ["1", "1", "1/1", "1/1", "1", "1"],
        ["1", "1/1", "1/1", "1/1", "1", "1/1"],
    ]
