"""Device arrays that have been freed: whatever uses one says so, and no other array is touched.

What must happen is that of CUDA's own checker: a use after free, of whatever the memory has become.
"""

from __future__ import annotations

import gc
from typing import Any

import numpy as np
import pytest

import ptxvm
from ptxvm.machine.memory import default_memory

SOURCE = """
    .version 8.0
    .target sm_80
    .address_size 64
    .visible .entry k(.param .u64 a, .param .u64 b) {
        .reg .b64 %d<2>;
        ld.param.u64 %d0, [a];
        ld.param.u64 %d1, [b];
        st.global.u32 [%d0], 1;
        st.global.u32 [%d1], 2;
        ret;
    }
    """
ENGINES = pytest.mark.parametrize("engine", ["auto", "interp", "jit"])


@ENGINES
@pytest.mark.parametrize("before", [0, 5], ids=["first", "repeated"])
@pytest.mark.parametrize("check", [None, ()], ids=["checked", "trusted"])
def test_an_argument_that_has_been_freed(engine: Any, before: int, check: Any) -> None:
    kernel = ptxvm.load(SOURCE).kernel()
    x, y = (ptxvm.DeviceArray(64, np.uint32) for _ in range(2))
    for _ in range(before):
        kernel.launch(1, 1, [x, y], engine=engine, check=check)
    x.free()
    y.free()
    others = [ptxvm.DeviceArray(64, np.uint32) for _ in range(4)]  # these get the same addresses
    with pytest.raises(ptxvm.Fault, match=r"argument 0 \(`a`, .u64\) is a DeviceArray \(256 bytes, .*has been freed") as caught:
        kernel.launch(1, 1, [x, y], engine=engine, check=check)
    assert caught.value.kind == "use-after-free"
    with pytest.raises(ptxvm.Fault, match=r"argument 1 \(`b`"):
        kernel.launch(1, 1, [others[0], y], engine=engine, check=check)
    assert not any(each.array.any() for each in others)
    kernel.launch(1, 1, others[:2], engine=engine, check=check)
    assert [each.array[0] for each in others] == [1, 2, 0, 0]


@ENGINES
def test_a_check_finds_it(engine: Any) -> None:
    x = ptxvm.DeviceArray(4, np.uint32)
    x.free()
    other = ptxvm.DeviceArray(4, np.uint32)
    result = ptxvm.load(SOURCE).kernel().launch(1, 1, [other, x], engine=engine, check=("memory",))
    assert [each.kind for each in result.findings] == ["use-after-free"]
    assert not other.array.any()


USES = {
    "array": lambda x: x.array,
    "copy_to_host": lambda x: x.copy_to_host(),
    "copy_from_host": lambda x: x.copy_from_host(np.ones(4)),
    "asarray": np.asarray,
    "texture": ptxvm.Texture,
    "surface": ptxvm.Surface,
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_the_host_uses_it(use: Any) -> None:
    x = ptxvm.DeviceArray(4, np.float32)
    x.free()
    with pytest.raises(ptxvm.Fault, match=r"use-after-free: a DeviceArray .* has been freed"):
        use(x)
    assert repr(x) == "DeviceArray([4], float32, freed)"
    x.free()  # there is nothing left to free


@pytest.mark.parametrize("way", ["freed", "collected"])
def test_views_keep_their_memory(way: str) -> None:
    """A NumPy array is good memory as long as it exists, so no later array may get the bytes of a view."""
    x = ptxvm.DeviceArray(1 << 10, np.uint32)
    x.array[:] = 7
    view, address = x.array[4:], x.address
    if way == "freed":
        x.free()
    del x
    gc.collect()
    later = [ptxvm.DeviceArray(1 << 10, np.uint32) for _ in range(20)]
    assert address not in [each.address for each in later]
    assert (view == 7).all()
    ptxvm.load(SOURCE).kernel().launch(1, 1, [view, view[1:]])  # memory of the host like any other
    assert view[:3].tolist() == [1, 2, 7]


def test_views_given_to_launches_are_let_go() -> None:
    kernel, x = ptxvm.load(SOURCE).kernel(), ptxvm.DeviceArray(4, np.uint32)
    for _ in range(5):
        kernel.launch(1, 1, [x.array, x.array[1:]], engine="interp")
    assert len(x.allocation.owners) == 1
    assert default_memory().table.find(x.address) is x.allocation
