"""The shape of launches, their arguments, device arrays."""

import ctypes
import re

import numpy as np
import pytest

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.check import analyse
from ptxvm.analysis.symbols import Variable
from ptxvm.machine.arguments import pack_arguments
from ptxvm.machine.device_array import DeviceArray
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.memory import Memory, default_memory
from ptxvm.syntax import tree
from ptxvm.syntax.source import Source

# ── grid and block ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("given", "extent"),
    [(5, (5, 1, 1)), ((2, 3), (2, 3, 1)), ((2, 3, 4), (2, 3, 4)), ([7], (7, 1, 1)), (np.int32(6), (6, 1, 1))],
)
def test_extents(given, extent):
    shape = LaunchShape.of(given, given)
    assert (shape.grid, shape.block) == (extent, extent)
    assert shape.ctas == shape.threads == extent[0] * extent[1] * extent[2]


@pytest.mark.parametrize(
    ("grid", "block", "message"),
    [
        (1, 1025, "block.x is 1025; it may be 1 to 1024"),
        (1, (1, 1, 65), "block.z is 65; it may be 1 to 64"),
        (1, (32, 33), "block (32, 33, 1) has 1056 threads; a CTA has at most 1024"),
        (0, 1, "grid.x is 0; it may be 1 to 2147483647"),
        ((1, 65536), 1, "grid.y is 65536; it may be 1 to 65535"),
        ((1, 1, 1, 1), 1, "grid has one to three sizes (x, y, z), not 4"),
        ((), 1, "grid has one to three sizes"),
        (1.5, 1, "grid is an integer or up to three of them, not 1.5"),
        (1, "32", "block is an integer or up to three of them, not '32'"),
    ],
)
def test_what_the_hardware_would_refuse(grid, block, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        LaunchShape.of(grid, block)


def kernel(directives):
    text = f".version 8.5\n.target sm_80\n.address_size 64\n.visible .entry k() {directives} {{ ret; }}"
    found, _ = analyse(Source(text))
    return found.functions["k"]


def test_directives_bound_the_block():
    LaunchShape.of(1, 128).check(kernel(".maxntid 128, 1, 1"))
    LaunchShape.of(1, (16, 8)).check(kernel(".reqntid 16, 8"))
    LaunchShape.of(1, 1024).check(kernel(""))
    with pytest.raises(ValueError, match="up to 128 threads"):
        LaunchShape.of(1, 129).check(kernel(".maxntid 128"))
    with pytest.raises(ValueError, match=re.escape("requires blocks of (16, 8, 1) (.reqntid), not (128, 1, 1)")):
        LaunchShape.of(1, 128).check(kernel(".reqntid 16, 8"))


def clustered(grid, cluster, directives):
    text = f".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k() {directives} {{ ret; }}"
    found, _ = analyse(Source(text))
    shape = LaunchShape.of(grid, 1, cluster).for_kernel(found.functions["k"])
    return shape.grid, shape.cluster


def test_directives_say_the_cluster():
    assert clustered(4, None, "") == ((4, 1, 1), None)
    assert clustered(4, 2, "") == ((4, 1, 1), (2, 1, 1))
    assert clustered((4, 3), None, ".reqnctapercluster 2, 3") == ((4, 3, 1), (2, 3, 1))
    assert clustered(4, 2, ".reqnctapercluster 2 .explicitcluster") == ((4, 1, 1), (2, 1, 1))
    assert clustered(4, 4, ".maxclusterrank 4") == ((4, 1, 1), (4, 1, 1))
    assert clustered(4, None, ".blocksareclusters .reqntid 1 .reqnctapercluster 2") == ((8, 1, 1), (2, 1, 1))


@pytest.mark.parametrize(
    ("grid", "cluster", "directives", "message"),
    [
        (4, 4, ".reqnctapercluster 2", "requires clusters of (2, 1, 1) (.reqnctapercluster), not (4, 1, 1)"),
        (4, None, ".explicitcluster", "is launched in clusters only (.explicitcluster)"),
        (8, 8, ".maxclusterrank 4", "takes clusters of up to 4 CTAs (.maxclusterrank), not 8"),
        (3, 2, "", "grid.x is 3, which is no multiple of the 2 CTAs of a cluster"),
        ((8, 8), (8, 4), "", "cluster (8, 4, 1) has 32 CTAs; a cluster has at most 16"),
    ],
)
def test_clusters_that_a_kernel_does_not_take(grid, cluster, directives, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        clustered(grid, cluster, directives)


def test_ctas_are_numbered_cluster_by_cluster():
    shape = LaunchShape.of((4, 4, 2), 1, (2, 2))
    places = [shape.ctaid(n) for n in range(shape.ctas)]
    assert places[:6] == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0), (2, 0, 0), (3, 0, 0)]
    assert sorted(places) == sorted((x, y, z) for x in range(4) for y in range(4) for z in range(2))


# ── arguments ───────────────────────────────────────────────────────────────────────────


def parameter(name, of, *dimensions, vector=1, alignment=None, pointer=None):
    held = Type.named[of]
    return Variable(name, Space.PARAM, held, vector, dimensions, alignment or held.bytes * vector, pointer=pointer)


