"""The calls that native code answers: that it does, that it leaves the rest to Python, and that both say the same."""

from __future__ import annotations

import ctypes
import os
import threading
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest

from ptxvm.driver.client_memory import ENTRIES, SEEN, check
from ptxvm.driver.event import Event
from ptxvm.driver.module import Kernel
from ptxvm.driver.results import Result
from ptxvm.engine.jit.abi.specialisation import Tier
from ptxvm.engine.jit.objects import disk_cache
from ptxvm.engine.jit.objects.code_cache import object_code
from ptxvm.engine.jit.objects.elf import flatten
from ptxvm.engine.jit.objects.loader import Loaded
from ptxvm.libcuda import native as module
from ptxvm.libcuda.calls.launch import arguments
from ptxvm.libcuda.library import install
from ptxvm.libcuda.native import FUNCTIONS, PYTHON, flat_code, packed, unpacked
from ptxvm.libcuda.records import SOONEST
from ptxvm.libcuda.session import session

OTHERWISE = 4321  # what stands for Python's answer
INVALID_VALUE, INVALID_HANDLE, ILLEGAL_ADDRESS, NOT_READY, NOT_INITIALIZED = 1, 400, 700, 600, 3


@pytest.fixture
def native():
    found = install().native
    if found is None:
        pytest.skip("no native calls on this processor")
    return found


@pytest.fixture
def alone(cuda, native):
    """The driver with native code that has no Python to go on to."""
    instead = ctypes.CFUNCTYPE(c_int)(lambda: OTHERWISE)
    before = list(native.words)
    for n in range(len(FUNCTIONS)):
        native.words[PYTHON + n] = ctypes.cast(instead, c_void_p).value
    yield cuda
    native.words[:] = before


def seen(cell):
    """A cell in a page that Python has seen: native code leaves other pointers to it."""
    check(ctypes.addressof(cell), ctypes.sizeof(cell), writing=True)
    return cell


def test_native_code_answers_what_is_common(alone):
    out, number, text = seen(c_uint64()), seen(c_int(-1)), seen(c_char_p())
    context = session().handles.handle(session().context)
    alone.cuCtxGetCurrent(byref(out))
    assert out.value == context
    alone.cuCtxPushCurrent_v2(c_uint64(context))
    assert len(session().stack) == 2
    alone.cuCtxPopCurrent_v2(None)
    alone.cuCtxSetCurrent(c_uint64(0))
    assert len(session().stack) == 0
    alone.cuCtxGetCurrent(byref(out))
    assert out.value == 0
    alone.cuCtxSetCurrent(c_uint64(context))
    assert list(session().stack) == [session().context]
    alone.cuCtxGetDevice(byref(number))
    assert number.value == 0
    for name in ("cuStreamQuery", "cuStreamQuery_ptsz"):
        assert alone.library[name](None) == 0
    alone.cuStreamIsCapturing(None, byref(number))
    assert number.value == 0
    alone.cuPointerGetAttribute(byref(out), 3, c_uint64(0x1234567890))
    assert out.value == 0x1234567890
    alone.cuGetErrorString(700, byref(text))
    assert text.value == Result.ILLEGAL_ADDRESS.text.encode()
    alone.cuGetErrorName(c_uint(0), byref(text))
    assert text.value == b"CUDA_SUCCESS"


def test_what_is_wrong_or_rare_is_left_to_python(alone):
    call, out = alone.library, c_uint64()
    context = session().handles.handle(session().context)
    assert call.cuCtxSetCurrent(c_uint64(context + 8)) == OTHERWISE
    assert call.cuCtxPushCurrent_v2(c_uint64(77)) == OTHERWISE
    assert call.cuCtxGetCurrent(None) == OTHERWISE
    assert call.cuStreamQuery(c_uint64(context)) == OTHERWISE  # a context is no stream
    assert call.cuEventQuery(c_uint64(context)) == OTHERWISE
    assert call.cuPointerGetAttribute(byref(out), 2, c_uint64(64)) == OTHERWISE
    assert call.cuDeviceGetAttribute(byref(out), 100_000, 0) == OTHERWISE
    assert call.cuDeviceGet(byref(out), 99) == OTHERWISE
    assert call.cuGetErrorName(123_456, byref(out)) == OTHERWISE
    assert call.cuGetErrorName(5432, byref(out)) == OTHERWISE
    session().stack.clear()
    assert call.cuCtxPopCurrent_v2(byref(out)) == OTHERWISE
    assert call.cuCtxGetDevice(byref(out)) == OTHERWISE


def test_native_code_writes_where_python_has_seen_that_it_may(alone):
    """The page may be read, or is another one whose place in the table is the same."""
    out = c_uint64()
    page = ctypes.addressof(out) // 4096
    for entry, result in ((0, OTHERWISE), (2 * page, OTHERWISE), (2 * (page + ENTRIES) + 1, OTHERWISE), (2 * page + 1, 0)):
        SEEN[page % ENTRIES] = entry
        assert alone.library.cuCtxGetCurrent(byref(out)) == result
        assert alone.library.cuGetErrorName(0, byref(out)) == result


