"""The page in a real browser: load, type, run, see what is wrong, share."""

from __future__ import annotations

import pytest
from playground_kernels import DOUBLE

EDITOR = "#code"


def written(page, text):
    """Write a text into the editor, as a user who pastes it."""
    page.fill(EDITOR, text)


def run(page):
    """Run by keyboard, and wait for the end."""
    page.evaluate("document.querySelector('.outcome')?.remove()")
    page.press(EDITOR, "Control+Enter")
    page.wait_for_selector(".outcome")


def cursor_line(page):
    """The line of the cursor, from 1."""
    return page.evaluate("((code) => code.value.slice(0, code.selectionStart).split('\\n').length)(document.activeElement)")


def test_a_kernel_is_written_and_run(page):
    written(page, DOUBLE)
    page.wait_for_selector("#fields label:has-text('data')")
    page.fill("#fields label:has-text('data') input", "u32[32]=arange")
    page.fill("#fields label:has-text('grid') input", "1")
    run(page)
    assert page.inner_text(".outcome") == "The kernel has run."
    assert page.locator(".values td").all_inner_texts() == [str(2 * n) for n in range(32)]
    assert page.locator(".values td.changed").count() == 31
    assert page.locator("svg.plot title").text_content() == "data: u32, 32 values from 0 to 62"


def test_what_is_wrong_is_marked_listed_and_found_by_key(page):
    written(page, DOUBLE.replace("add.u32", "add.u33"))
    page.wait_for_selector("#problems li.error")
    assert "line 12" in page.inner_text("#problems li.error button")
    assert page.locator(".gutter .error").inner_text() == "12"
    assert page.locator(".ink i.error").count() >= 1
    page.press(EDITOR, "F8")
    assert cursor_line(page) == 12


def test_a_race_is_found_at_its_line(page):
    page.select_option("#examples", "a race")
    run(page)
    assert page.inner_text("#problems li.error button").startswith("error[race]: RAW race on .shared memory")
    page.press(EDITOR, "F8")  # which brings the line into view
    assert page.locator(".gutter .error").inner_text() == "25"


def test_a_link_holds_all_of_it(page):
    written(page, DOUBLE)
    page.wait_for_selector("#fields label:has-text('data')")
    page.fill("#fields label:has-text('data') input", "u32[7]=5")
    page.check("[name=check][value=init]")
    page.click("#share")
    page.wait_for_function("location.hash.length > 9")
    link = page.evaluate("navigator.clipboard.readText()")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("#fields label:has-text('data')")
    assert page.input_value(EDITOR) == DOUBLE
    assert page.input_value("#fields label:has-text('data') input") == "u32[7]=5"
    assert page.is_checked("[name=check][value=init]")


HOSTILE = "<img src=x onerror=alert(1)><script>alert(1)</script>"


def test_a_hostile_link_is_text(page):
    page.on("dialog", lambda dialog: pytest.fail(f"a script ran: {dialog.message}"))
    state = {
        "source": f'// {HOSTILE}\n.version 8.0\n"{HOSTILE}',
        "args": [HOSTILE],
        "grid": HOSTILE,
        "entry": HOSTILE,
        "view": "__proto__",
        "checks": [HOSTILE],
    }
    link = page.evaluate("async (state) => (await import('/state.js')).packed(state)", state)
    page.evaluate("(link) => { location.hash = link }", link)
    page.wait_for_selector("#problems li.error")
    page.click("#run")
    page.wait_for_function("document.querySelector('#status').textContent.length > 0")
    assert page.locator("img, script:not([src='main.js'])").count() == 0
    assert page.input_value(EDITOR).startswith(f"// {HOSTILE}")


@pytest.mark.parametrize("fragment", ["#1.", "#1.AAAA", "#2.abc", "#%00", "#1.____", "#code"])
def test_a_broken_link_gives_the_first_example(page, server, fragment):
    page.goto("about:blank")
    page.goto(server.url + fragment)
    page.wait_for_selector("html[data-ready]")
    assert "saxpy" in page.input_value(EDITOR)


def test_a_link_that_unpacks_to_gigabytes_is_refused(page):
    bomb = "{'source': '" + " " * (1 << 22) + "'}"
    packed = page.evaluate(
        """async (text) => {
            const stream = new Blob([text]).stream().pipeThrough(new CompressionStream("deflate-raw"));
            const bytes = new Uint8Array(await new Response(stream).arrayBuffer());
            const letters = Array.from(bytes, (byte) => String.fromCharCode(byte)).join("");
            return "1." + btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
        }""",
        bomb,
    )
    assert page.evaluate("async (link) => (await import('/state.js')).unpacked(link)", packed) is None