N, A, X, Y = (parameter(*each) for each in (("n", "u32"), ("a", "f32"), ("x", "u64"), ("y", "u64")))


def pack(parameters, args, memory=None):
    return pack_arguments(parameters, args, memory or Memory(), "kernel 'k'")


def packed(of, value, **more):
    return pack([parameter("p", of, *more.pop("dimensions", ()), **more)], [value]).buffer.tobytes()


def test_the_arguments_of_saxpy():
    memory = Memory()
    x, y = np.zeros(10, np.float32), np.zeros(10, np.float32)
    arguments = pack([N, A, X, Y], [np.int32(10), np.float32(2), x, y], memory)
    assert arguments.buffer[:8].tobytes() == np.int32(10).tobytes() + np.float32(2).tobytes()
    assert arguments.buffer[8:].view(np.uint64).tolist() == [x.ctypes.data, y.ctypes.data]
    with pytest.raises(AccessFault, match=re.escape("past the end of `x` (40 bytes, argument 2)")):
        memory.load(np.dtype("f4"), np.uint64(x.ctypes.data + 40))
    arguments.release()
    assert memory.table.items == []


@pytest.mark.parametrize(
    ("of", "value", "raw"),
    [
        ("u32", 7, "07000000"),
        ("u32", -1, "ffffffff"),
        ("s32", 0xFFFFFFFF, "ffffffff"),
        ("u8", 255, "ff"),
        ("b16", -2, "feff"),
        ("u64", 1 << 63, "0000000000000080"),
        ("u32", True, "01000000"),
        ("f32", 1.5, "0000c03f"),
        ("f32", 1, "0000803f"),
        ("f32", 1e300, "0000807f"),
        ("f64", 1.5, "000000000000f83f"),
        ("f16", 1.5, "003e"),
        ("b32", 1.5, "0000c03f"),
        ("b32", 1, "01000000"),
        ("b64", 1.5, "000000000000f83f"),
        ("u32", np.float32(1), "0000803f"),
        ("b8", np.int8(-1), "ff"),
        ("u64", None, "0000000000000000"),
        ("u32", b"abcd", "61626364"),
        ("u32", ctypes.c_uint32(5), "05000000"),
    ],
    ids=repr,
)
def test_a_scalar_becomes_its_bytes(of, value, raw):
    assert packed(of, value).hex() == raw


def test_structs_are_passed_as_bytes():
    class Pair(ctypes.Structure):
        _fields_ = (("x", ctypes.c_float), ("n", ctypes.c_int32))

    raw = np.float32(1).tobytes() + np.int32(2).tobytes()
    record = np.array([(1, 2)], [("x", "f4"), ("n", "i4")])[0]
    for value in (raw, bytearray(raw), record, Pair(1, 2), (ctypes.c_char * 8).from_buffer_copy(raw)):
        assert packed("b8", value, dimensions=(8,), alignment=4) == raw


def test_vectors_and_arrays_take_sequences():
    assert packed("f32", (1, 2.0, 3, 4), vector=4) == np.arange(1, 5, dtype=np.float32).tobytes()
    assert packed("u16", [1, 2, 3], dimensions=(3,)) == np.arange(1, 4, dtype=np.uint16).tobytes()


