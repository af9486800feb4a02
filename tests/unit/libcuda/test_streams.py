"""Streams run at once, each in its order: kernels wait for memory that later work, or the host, writes."""

from __future__ import annotations

import ctypes
import logging
import signal
import subprocess
import sys
import threading
import time
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

import pytest
from stream_driver import KERNELS

from ptxvm.driver import context
from ptxvm.driver.launch_checks import FINDINGS
from ptxvm.engine import time_box
from ptxvm.libcuda.structures import HostNode

INVALID_VALUE, INVALID_HANDLE, NOT_READY, ILLEGAL_ADDRESS, NOT_PERMITTED, UNKNOWN = 1, 400, 600, 700, 800, 999
NON_BLOCKING = 1


def host_goes_on(cuda, stream):
    """The host goes on while a kernel of a stream waits for it, and later work of the stream with the kernel."""
    cuda.launch(stream, b"await", cuda.flag, 1)
    cuda.launch(stream, b"put", cuda.cell, 7)
    assert cuda.library.cuStreamQuery(stream) == NOT_READY
    assert cuda.cell.value == 0
    cuda.flag.value = 1
    cuda.cuStreamSynchronize(stream)
    assert cuda.cell.value == 7


def test_a_kernel_waits_for_the_host(cuda):
    stream = cuda.stream()
    host_goes_on(cuda, stream)
    assert cuda.library.cuStreamQuery(stream) == 0


def test_the_host_goes_on_while_the_default_stream_waits_for_it(cuda):
    for _ in range(4):  # often enough for the quick way of short launches
        cuda.launch(None, b"await", cuda.flag, 0)
        cuda.cuCtxSynchronize()
    host_goes_on(cuda, None)


def test_a_function_of_the_host_on_the_default_stream_has_a_thread_of_its_own(cuda):
    go, threads = threading.Event(), []

    def from_stream(_):
        go.wait(60)
        threads.append(threading.get_ident())

    host = ctypes.CFUNCTYPE(None, c_void_p)(from_stream)
    cuda.cuLaunchHostFunc(None, host, None)
    go.set()
    cuda.cuCtxSynchronize()
    assert len(threads) == 1
    assert threads[0] != threading.get_ident()


def test_what_a_launch_asks_in_vain_is_said_at_once_and_harms_nothing(cuda):
    kernel = cuda.handle("cuModuleGetFunction", cuda.module, b"wild")
    for stream in (None, cuda.stream()):
        assert cuda.library.cuLaunchKernel(kernel, 1, 65536, 1, 1, 1, 1, 0, stream, None, None) == 1  # 65535 are the most
    cuda.cuCtxSynchronize()


def test_a_kernel_waits_for_another_stream(cuda):
    first, second = cuda.stream(), cuda.stream()
    cuda.launch(first, b"await", cuda.flag, 5)
    cuda.launch(second, b"put", cuda.flag, 5)
    cuda.cuCtxSynchronize()


@pytest.mark.parametrize(("name", "stream"), [("cuLaunchKernel", 2), ("cuLaunchKernel_ptsz", 0), ("cuLaunchKernel_ptsz", 2)])
def test_each_thread_has_a_default_stream_of_its_own(cuda, name, stream):
    """CUDA C++ Programming Guide, "Default Stream": 2 names it, and so does 0 for some functions."""
    context = cuda.handle("cuCtxGetCurrent")

    def go_on():
        cuda.cuCtxSetCurrent(context)
        launch(b"put", cuda.flag, 1)

    def launch(kernel, *arguments):
        given = [c_uint64(ctypes.addressof(arguments[0])), c_uint(arguments[1])]
        pointers = (c_void_p * 2)(*map(ctypes.addressof, given))
        handle = cuda.handle("cuModuleGetFunction", cuda.module, kernel)
        getattr(cuda, name)(handle, 1, 1, 1, 1, 1, 1, 0, c_void_p(stream), pointers, None)

    launch(b"await", cuda.flag, 1)
    launch(b"put", cuda.cell, 7)
    assert cuda.library.cuStreamQuery(c_void_p(2)) == cuda.library.cuStreamQuery_ptsz(None) == NOT_READY
    assert cuda.library.cuStreamQuery(None) == cuda.library.cuStreamQuery_ptsz(c_void_p(1)) == 0
    other = threading.Thread(target=go_on)
    other.start()
    other.join()
    cuda.cuStreamSynchronize(c_void_p(2))
    assert cuda.cell.value == 7


