"""The static page: Python answers in a Web Worker.

A stand-in for Pyodide asks this Python, so that the page, the worker and the protocol are tested everywhere.  With a Pyodide
distribution, whose folder `PTXVM_PYODIDE` names, the same is tested with Python in the browser.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import threading
import zipfile
from pathlib import Path

import pytest
from playground_kernels import DOUBLE, FOREVER

from ptxvm.playground import answer
from ptxvm.playground.files import page_files
from ptxvm.playground.lessons import course
from ptxvm.playground.site import CORE, PINNED, digest, write_site

STAND_IN = """
export async function loadPyodide() {
  const ask = (request) => {
    const asking = new XMLHttpRequest();
    asking.open("POST", "/python", false);
    asking.send(request);
    return asking.responseText;
  };
  return { loadPackage: async () => {}, unpackArchive: () => {}, runPython: () => ask };
}
"""


HELD = {"check": threading.Event(), "run": threading.Event()}
"""Python answers these methods when they are set; other tests have them set."""


@pytest.fixture(autouse=True)
def nothing_is_held():
    """All answers come at once, and what a test has held is let go in the end."""
    for each in HELD.values():
        each.set()
    yield
    for each in HELD.values():
        each.set()


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, and answers as Python in the browser would."""

    def do_POST(self):
        request = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if (held := HELD.get(json.loads(request)["method"])) is not None:
            held.wait()
        found = answer(request).encode()
        with contextlib.suppress(ConnectionError):  # of a worker that has been ended
            self.send_response(200)
            self.send_header("Content-Length", str(len(found)))
            self.end_headers()
            self.wfile.write(found)

    def log_message(self, *_):
        pass


@pytest.fixture
def stand_in(tmp_path) -> Path:
    """A folder that looks like a Pyodide distribution."""
    folder = tmp_path / "stand-in"
    folder.mkdir()
    for name in PINNED:
        (folder / name).write_text(f"not {name}")
    (folder / "pyodide.mjs").write_text(STAND_IN)
    lock = {"packages": {name: {"file_name": f"{name}.whl"} for name in ("numpy", "ml-dtypes")}}
    (folder / "pyodide-lock.json").write_text(json.dumps(lock))
    return folder


@pytest.fixture
def site(tmp_path):
    """Builds the page for a distribution."""
    wheel = tmp_path / "ptxvm-0-py3-none-any.whl"
    wheel.write_bytes(b"a wheel")

    def built(pyodide, wheel=wheel):
        write_site(tmp_path / "site", wheel, pyodide)
        return tmp_path / "site"

    return built


@pytest.fixture
def visit(browser):
    """Opens a static page."""
    servers = []
    context = browser.new_context()

    def visited(folder, *, clock=False):
        serving = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Files, directory=str(folder)))
        threading.Thread(target=serving.serve_forever).start()
        servers.append(serving)
        page = context.new_page()
        if clock:
            page.clock.install()
        page.goto(f"http://127.0.0.1:{serving.server_port}/")
        return page

    yield visited
    context.close()
    for each in servers:
        each.shutdown()
        each.server_close()


def test_it_is_whole_and_pinned(site, stand_in):
    folder = site(stand_in)
    configuration = json.loads((folder / "configuration.json").read_text())
    assert configuration["wheel_integrity"] == digest((folder / configuration["wheel"]).read_bytes())
    assert configuration["integrity"] == {name: digest((folder / "pyodide" / name).read_bytes()) for name in PINNED}
    policy = (folder / "index.html").read_text().partition("Content-Security-Policy")[2].partition(">")[0]
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy


def test_without_a_folder_it_loads_pinned_files_of_the_network(site):
    folder = site(None)
    configuration = json.loads((folder / "configuration.json").read_text())
    assert (configuration["core"], configuration["integrity"]) == (CORE, PINNED)
    assert all(pinned.startswith("sha384-") for pinned in PINNED.values())
    assert "script-src 'self' 'wasm-unsafe-eval' https://cdn.jsdelivr.net;" in (folder / "index.html").read_text()


def test_a_folder_that_is_no_distribution_is_told(site, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError):
        site(tmp_path / "empty")


def test_a_kernel_runs_in_the_worker(visit, site, stand_in):
    page = visit(site(stand_in))
    page.wait_for_selector("html[data-ready]")
    page.fill("#code", DOUBLE)
    page.wait_for_selector("#fields label:has-text('data')")
    page.fill("#fields label:has-text('data') input", "u32[32]=ones")
    page.fill("#fields label:has-text('grid') input", "1")
    page.click("#run")
    page.wait_for_selector(".outcome.done")
    assert page.locator(".values td").all_inner_texts() == ["2"] * 32


