"""What a capture of a stream allows (driver API, "Stream Management", `CUresult`).

See also the CUDA C++ Programming Guide, "Creating a Graph Using Stream Capture".
"""

from __future__ import annotations

import threading
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest

INVALID_VALUE, NOT_READY, UNSUPPORTED, INVALIDATED, MERGE, ISOLATION, IMPLICIT = 1, 600, 900, 901, 902, 905, 906
UNJOINED, CAPTURED_EVENT, WRONG_THREAD = 904, 907, 908
SET_DEPENDENCIES = 1
GLOBAL, THREAD_LOCAL, RELAXED = range(3)  # CUstreamCaptureMode
NON_BLOCKING, NO_TIMING, EXTERNAL = 1, 2, 1
RECORD_NODE, WAIT_NODE = 7, 6  # CUgraphNodeType


def capture(cuda, flags=0, mode=GLOBAL):
    """A stream that is captured."""
    stream = cuda.stream(flags)
    cuda.cuStreamBeginCapture_v2(stream, c_int(mode))
    return stream


def ended(cuda, stream):
    """The graph of a capture, and the result of its end."""
    graph = c_void_p()
    result = cuda.library.cuStreamEndCapture(stream, byref(graph))
    return graph, result


def event(cuda):
    return cuda.handle("cuEventCreate", c_uint(NO_TIMING))


def types(cuda, graph):
    """The types of the nodes of a graph."""
    nodes, count, found = (c_void_p * 8)(), c_size_t(8), c_int()
    cuda.cuGraphGetNodes(graph, nodes, byref(count))
    return [(cuda.cuGraphNodeGetType(c_void_p(nodes[n]), byref(found)), found.value)[1] for n in range(count.value)]


# ── the legacy stream ───────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("handle", [None, c_void_p(1)])
def test_the_legacy_stream_is_not_captured(cuda, handle):
    assert cuda.library.cuStreamBeginCapture_v2(handle, c_int(GLOBAL)) == UNSUPPORTED


def on_legacy(cuda):
    """Calls that put work on the legacy stream."""
    cell, flag = (c_uint64(cuda.memory.value + at) for at in (4, 0))
    return {
        "fill": lambda: cuda.library.cuMemsetD32Async(cell, c_uint(1), c_size_t(1), None),
        "copy": lambda: cuda.library.cuMemcpyDtoD_v2(cell, flag, c_size_t(4)),
        "record": lambda: cuda.library.cuEventRecord(event(cuda), None),
        "wait": lambda: cuda.library.cuStreamWaitEvent(None, event(cuda), c_uint(0)),
    }


@pytest.mark.parametrize("work", ["fill", "copy", "record", "wait"])
def test_work_of_the_legacy_stream_would_wait_for_a_captured_one(cuda, work):
    stream = capture(cuda)
    assert on_legacy(cuda)[work]() == IMPLICIT
    assert ended(cuda, stream)[1] == INVALIDATED
    assert on_legacy(cuda)[work]() == 0


def test_a_stream_that_does_not_block_leaves_the_legacy_stream_alone(cuda):
    stream = capture(cuda, NON_BLOCKING)
    assert [call() for call in on_legacy(cuda).values()] == [0] * 4
    status = c_int(-1)
    cuda.cuStreamIsCapturing(None, byref(status))
    assert status.value == 0
    assert ended(cuda, stream)[1] == 0


def test_questions_about_the_legacy_stream_have_no_answer_meanwhile(cuda):
    stream, status = capture(cuda), c_int()
    assert cuda.library.cuStreamIsCapturing(None, byref(status)) == IMPLICIT
    assert cuda.library.cuStreamGetCaptureInfo_v2(None, byref(status), None, None, None, None) == IMPLICIT
    assert ended(cuda, stream)[1] == 0
    assert cuda.library.cuStreamIsCapturing(None, byref(status)) == 0


# ── events ──────────────────────────────────────────────────────────────────────────────


