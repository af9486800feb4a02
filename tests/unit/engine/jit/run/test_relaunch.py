"""Short launches that are repeated: they do what the first one did, find the same faults, and leave nothing behind.

Each kernel is launched often enough to be repeated (`repeated` says so); what is expected is computed by NumPy, or is what
the first launch said.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from python_threads import at_once

import ptxvm
from ptxvm.engine.jit.run import relaunch
from ptxvm.engine.jit.run.callbacks import Callbacks
from ptxvm.engine.jit.run.relaunch import Relaunch
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.memory import default_memory

HEAD = ".version 8.3\n.target sm_90\n.address_size 64\n"
# out[i] = in[i] * factor, for i below n
SCALE = (
    HEAD
    + """
.global .align 8 .u64 kept;
.visible .entry scale(.param .u64 out, .param .u64 in, .param .u32 n, .param .f32 factor)
{
    .reg .b32 %r<8>; .reg .f32 %f<4>; .reg .b64 %d<8>; .reg .pred %p;
    ld.param.u64 %d0, [out];
    ld.param.u64 %d1, [in];
    ld.param.u32 %r0, [n];
    ld.param.f32 %f0, [factor];
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p, %r1, %r0;
    @%p bra END;
    mul.wide.u32 %d2, %r1, 4;
    add.u64 %d3, %d1, %d2;
    add.u64 %d4, %d0, %d2;
    ld.global.f32 %f1, [%d3];
    mul.f32 %f2, %f1, %f0;
    st.global.f32 [%d4], %f2;
END:
    ret;
}
"""
)
# It writes where the launch before was told to, and keeps where it is told to now.
STALE = (
    HEAD
    + """
