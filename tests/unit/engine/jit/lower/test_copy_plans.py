"""Tensor copies by compiled code: boxes that are whole in the tensor are copied without the host, and all like NumPy says."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import ptxvm
from ptxvm import DeviceArray, Swizzle, TensorMap, TensorType
from ptxvm.engine.jit.lower.async_copies import TransferCall
from ptxvm.engine.jit.run.callbacks import Callbacks

PTX = """
.version 8.6
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry load(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 bytes, .param .u64 at, .param .u32 steps) {{
    .reg .b64 %map, %out, %at, %to; .reg .b32 %c<5>, %n, %s, %i, %t, %word, %from, %step, %steps, %phase; .reg .pred %p, %first;
    .shared .align 8 .b64 done;
    mov.b64 %map, map; ld.param.b64 %out, [out]; ld.param.b32 %n, [bytes]; ld.param.b64 %at, [at]; ld.param.b32 %steps, [steps];
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; mov.u32 %s, tile;
    @%first mbarrier.init.shared.b64 [done], 1;
    fence.mbarrier_init.release.cluster; bar.sync 0; mov.u32 %step, 0;
more:
    {coordinates}
    @%first mbarrier.arrive.expect_tx.shared.b64 _, [done], %n;
    @%first cp.async.bulk.tensor.{rank}d.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%map, {{{c}}}], [done];
    and.b32 %phase, %step, 1;
again:
    mbarrier.try_wait.parity.shared.b64 %p, [done], %phase; @!%p bra again;
    shl.b32 %i, %t, 2;
next:
    setp.ge.u32 %p, %i, %n; @%p bra end;
    add.u32 %from, %s, %i; ld.shared.b32 %word, [%from];
    cvt.u64.u32 %to, %i; add.u64 %to, %to, %out; st.global.b32 [%to], %word;
    add.u32 %i, %i, 128; bra next;
end:
    bar.sync 0;
    cvt.u64.u32 %to, %n; add.u64 %out, %out, %to; add.u64 %at, %at, {size};
    add.u32 %step, %step, 1; setp.lt.u32 %p, %step, %steps; @%p bra more;
    ret;
}}
"""


def kernel(rank, text=PTX):
    """A kernel that loads, or stores, one box after the other, at coordinates in memory."""
    coordinates = " ".join(f"ld.global.b32 %c{n}, [%at+{4 * n}];" for n in range(rank))
    names = ", ".join(f"%c{n}" for n in range(rank))
    return ptxvm.load(text.format(rank=rank, coordinates=coordinates, c=names, size=4 * rank)).kernel()


def boxed(array, first, sizes):
    """The box of an array from a place on; zeros outside."""
    made = np.zeros(sizes, array.dtype)
    inside = [slice(max(f, 0), min(f + size, have)) for f, size, have in zip(first, sizes, array.shape, strict=True)]
    if all(each.stop > each.start for each in inside):
        there = tuple(slice(each.start - f, each.stop - f) for f, each in zip(first, inside, strict=True))
        made[there] = array[tuple(inside)]
    return made


def swizzled(rows, swizzle):
    """Rows of a box as they lie in shared memory: pieces of 16 bytes of a row are exchanged (PTX 5.5.7)."""
    if swizzle is Swizzle.NONE:
        return rows.reshape(-1).view(np.uint8)
    pieces = rows.reshape(-1).view(np.uint8).reshape(-1, 16)
    places = np.arange(len(pieces)) * 16
    bits = {Swizzle.B32: 1, Swizzle.B64: 2, Swizzle.B128: 3}[swizzle]
    places ^= (places >> 7 & (1 << bits) - 1) << 4
    made = np.empty_like(pieces)
    made[places // 16] = pieces
    return made.reshape(-1)


@pytest.fixture
def on_host(monkeypatch):
    """Counts the copies of the host."""
    counted, call = Counter(), TransferCall.__call__
    monkeypatch.setattr(TransferCall, "__call__", lambda self, *args: counted.update("1") or call(self, *args))
    return counted


STORE = """
.version 8.6
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry store(.param .align 64 .b8 map[128], .param .u64 in, .param .u32 bytes, .param .u64 at, .param .u32 steps) {{
    .reg .b64 %map, %in, %at, %of; .reg .b32 %c<5>, %n, %s, %i, %t, %word, %to, %step, %steps; .reg .pred %p, %first;
    mov.b64 %map, map; ld.param.b64 %in, [in]; ld.param.b32 %n, [bytes]; ld.param.b64 %at, [at]; ld.param.b32 %steps, [steps];
    mov.u32 %t, %tid.x; setp.eq.u32 %first, %t, 0; mov.u32 %s, tile; mov.u32 %step, 0;
more:
    {coordinates}
    shl.b32 %i, %t, 2;
next:
    setp.ge.u32 %p, %i, %n; @%p bra end;
    cvt.u64.u32 %of, %i; add.u64 %of, %of, %in; ld.global.b32 %word, [%of];
    add.u32 %to, %s, %i; st.shared.b32 [%to], %word;
    add.u32 %i, %i, 128; bra next;
end:
    fence.proxy.async.shared::cta; bar.sync 0;
    @%first cp.async.bulk.tensor.{rank}d.global.shared::cta.bulk_group [%map, {{{c}}}], [%s];
    @%first cp.async.bulk.commit_group;
    @%first cp.async.bulk.wait_group 0;
    bar.sync 0;
    cvt.u64.u32 %of, %n; add.u64 %in, %in, %of; add.u64 %at, %at, {size};
    add.u32 %step, %step, 1; setp.lt.u32 %p, %step, %steps; @%p bra more;
    ret;
}}
"""
CASES = [
    (np.float32, TensorType.FLOAT32, (256,), (64,), Swizzle.NONE),
    (np.uint8, TensorType.UINT8, (40, 96), (8, 32), Swizzle.B32),
    (np.float16, TensorType.FLOAT16, (70, 128), (16, 32), Swizzle.B64),
    (np.float16, TensorType.FLOAT16, (70, 192), (24, 64), Swizzle.B128),
    (np.int32, TensorType.INT32, (9, 10, 64), (2, 3, 16), Swizzle.NONE),
    (np.float64, TensorType.FLOAT64, (5, 6, 7, 16), (2, 1, 3, 4), Swizzle.B32),
    (np.uint16, TensorType.UINT16, (3, 4, 5, 6, 32), (2, 2, 2, 2, 16), Swizzle.B32),
]


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("dtype", "type", "shape", "box", "swizzle"), CASES)
def test_boxes_are_those_of_the_tensor(rng, on_host, dtype, type, shape, box, swizzle, engine):
    tensor = DeviceArray.from_host(rng.integers(0, 200, shape).astype(dtype))
    made = TensorMap.tiled(type, tensor, box[::-1], swizzle=swizzle)
    grain = max(1, 16 // np.dtype(dtype).itemsize)  # the first coordinate is a multiple of 16 bytes
    inside = [[int(rng.integers(0, have - size + 1)) for have, size in zip(shape, box, strict=True)] for _ in range(12)]
    outside = [[int(rng.integers(-size, have + 1)) for have, size in zip(shape, box, strict=True)] for _ in range(6)]
    places = np.array([inside[0], *inside, *outside, *inside])
    places[:, -1] = places[:, -1] // grain * grain
    whole = ((places >= 0) & (places + np.array(box) <= shape)).all(axis=1)
    size = int(np.prod(box)) * np.dtype(dtype).itemsize
    out = np.zeros((len(places), size), np.uint8)
    coordinates = np.ascontiguousarray(places[:, ::-1], np.int32)
    kernel(len(shape)).launch(1, 32, [made, out, size, coordinates, len(places)], shared=size + 1024, engine=engine)
    for at, found in zip(places, out, strict=True):
        assert (found == swizzled(boxed(tensor.array, at, box), swizzle)).all(), at
    if engine == "jit":
        assert on_host.total() == 1 + (~whole).sum()


def test_a_warp_with_no_lane_that_copies_has_no_operands(rng, monkeypatch):
    """Neither the host nor a function is asked: where the operands of a lane would be, there may be anything."""
    asked, work = [], Callbacks._work
    monkeypatch.setattr(
        Callbacks, "_work", lambda self, number, room, mask, warp: asked.append(mask) or work(self, number, room, mask, warp)
    )
    tensor, places = DeviceArray.from_host(rng.random(1024).astype(np.float32)), np.arange(0, 640, 64, dtype=np.int32)
    made = TensorMap.tiled(TensorType.FLOAT32, tensor, (64,))
    out = np.zeros((10, 64), np.float32)
    elected = PTX.replace(
        "setp.eq.u32 %first, %t, 0;", "elect.sync _|%first, -1; setp.lt.u32 %p, %t, 32; and.pred %first, %first, %p;"
    )
    kernel(1, elected).launch(1, 256, [made, out, 256, places, 10], shared=2048, engine="jit")
    assert (out.ravel() == tensor.array[:640]).all()
    assert asked == [1]


def test_the_address_of_no_map_is_a_fault_behind_good_ones():
    """The host refuses it, and compiled code takes it for no plan, which is zeros."""
    tensor = DeviceArray.from_host(np.arange(1024, dtype=np.float32))
    made = TensorMap.tiled(TensorType.FLOAT32, tensor, (64,))
    text = PTX.replace("more:\n", "more:\n    setp.ge.u32 %p, %step, 4; @%p mov.b64 %map, 0;\n", 1)
    out, places = np.zeros((8, 256), np.uint8), np.arange(0, 512, 64, dtype=np.int32)
    with pytest.raises(ptxvm.Fault, match="0x0"):
        kernel(1, text).launch(1, 32, [made, out, 256, places, 8], shared=256 + 1024, engine="jit")
    assert (out.view(np.float32).ravel()[:256] == tensor.array[:256]).all()


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize(("dtype", "type", "shape", "box", "swizzle"), CASES)
def test_boxes_are_stored_in_the_tensor(rng, on_host, dtype, type, shape, box, swizzle, engine):
    """What is outside of the tensor is left out; boxes begin in it."""
    tensor = DeviceArray.from_host(np.zeros(shape, dtype))
    made, wanted = TensorMap.tiled(type, tensor, box[::-1], swizzle=swizzle), np.zeros(shape, dtype)
    grain = max(1, 16 // np.dtype(dtype).itemsize)
    inside = [[int(rng.integers(0, have - size + 1)) for have, size in zip(shape, box, strict=True)] for _ in range(12)]
    outside = [[int(rng.integers(0, have)) for have in shape] for _ in range(6)]
    places = np.array([inside[0], *inside, *outside, *inside])
    places[:, -1] = places[:, -1] // grain * grain
    whole = ((places >= 0) & (places + np.array(box) <= shape)).all(axis=1)
    boxes = rng.integers(0, 200, (len(places), *box)).astype(dtype)
    for at, values in zip(places, boxes, strict=True):
        ends = [min(first + size, have) for first, size, have in zip(at, box, shape, strict=True)]
        there = tuple(slice(first, end) for first, end in zip(at, ends, strict=True))
        wanted[there] = values[tuple(slice(0, end - first) for first, end in zip(at, ends, strict=True))]
    held = np.stack([swizzled(each, swizzle) for each in boxes])
    coordinates = np.ascontiguousarray(places[:, ::-1], np.int32)
    run = kernel(len(shape), STORE)
    run.launch(1, 32, [made, held, held.shape[1], coordinates, len(places)], shared=held.shape[1] + 1024, engine=engine)
    assert (tensor.array == wanted).all()
    if engine == "jit":
        assert on_host.total() == 1 + (~whole).sum()


def test_a_tensor_that_is_only_read_is_not_written(on_host):
    """Compiled code knows the map from a load; the host refuses the store."""
    tensor = np.zeros((16, 32), np.uint8)
    tensor.flags.writeable = False
    text = STORE.format(rank=2, coordinates="mov.b32 %c0, 0; mov.b32 %c1, 0;", c="%c0, %c1", size=0).replace(
        "more:", """more: mbarrier.init.shared.b64 [tile+1024], 1;
        mbarrier.arrive.expect_tx.shared.b64 _, [tile+1024], 512;
        cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%s], [%map, {%c0, %c1}], [tile+1024];
        again: mbarrier.try_wait.parity.shared.b64 %p, [tile+1024], 0; @!%p bra again;"""
    )  # fmt: skip
    made = TensorMap.tiled(TensorType.UINT8, tensor.ctypes.data, (32, 16), sizes=(32, 16), strides=(32,))
    held = np.ones(512, np.uint8)
    with pytest.raises(ptxvm.Fault) as fault:
        ptxvm.load(text).kernel().launch(1, 1, [made, held, 512, tensor, 1], shared=2048, engine="jit")
    assert fault.value.kind == "read-only"
    assert not tensor.any()


def test_a_map_at_the_address_of_another_one_is_read_again(rng):
    """The plan of an earlier launch is not used, though the map of the next one lies where the first lay."""
    run = kernel(2)
    for _ in range(3):
        tensor = DeviceArray.from_host(rng.integers(0, 200, (64, 64)).astype(np.uint8))
        out, places = np.zeros((2, 512), np.uint8), np.array([[0, 0], [32, 40]], np.int32)
        made = TensorMap.tiled(TensorType.UINT8, tensor, (32, 16))
        run.launch(1, 32, [made, out, 512, places, 2], shared=2048, engine="jit")
        assert (out[1].reshape(16, 32) == tensor.array[40:56, 32:64]).all()


def test_a_tensor_that_is_larger_than_its_memory_is_a_fault(on_host):
    """The map says more rows than there are: a box among the others is read, and one past the memory is named."""
    tensor = DeviceArray.from_host(np.ones((64, 64), np.uint8))
    made = TensorMap.tiled(TensorType.UINT8, tensor.address, (32, 16), sizes=(64, 1 << 20), strides=(64,))
    out, places = np.zeros((3, 512), np.uint8), np.array([[0, 0], [32, 16], [0, 1 << 19]], np.int32)
    with pytest.raises(ptxvm.Fault, match=r"bytes|memory") as fault:
        kernel(2).launch(1, 32, [made, out, 512, places, 3], shared=2048, engine="jit")
    assert fault.value.kind == "out-of-bounds"
    assert on_host.total() == 3