def test_a_capture_waits_for_no_event_of_outside(cuda):
    before, never = event(cuda), event(cuda)
    cuda.cuEventRecord(before, None)
    stream = capture(cuda)
    cuda.cuStreamWaitEvent(stream, never, c_uint(0))  # nothing is before it
    assert cuda.library.cuStreamWaitEvent(stream, before, c_uint(0)) == ISOLATION
    assert ended(cuda, stream)[1] == INVALIDATED


def test_two_captures_do_not_become_one(cuda):
    first, second, recorded = capture(cuda), capture(cuda), event(cuda)
    cuda.cuEventRecord(recorded, first)
    assert cuda.library.cuStreamWaitEvent(second, recorded, c_uint(0)) == MERGE
    assert [ended(cuda, stream)[1] for stream in (first, second)] == [INVALIDATED] * 2


def test_a_stream_that_joined_has_to_be_joined_with_the_first(cuda):
    stream, other, recorded = capture(cuda), cuda.stream(), event(cuda)
    cuda.cuEventRecord(recorded, stream)
    cuda.cuStreamWaitEvent(other, recorded, c_uint(0))
    cuda.launch(other, b"put", cuda.cell, 1)
    assert ended(cuda, stream)[1] == UNJOINED


def test_nodes_that_a_stream_no_longer_leads_to_need_no_join(cuda):
    """The client took them off the stream's dependencies (cuStreamUpdateCaptureDependencies)."""
    stream, other, recorded = capture(cuda), cuda.stream(), event(cuda)
    cuda.cuEventRecord(recorded, stream)
    cuda.cuStreamWaitEvent(other, recorded, c_uint(0))
    for each in (stream, other):
        cuda.launch(each, b"put", cuda.cell, 1)
        cuda.cuStreamUpdateCaptureDependencies(each, None, c_size_t(0), c_uint(SET_DEPENDENCIES))
    cuda.launch(stream, b"put", cuda.cell, 1)
    graph, result = ended(cuda, stream)
    assert (result, len(types(cuda, graph))) == (0, 3)


def test_an_event_of_a_capture_that_has_ended_is_the_captures(cuda):
    stream, other, recorded = capture(cuda), cuda.stream(), event(cuda)
    cuda.cuEventRecord(recorded, stream)
    assert ended(cuda, stream)[1] == 0
    assert cuda.library.cuStreamWaitEvent(other, recorded, c_uint(0)) == CAPTURED_EVENT
    status = c_int(-1)
    cuda.cuStreamIsCapturing(other, byref(status))
    assert status.value == 0
    cuda.cuEventRecord(recorded, stream)
    cuda.cuStreamWaitEvent(other, recorded, c_uint(0))


def test_an_external_record_and_an_external_wait_are_nodes(cuda):
    """A launch of the graph records the event for everybody, and waits for its last record of outside."""
    stream, runs, recorded, awaited = capture(cuda), cuda.stream(NON_BLOCKING), event(cuda), event(cuda)
    cuda.cuStreamWaitEvent(stream, awaited, c_uint(EXTERNAL))
    cuda.launch(stream, b"append", cuda.cell, 7)
    cuda.cuEventRecordWithFlags(recorded, stream, c_uint(EXTERNAL))
    graph, result = ended(cuda, stream)
    assert (result, types(cuda, graph)) == (0, [WAIT_NODE, 0, RECORD_NODE])
    waiting = cuda.stream(NON_BLOCKING)
    cuda.launch(waiting, b"await", cuda.flag, 1)
    cuda.cuEventRecord(awaited, waiting)
    executable = cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0))
    cuda.cuGraphLaunch(executable, runs)
    assert cuda.library.cuEventQuery(recorded) == NOT_READY
    assert cuda.cell.value == 0
    cuda.flag.value = 1
    cuda.cuEventSynchronize(recorded)
    assert cuda.cell.value == 7


