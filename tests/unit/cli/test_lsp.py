"""`ptxvm lsp`; what it serves is tested in tests/unit/lsp."""

from __future__ import annotations

import sys


def test_without_the_extra_it_says_what_to_install(ptxvm, monkeypatch):
    for name in [*sys.modules]:
        if name.startswith("ptxvm.lsp"):
            monkeypatch.delitem(sys.modules, name)
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
