"""Launches begin with code for one warp at a time; code for several warps takes its place where that pays.

The expected results are those of NumPy.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.abi.specialisation import Specialisation, Tier, VersionKind
from ptxvm.engine.jit.objects.code_cache import CodeCache
from ptxvm.engine.jit.objects.compiler_process import NICENESS
from ptxvm.engine.jit.run import tiering
from ptxvm.engine.jit.run.compiled import Compiled
from ptxvm.engine.jit.translate.translation import Translation
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.settings import Tiering

pytestmark = pytest.mark.narrow
THREADS, CTAS = 256, 8
TEXT = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry sums(.param .u64 out, .param .u64 in) {
    .reg .b32 %r<9>; .reg .b64 %rd<5>; .reg .pred %p;
    .shared .align 4 .b32 all[256];
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 256, %r1;
    ld.param.u64 %rd1, [in]; ld.param.u64 %rd2, [out]; mul.wide.u32 %rd3, %r3, 4; add.s64 %rd1, %rd1, %rd3;
    ld.global.u32 %r4, [%rd1]; shl.b32 %r5, %r1, 2; mov.u32 %r6, all; add.u32 %r5, %r6, %r5; st.shared.u32 [%r5], %r4;
    bar.sync 0;
    xor.b32 %r7, %r1, 255; shl.b32 %r7, %r7, 2; add.u32 %r7, %r6, %r7; ld.shared.u32 %r8, [%r7];
PARTS
    add.u32 %r8, %r8, %r4; add.s64 %rd2, %rd2, %rd3; st.global.u32 [%rd2], %r8;
    ret;
}
"""
LOOP = "AGAIN: and.b32 %r5, %r8, 3; setp.eq.u32 %p, %r5, 0; @%p bra DONE; add.u32 %r8, %r8, 1; bra AGAIN; DONE:"
BODIES = {"whole warps": "", "lanes that part": LOOP}


@pytest.fixture(autouse=True)
def hot(monkeypatch: pytest.MonkeyPatch) -> None:
    """Better code pays from the first launch on, and nothing is on disk."""
    monkeypatch.setenv("PTXVM_CACHE", "off")
    monkeypatch.setattr(tiering, "policy", lambda: Tiering.AUTO)
    monkeypatch.setattr(tiering, "WARM", 0.0)
    monkeypatch.setattr(tiering, "FACTOR", 0.0)


@pytest.fixture(params=BODIES)
def kernel(request: pytest.FixtureRequest) -> ptxvm.Kernel:
    return ptxvm.load(TEXT.replace("PARTS", BODIES[request.param])).kernel()


def text(kernel: ptxvm.Kernel) -> str:
    return kernel.module.image.programs[0].source.text


def form(kernel: ptxvm.Kernel, **how: bool) -> Specialisation:
    return Specialisation(kernel.function, (THREADS, 1, 1), **how)


def compiled(kernel: ptxvm.Kernel) -> Compiled:
    return kernel.module.jit.compiled(form(kernel))


def launch(kernel: ptxvm.Kernel) -> None:
    """A launch, which gives what it must."""
    data = np.arange(CTAS * THREADS, dtype=np.uint32) * 7
    out = np.zeros_like(data)
    kernel.launch(CTAS, THREADS, [out, data], engine="jit")
    mirrored = data.reshape(CTAS, THREADS)[:, ::-1].ravel()
    if "AGAIN" in text(kernel):
        mirrored = -(-mirrored // 4) * 4
    assert (out == mirrored + data).all()


def settle() -> None:
    """Wait for what is compiled in the background."""
    for thread in threading.enumerate():
        if thread.name == "ptxvm compiles":
            thread.join()


def test_a_kernel_begins_narrow_and_goes_on_with_several_warps_abreast(kernel: ptxvm.Kernel) -> None:
    first = compiled(kernel)
    assert first.versions[VersionKind.FIRST].tier < Tier.BEST
    translations = kernel.module.jit.code_cache.translation
    assert translations(form(kernel, narrow=True)).versions.kernel.width == WARP
    launch(kernel)
    versions = set(first.versions)
    settle()
    better = compiled(kernel)
    assert better is first.better
    assert better.is_best
    assert set(better.versions) == versions
    assert better.launches == first.launches
    if "AGAIN" not in text(kernel):
        assert translations(form(kernel)).versions.kernel.width > WARP
    launch(kernel)
    assert better.launches == first.launches + 1


def test_relaunches_go_on_with_the_better_code(kernel: ptxvm.Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiering, "WARM", 1e9)
    for _ in range(5):
        launch(kernel)
    first = compiled(kernel)
    monkeypatch.setattr(tiering, "WARM", 0.0)
    launch(kernel)
    settle()
    before = first.launches
    for _ in range(5):
        launch(kernel)
    assert first.launches == before
    better = compiled(kernel)
    assert better.launches == before + 5
    (ready,) = kernel.module.jit._relaunches.values()
    assert ready.compiled is better


def test_a_process_that_finds_the_best_code_begins_with_it(
    kernel: ptxvm.Kernel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PTXVM_CACHE", str(tmp_path))
    again = [ptxvm.load(text(kernel)).kernel() for _ in range(2)]
    launch(again[0])
    first = compiled(again[0])
    settle()
    assert first.better is not None
    launch(again[1])
    assert compiled(again[1]).versions[VersionKind.FIRST].tier == Tier.BEST
    settle()


@pytest.mark.skipif(sys.platform != "linux", reason="threads have no priorities of their own")
def test_all_that_makes_the_better_code_gives_way(kernel: ptxvm.Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """A translation that competes with launches for a processor, and for Python, doubles their time."""
    niceness = []
    translation = CodeCache.translation

    def noted(cache: CodeCache, wanted: Specialisation) -> Translation:
        niceness.append((wanted.narrow, os.getpriority(os.PRIO_PROCESS, threading.get_native_id())))
        return translation(cache, wanted)

    monkeypatch.setattr(CodeCache, "translation", noted)
    launch(kernel)
    settle()
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert {nice for narrow, nice in niceness if narrow} == {own}
    assert {nice for narrow, nice in niceness if not narrow} == {min(own + NICENESS, 19)}


@pytest.mark.parametrize("policy", [Tiering.QUICK, Tiering.BEST])
def test_a_fixed_tier_has_one_form_alone(kernel: ptxvm.Kernel, monkeypatch: pytest.MonkeyPatch, policy: Tiering) -> None:
    monkeypatch.setattr(tiering, "policy", lambda: policy)
    assert not tiering.may_be_narrow(form(kernel))
    launch(kernel)


@pytest.mark.parametrize("how", ["metered", "profiled", "deferred", "recorded", "scalar"])
def test_code_that_looks_or_counts_has_one_form_alone(kernel: ptxvm.Kernel, how: str) -> None:
    assert not tiering.may_be_narrow(form(kernel, **{how: True}))
