"""The server answers its own page, and refuses what another page, another host name or a hostile client sends."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys

import pytest
from playground_kernels import DOUBLE, FOREVER

from ptxvm.playground.processes import Processes
from ptxvm.playground.server import LARGEST

JSON = "application/json"


@pytest.fixture
def send(server):
    """Send a request to the server: the status, the headers and the body of its response."""

    def sent(method, path, headers=None, body=None):
        connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=60)
        own = {"Origin": server.url.rstrip("/"), "Content-Type": JSON} if method == "POST" else {}
        connection.request(method, path, body, {name: value for name, value in (own | (headers or {})).items() if value})
        response = connection.getresponse()
        found = response.status, response.headers, response.read()
        connection.close()
        return found

    return sent


def asked(**params):
    return json.dumps({"method": "run", "params": {"source": DOUBLE} | params})


def test_it_serves_the_page_under_a_strict_policy(send):
    for path, kind in (("/", "text/html"), ("/main.js", "text/javascript"), ("/style.css", "text/css")):
        status, headers, body = send("GET", path)
        assert (status, headers.get_content_type()) == (200, kind)
        assert body
        policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
        assert policy["default-src"] == "'none'"
        assert policy["script-src"] == policy["connect-src"].strip() == policy["style-src"] == "'self'"


@pytest.mark.parametrize("path", ["/nothing.js", "/../server.py", "/%2e%2e/server.py", "/page/main.js", "//etc/passwd"])
def test_it_serves_nothing_else(send, path):
    assert send("GET", path)[0] == 404


def test_it_answers_its_page(send):
    status, _, body = send("POST", "/answer", body=asked(arguments=["u32[32]=ones"]))
    assert status == 200
    assert json.loads(body)["result"]["arguments"][0]["values"] == [2] * 32


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://example.com"},
        {"Origin": "null"},
        {"Origin": None},
        {"Content-Type": "text/plain"},
        {"Host": "example.com"},
        {"Host": "127.0.0.1"},
    ],
    ids=str,
)
def test_it_refuses_other_pages_and_other_names(send, headers):
    assert send("POST", "/answer", headers, asked())[0] == 403


def test_it_refuses_other_names_for_files_too(send):
    assert send("GET", "/", {"Host": "rebound.example"})[0] == 403


def test_it_refuses_what_is_too_large_or_elsewhere(send):
    assert send("POST", "/answer", {"Content-Length": str(LARGEST + 1)})[0] == 413
    assert send("POST", "/other", body=asked())[0] == 404


# ── processes ───────────────────────────────────────────────────────────────────────────


def test_a_process_that_takes_too_long_is_ended():
    request = json.dumps({"method": "run", "params": {"source": FOREVER}})
    error = json.loads(Processes(patience=1).answer(request))["error"]
    assert error == {"kind": "limit", "message": "it took more than 1 seconds, and was ended"}


def test_memory_has_a_limit():
    limited = "worker.MEMORY = 1 << 28; worker.limit_memory(); numpy.ones(1 << 29, 'u1')"
    command = [sys.executable, "-c", f"import numpy; from ptxvm.playground import worker; {limited}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "MemoryError" in done.stderr


def test_more_shared_memory_than_there_is_is_refused(ask):
    error = ask("run", source=DOUBLE, arguments=["u32[32]"], shared=1 << 40)
    assert error["message"].startswith("kernel 'double' would have 1,099,511,627,776 bytes of shared memory for each CTA")


def test_a_process_that_dies_is_told(monkeypatch):
    context = Processes()
    monkeypatch.setattr("ptxvm.playground.processes.serve", exit)
    error = json.loads(context.answer("{}"))["error"]
    assert error["kind"] == "limit"