.global .align 8 .u64 kept;
.visible .entry stale(.param .u64 out, .param .u32 late)
{
    .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p;
    ld.param.u64 %d0, [out];
    ld.param.u32 %r0, [late];
    ld.global.u64 %d1, [kept];
    st.global.u64 [kept], %d0;
    setp.eq.u32 %p, %r0, 0;
    selp.u64 %d2, %d0, %d1, %p;
    mov.u32 %r1, 7;
    st.global.u32 [%d2], %r1;
    ret;
}
"""
)


@pytest.fixture
def repeated(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """How many launches have been repeated; on a busy machine they are short too."""
    count, run = [0], Relaunch._run
    monkeypatch.setattr(relaunch, "limit", lambda _: math.inf)

    def counting(self: Relaunch, *given: Any) -> Any:
        count[0] += 1
        return run(self, *given)

    monkeypatch.setattr(Relaunch, "_run", counting)
    return lambda: count[0]


def warm(kernel: ptxvm.Kernel, args: list[Any]) -> None:
    """Launch it often enough; some lanes part from the others, so that all versions are compiled."""
    for n in (5, 5, 5, args[2]):
        kernel.launch(1, 32, [args[0], args[1], n, *args[3:]])


def test_other_arrays_and_numbers_may_come(repeated: Callable[[], int]) -> None:
    kernel = ptxvm.load(SCALE).kernel()
    for n in range(1, 20):
        given, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
        result = kernel.launch(1, 32, [out, given, n, np.float32(n)])
        assert np.array_equal(out, given * np.float32(n))
        assert result.grid == (1, 1, 1)
        assert result.block == (32, 1, 1)
    assert repeated() > 10
    assert result.thread_instructions == ptxvm.load(SCALE).kernel().launch(1, 32, [out, given, n, 1.0]).thread_instructions


def test_device_arrays_views_and_arrays_that_overlap(repeated: Callable[[], int]) -> None:
    kernel = ptxvm.load(SCALE).kernel()
    device, host = ptxvm.DeviceArray(32), np.ones(64, np.float32)
    warm(kernel, [device, host, 32, 2.0])
    before = repeated()
    assert np.array_equal(device.copy_to_host(), np.full(32, 2, np.float32))
    kernel.launch(1, 32, [host, host, 32, 3.0])  # in place
    kernel.launch(1, 32, [host[32:], host[31:63], 32, 5.0])
    assert np.array_equal(host[:33], np.array([3] * 32 + [15], np.float32))
    view = device.array[16:]
    kernel.launch(1, 32, [view, host, 16, 1.0])
    assert np.array_equal(device.array[16:], host[:16])
    kernel.launch(1, 32, [view, host, 16, np.float32(2)])
    assert repeated() == before + 4
    assert device.is_written


def test_profiles_are_those_of_the_interpreter(repeated: Callable[[], int]) -> None:
    """Each counts its own launch: other lanes, other sectors of memory, arrays apart and in one allocation, after a fault."""
    kernel, host, device = ptxvm.load(SCALE).kernel(), np.ones(64, np.float32), ptxvm.DeviceArray(32)
    out = np.zeros(32, np.float32)
    cases = [
        [out, host, 32, 1.0], [out, host, 32, 1.0], [out, host, 32, 1.0], [out, host, 5, 1.0], [out, host[3:], 32, 1.0],
        [device, host, 32, 1.0], [host, host, 32, 1.0], [host[32:], host[31:63], 32, 1.0], [device.array[16:], host, 9, 1.0],
    ]  # fmt: skip
    for args in cases:
        found = kernel.launch(1, 32, args, profile=True).profile
        with pytest.raises(ptxvm.Fault, match="out-of-bounds"):
            kernel.launch(1, 32, [np.zeros(4, np.float32), host, 5, 1.0], profile=True)
        expected = kernel.launch(1, 32, args, profile=True, engine="interp").profile
        assert found is not None
        assert expected is not None
        assert (found.engine, found.counts) == ("jit", expected.counts)
        assert [line.counts for line in found.lines] == [line.counts for line in expected.lines]
    assert repeated() >= len(cases)


FAULTS = {
    "out of bounds": ([np.zeros(4, np.float32), np.zeros(32, np.float32), 5, 1.0], "out-of-bounds"),
    "no array": ([np.zeros(32, np.float32), 0, 5, 1.0], "null-pointer"),
    "misaligned": ([np.zeros(33, np.float32).view(np.uint8)[2:-2], np.zeros(32, np.float32), 5, 1.0], "misaligned"),
}


@pytest.mark.parametrize("which", FAULTS)
def test_faults_are_the_same_as_the_first_time(which: str, repeated: Callable[[], int]) -> None:
    args, kind = FAULTS[which]
    with pytest.raises(ptxvm.Fault) as first:
        ptxvm.load(SCALE).kernel().launch(1, 32, args)
    kernel = ptxvm.load(SCALE).kernel()
    out = np.zeros(32, np.float32)
    warm(kernel, [out, out.copy(), 32, 1.0])
    before = repeated()
    for _ in range(2):
        with pytest.raises(ptxvm.Fault) as caught:
            kernel.launch(1, 32, args)
        assert caught.value.kind == first.value.kind == kind
        assert str(caught.value) == str(first.value)
    kernel.launch(1, 32, [out, out.copy(), 32, 1.0])
    assert repeated() == before + 3


def test_what_may_only_be_read_is_not_written(repeated: Callable[[], int]) -> None:
    kernel = ptxvm.load(SCALE).kernel()
    out, given = np.zeros(32, np.float32), np.ones(32, np.float32)
    warm(kernel, [out, given, 32, 1.0])
    out.flags.writeable = False
    before = repeated()
    with pytest.raises(ptxvm.Fault, match="may be read only"):
        kernel.launch(1, 32, [out, given, 32, 2.0])
    assert repeated() == before + 1
    assert out[0] == 1


def test_arguments_of_launches_that_have_ended_are_gone(repeated: Callable[[], int], alone: Callable[..., np.ndarray]) -> None:
    kernel = ptxvm.load(STALE).kernel()
    first, second = alone(4, np.uint32), np.zeros(4, np.uint32)  # past the end of `second`, if that were beside it
    for _ in range(4):
        kernel.launch(1, 1, [first, 0])
    before = repeated()
    with pytest.raises(ptxvm.Fault, match="was an argument of a launch that has ended") as caught:
        kernel.launch(1, 1, [second, 1])
    assert caught.value.kind == "use-after-free"
    assert repeated() == before + 1
    kernel.launch(1, 1, [second, 1])  # where the launch before was told to write, which it has again
    assert second[0] == 7


def test_memory_has_nothing_of_a_launch_that_has_ended(repeated: Callable[[], int]) -> None:
    module = ptxvm.load(SCALE)
    out = np.zeros(32, np.float32)
    warm(module.kernel(), [out, out, 32, 1.0])
    known = [each.name for each in module.memory.table.items]
    with pytest.raises(ptxvm.Fault):
        module.kernel().launch(1, 32, [np.zeros(3, np.float32), out, 32, 1.0])
    module.kernel().launch(1, 32, [out, out, 32, 1.0])
    assert repeated() > 2
    assert [each.name for each in module.memory.table.items] == known
    assert not {"`out`", "`in`", "the parameters"} & set(known)


WRONG = {
    "too few": ([np.zeros(32, np.float32)], "takes 4 arguments"),
    "no pointer": (
        [np.zeros(32, np.float32)] * 2 + [np.zeros(4, np.uint32), 1.0],
        "is passed by value and cannot take an array",
    ),
    "too large": ([np.zeros(32, np.float32)] * 2 + [1 << 40, 1.0], "does not fit"),
    "objects": ([np.zeros(32, object), np.zeros(32, np.float32), 1, 1.0], "Python objects"),
    "not contiguous": ([np.zeros(64, np.float32)[::2], np.zeros(32, np.float32), 1, 1.0], "not contiguous"),
}


@pytest.mark.parametrize("which", WRONG)
def test_wrong_arguments_are_refused_as_ever(which: str) -> None:
    args, said = WRONG[which]
    kernel, out = ptxvm.load(SCALE).kernel(), np.zeros(32, np.float32)
    warm(kernel, [out, out, 32, 1.0])
    with pytest.raises((TypeError, ValueError), match=said):
        kernel.launch(1, 32, args)
    kernel.launch(1, 32, [out, out, 32, 1.0])


def test_what_is_unusual_goes_the_usual_way(repeated: Callable[[], int]) -> None:
    kernel, out = ptxvm.load(SCALE).kernel(), np.zeros((4, 4), np.float32)
    given = np.arange(16, dtype=np.float32)
    warm(kernel, [out, given, 16, 1.0])
    before = repeated()
    kernel.launch([1], [32], [out, given, 16, 3.0])  # lists as extents
    assert np.array_equal(out.ravel(), given * 3)
    kernel.launch(1, 32, [np.asfortranarray(out), given, 16, bytes(4)])
    kernel.launch(1, 32, [out, None, 0, 1.0])
    assert repeated() == before


def test_python_threads_launch_at_once(repeated: Callable[[], int]) -> None:
    kernel, wrong = ptxvm.load(SCALE).kernel(), []
    shared = np.ones(32, np.float32)
    warm(kernel, [np.zeros(32, np.float32), shared, 32, 1.0])

    def work(number: int) -> None:
        out = np.zeros(32, np.float32)
        for turn in range(200):
            kernel.launch(1, 32, [out, shared, 32, float(number + turn)])
            wrong.extend(out[out != number + turn])

    at_once(work, range(0, 4000, 1000))
    assert not wrong
    assert repeated()


def test_what_goes_wrong_in_getting_ready_is_not_swallowed(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise TypeError("broken")

    monkeypatch.setattr("ptxvm.engine.jit.run.relaunch.Relaunch", broken)
    kernel = ptxvm.load(".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() { ret; }").kernel()

    def often() -> None:
        for _ in range(100):
            kernel.launch(1, 1, engine="jit")

    with pytest.raises(TypeError, match="broken"):
        often()


def test_arguments_may_be_bytes_as_a_driver_gives_them(repeated: Callable[[], int], rng: np.random.Generator) -> None:
    scale, memory = ptxvm.load(SCALE).kernel("scale"), default_memory()
    source, out = (memory.allocate(128, 256, name=name, zero=True) for name in ("the source", "the result"))
    values = source.view(np.dtype(np.float32), 1)
    values[:32] = rng.random(32, np.float32)

    def arguments(target: Allocation, factor: float) -> list[bytes]:
        words = (each.start.to_bytes(8, "little") for each in (target, source))
        return [*words, (32).to_bytes(4, "little"), np.float32(factor).tobytes()]

    for factor in range(1, 9):
        scale.launch(1, 32, arguments(out, factor))
        assert np.array_equal(out.view(np.dtype(np.float32), 1)[:32], values[:32] * np.float32(factor))
    assert repeated() > 2
    with pytest.raises(TypeError, match="8 bytes"):
        scale.launch(1, 32, [b"short", *arguments(out, 1)[1:]])
    memory.release(out)
    with pytest.raises(ptxvm.Fault, match=r"the result.* has been freed"):
        scale.launch(1, 32, arguments(out, 1))
    memory.release(source)


def test_addresses_may_come_as_bytes(repeated: Callable[[], int], monkeypatch: pytest.MonkeyPatch) -> None:
    """As a driver has them.  The memory that they point to is known before the code runs; other bytes are other memory."""
    kernel = ptxvm.load(SCALE).kernel()
    source = ptxvm.DeviceArray.from_host(np.arange(32, dtype=np.float32))
    targets = [ptxvm.DeviceArray(32, np.float32) for _ in range(2)]
    searches = []
    check = Callbacks._check_access
    monkeypatch.setattr(Callbacks, "_check_access", lambda *given: (searches.append(1), check(*given)))

    def run(target: ptxvm.DeviceArray, factor: float) -> list[float]:
        addresses = [each.address.to_bytes(8, "little") for each in (target, source)]
        kernel.launch(1, 32, (*addresses, (32).to_bytes(4, "little"), np.float32(factor).tobytes()))
        return target.array.tolist()

    for _ in range(4):
        run(targets[0], 2)
    before, searched = repeated(), len(searches)
    for factor, target in ((3, 0), (3, 0), (4, 0), (5, 1), (5, 0)):
        assert run(targets[target], factor) == [factor * n for n in range(32)]
    assert (repeated() - before, len(searches) - searched) == (5, 0)
    address = targets[1].address
    targets[1].free()
    addresses = [each.to_bytes(8, "little") for each in (address, source.address)]
    with pytest.raises(ptxvm.Fault, match="use-after-free"):
        kernel.launch(1, 32, (*addresses, bytes([32, 0, 0, 0]), bytes(4)))


def test_a_relaunch_that_gave_way_to_others_is_valid_no_more(monkeypatch, repeated):
    """Whatever keeps one asks whether it is valid: of all kernels and shapes so many are ready at once."""
    monkeypatch.setattr("ptxvm.engine.jit.engine.REPEATS", 1)
    kernel, out = ptxvm.load(SCALE).kernels["scale"], np.zeros(64, np.float32)
    arguments = (out, np.ones(64, np.float32), 64, 2.0)
    jit, ready = kernel.module.jit, []
    for block in (32, 64):
        for _ in range(4):
            kernel.launch(1, block, arguments)
        ready += [each for each in jit._relaunches.values() if each not in ready]
    assert [each.valid for each in ready] == [False, True]
