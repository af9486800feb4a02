"""Green contexts: a part of the multiprocessors (driver API, "Green Contexts")."""

from __future__ import annotations

from ctypes import byref, c_int, c_uint, c_uint64, c_void_p, sizeof

import pytest

from ptxvm.libcuda.session import session
from ptxvm.libcuda.structures import DeviceResource, GroupParameters

INVALID_VALUE, NOT_READY, RESOURCE_TYPE, CONFIGURATION = 1, 600, 914, 915
MULTIPROCESSORS, WORK_QUEUE, DEFAULT_STREAM, NON_BLOCKING = 1, 10000, 1, 1


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
    assert cuda.library.cuGreenCtxGetDevResource(green, byref(told), WORK_QUEUE) == RESOURCE_TYPE
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
