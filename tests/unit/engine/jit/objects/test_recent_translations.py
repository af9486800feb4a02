"""Translations of kernels are remembered, a bounded number and size of them in a process; forgotten ones are made again."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.abi.specialisation import Specialisation
from ptxvm.engine.jit.objects import recent_translations
from ptxvm.engine.jit.objects.code_cache import CodeCache
from ptxvm.engine.jit.objects.recent_translations import RecentTranslations, Remembered
from ptxvm.engine.jit.translate.translation import Translation

begun = Translation.__init__


class Made:
    """Stands for a translation."""


def used(recent, sizes):
    kernels = [Remembered(Made) for _ in sizes]
    for kernel, size in zip(kernels, sizes, strict=True):
        recent.get(kernel)
        recent.measure(kernel, "x" * size)
    return kernels


@pytest.mark.parametrize(
    ("sizes", "left"),
    [
        ([1, 1, 1], [False, True, True]),  # two at most
        ([6, 6], [False, True]),  # ten characters at most
        ([4, 6], [True, True]),
        ([1, 30], [False, True]),  # the last one is kept, however long
        ([30, 1], [False, True]),
    ],
)
def test_what_is_forgotten(sizes, left):
    kernels = used(RecentTranslations(most=2, most_text=10), sizes)
    assert [kernel.translation is not None for kernel in kernels] == left


def test_the_least_recently_used_goes_first():
    recent = RecentTranslations(most=2)
    first, second = used(recent, [1, 1])
    assert recent.get(first) is first.translation
    used(recent, [1])
    assert (first.translation is not None, second.translation) == (True, None)
    assert isinstance(recent.get(second), Made)


def test_a_kernel_that_is_gone_counts_no_more():
    recent = RecentTranslations(most=1)
    (kernel,) = used(recent, [1])
    gone = weakref.ref(kernel)
    del kernel
    gc.collect()
    assert gone() is None
    assert used(recent, [1])[0].translation is not None


PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p) {{
    .reg .b32 %r<3>; .reg .b64 %d<3>;
    ld.param.u64 %d1, [p]; mov.u32 %r1, %tid.x; mad.wide.u32 %d2, %r1, 4, %d1; add.u32 %r2, %r1, {};
    st.global.u32 [%d2], %r2; ret;
}}
"""


def test_a_forgotten_translation_is_made_again_with_the_same_text(monkeypatch):
    monkeypatch.setattr("ptxvm.engine.jit.objects.code_cache.RECENT", RecentTranslations(most=1))
    modules = [ptxvm.load(PTX.format(n)) for n in (1, 2)]
    caches = [CodeCache(module.image) for module in modules]
    wanted = [Specialisation(module.kernel().function, (32, 1, 1)) for module in modules]
    first = weakref.ref(caches[0].translation(wanted[0]))
    text = first().versions.text
    caches[1].translation(wanted[1])
    gc.collect()
    assert first() is None
    assert caches[0].translation(wanted[0]).versions.text == text


def test_modules_that_live_do_not_keep_their_translations(monkeypatch):
    monkeypatch.setenv("PTXVM_CACHE", "off")
    modules = [ptxvm.load(PTX.format(n)) for n in range(recent_translations.MOST + 3)]
    for n, module in enumerate(modules):
        out = np.zeros(32, np.uint32)
        module.kernel().launch(1, 32, [out], engine="jit")
        assert (out == np.arange(32) + n).all()
    assert len(recent_translations.RECENT._used) <= recent_translations.MOST


def test_checked_launches_need_no_translation_again(monkeypatch):
    """Else launches of several kernels in turn would translate each time, which took a hundred times as long as to run them."""
    monkeypatch.setattr("ptxvm.engine.jit.objects.code_cache.RECENT", RecentTranslations(most=1))
    translated = []
    monkeypatch.setattr(Translation, "__init__", lambda self, *a: (translated.append(a), begun(self, *a))[-1])
    kernels = [ptxvm.load(PTX.format(n)).kernel() for n in (1, 2)]
    for _ in range(3):
        for kernel in kernels:
            assert kernel.launch(1, 32, [np.zeros(32, np.uint32)], engine="jit", check=("memory", "race")).findings == []
    assert len(translated) == 2


def test_doubts_outlive_the_translation_that_had_them():
    module = ptxvm.load(PTX.format(1))
    wanted = Specialisation(module.kernel().function, (32, 1, 1), checks=frozenset({"race"}))
    cache = CodeCache(module.image)
    before = cache.checked(wanted)
    before.shadow.doubts.add("of a version that came later")
    cache._translations.clear()
    made = cache._note(wanted, cache.translation(wanted))
    assert made is not before
    assert made is cache.checked(wanted)
    assert made.shadow.doubts == {"of a version that came later"}
