"""Take docs/how-to/playground.png, the picture of the playground in use: `make picture`.

It needs Chromium, as the tests of the page do.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from ptxvm.playground.server import PlayServer

PICTURE = Path(__file__).parent / "how-to" / "playground.png"
STEPS = 9


def main() -> None:
    """Open the lesson on shuffles, step through it, and take the picture."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.exit("there is no Chromium on this machine")
    with PlayServer() as server, sync_playwright() as playwright:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"] if os.geteuid() == 0 else [])
        page = browser.new_page(viewport={"width": 1280, "height": 760}, color_scheme="light")
        page.goto(server.url)
        step(page)
        page.screenshot(path=PICTURE)
        browser.close()
        server.shutdown()


def step(page: Page) -> None:
    """Let some instructions of a warp be executed."""
    page.wait_for_selector("html[data-ready]")
    page.select_option("#examples", "lesson shuffle")
    page.wait_for_selector("#fields label:has-text('data')")
    page.fill("#fields label:has-text('data') input", "u32[32]=arange")
    page.click("#step")
    page.wait_for_selector(".registers")
    for _ in range(STEPS - 1):
        page.keyboard.press("F10")
    page.wait_for_selector(f".where:has-text('Step {STEPS - 1}')")
    page.wait_for_timeout(300)


if __name__ == "__main__":
    main()