def test_the_default_stream_follows_those_of_threads(cuda):
    cuda.launch(c_void_p(2), b"await", cuda.flag, 1)
    cuda.launch(c_void_p(2), b"append", cuda.cell, 1)
    cuda.launch(None, b"append", cuda.cell, 2)
    cuda.launch(c_void_p(2), b"append", cuda.cell, 3)
    cuda.flag.value = 1
    cuda.cuStreamSynchronize(c_void_p(2))
    assert cuda.cell.value == 123


def test_an_event_orders_streams_and_has_a_time(cuda):
    first, second = cuda.stream(), cuda.stream(NON_BLOCKING)
    begun, event = (cuda.handle("cuEventCreate", c_uint(0)) for _ in range(2))
    cuda.cuEventRecord(begun, first)
    cuda.launch(first, b"await", cuda.flag, 1)
    cuda.launch(first, b"append", cuda.cell, 1)
    cuda.cuEventRecord(event, first)
    cuda.cuStreamWaitEvent(second, event, 0)
    cuda.launch(second, b"append", cuda.cell, 2)
    assert cuda.library.cuEventQuery(event) == NOT_READY
    milliseconds = c_float(-1)
    assert cuda.library.cuEventElapsedTime(byref(milliseconds), begun, event) == NOT_READY
    cuda.flag.value = 1
    cuda.cuStreamSynchronize(second)
    assert cuda.cell.value == 12
    cuda.cuEventSynchronize(event)
    cuda.cuEventElapsedTime(byref(milliseconds), begun, event)
    assert milliseconds.value > 0


def test_the_default_stream_stands_between_blocking_streams(cuda):
    first, second, free = cuda.stream(), cuda.stream(), cuda.stream(NON_BLOCKING)
    cuda.launch(first, b"await", cuda.flag, 1)
    cuda.launch(first, b"append", cuda.cell, 1)
    cuda.launch(None, b"append", cuda.cell, 2)
    cuda.launch(second, b"append", cuda.cell, 3)
    cuda.launch(free, b"put", cuda.flag, 1)  # which waits for none of them
    cuda.cuCtxSynchronize()
    assert cuda.cell.value == 123


def test_copies_and_host_functions_keep_the_order_of_their_stream(cuda):
    stream, called = cuda.stream(), []
    waits = []

    def from_stream(_):
        called.append(cuda.cell.value)
        waits.append(cuda.library.cuStreamSynchronize(stream))  # which waited for itself

    host = ctypes.CFUNCTYPE(None, c_void_p)(from_stream)
    other = c_uint64()
    cuda.cuMemHostAlloc(byref(other), c_size_t(4), 0)
    cuda.launch(stream, b"await", cuda.flag, 1)
    cuda.launch(stream, b"put", cuda.cell, 9)
    cuda.cuMemcpyAsync(other, c_uint64(ctypes.addressof(cuda.cell)), c_size_t(4), stream)
    cuda.cuLaunchHostFunc(stream, host, None)
    cuda.launch(stream, b"put", cuda.cell, 10)
    assert not called
    cuda.flag.value = 1
    cuda.cuStreamSynchronize(stream)
    assert (called, c_uint.from_address(other.value).value, cuda.cell.value) == ([9], 9, 10)
    assert waits in ([0], [201], [NOT_PERMITTED])  # by whether the thread of the stream has a context
    cuda.cuMemFreeHost(other)


def test_an_error_of_a_stream_shows_when_the_host_waits(cuda, caplog):
    stream = cuda.stream()
    with caplog.at_level(logging.ERROR, "ptxvm.driver"):
        cuda.launch(stream, b"await", cuda.flag, 1)
        cuda.launch(stream, b"wild")
        cuda.launch(stream, b"put", cuda.cell, 3)
        cuda.flag.value = 1
        assert cuda.library.cuStreamSynchronize(stream) == ILLEGAL_ADDRESS
    assert cuda.cell.value == 0  # nothing runs after a failure
    assert "wild" in caplog.text


@pytest.mark.usefixtures("caplog")
def test_a_callback_is_told_of_an_error_and_a_function_of_the_host_is_not_called(cuda):
    """As the driver API says of cuStreamAddCallback and of cuLaunchHostFunc."""
    stream, called = cuda.stream(), []
    callback = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_void_p)(lambda _, status, __: called.append(status))
    host = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: called.append(None))
    cuda.launch(stream, b"await", cuda.flag, 1)
    cuda.launch(stream, b"wild")
    cuda.cuLaunchHostFunc(stream, host, None)
    cuda.cuStreamAddCallback(stream, callback, None, 0)
    assert cuda.library.cuStreamAddCallback(stream, callback, None, 1) == 1  # INVALID_VALUE: its flags are 0
    cuda.flag.value = 1
    assert cuda.library.cuStreamSynchronize(stream) == ILLEGAL_ADDRESS
    assert called == [ILLEGAL_ADDRESS]


