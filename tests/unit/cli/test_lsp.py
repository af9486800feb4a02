"""`ptxvm lsp`; what it serves is tested in tests/unit/lsp."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest


def test_without_the_extra_it_says_what_to_install(ptxvm, monkeypatch, forget_modules):
    forget_modules("ptxvm.lsp")
    monkeypatch.setitem(sys.modules, "lsprotocol", None)
    monkeypatch.setitem(sys.modules, "pygls", None)
    done = ptxvm("lsp")
    assert done.code == 2
    assert done.err.startswith("ptxvm lsp: the language server needs ")
    assert done.err.endswith("which the extra 'lsp' has: pip install 'ptxvm[lsp]'\n")


def test_a_port_is_a_number(ptxvm):
    done = ptxvm("lsp", "--port", "99999")
    assert done.code == 2
    assert "'--port'" in done.err


def test_a_port_that_is_taken_is_no_crash():
    """In a process of its own: a server runs an event loop, and Playwright leaves one that runs in the process of tests."""
    pytest.importorskip("pygls", reason="the language server needs the extra 'lsp'")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        command = [sys.executable, "-m", "ptxvm", "lsp", "--port", str(port)]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr.startswith(f"ptxvm lsp: cannot listen at 127.0.0.1:{port}: ")) == (2, True)
