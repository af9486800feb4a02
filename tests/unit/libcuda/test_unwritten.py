"""The check `init` on memory of the driver: it has no value until a copy, a fill or a launch may have given it one."""

from __future__ import annotations

from ctypes import byref, c_size_t, c_uint, c_uint64

import pytest

from ptxvm.driver import context, memory
from ptxvm.driver.launch_checks import FINDINGS

SIZE = 64


@pytest.fixture
def checked(monkeypatch):
    """Let kernels be checked from now on, with no finding so far."""
    monkeypatch.setattr(context, "wanted", lambda: frozenset({"init"}))
    monkeypatch.setattr(memory, "follows_values", lambda: True)
    monkeypatch.setattr(FINDINGS, "seen", set())


@pytest.fixture
def block(cuda, checked):
    """New memory of the device."""
    address = c_uint64()
    cuda.cuMemAlloc_v2(byref(address), c_size_t(SIZE))
    yield address
    cuda.cuMemFree_v2(address)


def found(cuda, block):
    """What is found of a kernel that reads a word of the block, and writes it."""
    cuda.launch(None, b"append", c_uint.from_address(block.value), 1)
    cuda.cuCtxSynchronize()
    return [code for _, code, _ in FINDINGS.seen]


def test_memory_that_nothing_wrote_has_no_value(cuda, block):
    assert found(cuda, block) == ["uninitialised-read"]


def ways(cuda, block):
    """Calls that write to the block."""
    host, word = (c_uint * 16)(), c_uint(1)
    return {
        "fill": lambda: cuda.cuMemsetD32_v2(block, word, c_size_t(16)),
        "fill rows": lambda: cuda.cuMemsetD2D32_v2(block, c_size_t(32), word, c_size_t(4), c_size_t(2)),
        "copy from the host": lambda: cuda.cuMemcpyHtoD_v2(block, host, c_size_t(SIZE)),
        "copy": lambda: cuda.cuMemcpyDtoD_v2(block, cuda.memory, c_size_t(8)),
        "copy in order": lambda: cuda.cuMemcpyHtoDAsync_v2(block, host, c_size_t(SIZE), None),
        "write by a stream": lambda: cuda.cuStreamWriteValue32_v2(None, block, word, c_uint(0)),
        "a launch": lambda: cuda.launch(None, b"put", c_uint.from_address(block.value), 1),
    }


@pytest.mark.parametrize(
    "way", ["fill", "fill rows", "copy from the host", "copy", "copy in order", "write by a stream", "a launch"]
)
def test_memory_has_a_value_when_it_was_written(cuda, block, way):
    ways(cuda, block)[way]()
    assert found(cuda, block) == []


def test_new_memory_in_the_place_of_freed_memory_has_no_value(cuda, block):
    assert found(cuda, block) == ["uninitialised-read"]
    FINDINGS.seen.clear()
    cuda.cuMemFree_v2(block)
    cuda.cuMemAlloc_v2(byref(block), c_size_t(SIZE))
    assert found(cuda, block) == ["uninitialised-read"]
