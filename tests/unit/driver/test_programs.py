"""A text that was read lately is not read again, and each module of it has its own memory."""

from __future__ import annotations

from ptxvm import api
from ptxvm.driver.linker import PTX, Linker
from ptxvm.driver.models import MODELS
from ptxvm.driver.module import Module
from ptxvm.driver.programs import loaded

TEXT = b"""
.version 7.8
.target sm_80
.address_size 64
.visible .global .u32 counter = 5;
.visible .entry count() { .reg .b32 %r; ld.global.u32 %r, [counter]; add.u32 %r, %r, 1; st.global.u32 [counter], %r; ret; }
"""


def test_what_the_linker_has_read_a_module_does_not_read_again(monkeypatch):
    linker = Linker()
    linker.add(PTX, TEXT + b"// linked")
    monkeypatch.setattr(api, "load", None)
    linker.complete()
    module = Module(linker.texts, MODELS["sm_90"])
    assert list(module.kernels) == ["count"]


def test_modules_of_one_text_have_their_own_variables():
    first, second = loaded(TEXT), loaded(TEXT)
    for times in (1, 2):
        first.kernel().launch()
        assert first.symbol("counter") == 5 + times
    second.kernel().launch()
    assert (first.symbol("counter"), second.symbol("counter")) == (7, 6)


def test_a_text_may_be_linked_twice():
    text = b".version 7.8\n.target sm_80\n.address_size 64\n.weak .func once() { ret; }\n"
    linker = Linker()
    for _ in range(2):
        linker.add(PTX, text)
    linker.complete()
    assert not Module(linker.texts, MODELS["sm_90"]).kernels
