"""Copies of parts of tensors, on both engines, against NumPy (PTX 5.5, 9.7.9.25.5)."""

from __future__ import annotations

import numpy as np
import pytest

import ptxvm
from ptxvm import DeviceArray, Interleave, OobFill, Swizzle, TensorMap, TensorType
from ptxvm.isa.tensor_map import FIELDS

ENGINES = ["interp", "jit"]
PTX = """
.version 8.6
.target sm_100a
.address_size 64
.extern .shared .align 1024 .b8 tile[];
.visible .entry load(.param .align 64 .b8 map[128], .param .u64 out, .param .u32 bytes, {parameters}) {{
    .reg .b64 %map, %out, %at; .reg .b32 %c<5>, %o<3>, %n, %s, %i, %word, %from; .reg .b16 %h<3>; .reg .pred %p, %first;
    .shared .align 8 .b64 done;
    mov.b64 %map, map;
    ld.param.b64 %out, [out];
    ld.param.b32 %n, [bytes];
    {coordinates}
    mov.u32 %i, %tid.x;
    setp.eq.u32 %first, %i, 0;
    mov.u32 %s, tile;
    @%first mbarrier.init.shared.b64 [done], 1;
    fence.mbarrier_init.release.cluster;
    bar.sync 0;
    @%first mbarrier.arrive.expect_tx.shared.b64 _, [done], %n;
    @%first {load} [%s], [%map, {{{c}}}], [done]{more};
again:
    mbarrier.try_wait.parity.shared.b64 %p, [done], 0;
    @!%p bra again;
    shl.b32 %i, %i, 2;
next:
    setp.ge.u32 %p, %i, %n;
    @%p bra end;
    add.u32 %from, %s, %i;
    ld.shared.b32 %word, [%from];
    cvt.u64.u32 %at, %i;
    add.u64 %at, %at, %out;
    st.global.b32 [%at], %word;
    add.u32 %i, %i, 128;
    bra next;
end:
    ret;
}}
"""


def kernel(dim, mode="", coordinates=0, offsets=0):
    """A kernel that loads a part of a tensor, and copies it to global memory."""
    names = [f"c{n}" for n in range(coordinates or dim)]
    given = [f".param .s32 {name}" for name in names] + [f".param .u16 h{n}" for n in range(offsets)]
    code = [f"ld.param.s32 %{name}, [{name}];" for name in names] + [f"ld.param.u16 %h{n}, [h{n}];" for n in range(offsets)]
    more = ", {" + ", ".join(f"%h{n}" for n in range(offsets)) + "}" if offsets else ""
    load = f"cp.async.bulk.tensor.{dim}d.shared::cta.global{mode}.mbarrier::complete_tx::bytes"
    text = PTX.format(load=load, parameters=", ".join(given), coordinates=" ".join(code), more=more,
                      c=", ".join(f"%{name}" for name in names))  # fmt: skip
    return ptxvm.load(text).kernel()


def loaded(engine, of, made, size, *where):
    """The bytes that a kernel finds in shared memory."""
    out = np.zeros(size, np.uint8)
    of.launch(1, 32, [made, out, size, *where], shared=size + 1024, engine=engine)
    return out