@pytest.mark.usefixtures("caplog")
def test_what_a_client_releases_after_an_error_is_released_and_the_error_told(cuda):
    """As users of hardware see it: "cuMemFree failed: an illegal memory access was encountered"."""
    stream, event, memory = cuda.stream(), cuda.handle("cuEventCreate", c_uint(0)), c_uint64()
    cuda.cuMemAlloc_v2(byref(memory), c_size_t(4))
    module = cuda.handle("cuModuleLoadData", KERNELS)
    cuda.launch(stream, b"wild")
    for name, handle in (
        ("MemFree_v2", memory),
        ("EventDestroy_v2", event),
        ("StreamDestroy_v2", stream),
        ("ModuleUnload", module),
    ):
        assert cuda.library["cu" + name](handle) == ILLEGAL_ADDRESS, name
        assert cuda.library["cu" + name](handle) in {INVALID_VALUE, INVALID_HANDLE}, name


def test_memory_is_freed_when_the_work_that_uses_it_has_ended(cuda):
    stream, memory = cuda.stream(NON_BLOCKING), c_uint64()
    cuda.cuMemAlloc_v2(byref(memory), c_size_t(4))
    cell = c_uint.from_address(memory.value)
    cuda.launch(stream, b"await", cuda.flag, 1)
    cuda.launch(stream, b"put", cell, 3)
    cuda.cuMemFreeAsync(memory, stream)
    cuda.flag.value = 1
    cuda.cuStreamSynchronize(stream)
    assert cuda.library.cuMemFree_v2(memory) == 1  # it is gone


def test_streams_that_nothing_orders_are_checked_for_races(cuda, monkeypatch):
    check_for(monkeypatch, "race")
    first, second = cuda.stream(), cuda.stream()
    event = cuda.handle("cuEventCreate", c_uint(2))
    cuda.launch(first, b"append", cuda.cell, 1)
    cuda.cuEventRecord(event, first)
    cuda.cuStreamWaitEvent(second, event, 0)
    cuda.launch(second, b"append", cuda.cell, 2)  # ordered by the event
    cuda.launch(None, b"append", cuda.cell, 3)  # ... and by the rules of the default stream
    assert not FINDINGS.seen
    cuda.launch(first, b"append", cuda.cell, 4)
    cuda.launch(second, b"append", cuda.cell, 5)
    assert {key[:2] for key in FINDINGS.seen} == {("append", "race")}
    assert cuda.cell.value == 12345


def test_functions_that_a_stream_or_a_graph_calls_must_not_use_the_driver(cuda):
    found, library = [], cuda.library

    def use_the_driver(*_):
        text = ctypes.c_char_p()
        calls = library.cuMemAlloc_v2(byref(c_uint64()), c_size_t(64)), library.cuCtxSynchronize()
        found.append((*calls, library.cuGetErrorName(800, byref(text)), text.value))

    from_host = ctypes.CFUNCTYPE(None, c_void_p)(use_the_driver)
    callback = ctypes.CFUNCTYPE(None, c_void_p, ctypes.c_int, c_void_p)(use_the_driver)
    stream, graph = cuda.stream(), cuda.handle("cuGraphCreate", 0)
    described = HostNode(ctypes.cast(from_host, c_void_p).value, 0)
    cuda.handle("cuGraphAddHostNode", graph, None, c_size_t(0), byref(described))
    cuda.cuLaunchHostFunc(stream, from_host, None)
    cuda.cuStreamAddCallback(stream, callback, None, c_uint(0))
    cuda.cuGraphLaunch(cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0)), stream)
    cuda.cuStreamSynchronize(stream)
    assert found == [(NOT_PERMITTED, NOT_PERMITTED, 0, b"CUDA_ERROR_NOT_PERMITTED")] * 3


# ── checks, while the host goes on ──────────────────────────────────────────────────────


def check_for(monkeypatch, *checks):
    """Let kernels be checked from now on, with no finding so far."""
    monkeypatch.setattr(context, "wanted", lambda: frozenset(checks))
    monkeypatch.setattr(FINDINGS, "seen", set())