def test_attributes_are_those_that_python_says(alone):
    value = seen(c_int())
    device = session().driver.device(0)
    for number in range(1, 150):
        result = alone.library.cuDeviceGetAttribute(byref(value), number, 0)
        if result != OTHERWISE:
            assert (result, value.value) == (0, device.attribute(number))


def test_a_device_is_asked_from_a_thread_without_a_context(alone):
    """Without Python, whose lock a client may hold while it waits for that thread: Taichi does while it compiles."""
    found = []

    def ask():
        number, value = seen(c_int(-1)), seen(c_int(-1))
        answers = alone.library.cuDeviceGet(byref(number), 0), alone.library.cuDeviceGetAttribute(byref(value), 75, 0)
        found.extend([*answers, number.value, value.value])

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    assert found == [0, 0, 0, session().driver.devices[0].model.capability[0]]


def test_streams_and_events_are_ready_when_their_work_is_done(cuda):
    stream, event = cuda.stream(), cuda.handle("cuEventCreate", c_uint(0))
    assert cuda.library.cuEventQuery(event) == 0
    cuda.launch(stream, b"await", cuda.flag, 1)
    cuda.cuEventRecord(event, stream)
    assert (cuda.library.cuStreamQuery(stream), cuda.library.cuEventQuery(event)) == (NOT_READY, NOT_READY)
    cuda.flag.value = 1
    cuda.cuStreamSynchronize(stream)
    assert [cuda.library.cuEventQuery(event) for _ in range(2)] == [0, 0]
    assert cuda.library.cuStreamQuery(stream) == 0
    status = c_int(-1)
    cuda.cuStreamBeginCapture_v2(stream, 0)
    cuda.cuStreamIsCapturing(stream, byref(status))
    assert status.value == 1
    cuda.cuStreamEndCapture(stream, byref(c_uint64()))
    cuda.cuStreamIsCapturing(stream, byref(status))
    assert status.value == 0


def test_a_failed_kernel_is_the_answer_of_native_calls_too(cuda):
    out = c_uint64()
    cuda.launch(None, b"wild")
    assert cuda.library.cuCtxSynchronize() == ILLEGAL_ADDRESS
    assert cuda.library.cuStreamQuery(None) == ILLEGAL_ADDRESS
    assert cuda.library.cuPointerGetAttribute(byref(out), 3, c_uint64(64)) == ILLEGAL_ADDRESS
    assert cuda.library.cuDeviceGetAttribute(byref(out), 1, 0) == ILLEGAL_ADDRESS
    assert cuda.library.cuCtxGetCurrent(byref(out)) == 0  # of any state


def test_what_gives_something_up_succeeds_when_the_process_ends():
    """Destructors of C++ call it after Python has ended, and print a warning where it fails."""
    library = install().cuda
    for name in ("cuCtxDestroy_v2", "cuCtxDetach", "cuMemFree_v2", "cuModuleUnload"):
        assert library.at_end(name) == library.done
    assert library.at_end("cuCtxCreate_v2") == library.ended


def test_a_stack_may_be_deep(cuda):
    context, out = session().handles.handle(session().context), c_uint64()
    for _ in range(300):
        cuda.cuCtxPushCurrent_v2(c_uint64(context))
    assert len(session().stack) == 301
    for _ in range(300):
        cuda.cuCtxPopCurrent_v2(byref(out))
        assert out.value == context
    assert len(session().stack) == 1


def test_each_thread_has_its_own_stack(cuda):
    found = []

    def in_another():
        out = c_uint64(5)
        found.append((cuda.library.cuCtxGetCurrent(byref(out)), out.value))
        cuda.cuCtxSetCurrent(c_uint64(session().handles.handle(session().driver.primary_context(0))))
        found.append(len(session().stack))

    thread = threading.Thread(target=in_another)
    thread.start()
    thread.join()
    assert found == [(0, 0), 1]


def test_handles_that_were_given_up_are_none(cuda):
    event, stream = cuda.handle("cuEventCreate", c_uint(0)), cuda.stream()
    cuda.launch(stream, b"await", cuda.flag, 1)
    cuda.cuEventDestroy_v2(event)
    cuda.cuStreamDestroy_v2(stream)  # its work goes on
    assert cuda.library.cuEventQuery(event) == INVALID_HANDLE
    assert cuda.library.cuStreamQuery(stream) == INVALID_HANDLE
    records, mark = session().handles.records, Event(session().context)
    numbers = []
    for _ in range(SOONEST - 10):  # a handle is not used again soon
        numbers.append(records.number(mark))
        records.drop(mark, numbers[-1])
    assert event.value not in numbers
    cuda.flag.value = 1
    cuda.cuCtxSynchronize()