def boxed(array, first, sizes, steps=None, fill=0):
    """The box of an array from a place on, which may reach outside; dimensions in the order of NumPy."""
    made = np.full([-(-size // step) for size, step in zip(sizes, steps or [1] * len(sizes), strict=True)], fill, array.dtype)
    for index in np.ndindex(*made.shape):
        at = [f + n * s for f, n, s in zip(first, index, steps or [1] * len(sizes), strict=True)]
        if all(0 <= a < size for a, size in zip(at, array.shape, strict=True)):
            made[index] = array[tuple(at)]
    return made


@pytest.mark.parametrize("engine", ENGINES)
def test_the_array_of_a_map_is_memory_of_the_kernel(engine):
    """As an array among the arguments is: whole, or a view that leaves out the ends of its rows; at each launch again."""
    whole = np.arange(160, dtype=np.uint32).reshape(10, 16)
    for array in (whole, whole[:, 4:12]):
        made, load = TensorMap.tiled(TensorType.UINT32, array, (8, 4)), kernel(2)
        for add in (0, 1):
            whole += np.uint32(add)
            found = loaded(engine, load, made, 128, 0, 6).view(np.uint32).reshape(4, 8)
            assert (found == array[6:10, :8]).all()
    bare = TensorMap.tiled(TensorType.UINT32, whole.ctypes.data, (8, 4), sizes=(16, 10), strides=(64,))
    with pytest.raises(ptxvm.Fault, match="an argument of a launch that has ended"):
        loaded(engine, kernel(2), bare, 128, 0, 0)


@pytest.mark.parametrize("engine", ENGINES)
def test_boxes_of_one_to_five_dimensions(engine):
    for shape, box, first in (
        ((64,), (16,), (52,)),
        ((10, 16), (4, 8), (-2, 12)),
        ((4, 6, 8), (2, 3, 8), (3, -1, -4)),
        ((3, 2, 5, 8), (2, 2, 3, 4), (2, 1, 3, 4)),
        ((2, 3, 2, 3, 8), (2, 2, 2, 2, 8), (1, 2, -1, 2, 4)),
    ):
        array = DeviceArray.from_host(np.arange(np.prod(shape), dtype=np.uint32).reshape(shape) + 1)
        made = TensorMap.tiled(TensorType.UINT32, array, box[::-1])
        want = boxed(array.array, first, box)
        found = loaded(engine, kernel(len(shape)), made, want.nbytes, *first[::-1])
        assert (found.view(np.uint32).reshape(box) == want).all(), shape


@pytest.mark.parametrize("engine", ENGINES)
def test_steps_and_nan_outside(engine):
    array = DeviceArray.from_host(np.arange(7 * 16, dtype=np.float16).reshape(7, 16))
    made = TensorMap.tiled(TensorType.FLOAT16, array, (8, 6), element_strides=(1, 2), fill=OobFill.NAN)
    want = boxed(array.array.view(np.uint16), (4, 8), (6, 8), (2, 1), np.uint16(0x7FF7))  # recorded on an H200
    found = loaded(engine, kernel(2), made, want.nbytes, 8, 4)
    assert (found.view(np.uint16).reshape(3, 8) == want).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_what_a_map_remembers_of_a_box_is_of_no_place(engine):
    """Boxes within the tensor, partly outside and far away, by one map in turn (PTX 5.5.3)."""
    array = DeviceArray.from_host(np.arange(5 * 6 * 16, dtype=np.uint32).reshape(5, 6, 16) + 1)
    made, load = TensorMap.tiled(TensorType.UINT32, array, (8, 4, 2), swizzle=Swizzle.NONE), kernel(3)
    for first in ((0, 0, 0), (4, -1, 8), (3, 2, 8), (-(2**31), 2**31 - 4, 0), (1, 1, 4), (3, 3, 8), (0, 0, 0)):
        want = boxed(array.array, first, (2, 4, 8))
        found = loaded(engine, load, made, want.nbytes, *first[::-1])
        assert (found.view(np.uint32).reshape(want.shape) == want).all(), first


# Rows of chunks of 16 bytes as PTX 5.5.7 shows them, and the bytes that are exchanged in odd rows.
PATTERNS = {
    Swizzle.B32: ["01234567", "10325476"],
    Swizzle.B64: ["01234567", "10325476", "23016745", "32107654"],
    Swizzle.B128: ["01234567", "10325476", "23016745", "32107654", "45670123", "54761032", "67452301", "76543210"],
    Swizzle.B128_ATOM_32B: ["01234567", "23016745", "45670123", "67452301"],
    Swizzle.B128_ATOM_64B: ["01234567", "45670123"],
}


@pytest.mark.parametrize("swizzle", PATTERNS)
def test_swizzles_have_the_patterns_of_the_manual(swizzle):
    rows = PATTERNS[swizzle]
    inner = swizzle.span  # bytes of a row of the box, which are packed in lines of 128
    height = len(rows) * 128 // inner
    array = DeviceArray.from_host(np.arange(height * inner // 2, dtype=np.uint16).reshape(height, inner // 2))
    made = TensorMap.tiled(TensorType.UINT16, array, (inner // 2, height), swizzle=swizzle)
    found = loaded("interp", kernel(2), made, height * inner, 0, 0).reshape(len(rows), 8, 16)
    lines = array.array.view(np.uint8).reshape(len(rows), 8, 16)
    want = np.stack([line[[int(n) for n in row]] for line, row in zip(lines, rows, strict=True)])
    assert (found == want).all()


@pytest.mark.parametrize("engine", ENGINES)
def test_four_rows_and_columns_of_images(engine):
    array = DeviceArray.from_host(np.arange(12 * 32, dtype=np.uint32).reshape(12, 32))
    made = TensorMap.tiled(TensorType.UINT32, array, (8, 1))
    found = loaded(engine, kernel(2, ".tile::gather4", 5), made, 128, 16, 3, 11, 0, 12)
    want = np.concatenate([array.array[[3, 11, 0], 16:24], np.zeros((1, 8), np.uint32)])
    assert (found.view(np.uint32).reshape(4, 8) == want).all()
    # a filter of 3 by 3, whose corner runs from -1 to the size less 2: PTX 5.5.4.1
    image = DeviceArray.from_host(np.arange(2 * 5 * 6 * 8, dtype=np.uint32).reshape(2, 5, 6, 8) + 1)
    made = TensorMap.im2col(TensorType.UINT32, image, (-1, -1), (-1, -1), 4, 20)
    found = loaded(engine, kernel(4, ".im2col", offsets=2), made, 20 * 16, 4, 2, 1, 0, 1, 2).view(np.uint32).reshape(20, 4)
    padded = np.zeros((2, 7, 8, 8), np.uint32)
    padded[:, 1:6, 1:7] = image.array
    pixels = [(n, y, x) for n in range(2) for y in range(-1, 4) for x in range(-1, 5)]
    start = pixels.index((0, 1, 2))
    want = np.stack([padded[n, y + 1 + 2, x + 1 + 1, 4:8] for n, y, x in pixels[start : start + 20]])
    assert (found == want).all()


# PTX 5.5.5: as in its first example, pixels run along W and then through the images; H stays.
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("lower", "upper", "step", "start", "halo", "offset"),
    [(0, 0, 1, 3, 2, 0), (-1, 0, 2, -1, 1, 0), (-1, 0, 2, -1, 0, 1), (0, -2, 1, -2, 3, 0)],
    ids=["5.5.5.3", "5.5.5.4, buffer 1", "5.5.5.4, buffer 2", "left of the box"],
)
def test_rows_of_images_along_w(engine, lower, upper, step, start, halo, offset):
    image = DeviceArray.from_host(np.arange(40 * 2 * 9 * 4, dtype=np.uint32).reshape(40, 2, 9, 4) + 1)
    zeros = np.zeros(4, np.uint32)
    pixels, w, n = [], start + offset, 7
    while len(pixels) < 128 + halo:
        pixels.append(image.array[n, 1, w] if 0 <= w < 9 else zeros)
        w += step
        if w > 8 + upper + offset:
            w, n = lower + offset, n + 1
    for mode, count, groups in (
        ("w", 20, [range(20 + halo)]),
        ("w::128", 1, [range(k, k + 32 + halo) for k in (0, 32, 64, 96)]),
    ):
        made = TensorMap.im2col_wide(
            TensorType.UINT32, image, lower, upper, 4, count, wide_128=mode == "w::128", element_strides=(1, step, 1, 1)
        )
        want = np.stack([pixels[k] for group in groups for k in group])
        found = loaded(engine, kernel(4, f".im2col::{mode}", offsets=2), made, want.nbytes, 0, start, 1, 7, halo, offset)
        assert (found.view(np.uint32).reshape(-1, 4) == want).all(), mode


@pytest.mark.parametrize(("mode", "made", "halo"), [("w", "wide", 512), ("w::128", "wide", 1), ("w", "box", 0)])
def test_a_copy_along_w_that_its_map_does_not_fit(mode, made, halo):
    array = DeviceArray((2, 4, 4), np.uint32)
    map = TensorMap.im2col_wide(TensorType.UINT32, array, 0, 0, 4, 4) if made == "wide" else \
        TensorMap.im2col(TensorType.UINT32, array, (0,), (0,), 4, 4)  # fmt: skip
    with pytest.raises(ptxvm.Fault, match=r"halo|is for \.im2col") as caught:
        loaded("interp", kernel(3, f".im2col::{mode}", offsets=2), map, 64, 0, 0, 0, halo, 0)
    assert caught.value.kind == "invalid-tensor-map"


# PTX 5.5.6: slices of 16 or 32 bytes of channels, each with a whole image: NC/8HWC8 and NC/16HWC16 of f16.  For boxes the
# dimensions are W, H, slices, images, as recorded on an H200; for columns of pixels channels, W, H, images.
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("interleave", "channels"), [(Interleave.B16, 8), (Interleave.B32, 16)])
def test_interleaved_tensors(engine, interleave, channels):
    nchw = np.arange(2 * 3 * channels * 4 * 5, dtype=np.uint16)  # images, channels, rows, columns
    sliced = nchw.reshape(2, 3, channels, 4, 5).transpose(0, 1, 3, 4, 2)
    array = DeviceArray.from_host(np.ascontiguousarray(sliced))
    swizzle = Swizzle.B32 if interleave is Interleave.B32 else Swizzle.NONE
    pixel = channels * 2
    made = TensorMap.tiled(
        TensorType.UINT16, array.address, (channels, 2, 1, 2), sizes=(5, 4, 3, 2),
        strides=(pixel * 5, pixel * 20, pixel * 60), interleave=interleave, swizzle=swizzle,
    )  # fmt: skip
    want = np.zeros((2, 2, channels, channels), np.uint16)  # images, rows, columns of a box that is as wide as a slice
    want[:, :, :2] = sliced[:, 1, 1:3, 3:5]
    found = unswizzled(loaded(engine, kernel(4), made, want.nbytes, 3, 1, 1, 0), interleave)
    assert (found.view(np.uint16).reshape(want.shape) == want).all()
    made = TensorMap.im2col(
        TensorType.UINT16, array.address, (0, 0), (0, 0), 2 * channels, 10, sizes=(3 * channels, 5, 4, 2),
        strides=(pixel, pixel * 5, pixel * 60), interleave=interleave, swizzle=swizzle,
    )  # fmt: skip
    found = unswizzled(loaded(engine, kernel(4, ".im2col", offsets=2), made, 40 * channels, 0, 2, 3, 0, 0, 0), interleave)
    flat = sliced.transpose(1, 0, 2, 3, 4).reshape(3, 40, channels)  # slices, pixels of all images
    assert (found.view(np.uint16).reshape(2, 10, channels) == flat[:2, 17:27]).all()


def unswizzled(found, interleave):
    """The bytes in order: the swizzle of 32 bytes exchanges the halves of each 32 bytes in odd lines of 128 (PTX 5.5.7)."""
    if interleave is Interleave.B16:
        return found
    chunks = found.reshape(-1, 16)
    return chunks[[n ^ (n >> 3 & 1) for n in range(len(chunks))]].ravel()


def test_interleaved_tensors_of_which_ptx_says_too_little():
    how = {"interleave": Interleave.B16, "sizes": (16, 2, 2)}
    for strides, first in (((16, 80), 0), ((16, 64), 4)):
        made = TensorMap.im2col(
            TensorType.UINT16, DeviceArray(256, np.uint16).address, (0,), (0,), 8, 2, strides=strides, **how
        )
        with pytest.raises(ptxvm.Unsupported, match="interleaved tensor"):
            loaded("interp", kernel(3, ".im2col", offsets=1), made, 32, first, 0, 0, 0)


# What an H200 calls an illegal instruction is a fault, and says why.
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%map, {{{}}}], [tile]"


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("copy", "kind", "said"),
    [
        (STORE.format("2, 0"), "misaligned", "multiple of 16 bytes, and 2 are 8"),
        (STORE.format("0, -1"), "invalid-tensor-map", "coordinate 1 is -1"),
        (
            STORE.replace(".tile.", ".tile::scatter4.").format("0, 1, 2, -1, 3"),
            "invalid-tensor-map",
            "coordinate 3 is -1",
        ),
        (
            STORE.replace("cp.async", "cp.reduce.async").replace("cta.", "cta.or.").format("0, 0"),
            "invalid-tensor-map",
            r"\.s64",
        ),
    ],
)
def test_a_copy_to_a_tensor_that_no_gpu_does(copy, kind, said, engine):
    type = TensorType.INT64 if "or" in copy.split(".") else TensorType.UINT32
    array = DeviceArray((9, 8), np.uint64 if type is TensorType.INT64 else np.uint32)
    made = TensorMap.tiled(type, array, (2 if type is TensorType.INT64 else 8, 4))
    text = """
        .version 8.6
        .target sm_100a
        .address_size 64
        .visible .entry store(.param .align 64 .b8 map[128]) {
            .reg .b64 %map; .shared .align 128 .b32 tile[32];
            mov.b64 %map, map; cvta.param.u64 %map, %map;
            COPY;
            cp.async.bulk.commit_group; cp.async.bulk.wait_group 0;
            ret;
        }"""
    with pytest.raises(ptxvm.Fault, match=said) as caught:
        ptxvm.load(text.replace("COPY", copy)).kernel().launch(1, 1, [made], engine=engine)
    assert caught.value.kind == kind


# A map is changed in shared memory, copied to global memory, and used there: for a reduction and for a store of four rows.
CHANGED = """
.version 8.6
.target sm_100a
.address_size 64
.global .align 128 .b8 fresh[128];
.visible .entry changed(.param .align 64 .b8 map[128], .param .u64 tensor) {
    .reg .b64 %map, %tensor, %word, %at; .reg .b32 %i, %s, %v; .reg .pred %first;
    .shared .align 128 .b8 own[128];
    .shared .align 128 .b32 tile[32];
    mov.b64 %map, map;
    ld.param.b64 %tensor, [tensor];
    mov.u32 %i, %tid.x;
    setp.eq.u32 %first, %i, 0;
    mul.wide.u32 %at, %i, 4;
    add.u64 %at, %at, %map;
    ld.param.b32 %v, [%at];
    mov.u32 %s, own;
    mad.lo.u32 %s, %i, 4, %s;
    st.shared.b32 [%s], %v;
    mov.u32 %s, tile;
    mad.lo.u32 %s, %i, 4, %s;
    add.u32 %v, %i, 1;
    st.shared.b32 [%s], %v;
    bar.warp.sync -1;
    @%first tensormap.replace.tile.global_address.shared::cta.b1024.b64 [own], %tensor;
    @%first tensormap.replace.tile.rank.shared::cta.b1024.b32 [own], 1;
    @%first tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [own], 0, 7;
    @%first tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [own], 1, 9;
    @%first tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [own], 0, 32;
    @%first tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [own], 0, 8;
    @%first tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [own], 1, ROWS;
    @%first tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [own], 1, 1;
    @%first tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [own], 2;
    @%first tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [own], 0;
    bar.warp.sync -1;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [fresh], [own], 128;
    fence.proxy.tensormap::generic.acquire.gpu [fresh], 128;
    fence.proxy.async;
    bar.warp.sync -1;
    @%first COPY;
    @%first cp.async.bulk.commit_group;
    @%first cp.async.bulk.wait_group 0;
    ret;
}
"""


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("begun", ["ld.param.b32 %v, [%at];", "mov.b32 %v, 0;"])
def test_a_map_that_the_kernel_changes(begun, engine):
    """It begins with the map of another tensor, or with zeros, as Triton does."""
    made = TensorMap.tiled(TensorType.FLOAT16, DeviceArray(64, np.float16), (32,), fill=OobFill.NAN)
    tile = np.arange(1, 33, dtype=np.uint32).reshape(4, 8)
    reduces = "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [fresh, {0, 7}], [tile]"
    array = DeviceArray.from_host(np.full((9, 8), 100, np.uint32))
    text = CHANGED.replace("ROWS", "4").replace("COPY", reduces).replace("ld.param.b32 %v, [%at];", begun)
    ptxvm.load(text).kernel().launch(1, 32, [made, array], engine=engine)
    want = np.full((9, 8), 100, np.uint32)
    want[7:9] += tile[:2]  # column 7 is padding, and is written with the 16 bytes in which it lies: recorded on an H200
    assert (array.array == want).all()
    scatters = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [fresh, {0, 8, 2, 9, 0}], [tile]"
    array = DeviceArray.from_host(np.zeros((9, 8), np.uint32))
    kernel = ptxvm.load(CHANGED.replace("ROWS", "1").replace("COPY", scatters)).kernel()
    kernel.launch(1, 32, [made, array], engine=engine)
    want = np.zeros((9, 8), np.uint32)
    want[[8, 2, 0]] = tile[[0, 1, 3]]
    assert (array.array == want).all()


def test_a_warp_copies_a_map_together():
    """`tensormap.cp_fenceproxy` is one copy of all lanes, which do not race with each other (PTX 9.7.13.16)."""
    stores = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [fresh, {0, 0}], [tile]"
    made = TensorMap.tiled(TensorType.FLOAT16, DeviceArray(64, np.float16), (32,))
    text = CHANGED.replace("ROWS", "4").replace("COPY", stores)
    array = DeviceArray.from_host(np.zeros((9, 8), np.uint32))
    launch = {"grid": 1, "block": 32, "args": [made, array], "check": ("race", "sync")}
    assert ptxvm.load(text).kernel().launch(**launch).findings == []
    before, _, after = text.rpartition("    bar.warp.sync -1;\n    tensormap.cp")  # which orders what lanes have written
    assert ptxvm.load(f"{before}    tensormap.cp{after}").kernel().launch(**launch).findings == []
    some = text.replace("tensormap.cp", "@%first tensormap.cp")
    assert {each.kind for each in ptxvm.load(some).kernel().launch(**launch).findings} == {
        "deadlock"
    }  # they wait at the next barrier of the warp


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("address", ["cvt.u64.u32 %d, %s;", "cvt.u64.u32 %d, %s; cvta.shared.u64 %d, %d;"])
def test_a_commit_takes_an_mbarrier_by_32_bits(address, engine):
    """Triton gives the address in shared memory where PTX 9.7.16.12.1 wants a generic one; both name the mbarrier."""
    text = """
        .version 8.6
        .target sm_100a
        .address_size 64
        .visible .entry commits(.param .u64 out) {
            .reg .b64 %o, %d; .reg .b32 %s; .reg .pred %p;
            .shared .align 8 .b64 pad[3]; .shared .align 8 .b64 done;
            ld.param.b64 %o, [out]; mov.u32 %s, done;
            mbarrier.init.shared::cta.b64 [%s], 1;
            ADDRESS
            tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%d];
        W:  mbarrier.try_wait.parity.shared::cta.b64 %p, [%s], 0;
            @!%p bra W;
            st.global.b32 [%o], 1;
            ret;
        }"""
    out = np.zeros(1, np.uint32)
    ptxvm.load(text.replace("ADDRESS", address)).kernel().launch(1, 1, [out], engine=engine)
    assert out[0] == 1


@pytest.mark.parametrize("field", ["swizzle_mode", "interleave_layout", "elemtype", "mode", "rank"])
def test_a_map_of_any_bytes_is_refused_or_read(field):
    """A kernel may write any byte into a map (`tensormap.replace` takes registers): a fault at most, that of a wait too."""
    array = DeviceArray((16, 16), np.uint32)
    made = bytearray(TensorMap.tiled(TensorType.UINT32, array, (8, 4)))
    for value in (1, 5, 77, 255):
        made[FIELDS[field].offset] = value
        try:
            kernel(2).launch(
                1, 32, [TensorMap(made), np.zeros(128, np.uint8), 128, 0, 0], shared=8192, steps=5000, engine="interp"
            )
        except (ptxvm.Fault, ptxvm.Unsupported):
            continue
