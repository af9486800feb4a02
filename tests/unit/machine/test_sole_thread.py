"""Host threads that run kernels: who updates memory without locked instructions, and that no update is lost where two meet.

The oracle of the kernels is a sum: atomics of scope .gpu are atomic to each other (PTX 8.5), whichever launch they are of.
"""

from __future__ import annotations

import sys
import threading
import time

import numpy as np
import pytest

import ptxvm
from ptxvm.machine import sole_thread
from ptxvm.machine.options import EngineName
from ptxvm.machine.sole_thread import HostThread, Running

SOLE, UPDATING = 0, 1
COUNTS = """
.version 7.0
.target sm_70
.address_size 64
.visible .entry counts(.param .u64 total, .param .u32 times)
{
    .reg .b32 %r<4>; .reg .b64 %d<2>; .reg .pred %p;
    ld.param.u64 %d0, [total];
    ld.param.u32 %r0, [times];
    mov.u32 %r1, 0;
AGAIN:
    atom.global.add.SCOPE.u32 %r2, [%d0], 1;
    red.global.add.SCOPE.u32 [%d0+8], 2;
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p, %r1, %r0;
    @%p bra AGAIN;
    ret;
}
""".replace("add.SCOPE", "SCOPE.add")


def thread() -> tuple[HostThread, memoryview]:
    words = np.zeros(2, np.uint64).data
    return HostThread(words, SOLE, UPDATING), words


@pytest.fixture
def available(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sole_thread, "_available", lambda: True)
    monkeypatch.setattr(sole_thread, "PAYS", -1.0)
    monkeypatch.setattr(sole_thread, "_system_call", lambda command: 0)


@pytest.mark.usefixtures("available")
def test_the_first_is_sole_until_another_comes() -> None:
    running, (one, words), (other, other_words) = Running(), thread(), thread()
    running.enter(one)
    assert words[SOLE] == 1
    running.enter(other)
    assert (words[SOLE], other_words[SOLE]) == (0, 0)
    running.leave(one)
    third, third_words = thread()
    running.enter(third)
    assert third_words[SOLE] == 0
    running.leave(other)
    running.leave(third)
    running.enter(one)
    assert words[SOLE] == 1


def test_leave_is_asked_for_when_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sole_thread, "_available", lambda: True)
    running, (one, words) = Running(), thread()
    running.enter(one)
    assert words[SOLE] == 0
    time.sleep(1.1 * sole_thread.PAYS)
    running.leave(one)
    running.enter(one)
    assert words[SOLE] == 1


@pytest.mark.usefixtures("available")
def test_another_waits_for_the_updates_under_way() -> None:
    running, (one, words), (other, _) = Running(), thread(), thread()
    running.enter(one)
    words[UPDATING] = 1
    entered = threading.Event()
    second = threading.Thread(target=lambda: (running.enter(other), entered.set()))
    second.start()
    assert not entered.wait(0.05)
    assert words[SOLE] == 0
    words[UPDATING] = 0
    assert entered.wait(10)
    second.join()


@pytest.mark.usefixtures("available")
def test_none_is_sole_where_memory_is_shared_with_other_processes() -> None:
    running, (one, words) = Running(), thread()
    running.enter(one)
    running.share()
    assert words[SOLE] == 0
    running.leave(one)
    running.enter(one)
    assert words[SOLE] == 0


def test_none_is_sole_where_the_system_has_no_such_barrier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sole_thread, "_available", lambda: False)
    running, (one, words) = Running(), thread()
    running.enter(one)
    assert words[SOLE] == 0


@pytest.mark.usefixtures("available")
def test_a_child_process_knows_no_threads_of_its_parent() -> None:
    running, (one, _), (other, words) = Running(), thread(), thread()
    running.enter(one)
    running.forget()
    running.enter(other)
    assert words[SOLE] == 1


@pytest.mark.skipif(sys.platform != "linux", reason="membarrier is of Linux")
def test_this_system_has_the_barrier() -> None:
    assert sole_thread._available()


@pytest.mark.usefixtures("available")
def test_none_is_sole_while_the_interpreter_runs() -> None:
    running, (one, words), (other, other_words) = Running(), thread(), thread()
    running.enter(one)
    with running.interpreting():
        assert words[SOLE] == 0
        running.leave(one)
        assert not running.compiled
        running.enter(other)
        assert running.compiled
        assert other_words[SOLE] == 0
        running.leave(other)
    running.enter(one)
    assert words[SOLE] == 1


@pytest.mark.parametrize("scope", ["gpu", "sys"])
@pytest.mark.parametrize("engine", ["jit", "interp"])
def test_no_update_is_lost_where_launches_come_and_go(scope: str, engine: EngineName, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long launch of compiled code is alone at first, and meets short ones again and again, of one engine or the other."""
    kernel = ptxvm.load(COUNTS.replace("SCOPE", scope)).kernel("counts")
    totals = np.zeros(4, np.uint32)
    launched, threads = [0], {"threads": 1} if engine == "jit" else {}
    monkeypatch.setattr(sole_thread, "PAYS", -1.0)

    def long() -> None:
        kernel.launch(grid=4, block=32, args=[totals, np.uint32(200_000)], engine="jit", threads=1)

    def short() -> None:
        while first.is_alive():
            kernel.launch(grid=1, block=32, args=[totals, np.uint32(50)], engine=engine, **threads)
            launched[0] += 1

    kernel.launch(grid=1, block=32, args=[totals, np.uint32(50)], engine="jit", threads=1)
    first, second = threading.Thread(target=long), threading.Thread(target=short)
    first.start()
    second.start()
    first.join()
    second.join()
    of_short = 50 * 32 * (launched[0] + 1)
    assert totals[0] == (4 * 32 * 200_000 + of_short) % 2**32
    assert totals[2] == 2 * (4 * 32 * 200_000 + of_short) % 2**32
