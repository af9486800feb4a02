"""What the tests of the playground share: a way to ask, a server, and a Chromium of the system."""

from __future__ import annotations

import json
import os
import shutil
import threading
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from ptxvm.playground import answer
from ptxvm.playground.server import PlayServer

Ask = Callable[..., dict[str, object]]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


@pytest.fixture
def ask() -> Ask:
    """Ask a method in this process: its result, or its error."""

    def asked(method: str, **params: object) -> dict[str, object]:
        found: dict[str, dict[str, object]] = json.loads(answer(json.dumps({"method": method, "params": params})))
        return found.get("result") or found["error"]

    return asked


@pytest.fixture(scope="session")
def server() -> Iterator[PlayServer]:
    """A server on a free port."""
    with PlayServer() as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """A Chromium without a window."""
    if CHROMIUM is None:
        pytest.skip("there is no Chromium on this machine, in which the page could be tested")
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []  # which Chromium wants of root
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, server: PlayServer) -> Iterator[Page]:
    """The page of the server; an error in its scripts, or what its policy forbids, fails the test."""
    wrong: list[str] = []
    with browser.new_context(permissions=["clipboard-read", "clipboard-write"]) as context:
        shown = context.new_page()
        shown.set_default_timeout(60_000)
        shown.on("pageerror", lambda error: wrong.append(str(error)))
        shown.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        shown.goto(server.url, wait_until="domcontentloaded")
        shown.wait_for_selector("html[data-ready]")
        yield shown
    assert wrong == []
