"""The page in a real browser: load, type, run, see what is wrong, share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playground_kernels import DOUBLE, FOREVER

EDITOR = "#code"


def written(page, text):
    """Write a text into the editor, as a user who pastes it."""
    page.fill(EDITOR, text)


def run(page):
    """Run by keyboard, and wait for the end."""
    page.evaluate("document.querySelector('.outcome')?.remove()")
    page.press(EDITOR, "Control+Enter")
    page.wait_for_selector(".outcome")


def put_cursor(page, text):
    """Put the cursor on a text in the editor."""
    at = page.input_value(EDITOR).index(text)
    page.locator(EDITOR).evaluate("(code, at) => { code.focus(); code.setSelectionRange(at, at) }", at)


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


def test_an_argument_stays_with_its_parameter(page):
    page.wait_for_selector("#fields label:has-text('y')")
    parameters = ".param .u64 y, .param .f32 a, .param .f32 b, .param .u64 other"  # of n .u32, a .f32, x .u64, y .u64
    written(page, f".version 8.0\n.target sm_80\n.visible .entry changed({parameters}) {{ ret; }}\n")
    page.wait_for_selector("#fields label:has-text('other')")
    values = page.eval_on_selector_all("#fields input", "inputs => inputs.map((each) => each.value)")
    assert values == ["2", "32", "f32[64]=ones", "2.5", "", "f32[64]=ones"]


def test_a_block_that_the_kernel_requires_is_filled_in(page):
    """PTX 11.4.3; a kernel that requires none leaves what stands there."""
    kernels = [f".visible .entry {name}() {says} {{ ret; }}\n" for name, says in (("a", ""), ("b", ".reqntid 8, 4"))]
    written(page, f".version 8.0\n.target sm_80\n{''.join(kernels)}")
    page.select_option("#fields select", "b")
    assert page.input_value("#fields label:has-text('block') input") == "8,4,1"
    page.select_option("#fields select", "a")
    assert page.input_value("#fields label:has-text('block') input") == "8,4,1"
    page.fill("#fields label:has-text('block') input", "16")
    written(page, f".version 8.0\n.target sm_80\n{kernels[1]}")
    page.wait_for_selector("#fields label:has-text('block') input[value='8,4,1']")
    run(page)  # of b, though a was chosen, which is gone
    assert page.inner_text(".outcome") == "The kernel has run."


def test_what_is_said_of_an_older_text_leaves_the_arguments(page):
    held = []

    def hold(route):
        held.append(route)

    page.route("**/answer", hold, times=1)
    with page.expect_request("**/answer"):
        written(page, DOUBLE)
    while not held:
        page.wait_for_timeout(10)
    answer = held[0].fetch()
    page.select_option("#examples", "lesson bank-conflict")
    held[0].fulfill(response=answer)  # before the new text is checked
    page.click("#count")
    page.wait_for_selector(".metrics")


def test_what_is_wrong_is_marked_listed_and_found_by_key(page):
    written(page, DOUBLE.replace("add.u32", "add.u33"))
    page.wait_for_selector("#problems li.error")
    assert "line 12" in page.inner_text("#problems li.error button")
    page.wait_for_selector(".gutter .error:text-is('12')")
    page.wait_for_selector(".ink i.error")
    page.press(EDITOR, "F8")
    assert cursor_line(page) == 12


def test_a_run_can_be_stopped(page):
    written(page, FOREVER)
    page.press(EDITOR, "Control+Enter")
    page.click("#stop")
    page.wait_for_selector("#status:has-text('Stopped.')")
    assert page.is_hidden("#stop")


def test_a_race_is_found_at_its_line(page):
    page.select_option("#examples", "example a race")
    run(page)
    assert page.inner_text("#problems li.error button").startswith("error[race]: RAW race on .shared memory")
    page.press(EDITOR, "F8")  # which brings the line into view
    page.wait_for_selector(".gutter .error:text-is('25')")


def test_a_link_holds_all_of_it(page):
    written(page, DOUBLE)
    page.wait_for_selector("#fields label:has-text('data')")
    page.fill("#fields label:has-text('data') input", "u32[7]=5")
    page.check("[name=check][value=init]")
    page.click("#share")
    page.wait_for_url("**/#1.*")
    link = page.evaluate("navigator.clipboard.readText()")
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("#fields label:has-text('data')")
    assert page.input_value(EDITOR) == DOUBLE
    assert page.input_value("#fields label:has-text('data') input") == "u32[7]=5"
    assert page.is_checked("[name=check][value=init]")


def test_a_link_names_the_lesson_that_it_is_of(page):
    page.select_option("#examples", "lesson shuffle")
    page.click("#share")
    page.wait_for_url("**/#1.*")
    link = page.url
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector("html[data-ready]")
    assert page.input_value("#examples") == "lesson shuffle"
    own = page.evaluate("async () => (await import('/state.js')).packed({ source: '// of my own' })")
    page.evaluate("(link) => { location.hash = link }", own)
    drawn = "await new Promise(requestAnimationFrame)"  # `wait_for_function` makes a function of text: the page forbids it
    page.evaluate(f"async () => {{ while (document.querySelector('#code').value !== '// of my own') {drawn} }}")
    assert page.input_value("#examples") == ""


def test_a_text_that_was_changed_is_no_example_any_more(page):
    page.select_option("#examples", "example a race")
    begun = page.input_value(EDITOR)
    page.fill(EDITOR, "// of my own")
    assert page.input_value("#examples") == ""
    page.select_option("#examples", "example a race")
    assert page.input_value(EDITOR) == begun


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
    page.wait_for_selector("#status:not(:empty)")
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


# ── views ───────────────────────────────────────────────────────────────────────────────


def test_it_steps_forwards_and_backwards(page):
    page.select_option("#examples", "lesson byte-order")
    page.click("#step")
    page.wait_for_selector(".registers")
    registers = page.locator(".registers tbody tr")
    assert registers.count() == 0
    page.keyboard.press("F10")
    page.keyboard.press("F10")
    assert page.inner_text(".where") == "Step 2 of 7; next: warp 0, line 12"
    page.wait_for_selector(".gutter .current:text-is('12')")  # drawn with the next frame
    assert page.locator(".registers tbody tr", has_text="%r1").locator("td").all_inner_texts() == [str(n) for n in range(32)]
    page.keyboard.press("Shift+F10")
    assert page.inner_text(".where") == "Step 1 of 7; next: warp 0, line 11"
    put_cursor(page, "prmt")
    page.keyboard.press("F9")
    assert page.inner_text(".where") == "Step 4 of 7; next: warp 0, line 14"
    page.click(".bar button:has-text('First')")
    assert page.locator(".registers tbody tr", has_text="%r1 ").count() == 0


def test_the_first_key_records_what_is_stepped_through(page):
    """A text that was changed since is recorded anew: its steps are not those of the text before."""
    written(page, DOUBLE)
    page.wait_for_selector("#fields label:has-text('data')")
    page.fill("#fields label:has-text('data') input", "u32[32]=arange")
    page.press(EDITOR, "F10")
    page.wait_for_selector(".where:has-text('Step 0 of 7; next: warp 0, line 8')")
    page.press(EDITOR, "F10")
    page.wait_for_selector(".where:has-text('Step 1 of 7; next: warp 0, line 9')")
    written(page, DOUBLE.replace("    add.u32", "    not.b32 %r2, %r2;\n    add.u32"))
    page.press(EDITOR, "F10")
    page.wait_for_selector(".where:has-text('Step 0 of 8')")
    put_cursor(page, "add.u32")
    page.press(EDITOR, "F9")
    page.wait_for_selector(".where:has-text('line 13')")


@pytest.mark.parametrize(("button", "content"), [("#run", ".outcome"), ("#step", ".where"), ("#count", ".metrics")])
def test_what_a_button_shows_is_in_sight_on_a_phone(page, button, content):
    page.set_viewport_size({"width": 390, "height": 844})
    page.click(button)
    page.wait_for_selector(content)
    assert 0 <= page.locator(content).bounding_box()["y"] < 844 - 100


def test_a_lesson_is_solved(page):
    page.select_option("#examples", "lesson byte-order")
    page.click("#solve")
    page.wait_for_selector(".verdict.wrong")
    written(page, page.input_value(EDITOR).replace("0x3210", "0x0123"))
    page.click("#solve")
    page.wait_for_selector(".verdict.right")
    assert page.inner_text(".verdict") == "Solved."


def test_the_instruction_under_the_cursor_is_explained(page):
    page.select_option("#examples", "lesson byte-order")
    put_cursor(page, "prmt")
    page.click("#tab-explain")
    page.wait_for_selector("#panel-explain svg")
    assert page.inner_text("#panel-explain h2") == "prmt.b32 %r3, %r2, 0, 0x3210;"
    page.fill("#panel-explain input", "0x11223344")
    page.click("#panel-explain form button")
    page.wait_for_selector("#panel-explain svg text:has-text('287454020')")


def test_a_hover_explains(page):
    page.wait_for_selector(".ink .opcode")
    page.locator(".ink .opcode", has_text="setp").hover(force=True)
    page.wait_for_selector("#tip:not([hidden])")
    assert page.inner_text("#tip").startswith("setp.ge.u32 %p, %r5, %r1;")
    page.press(EDITOR, "End")
    page.wait_for_selector("#tip", state="hidden")


def test_a_litmus_test_is_judged(page):
    page.click("#tab-litmus")
    page.select_option("#panel-litmus select >> nth=0", "store buffering")
    page.click("#panel-litmus button.main")
    page.wait_for_selector("#panel-litmus .outcome")
    assert "allowed" in page.inner_text("#panel-litmus .outcome")
    page.click("#panel-litmus summary >> nth=0")
    assert page.locator("#panel-litmus details[open] svg").count() >= 1


def test_counters_are_shown_by_line(page):
    page.select_option("#examples", "lesson bank-conflict")
    page.click("#count")
    page.wait_for_selector(".metrics")
    assert "1056 (ideal 64)" in page.inner_text(".metrics")
    assert page.locator("#panel-count details[open] svg").count() == 2


def test_tabs_go_by_arrow_keys(page):
    page.click("#tab-lesson")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "tab-results"
    assert page.get_attribute("#tab-results", "aria-selected") == "true"
    assert page.is_visible("#panel-results")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert page.evaluate("document.activeElement.id") == "tab-litmus"


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_nothing_is_wider_than_the_window(page, width):
    page.set_viewport_size({"width": width, "height": 844})
    for name in ("lesson", "results", "step", "count", "explain", "litmus"):
        page.click(f"#tab-{name}")
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.select_option("#examples", "lesson mma-fragment")
    put_cursor(page, "mma.sync")
    page.click("#tab-explain")
    page.wait_for_selector("#panel-explain svg")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


AXE = os.environ.get("PTXVM_AXE")


@pytest.mark.skipif(AXE is None, reason="PTXVM_AXE names no axe.min.js, of the package axe-core")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_to_mend(page, scheme):
    """axe-core, an independent judge of accessibility, has no objection to any view."""
    page.emulate_media(color_scheme=scheme)
    page.select_option("#examples", "lesson bank-conflict")
    views = {
        "lesson": "#panel-lesson .task",
        "results": ".outcome",
        "step": ".registers",
        "count": ".metrics",
        "explain": "#panel-explain h2",
        "litmus": "#panel-litmus .outcome",
    }
    for name, content in views.items():
        page.click({"results": "#run", "step": "#step", "count": "#count"}.get(name, f"#tab-{name}"))
        if name == "litmus":
            page.click("#panel-litmus button.main")
        page.wait_for_selector(content)
        page.evaluate(Path(AXE).read_text(encoding="utf-8"))
        found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
        assert [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]] == [], name
