"""A checked run that takes long on the interpreter is given up where compiled code can answer, and leaves no trace."""

import numpy as np
import pytest

import ptxvm
from ptxvm.engine import time_box
from ptxvm.engine.jit.objects.code_cache import CodeCache

KERNEL = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data, .param .u32 n)
{
    .reg .b32 %r<8>; .reg .b64 %rd<4>; .reg .pred %p;
    ld.param.u64 %rd1, [data]; ld.param.u32 %r1, [n];
    mov.u32 %r2, %tid.x; mul.wide.u32 %rd2, %r2, 4; add.s64 %rd2, %rd1, %rd2;
LOOP:
    ld.global.u32 %r3, [%rd2]; add.s32 %r3, %r3, 3; st.global.u32 [%rd2], %r3;
    bar.sync 0;
    sub.s32 %r1, %r1, 1; setp.ne.s32 %p, %r1, 0; @%p bra LOOP;
    AFTER
    ret;
}
"""
RACE = "st.global.u32 [%rd1], %r2;"


def compiled(kernel: ptxvm.Kernel) -> bool:
    """Has instrumented code been made?"""
    return any(wanted.checks for wanted in kernel.module.jit._compiled)


@pytest.fixture(params=[1e-9, 1e9], ids=["no time", "all the time"])
def seconds(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    monkeypatch.setattr(time_box, "SECONDS", request.param)
    return request.param


def test_the_result_is_that_of_one_run(seconds):
    kernel = ptxvm.load(KERNEL.replace("AFTER", "")).kernel()
    for launches in (1, 2):
        data = np.arange(64, dtype=np.uint32)
        done = kernel.launch(1, 64, [data, 5], check="race")
        assert not done.findings
        assert (data == np.arange(64) + 15).all()
        assert compiled(kernel) == (seconds < 1), launches


def test_many_short_launches_are_a_long_one(monkeypatch):
    monkeypatch.setattr(time_box, "SECONDS", 1e9)
    kernel = ptxvm.load(KERNEL.replace("AFTER", "")).kernel()
    kernel.launch(1, 64, [np.zeros(64, np.uint32), 5], check="race")
    ((key, spent),) = kernel.module.prefilter.spent.items()
    kernel.launch(2, 64, [np.zeros(64, np.uint32), 5], check="race")  # another grid of the same code
    assert kernel.module.prefilter.spent[key] > spent
    assert not compiled(kernel)
    monkeypatch.setattr(time_box, "SECONDS", kernel.module.prefilter.spent[key])
    data = np.arange(64, dtype=np.uint32)
    assert not kernel.launch(1, 64, [data, 5], check="race").findings
    assert (data == np.arange(64) + 15).all()
    assert compiled(kernel)


def test_what_has_no_compiled_code_is_translated_once(monkeypatch):
    monkeypatch.setattr(time_box, "SECONDS", 1e-9)
    kernel, asked = ptxvm.load(KERNEL.replace("AFTER", "")).kernel(), []

    def refuse(_, wanted):
        asked.append(wanted)
        raise ptxvm.Unsupported("that")

    monkeypatch.setattr(CodeCache, "checked", refuse)
    for _ in range(3):
        assert kernel.launch(1, 64, [np.zeros(1, np.uint32), 5], check="memory").findings
    assert len(asked) == 1


def test_findings_do_not_depend_on_the_time_box(seconds):
    kernel = ptxvm.load(KERNEL.replace("AFTER", RACE)).kernel()
    data = np.arange(64, dtype=np.uint32)
    (found,) = kernel.launch(1, 64, [data, 5], check=("race", "memory")).findings
    assert found.kind == "race"
    assert (data[1:] == np.arange(1, 64) + 15).all()


def test_steps_are_counted_once(seconds):
    kernel = ptxvm.load(KERNEL.replace("AFTER", "")).kernel()
    arguments = [np.arange(64, dtype=np.uint32), 5]
    count = 64 * (5 + 5 * 7 + 1)
    assert kernel.launch(1, 64, arguments, check="race", steps=count).thread_instructions == count
    (found,) = kernel.launch(1, 64, arguments, check="race", steps=count - 1).findings
    assert found.kind == "step-budget"