def test_external_flags_are_for_captures(cuda):
    stream, some = cuda.stream(), event(cuda)
    for flags in (EXTERNAL, 2):
        assert cuda.library.cuEventRecordWithFlags(some, stream, c_uint(flags)) == INVALID_VALUE
        assert cuda.library.cuStreamWaitEvent(stream, some, c_uint(flags)) == INVALID_VALUE


# ── threads ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("mode", "expected"), [(GLOBAL, WRONG_THREAD), (THREAD_LOCAL, WRONG_THREAD), (RELAXED, 0)])
def test_a_capture_ends_in_its_thread_unless_it_is_relaxed(cuda, mode, expected):
    stream, found, context = capture(cuda, mode=mode), [], cuda.handle("cuCtxGetCurrent")

    def end():
        cuda.cuCtxSetCurrent(context)
        found.append(ended(cuda, stream)[1])

    thread = threading.Thread(target=end)
    thread.start()
    thread.join()
    assert found == [expected]
    assert ended(cuda, stream)[1] == (0 if expected else 401)  # CUDA_ERROR_ILLEGAL_STATE: it has ended


# ── calls that a capture does not see ───────────────────────────────────────────────────


def exchanged(cuda, mode):
    """The mode that this thread had."""
    cell = c_int(mode)
    cuda.cuThreadExchangeStreamCaptureMode(byref(cell))
    return cell.value


def allocated(cuda):
    """The results of an allocation and, where there is memory, of its end."""
    memory = c_uint64()
    result = cuda.library.cuMemAlloc_v2(byref(memory), c_size_t(64))
    return result or cuda.library.cuMemFree_v2(memory)


@pytest.fixture
def usual_mode(cuda):
    yield
    exchanged(cuda, GLOBAL)


@pytest.mark.usefixtures("usual_mode")
@pytest.mark.parametrize("mode", [GLOBAL, THREAD_LOCAL, RELAXED])
@pytest.mark.parametrize("of_thread", [GLOBAL, THREAD_LOCAL, RELAXED])
@pytest.mark.parametrize("elsewhere", [False, True])
def test_an_allocation_is_refused_as_the_modes_of_capture_and_thread_say(cuda, mode, of_thread, elsewhere):
    """Driver API, `cuThreadExchangeStreamCaptureMode`."""
    stream = capture(cuda, NON_BLOCKING, mode)
    prohibited = of_thread == mode == GLOBAL if elsewhere else RELAXED not in (of_thread, mode)
    context, found = cuda.handle("cuCtxGetCurrent"), []

    def allocate():
        cuda.cuCtxSetCurrent(context)
        found.append((exchanged(cuda, of_thread), allocated(cuda)))

    if elsewhere:
        thread = threading.Thread(target=allocate)
        thread.start()
        thread.join()
    else:
        allocate()
    assert found == [(GLOBAL, UNSUPPORTED if prohibited else 0)]
    assert ended(cuda, stream)[1] == (INVALIDATED if prohibited else 0)
    assert allocated(cuda) == 0


def test_memory_is_not_freed_beside_a_capture(cuda):
    memory = c_uint64()
    cuda.cuMemAlloc_v2(byref(memory), c_size_t(64))
    stream = capture(cuda, NON_BLOCKING)
    assert cuda.library.cuMemFree_v2(memory) == UNSUPPORTED
    assert ended(cuda, stream)[1] == INVALIDATED
    cuda.cuMemFree_v2(memory)


@pytest.mark.parametrize("how", ["cuStreamDestroy_v2", "cuDevicePrimaryCtxReset_v2"])
def test_a_capture_ends_with_its_stream_or_its_context(cuda, how):
    stream = capture(cuda)
    cuda.library[how](stream if "Stream" in how else 0)
    assert allocated(cuda) == 0


def test_there_are_three_modes(cuda):
    assert cuda.library.cuThreadExchangeStreamCaptureMode(byref(c_int(3))) == INVALID_VALUE
    assert exchanged(cuda, GLOBAL) == GLOBAL
