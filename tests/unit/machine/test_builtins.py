"""The functions of the device: vprintf, malloc, free, __assertfail."""

import gc
import re

import numpy as np
import pytest

from ptxvm.algebra.state_space import Space
from ptxvm.machine.builtins import Library
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.heap import Heap
from ptxvm.machine.memory import Memory
from ptxvm.machine.window import Window

U32 = np.dtype("u4")


class Caller:
    """Lanes of blocks of 2 threads."""

    def coordinates(self, lane):
        return (lane // 2, 0, 0), (lane % 2, 0, 0)


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture
def library(memory):
    return Library(memory, sink=lambda text: None)


def string(memory, text):
    block = memory.allocate(len(text) + 1)
    block.bytes[: len(text)] = np.frombuffer(text.encode(), np.uint8)
    return block.start


def call(library, name, lanes, *arguments):
    columns = [np.broadcast_to(np.asarray(each, np.uint64), len(lanes)) for each in arguments]
    return library.get(name)(Caller(), np.asarray(lanes), columns)


# ── vprintf ─────────────────────────────────────────────────────────────────────────────


def test_every_lane_prints_its_own_arguments_in_the_order_of_lanes(memory, library):
    """The buffers are in local memory, as nvcc's are."""
    local = Window(memory, Space.LOCAL, 32, np.arange(4))
    lanes = np.array([1, 2, 3])
    local.store(U32, np.uint64(0), lanes.astype(np.uint32), lanes=lanes)
    local.store(np.dtype("f8"), np.uint64(8), lanes / 2, lanes=lanes)
    taken = call(library, "vprintf", lanes, string(memory, "%d %.1f\n"), local.to_generic(np.uint64(0), lanes))
    assert taken.tolist() == [2, 2, 2]
    assert "".join(library.output) == "1 0.5\n2 1.0\n3 1.5\n"


def test_lanes_with_different_formats_stay_in_order(memory, library):
    formats = [string(memory, text) for text in ("a%d ", "b ")]
    numbers = memory.allocate(16)
    numbers.bytes.view(U32)[:] = [7, 8, 9, 10]
    taken = call(library, "vprintf", [0, 1, 2], [formats[0], formats[1], formats[0]], [numbers.start, 0, numbers.start + 8])
    assert taken.tolist() == [1, 0, 1]
    assert library.output == ["a7 b a9 "]


def test_a_null_format_is_minus_one(library):
    assert call(library, "vprintf", [0, 1], 0, 0).tolist() == [-1, -1]


def test_strings_are_read_from_device_memory(memory, library):
    arguments = memory.allocate(16)
    arguments.bytes.view(np.uint64)[:] = [string(memory, "word"), 0]
    call(library, "vprintf", [0], string(memory, "<%6s> <%s>"), arguments.start)
    assert library.output == ["<  word> <(null)>"]


def test_a_buffer_that_is_too_short_is_the_fault_of_a_lane(memory, library):
    buffers = [memory.allocate(8).start, memory.allocate(4).start]
    with pytest.raises(AccessFault) as caught:
        call(library, "vprintf", [4, 5], string(memory, "%d %d"), buffers)
    assert (caught.value.kind, caught.value.lane_index) == ("out-of-bounds", 1)


def test_what_is_printed_goes_to_stdout(memory, capsys):
    call(Library(memory), "vprintf", [0], string(memory, "hello\n"), 0)
    assert capsys.readouterr().out == "hello\n"


# ── malloc and free ─────────────────────────────────────────────────────────────────────


def test_blocks_are_aligned_and_apart(memory, library):
    blocks = call(library, "malloc", range(100), np.arange(1, 101))
    assert (blocks % 16 == 0).all()
    assert len(memory.table.items) == 100
    memory.store(U32, blocks[3:], np.uint32(5))
    with pytest.raises(AccessFault, match="past the end of a block of malloc") as caught:
        memory.load(np.dtype("u1"), blocks + np.arange(1, 101, dtype=np.uint64))
    assert caught.value.kind == "out-of-bounds"


def test_a_heap_that_is_full_gives_null(memory):
    heap = Heap(memory, 1024)
    assert heap.malloc(2000) == 0
    assert heap.malloc(0) == 0
    first = heap.malloc(900)
    assert first
    assert heap.malloc(200) == 0
    heap.free(first)
    assert heap.malloc(1000) == first


def test_freed_blocks_join(memory):
    heap = Heap(memory, 1 << 16)
    for _ in range(3):
        blocks = [heap.malloc(1000) for _ in range(64)]
        assert all(blocks)
        assert heap.malloc(1000) == 0
        for block in blocks[::2] + blocks[1::2]:
            heap.free(block)
    assert heap.malloc(60_000)


def test_a_freed_block_is_not_used_again_at_once(memory, library):
    (block,) = call(library, "malloc", [0], 64)
    call(library, "free", [0], block)
    (other,) = call(library, "malloc", [0], 64)
    assert other != block
    with pytest.raises(AccessFault) as caught:
        memory.load(U32, block)
    assert caught.value.kind == "use-after-free"


def test_blocks_of_a_heap_that_is_no_more_are_forgotten(memory):
    """Its memory goes back to the host, which may give it to any array."""
    heap = Heap(memory, 1 << 16)
    block = heap.malloc(64)
    heap.free(block)
    del heap
    gc.collect()
    with pytest.raises(AccessFault) as caught:
        memory.load(U32, np.uint64(block))
    assert caught.value.kind == "out-of-bounds"


@pytest.mark.parametrize("what", ["double-free", "invalid-free"])
def test_wrong_frees(memory, library, what):
    (block,) = call(library, "malloc", [0], 64)
    if what == "double-free":
        call(library, "free", [0], block)
    wrong = block if what == "double-free" else block + np.uint64(16)
    with pytest.raises(AccessFault) as caught:
        call(library, "free", [0, 1], [0, wrong])
    assert (caught.value.kind, caught.value.lane_index, caught.value.address) == (what, 1, int(wrong))


def test_a_variable_cannot_be_freed(memory, library):
    with pytest.raises(AccessFault, match="malloc gave no such address"):
        call(library, "free", [0], memory.allocate(16).start)


# ── __assertfail ────────────────────────────────────────────────────────────────────────


def test_a_failed_assertion_says_what_cuda_says(memory, library, capsys):
    message, file, function = (string(memory, text) for text in ("n > 0", "dev.cu", "void k(int)"))
    text = "dev.cu:12: void k(int): block: [1,0,0], thread: [1,0,0] Assertion `n > 0` failed."
    with pytest.raises(AccessFault, match=re.escape(text)) as caught:
        call(library, "__assertfail", [3, 4], message, file, 12, function, 1)
    assert (caught.value.kind, caught.value.lane_index) == ("assertion", 0)
    assert library.output[0].splitlines()[1].startswith("dev.cu:12: void k(int): block: [2,0,0], thread: [0,0,0]")
    said = capsys.readouterr()
    assert (said.out, said.err) == ("", library.output[0])  # CUDA C++ Programming Guide, Assertion


def test_other_functions_are_not_there(library):
    assert library.get("cudaMalloc") is None
