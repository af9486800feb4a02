"""The page of a report in headless Chromium: what a reader sees and does."""

from __future__ import annotations

import re

import pytest

from ptxvm.report.page import TEMPLATES

SHOWN = "[...document.querySelectorAll('figure.access')].filter(f => !f.hidden).map(f => f.querySelector('title').textContent)"
CONFLICT = "Lanes and the banks that they ask: 32 wavefronts, ideal 1"
ROW = "Lanes and the sectors that they touch: 4, ideal 4"


@pytest.fixture
def path(html, tmp_path):
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    return tmp_path / "page.html"


def line_with(text):
    """The identifier of the line of PTX with a text."""
    return f"[...document.querySelectorAll('[id^=ptx].line')].find(row => row.textContent.includes({text!r})).id"


def test_a_conflict_is_shown_at_once_and_another_picture_when_another_line_is_chosen(browser, path):
    browser.open(path, 1280)
    assert browser.value(SHOWN)[0] == CONFLICT
    browser.value(f"document.getElementById({line_with('st.global')}).querySelector('code').click()")
    assert browser.value(SHOWN) == [ROW]
    assert browser.value("document.getElementById('chosen-text').textContent") == "st.global.f32 [%rd3], %f2;"
    browser.value(f"document.getElementById({line_with('setp')}).querySelector('code').click()")
    assert browser.value(SHOWN) == []
    assert browser.value("document.getElementById('chosen-none').hidden") is False


def test_keys_choose_lines(browser, path):
    browser.open(path, 1280)
    browser.value("document.querySelector('.listing').focus()")
    browser.press("End")
    assert browser.value("document.getElementById('chosen-text').textContent") == "ret;"
    browser.press("ArrowUp")
    assert browser.value(SHOWN) == [ROW]
    assert browser.value("location.hash") == f"#{browser.value(line_with('st.global'))}"


def test_a_line_of_the_source_is_of_lines_of_ptx(browser, path):
    browser.open(path, 1280)
    browser.value("[...document.querySelectorAll('.line')].find(row => row.textContent.includes('out[threadIdx.x] =')).click()")
    assert browser.value("document.getElementById('chosen-of').textContent").startswith("compiled to column.ptx:")
    assert browser.value(SHOWN) == [ROW]


def test_lines_are_coloured_by_the_chosen_metric(browser, path):
    heat = f"document.getElementById({line_with('st.shared')}).style.getPropertyValue('--heat')"
    browser.open(path, 1280)
    assert browser.value("document.getElementById('metric').value") == "shared_bank_conflicts"
    assert browser.value(heat) == "1"
    browser.value("metric.value = 'divergent_branches'; metric.dispatchEvent(new Event('change'))")
    assert browser.value(heat) == "0"
    assert browser.value(f"document.getElementById({line_with('bra EVEN')}).querySelector('.amount').textContent") == "4"


@pytest.mark.parametrize("width", [390, 1280])
def test_the_page_is_as_wide_as_the_window(browser, path, width):
    browser.open(path, width)
    assert width - 20 < browser.value("document.documentElement.scrollWidth") <= width  # less a scroll bar


@pytest.mark.parametrize("dark", [False, True])
def test_texts_stand_out_from_the_ground(browser, path, dark):
    """WCAG 2.2, 1.4.3: a contrast of 4.5 at least."""
    browser.open(path, 1280, dark=dark)
    colours = """['body', '.note', 'h3 small', 'code', '.number', 'nav a'].map(selector => {
        const part = document.querySelector(selector);
        return [getComputedStyle(part).color, getComputedStyle(document.body).backgroundColor];
    })"""
    for text, ground in browser.value(colours):
        light, darker = sorted((luminance(text), luminance(ground)), reverse=True)
        assert (light + 0.05) / (darker + 0.05) >= 4.5, (text, ground)


def luminance(colour):
    """Relative luminance of a colour (WCAG 2.2)."""
    parts = [int(n) / 255 for n in re.findall(r"\d+", colour)[:3]]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def test_no_text_of_the_module_is_run(browser, path):
    browser.open(path, 1280)
    assert browser.value("document.title") == "column - ptxvm profile"
    assert browser.value("document.scripts.length") == 2
    assert browser.value("document.querySelectorAll('main i, main b').length") == 0


def test_no_other_script_may_run(browser, path):
    browser.open(path, 1280)
    browser.value("s = document.createElement('script'); s.textContent = 'document.title = 1'; document.body.append(s)")
    assert browser.value("document.title") == "column - ptxvm profile"


def test_the_page_has_landmarks_and_names(browser, path):
    browser.open(path, 1280)
    counts = "['header', 'nav', 'main', 'aside', 'footer', 'h1'].map(name => document.querySelectorAll(name).length)"
    assert browser.value(counts) == [1] * 6
    unnamed = "[...document.querySelectorAll('svg')].filter(picture => !picture.querySelector('title')).length"
    assert browser.value(unnamed) == 0
    assert browser.value("[...document.querySelectorAll('select')].every(each => each.labels.length === 1)") is True
    ids = "[...document.querySelectorAll('[id]')].map(each => each.id)"
    assert browser.value(f"new Set({ids}).size === {ids}.length") is True


def test_the_parts_of_the_page_name_nothing_outside():
    for part in TEMPLATES.iterdir():
        assert "http:" not in part.read_text().replace("http-equiv", "")
        assert "https:" not in part.read_text()