class Tensor:
    """What shares its memory with an array, as tensors of a CPU do."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **more):
        return self.array.__dlpack__(**more)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def test_a_tensor_is_passed_in_place():
    x = np.arange(4, dtype=np.float32)
    assert packed("u64", Tensor(x)) == x.ctypes.data.to_bytes(8, "little")


@pytest.mark.parametrize(
    ("parameters", "args", "error", "message"),
    [
        ([N, A, X], [1, 2], TypeError, "kernel 'k' takes 3 arguments (n .u32, a .f32, x .u64), and 2 were given"),
        ([], [1], TypeError, "takes 0 arguments (none), and 1 were given"),
        ([N], [1 << 32], ValueError, "argument 0 (`n`, .u32) has 32 bits, and 4294967296 does not fit"),
        ([N], [-(1 << 31) - 1], ValueError, "does not fit"),
        ([N], [1.5], TypeError, "argument 0 (`n`, .u32) is no floating-point number"),
        ([N], [np.int64(1)], TypeError, "argument 0 (`n`, .u32) has 4 bytes, and np.int64 has 8"),
        ([X], [np.float32(1)], TypeError, "has 8 bytes, and np.float32 has 4"),
        ([A], [np.zeros(3)], TypeError, "argument 0 (`a`, .f32) is passed by value and cannot take an array"),
        (
            [N],
            [np.zeros(3)],
            TypeError,
            "is passed by value and cannot take an array; pass a NumPy scalar or a Python number",
        ),
        ([N], [None], TypeError, "cannot take a pointer"),
        ([X], [np.zeros((4, 4))[:, 1]], TypeError, "argument 0 (`x`, .u64) is not contiguous"),
        ([X], [np.array([None])], TypeError, "is an array of Python objects"),
        ([X], ["text"], TypeError, "argument 0 (`x`, .u64) cannot be of type str: pass a NumPy array"),
        ([parameter("s", "b8", 8)], [b"abc"], TypeError, "argument 0 (`s`, .b8[8]) has 8 bytes, and bytes has 3"),
        ([parameter("s", "b8", 8)], [1], TypeError, "takes 8 bytes, not one number"),
        ([parameter("s", "b8", 8)], [np.zeros(8)], TypeError, "pass bytes or a structured NumPy scalar"),
        ([parameter("v", "f32", vector=2)], [(1, 2, 3)], TypeError, "(`v`, .v2.f32) takes 2 values, and 3 were given"),
    ],
)
def test_what_does_not_fit_is_named(parameters, args, error, message):
    with pytest.raises(error, match=re.escape(message)):
        pack(parameters, args)


@pytest.mark.parametrize(("given", "subject"), [(np.zeros(3), "an array"), (None, "a pointer")])
def test_an_array_for_wide_parameters_of_a_module_with_narrow_addresses_is_told_why(given, subject):
    """Without `.address_size` addresses have 32 bits (PTX 11.1.3)."""
    narrow = "addresses have 32 bits in a module without `.address_size 64` (PTX 11.1.3); write it below .target"
    with pytest.raises(TypeError, match=re.escape(f"argument 0 (`x`, .u64) cannot take {subject}: {narrow}")):
        pack([X], [given], Memory(address_bits=32))


def test_what_was_adopted_is_given_back_where_a_later_argument_is_wrong():
    memory = Memory()
    with pytest.raises(ValueError, match="does not fit"):
        pack([X, N], [np.zeros(4), 1 << 40], memory)
    assert memory.table.items == []


def test_arrays_of_both_orders_are_contiguous():
    x = np.asfortranarray(np.arange(6).reshape(2, 3))
    assert packed("u64", x) == x.ctypes.data.to_bytes(8, "little")


def test_a_declared_alignment_is_checked():
    aligned = parameter("x", "u64", pointer=tree.Pointer("global", tree.Integer(64)))
    whole = np.zeros(256, np.uint8)
    at = -whole.ctypes.data % 64
    pack([aligned], [whole[at : at + 64]])
    with pytest.raises(ValueError, match=re.escape("must lie at a multiple of 64, as .ptr .align 64 says")):
        pack([aligned], [whole[at + 16 : at + 64]])
    pack([aligned], [DeviceArray(4)])


def test_a_pointer_to_const_is_const():
    memory = Memory()
    x = np.arange(4, dtype=np.uint32)
    pack([parameter("x", "u64", pointer=tree.Pointer("const"))], [x], memory)
    assert memory.load(np.dtype("u4"), np.uint64(x.ctypes.data + 8), space=Space.CONST) == 2
    with pytest.raises(TypeError, match=r"points to \.shared memory"):
        pack([parameter("x", "u64", pointer=tree.Pointer("shared"))], [x], memory)


def test_pointers_of_a_32_bit_module_have_32_bits():
    memory = Memory(32)
    x = np.arange(4, dtype=np.uint32)
    arguments = pack([parameter("x", "u32")], [x], memory)
    (address,) = arguments.buffer.view(np.uint32)
    memory.store(np.dtype("u4"), np.uint64(address), np.uint32(9))
    arguments.release()
    assert x.tolist() == [9, 1, 2, 3]


# ── device arrays ───────────────────────────────────────────────────────────────────────


def test_a_device_array_keeps_its_values():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    on_device = DeviceArray.from_host(x)
    assert (on_device.shape, on_device.dtype, on_device.size, on_device.nbytes) == ((3, 4), np.float32, 12, 48)
    assert on_device.address % 256 == 0
    assert len(on_device) == 3
    assert default_memory().load(np.dtype("f4"), np.uint64(on_device.address + 20)) == 5
    on_device.copy_from_host(x + 1)
    assert np.array_equal(on_device.copy_to_host(), x + 1)
    assert np.array_equal(np.asarray(on_device), x + 1)
    assert np.asarray(on_device, np.int64).dtype == np.int64
    out = np.empty_like(x)
    assert on_device.copy_to_host(out) is out
    assert repr(on_device).startswith("DeviceArray([3, 4], float32, at 0x")


def test_a_device_array_begins_with_zeros():
    assert not DeviceArray(100, np.int32).copy_to_host().any()


def test_a_freed_device_array_is_a_use_after_free():
    memory = Memory()
    x = DeviceArray(4, memory=memory)
    where = np.uint64(x.address)
    x.free()
    x.free()
    with pytest.raises(AccessFault) as caught:
        memory.load(np.dtype("f4"), where)
    assert caught.value.kind == "use-after-free"


def test_a_device_array_is_an_argument_in_any_memory():
    x = DeviceArray(4)
    assert pack([X], [x], default_memory()).adopted == []
    other = Memory()
    arguments = pack([X], [x], other)
    assert arguments.buffer.view(np.uint64)[0] == x.address
    assert other.load(np.dtype("f4"), np.uint64(x.address)) == 0


def test_python_objects_stay_on_the_host():
    with pytest.raises(TypeError, match="objects"):
        DeviceArray(4, object)