@pytest.fixture
def lone_context(cuda):
    """A context whose default stream has no other beside it."""
    before, lone = cuda.handle("cuCtxGetCurrent"), cuda.handle("cuCtxCreate_v2", c_uint(0), 0)
    cuda.module = cuda.handle("cuModuleLoadData", KERNELS)
    yield lone
    cuda.flag.value = 1
    cuda.cuCtxDestroy_v2(lone)
    cuda.cuCtxSetCurrent(before)


def test_a_checked_kernel_waits_for_the_host(cuda, monkeypatch):
    check_for(monkeypatch, "memory", "race", "init")
    host_goes_on(cuda, cuda.stream())
    assert not FINDINGS.seen


def test_a_checked_kernel_of_the_only_stream_waits_for_the_host(cuda, lone_context, monkeypatch):
    """After a while on compiled code it begins anew, from the same memory, for the checkers; then it is known to wait."""
    check_for(monkeypatch, "memory", "race")
    monkeypatch.setattr(time_box, "HOST_WAITS", 0.2)
    for tens, flag in ((10, 1), (110, 2)):
        cuda.launch(None, b"serve", cuda.flag, flag)
        cuda.launch(None, b"append", cuda.cell, 0)
        assert cuda.library.cuStreamQuery(None) == NOT_READY
        cuda.flag.value = flag
        cuda.cuCtxSynchronize()
        assert cuda.cell.value == tens * 10
        cuda.cell.value //= 10
        monkeypatch.setattr(time_box, "HOST_WAITS", 1e9)
    assert not FINDINGS.seen


def test_a_spinning_kernel_that_needs_no_host_has_ended_when_its_launch_returns(cuda, lone_context, monkeypatch):
    check_for(monkeypatch, "memory", "race")
    cuda.flag.value = 3
    cuda.launch(None, b"serve", cuda.flag, 3)
    assert cuda.library.cuStreamQuery(None) == 0
    assert cuda.cell.value == 10


def test_a_function_of_the_host_waits_for_the_host_while_kernels_are_checked(cuda, lone_context, monkeypatch):
    check_for(monkeypatch, "race")
    go = threading.Event()
    host = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: go.wait(60))
    cuda.cuLaunchHostFunc(None, host, None)
    cuda.launch(None, b"put", cuda.cell, 5)
    assert cuda.cell.value == 0
    go.set()
    cuda.cuCtxSynchronize()
    assert cuda.cell.value == 5


def test_launches_beside_one_that_waits_are_checked_for_races(cuda, monkeypatch):
    check_for(monkeypatch, "race")
    first, second = cuda.stream(NON_BLOCKING), cuda.stream(NON_BLOCKING)
    event = cuda.handle("cuEventCreate", c_uint(2))
    cuda.launch(first, b"await", cuda.flag, 1)
    cuda.launch(first, b"append", cuda.cell, 1)
    cuda.cuEventRecord(event, first)
    cuda.cuStreamWaitEvent(second, event, 0)
    cuda.launch(second, b"append", cuda.cell, 2)
    cuda.flag.value = 1
    cuda.cuCtxSynchronize()
    assert (cuda.cell.value, FINDINGS.seen) == (12, set())
    cuda.launch(first, b"serve", cuda.flag, 2)  # which writes the cell, before it waits and afterwards
    while cuda.cell.value == 12:
        time.sleep(0.001)
    cuda.launch(second, b"append", cuda.cell, 2)
    cuda.flag.value = 2
    cuda.cuCtxSynchronize()
    assert {key[1] for key in FINDINGS.seen} == {"race"}


def test_a_process_ends_while_kernels_run():
    folder = str(Path(__file__).parent)
    program = f"""
import sys
sys.path.insert(0, {folder!r})
from stream_driver import Driver
driver = Driver()
for stream in (driver.stream(), driver.stream()):
    driver.launch(stream, b"await", driver.flag, 1)
print("ends")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "ends\n", "")


@pytest.fixture
def interruptible():
    """SIGINT raises KeyboardInterrupt, which may be ignored where the tests run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_the_wait_for_a_kernel(cuda):
    cuda.launch(None, b"await", cuda.flag, 1)
    threading.Timer(0.2, signal.pthread_kill, (threading.get_ident(), signal.SIGINT)).start()
    assert cuda.library.cuCtxSynchronize() == UNKNOWN
    with pytest.raises(KeyboardInterrupt):
        threading.Event().wait(60)