def test_a_forked_child_is_told_that_the_driver_is_not_initialised(cuda):
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        result = cuda.library.cuCtxGetCurrent(byref(c_uint64()))
        os.write(write, bytes([result]))
        os._exit(0)
    os.close(write)
    assert os.read(read, 1) == bytes([NOT_INITIALIZED])
    os.waitpid(child, 0)
    os.close(read)


def test_the_code_is_kept_on_disk(tmp_path, monkeypatch, native):
    store = disk_cache.DiskCache(tmp_path / "kept")
    monkeypatch.setattr(module.disk_cache, "from_environment", lambda: store)
    first = flat_code()
    monkeypatch.setattr(module, "object_code", None)  # nothing is compiled
    assert flat_code() == first
    assert unpacked(packed(first)) == first
    assert unpacked(b"{}\n") is None
    assert unpacked(b"no json") is None
    assert unpacked(packed(first._replace(inner={1 << 40: 0}))) is None
    assert c_size_t(native.code.address("cuCtxGetCurrent")).value


DESTRUCTOR = """
declare void @PyErr_SetNone(ptr)
declare ptr @PyErr_Occurred()
declare void @PyErr_Clear()
define ptr @destructor(ptr %exception, ptr %function, i64 %handle, ptr %result) {
  call void @PyErr_SetNone(ptr %exception)
  %told = call i32 %function(i64 %handle)
  store i32 %told, ptr %result
  %kept = call ptr @PyErr_Occurred()
  call void @PyErr_Clear()
  ret ptr %kept
}
"""


def test_a_destructor_may_call_with_an_exception_on_its_way(cuda, native):
    """As those of an extension module do: the call does its work, and the exception is there afterwards."""
    code = Loaded(flatten(object_code(DESTRUCTOR, Tier.BEST, background=False)))
    call = ctypes.PYFUNCTYPE(c_void_p, c_void_p, c_void_p, c_uint64, c_void_p)(code.address("destructor"))
    graph, result = cuda.handle("cuGraphCreate", 0), c_int(-1)
    destroy = ctypes.cast(cuda.library.cuGraphDestroy, c_void_p).value
    for handle, expected in ((graph.value, 0), (graph.value, INVALID_VALUE)):
        assert call(id(KeyError), destroy, handle, ctypes.addressof(result)) == id(KeyError)
        assert result.value == expected


KERNEL_OF_MANY_SIZES = b"""
.version 7.8
.target sm_80
.address_size 64
.visible .entry sizes(
    .param .u8 a, .param .u64 b, .param .align 2 .b8 c[6], .param .u32 d, .param .align 16 .b8 e[48], .param .u16 f
) { ret; }
"""


def test_arguments_are_gathered_at_any_address(cuda, native, monkeypatch):
    """The same bytes as Python reads one by one, and as a client's buffer has them."""
    module = cuda.handle("cuModuleLoadData", KERNEL_OF_MANY_SIZES)
    handle = cuda.handle("cuModuleGetFunction", module, b"sizes").value
    kernel = session().handles.object(handle, Kernel)
    room, values, addresses = ctypes.create_string_buffer(bytes(range(1, 201)), 200), [], []
    at = ctypes.addressof(room) + 1
    for size in kernel.sizes:  # side by side, at odd addresses too
        values.append(ctypes.string_at(at, size))
        addresses.append(at)
        at += size
    pointers = (c_void_p * len(addresses))(*addresses)
    assert session().gather is native.gather
    assert arguments(kernel, ctypes.addressof(pointers), 0) == tuple(values)
    block = bytearray(kernel.bank.size)
    for slot, value in zip(kernel.bank.slots, values, strict=True):
        block[slot.offset : slot.offset + slot.size] = value
    data, size = ctypes.create_string_buffer(bytes(block), len(block)), c_size_t(len(block))
    extra = (c_uint64 * 5)(1, ctypes.addressof(data), 2, ctypes.addressof(size), 0)
    assert arguments(kernel, 0, ctypes.addressof(extra)) == tuple(values)
    monkeypatch.setattr(session(), "gather", None)
    assert arguments(kernel, ctypes.addressof(pointers), 0) == tuple(values)


def test_threads_gather_arguments_apart(cuda, native):
    """Each has room of its own: what it launches with is what it gave."""
    kernel = session().handles.object(cuda.handle("cuModuleGetFunction", cuda.module, b"append").value, Kernel)
    wrong = []

    def gather(seed):
        for n in range(300):
            given = c_uint64(seed << 32 | n), c_uint(seed + n)
            pointers = (c_void_p * 2)(*map(ctypes.addressof, given))
            if arguments(kernel, ctypes.addressof(pointers), 0) != tuple(map(bytes, given)):
                wrong.append((seed, n))

    threads = [threading.Thread(target=gather, args=(seed,)) for seed in range(1, 5)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []
