"""Green contexts: a part of the multiprocessors (driver API, "Green Contexts")."""

from __future__ import annotations

from ctypes import addressof, byref, c_int, c_uint, c_uint64, c_void_p, sizeof

import pytest

from ptxvm.driver.work_queues import work_queues_of_a_device
from ptxvm.libcuda.session import session
from ptxvm.libcuda.structures import (
    ContextParameters,
    DeviceResource,
    ExecutionAffinity,
    GroupParameters,
    WorkQueueConfiguration,
    WorkQueueResource,
)

INVALID_CONTEXT, DETACHED = 201, 917
INVALID_VALUE, NOT_READY, TOO_LARGE, NOT_SUPPORTED, RESOURCE_TYPE, CONFIGURATION = 1, 600, 720, 801, 914, 915
UNSUPPORTED_AFFINITY, NO_TYPE = 224, 7
MULTIPROCESSORS, CONFIGURATION_OF_QUEUES, WORK_QUEUE, DEFAULT_STREAM, NON_BLOCKING = 1, 1000, 10000, 1, 1


@pytest.fixture
def whole(cuda):
    """The multiprocessors of the device: the 58 of an L4, in partitions of 4 and more, by twos."""
    found = DeviceResource()
    cuda.cuDeviceGetDevResource(0, byref(found), MULTIPROCESSORS)
    assert (found.count, found.least, found.alignment) == (58, 4, 2)
    assert sizeof(found) == 144
    return found


@pytest.mark.parametrize(("least", "flags", "room", "sizes", "rest"), [
    (0, 0, 3, [4] * 3, 46), (9, 0, 9, [10] * 5, 8), (29, 0, 2, [30], 28), (1, 1, 2, [2] * 2, 54), (58, 0, 1, [58], 0),
])  # fmt: skip
def test_multiprocessors_are_split_into_groups_of_one_size(cuda, whole, least, flags, room, sizes, rest):
    groups, left, count = (DeviceResource * room)(), DeviceResource(), c_uint()
    cuda.cuDevSmResourceSplitByCount(None, byref(count), byref(whole), None, c_uint(flags), c_uint(least))
    assert count.value == 58 // sizes[0]
    count.value = room
    cuda.cuDevSmResourceSplitByCount(groups, byref(count), byref(whole), byref(left), c_uint(flags), c_uint(least))
    assert [each.count for each in groups[: count.value]] == sizes
    assert (left.count, left.type) == (rest, int(rest > 0))


def test_groups_have_the_sizes_that_are_asked_for(cuda, whole):
    asked, groups, left = (
        (GroupParameters * 2)(GroupParameters(16), GroupParameters()),
        (DeviceResource * 2)(),
        DeviceResource(),
    )
    cuda.cuDevSmResourceSplit(groups, c_uint(2), byref(whole), byref(left), c_uint(0), asked)
    assert ([each.count for each in groups], asked[1].count, left.type) == ([16, 42], 42, 0)
    split = cuda.library.cuDevSmResourceSplit
    for wrong in (GroupParameters(60), GroupParameters(5)):
        assert split(groups, c_uint(1), byref(whole), byref(left), c_uint(0), byref(wrong)) == CONFIGURATION


@pytest.fixture
def green(cuda, whole):
    """A green context of 8 multiprocessors."""
    group, count = DeviceResource(), c_uint(1)
    cuda.cuDevSmResourceSplitByCount(byref(group), byref(count), byref(whole), None, c_uint(0), c_uint(8))
    description = cuda.handle("cuDevResourceGenerateDesc", byref(group), c_uint(1))
    assert cuda.library.cuGreenCtxCreate(byref(c_void_p()), description, 0, c_uint(0)) == INVALID_VALUE
    made = cuda.handle("cuGreenCtxCreate", description, 0, c_uint(DEFAULT_STREAM))
    yield made
    cuda.flag.value = 1
    cuda.cuGreenCtxDestroy(made)


def test_a_green_context_runs_kernels_and_tells_its_part(cuda, green):
    stream = cuda.handle("cuGreenCtxStreamCreate", green, c_uint(NON_BLOCKING), 0)
    told, found = DeviceResource(), c_uint64()
    context = cuda.handle("cuCtxFromGreenCtx", green)
    for call, handle in (("cuGreenCtx", green), ("cuCtx", context), ("cuStream", stream)):
        cuda.library[f"{call}GetDevResource"](handle, byref(told), MULTIPROCESSORS)
        assert (told.count, told.type) == (8, 1), call
    cuda.cuStreamGetGreenCtx(stream, byref(found))
    assert found.value == green.value
    cuda.cuStreamGetCtx(stream, byref(found))
    assert found.value == context.value
    both = c_void_p(), c_void_p()
    cuda.cuStreamGetCtx_v2(stream, *map(byref, both))
    assert [each.value for each in both] == [cuda.handle("cuCtxGetCurrent").value, green.value]
    cuda.cuStreamGetGreenCtx(cuda.stream(), byref(found))
    assert not found.value
    cuda.launch(stream, b"put", cuda.cell, 6)
    cuda.cuStreamSynchronize(stream)
    assert cuda.cell.value == 6
    cuda.cuCtxSetCurrent(context)
    cuda.launch(None, b"put", cuda.cell, 7)
    cuda.cuCtxSynchronize()
    assert cuda.cell.value == 7
    session().stack.clear()
    assert cuda.library.cuGreenCtxGetDevResource(green, byref(told), NO_TYPE) == RESOURCE_TYPE
    assert cuda.library.cuGreenCtxStreamCreate(byref(c_void_p()), green, c_uint(0), 0) == INVALID_VALUE


def test_an_event_is_recorded_behind_all_work_of_a_context(cuda, green):
    first, second = (cuda.handle("cuGreenCtxStreamCreate", green, c_uint(NON_BLOCKING), 0) for _ in range(2))
    event, other = cuda.handle("cuEventCreate", c_uint(2)), cuda.stream()
    cuda.launch(first, b"await", cuda.flag, 1)
    cuda.launch(first, b"append", cuda.cell, 1)
    cuda.cuGreenCtxRecordEvent(green, event)
    cuda.launch(second, b"await", cuda.flag, 1)  # behind the event, which does not wait for it
    assert cuda.library.cuEventQuery(event) == NOT_READY
    cuda.cuCtxWaitEvent(None, event)
    cuda.launch(other, b"append", cuda.cell, 2)
    assert cuda.cell.value == 0
    cuda.flag.value = 1
    cuda.cuStreamSynchronize(other)
    assert (cuda.cell.value, c_int(cuda.library.cuEventQuery(event)).value) == (12, 0)


def test_streams_of_a_context_that_was_destroyed_can_only_be_destroyed(cuda, whole):
    """STREAM_DETACHED, and captures are invalid (driver API, `cuGreenCtxDestroy`)."""
    made, told = green_of(cuda, whole), c_int()
    stream = cuda.handle("cuGreenCtxStreamCreate", made, c_uint(NON_BLOCKING), 0)
    cuda.cuStreamBeginCapture_v2(stream, 2)
    cuda.cuGreenCtxDestroy(made)
    assert cuda.library.cuGreenCtxDestroy(made) == INVALID_CONTEXT
    for call, *arguments in (("cuStreamQuery",), ("cuStreamSynchronize",), ("cuStreamIsCapturing", byref(told))):
        assert cuda.library[call](stream, *arguments) == DETACHED
    cuda.cuStreamDestroy_v2(stream)


def test_launches_and_occupancy_are_confined_to_the_part(cuda, green, monkeypatch):
    """Of 16 threads of the host, 8 of 58 multiprocessors are 3; a cooperative grid fits those 8."""
    monkeypatch.setattr("ptxvm.engine.jit.run.cta_distribution.usual_threads", lambda: 16)
    context = cuda.handle("cuCtxFromGreenCtx", green)
    kernel = cuda.handle("cuModuleGetFunction", cuda.module, b"wild")
    held, blocks, threads = c_int(), c_int(), c_int()
    cuda.cuCtxPushCurrent_v2(context)
    cuda.cuOccupancyMaxActiveBlocksPerMultiprocessor(byref(held), kernel, 64, c_uint64(0))
    cuda.cuOccupancyMaxPotentialBlockSize(byref(blocks), byref(threads), kernel, None, c_uint64(0), 64)
    assert (session().context.threads, blocks.value) == (3, 8 * held.value)
    launch = cuda.library.cuLaunchCooperativeKernel
    assert launch(kernel, 8 * held.value + 1, 1, 1, 64, 1, 1, 0, None, None) == TOO_LARGE
    cuda.cuCtxPopCurrent_v2(byref(c_void_p()))
    assert session().context.threads is None