def test_a_worker_that_is_stopped_is_replaced(visit, site, stand_in):
    page = visit(site(stand_in))
    page.wait_for_selector("html[data-ready]")
    page.fill("#code", FOREVER)
    page.press("#code", "Control+Enter")
    page.click("#stop")
    page.wait_for_selector("#stop", state="hidden")
    page.fill("#code", DOUBLE)
    page.wait_for_selector("#fields label:has-text('data')")


def test_a_check_takes_as_long_as_it_takes(visit, site, stand_in):
    """The user does not wait for it; under load it took longer than an answer may, and the fields were missing."""
    page = visit(site(stand_in), clock=True)
    page.wait_for_selector("html[data-ready]")
    HELD["check"].clear()
    with page.expect_request("**/python"):
        page.fill("#code", DOUBLE)
    page.clock.fast_forward(61_000)
    HELD["check"].set()
    page.wait_for_selector("#fields label:has-text('data')")


@pytest.mark.parametrize("end", ["time", "stop"])
def test_what_waits_behind_a_run_that_is_ended_is_answered(visit, site, stand_in, end):
    """A run takes longer than it may, or is stopped, while another text waits to be checked."""
    page = visit(site(stand_in), clock=True)
    page.wait_for_selector("html[data-ready]")
    page.wait_for_selector("#fields input")
    HELD["run"].clear()
    with page.expect_request(lambda request: "run" in (request.post_data or "")):
        page.click("#run")
    page.fill("#code", DOUBLE)
    page.clock.run_for(400)  # after which the text is checked
    if end == "stop":
        page.click("#stop")
    page.clock.fast_forward(61_000)
    page.wait_for_selector("#fields label:has-text('data')")
    said = {"time": "limit: it took more than 60 seconds, and was ended", "stop": "Stopped."}
    assert page.inner_text("#status") == said[end]
    page.wait_for_selector("#stop", state="hidden")


def test_a_file_that_is_not_the_pinned_one_is_not_run(visit, site, stand_in):
    folder = site(stand_in)
    (folder / "pyodide" / "pyodide.mjs").write_text("throw new Error('this must not run')")
    page = visit(folder)
    page.wait_for_selector("#status:has-text('Python does not start in this browser')")
    assert "this must not run" not in page.inner_text("#status")


def test_the_wheel_has_the_page_and_the_lessons(tmp_path, monkeypatch):
    buildapi = pytest.importorskip("flit_core.buildapi")
    monkeypatch.chdir(Path(__file__).parents[3])
    with zipfile.ZipFile(tmp_path / buildapi.build_wheel(str(tmp_path))) as wheel:
        names = set(wheel.namelist())
    assert names >= {f"ptxvm/playground/page/{name}" for name in page_files()}
    assert sum(name.startswith("ptxvm/playground/course/") for name in names) == len(course())


@pytest.mark.long
def test_it_runs_in_pyodide(visit, site, tmp_path):
    """What needs no NumPy always; a kernel where the distribution has NumPy and ml_dtypes."""
    pyodide = os.environ.get("PTXVM_PYODIDE")
    if pyodide is None:
        pytest.skip("PTXVM_PYODIDE names no folder with a Pyodide distribution")
    buildapi = pytest.importorskip("flit_core.buildapi")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(Path(__file__).parents[3])
        wheel = tmp_path / buildapi.build_wheel(str(tmp_path))
    page = visit(site(Path(pyodide), wheel))
    page.set_default_timeout(180_000)
    page.wait_for_selector("html[data-ready]")
    page.fill("#code", DOUBLE.replace("add.u32", "add.u33"))
    page.wait_for_selector("#problems li.error")
    assert "line 12" in page.inner_text("#problems li.error button")
    page.click("#tab-litmus")
    page.click("#panel-litmus button.main")
    page.wait_for_selector("#panel-litmus .outcome")
    assert "allowed" in page.inner_text("#panel-litmus .outcome")
    page.fill("#code", DOUBLE)
    page.wait_for_selector("#fields label:has-text('data')")
    page.fill("#fields label:has-text('data') input", "u32[32]=ones")
    page.fill("#fields label:has-text('grid') input", "1")
    page.click("#run")
    if not list(Path(pyodide).glob("numpy-*.whl")):
        page.wait_for_selector("#status:has-text('unsupported: this needs numpy, which is not installed here')")
        return
    page.wait_for_selector(".outcome.done")
    assert page.locator(".values td").all_inner_texts() == ["2"] * 32
    page.click("#step")
    page.wait_for_selector(".where")
    page.click(".bar button:has-text('Last')")
    assert page.locator(".registers tbody tr", has_text="%r2 ").count() == 1
    page.select_option("#examples", "lesson bank-conflict")
    page.click("#count")
    page.wait_for_selector(".metrics")
    assert "1056 (ideal 64)" in page.inner_text(".metrics")
    page.select_option("#examples", "lesson race")
    page.click("#solve")
    page.wait_for_selector(".verdict.wrong")
    assert "WAR race on .shared memory" in page.inner_text(".verdict")