def test_a_context_may_be_made_with_some_multiprocessors(cuda):
    """By an affinity of execution (driver API, `cuCtxCreate_v3`, `cuCtxCreate_v4`)."""
    asked, told, supported = ExecutionAffinity(0, 7), ExecutionAffinity(), c_int()
    cuda.cuDeviceGetExecAffinitySupport(byref(supported), 0, 0)
    assert supported.value == 1
    parameters = ContextParameters(addressof(asked), 1, 0)
    for make in (
        lambda: cuda.handle("cuCtxCreate_v3", byref(asked), 1, c_uint(0), 0),
        lambda: cuda.handle("cuCtxCreate_v4", byref(parameters), c_uint(0), 0),
    ):
        context = make()
        cuda.cuCtxGetExecAffinity(byref(told), 0)
        assert told.count == 7
        cuda.cuCtxDestroy_v2(context)
    cuda.cuCtxGetExecAffinity(byref(told), 0)
    assert told.count == 58
    wrong = ExecutionAffinity(1, 7)
    assert cuda.library.cuCtxCreate_v3(byref(c_void_p()), byref(wrong), 1, c_uint(0), 0) == UNSUPPORTED_AFFINITY
    assert cuda.library.cuCtxGetExecAffinity(byref(told), 1) == INVALID_VALUE
    shared = ContextParameters(0, 0, 1)
    assert cuda.library.cuCtxCreate_v4(byref(c_void_p()), byref(shared), c_uint(0), 0) == NOT_SUPPORTED


def configuration(cuda, call, *handle):
    """The limit and the sharing of work queues."""
    found = WorkQueueConfiguration()
    getattr(cuda, call)(*handle, byref(found), CONFIGURATION_OF_QUEUES)
    assert (found.type, found.device) == (CONFIGURATION_OF_QUEUES, 0)
    return found.limit, found.scope


def green_of(cuda, *resources):
    """A green context of resources."""
    held = (DeviceResource * len(resources))(*(DeviceResource.from_buffer_copy(each) for each in resources))
    description = cuda.handle("cuDevResourceGenerateDesc", held, c_uint(len(held)))
    return cuda.handle("cuGreenCtxCreate", description, 0, c_uint(DEFAULT_STREAM))


def test_work_queues_are_configured_and_told(cuda, whole):
    assert configuration(cuda, "cuDeviceGetDevResource", 0) == configuration(cuda, "cuCtxGetDevResource", None) == (8, 0)
    asked = WorkQueueConfiguration(CONFIGURATION_OF_QUEUES, limit=3, scope=1)
    assert sizeof(asked) == sizeof(WorkQueueResource) == sizeof(whole)
    first = green_of(cuda, whole, asked)
    assert configuration(cuda, "cuGreenCtxGetDevResource", first) == (3, 1)
    queues = WorkQueueResource()
    cuda.cuGreenCtxGetDevResource(first, byref(queues), WORK_QUEUE)
    second = green_of(cuda, queues, whole)  # with the work queues of another
    assert configuration(cuda, "cuCtxGetDevResource", cuda.handle("cuCtxFromGreenCtx", second)) == (3, 1)
    assert configuration(cuda, "cuGreenCtxGetDevResource", green_of(cuda, whole)) == (8, 0)
    only = green_of(cuda, asked)
    told = DeviceResource()
    cuda.cuGreenCtxGetDevResource(only, byref(told), MULTIPROCESSORS)
    assert told.count == whole.count
    stream = cuda.handle("cuGreenCtxStreamCreate", only, c_uint(NON_BLOCKING), 0)
    assert cuda.library.cuStreamGetDevResource(stream, byref(told), WORK_QUEUE) == RESOURCE_TYPE
    cuda.cuDeviceGetDevResource(0, byref(queues), WORK_QUEUE)
    assert configuration(cuda, "cuGreenCtxGetDevResource", green_of(cuda, queues, whole)) == (8, 0)


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"scope": 2}])
def test_work_queues_that_there_are_not_are_refused(cuda, wrong):
    asked = WorkQueueConfiguration(**{"type": CONFIGURATION_OF_QUEUES, "limit": 3, "scope": 1} | wrong)
    describe = cuda.library.cuDevResourceGenerateDesc
    assert describe(byref(c_void_p()), byref(asked), c_uint(1)) == CONFIGURATION
    twice = (WorkQueueConfiguration * 2)(*[WorkQueueConfiguration(CONFIGURATION_OF_QUEUES, limit=3)] * 2)
    assert describe(byref(c_void_p()), twice, c_uint(2)) == CONFIGURATION


@pytest.mark.parametrize(("asked", "limit"), [("32", 32), ("33", 8), ("many", 8)])
def test_the_environment_says_how_many_work_queues_there_are(monkeypatch, asked, limit):
    monkeypatch.setenv("CUDA_DEVICE_MAX_CONNECTIONS", asked)
    assert work_queues_of_a_device().limit == limit
