"""Arrays, textures and surfaces of the driver: what a kernel reads is what the host copied there (driver API)."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_float, c_int, c_size_t, c_uint64, c_void_p

import numpy as np
import pytest

from ptxvm.libcuda.library import install
from ptxvm.libcuda.session import session
from ptxvm.libcuda.structures import (
    Array3DDescriptor,
    ArrayDescriptor,
    Copy2D,
    Copy3D,
    Resource,
    ResourceView,
    TextureDescriptor,
)

FLOAT, UNSIGNED_INT8 = 0x20, 0x01
HOST, DEVICE, ARRAY = 1, 2, 3
SURFACE = 2
AS_IS, NORMALIZED = 1, 2  # CU_TRSF_*
INVALID_VALUE, OUT_OF_MEMORY, INVALID_HANDLE, NOT_FOUND, NOT_SUPPORTED = 1, 2, 400, 500, 801
KERNELS = b"""
.version 7.8
.target sm_80
.address_size 64
.global .texref image;
.global .surfref target;
.visible .entry read_image(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .f32 %f<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    cvt.rn.f32.u32 %f2, %r1;
    cvt.rn.f32.u32 %f3, %r2;
    add.f32 %f2, %f2, 0f3F000000;
    add.f32 %f3, %f3, 0f3F000000;
    tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [image, {%f2, %f3}];
    mad.lo.u32 %r1, %r2, 8, %r1;
    mad.wide.u32 %rd3, %r1, 4, %rd2;
    st.global.f32 [%rd3], %f4;
    ret;
}
.visible .entry read_level(.param .u64 texture, .param .f32 level, .param .u64 out)
{
    .reg .f32 %f<6>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [texture];
    ld.param.f32 %f1, [level];
    ld.param.u64 %rd2, [out];
    tex.level.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [%rd1, {0f00000000, 0f00000000}], %f1;
    st.global.f32 [%rd2], %f2;
    ret;
}
.visible .entry read_level_of_image(.param .f32 level, .param .u64 out)
{
    .reg .f32 %f<6>;
    .reg .b64 %rd<3>;
    ld.param.f32 %f1, [level];
    ld.param.u64 %rd2, [out];
    tex.level.2d.v4.f32.f32 {%f2, %f3, %f4, %f5}, [image, {0f00000000, 0f00000000}], %f1;
    st.global.f32 [%rd2], %f2;
    ret;
}
.visible .entry read_layer(.param .u64 texture, .param .u64 out)
{
    .reg .b32 %r<5>;
    .reg .f32 %f<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [texture];
    ld.param.u64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mov.f32 %f2, 0f3F000000;
    cvt.rn.f32.u32 %f3, %r1;
    add.f32 %f3, %f3, %f2;
    tex.a2d.v4.s32.f32 {%r3, %r4, %r4, %r4}, [%rd1, {%r2, %f3, %f2, %f2}];
    mad.lo.u32 %r1, %r2, 8, %r1;
    mad.wide.u32 %rd3, %r1, 4, %rd2;
    st.global.u32 [%rd3], %r3;
    ret;
}
.visible .entry write_target()
{
    .reg .b32 %r<3>;
    mov.u32 %r1, %tid.x;
    shl.b32 %r1, %r1, 2;
    mov.u32 %r2, 5;
    sust.b.2d.b32.trap [target, {%r1, 0}], {%r2};
    ret;
}
.visible .entry read(.param .u64 texture, .param .u64 out, .param .f32 dx)
{
    .reg .b32 %r<3>;
    .reg .f32 %f<8>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [texture];
    ld.param.u64 %rd2, [out];
    ld.param.f32 %f1, [dx];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    cvt.rn.f32.u32 %f2, %r1;
    cvt.rn.f32.u32 %f3, %r2;
    add.f32 %f2, %f2, %f1;
    add.f32 %f3, %f3, 0f3F000000;
    tex.2d.v4.f32.f32 {%f4, %f5, %f6, %f7}, [%rd1, {%f2, %f3}];
    mad.lo.u32 %r1, %r2, 8, %r1;
    mad.wide.u32 %rd3, %r1, 4, %rd2;
    st.global.f32 [%rd3], %f4;
    ret;
}
.visible .entry write(.param .u64 surface)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [surface];
    mov.u32 %r1, %tid.x;
    mov.u32 %r2, %tid.y;
    mad.lo.u32 %r3, %r2, 10, %r1;
    shl.b32 %r1, %r1, 2;
    sust.b.2d.b32.trap [%rd1, {%r1, %r2}], {%r3};
    ret;
}
"""


class Driver:
    """The functions of the driver, which raise unless they succeed; `result` gives what one returns."""

    def __init__(self):
        self.library = install().cuda.loaded

    def __getattr__(self, name):
        def call(*arguments):
            assert self.library[name](*arguments) == 0, name

        return call

    def result(self, name, *arguments):
        return self.library[name](*arguments)

    def handle(self, name, *arguments):
        """What a function makes."""
        made = c_void_p()
        getattr(self, name)(byref(made), *arguments)
        return made

    def launch(self, kernel, block, *arguments):
        pointers = (c_void_p * len(arguments))(*map(ctypes.addressof, arguments))
        self.cuLaunchKernel(kernel, 1, 1, 1, *block, 0, None, pointers, None)


def of_images():
    """A driver with a context, whose functions raise."""
    driver = Driver()
    driver.cuInit(0)
    driver.cuCtxSetCurrent(driver.handle("cuDevicePrimaryCtxRetain", 0))
    yield driver
    session().stack.clear()


cuda = pytest.fixture(of_images, name="cuda")


def upload(cuda, array, image):
    rows, width = image.shape[0], image.strides[0]
    copy = Copy2D(source_type=HOST, source_host=image.ctypes.data, target_type=ARRAY, target_array=array.value)
    copy.width, copy.height, copy.source_pitch = width, rows, width
    cuda.cuMemcpy2D_v2(byref(copy))


def kernel(cuda, name):
    return cuda.handle("cuModuleGetFunction", cuda.handle("cuModuleLoadData", KERNELS), name)


def read(cuda, texture, dx):
    return result(cuda, kernel(cuda, b"read"), (8, 4, 1), np.float32, texture, more=(c_float(dx),))


def result(cuda, launched, block, dtype, *arguments, more=()):
    """What a kernel writes into rows of 8, which are an argument between the others."""
    out = c_uint64()
    cuda.cuMemAlloc_v2(byref(out), c_size_t(8 * 4 * 4))
    cuda.launch(launched, block, *arguments, out, *more)
    found = np.empty((4, 8), dtype)
    cuda.cuMemcpyDtoH_v2(c_void_p(found.ctypes.data), out, c_size_t(found.nbytes))
    cuda.cuMemFree_v2(out)
    return found


def test_a_kernel_reads_an_array_through_a_texture(cuda, rng):
    image = rng.random((4, 8), np.float32)
    array = cuda.handle("cuArrayCreate_v2", byref(ArrayDescriptor(8, 4, FLOAT, 1)))
    upload(cuda, array, image)
    resource = Resource(type=0)
    resource.of.array = array.value
    texture = cuda.handle("cuTexObjectCreate", byref(resource), byref(TextureDescriptor(address=(1, 1, 1))), None)
    shifted = np.concatenate([image[:, 1:], image[:, -1:]], axis=1)  # clamped at the edge
    assert np.array_equal(read(cuda, texture, 1.5), shifted)
    smooth = TextureDescriptor(address=(3, 3, 3), filter=1)  # outside it is 0
    between = cuda.handle("cuTexObjectCreate", byref(resource), byref(smooth), None)
    shifted[:, -1] = 0
    assert np.allclose(read(cuda, between, 1.0), (image + shifted) / 2)
    told = TextureDescriptor()
    cuda.cuTexObjectGetTextureDesc(byref(told), between)
    assert (told.filter, tuple(told.address)) == (1, (3, 3, 3))
    for each in (texture, between):
        cuda.cuTexObjectDestroy(each)
    assert cuda.result("cuTexObjectDestroy", texture) == INVALID_VALUE
    cuda.cuArrayDestroy(array)
    assert cuda.result("cuArrayDestroy", array) == INVALID_HANDLE


def test_rows_of_memory_are_a_texture_in_place(cuda):
    memory, pitch = c_uint64(), c_size_t()
    cuda.cuMemAllocPitch_v2(byref(memory), byref(pitch), c_size_t(8), c_size_t(4), 4)
    cuda.cuMemsetD2D8_v2(memory, pitch, ctypes.c_ubyte(51), c_size_t(8), c_size_t(4))
    resource = Resource(type=3)
    linear = resource.of.linear
    linear.pointer, linear.format, linear.channels = memory.value, UNSIGNED_INT8, 1
    linear.width, linear.height, linear.pitch = 8, 4, pitch.value
    texture = cuda.handle("cuTexObjectCreate", byref(resource), byref(TextureDescriptor(address=(1, 1, 1))), None)
    assert np.allclose(read(cuda, texture, 0.5), 51 / 255)  # bytes as numbers from 0 to 1
    cuda.cuMemsetD2D8_v2(memory, pitch, ctypes.c_ubyte(255), c_size_t(1), c_size_t(1))
    assert read(cuda, texture, 0.5)[0, 0] == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"pointer": 4}, {"width": 0}, {"width": 1 << 20}, {"height": 0}, {"height": 1 << 20}, {"pitch": 513}, {"pitch": 0},
        {"format": 0x77}, {"channels": 3}, {"flags": 1}, {"type": 4},
    ],
    ids=str,
)  # fmt: skip
def test_memory_of_a_texture_is_within_limits(cuda, changed):
    """Attributes of the device limit addresses, pitches and extents (driver API, `cuTexObjectCreate`)."""
    memory = c_uint64()
    cuda.cuMemAlloc_v2(byref(memory), c_size_t(4096))
    resource, how = Resource(type=3), TextureDescriptor(address=(1, 1, 1))
    linear = resource.of.linear
    linear.pointer, linear.format, linear.channels = memory.value, FLOAT, 1
    linear.width, linear.height, linear.pitch = 8, 4, 512
    cuda.cuTexObjectDestroy(cuda.handle("cuTexObjectCreate", byref(resource), byref(how), None))
    for name, value in changed.items():
        of = resource if name in ("flags", "type") else linear
        setattr(of, name, value + (memory.value if name == "pointer" else 0))
    assert cuda.result("cuTexObjectCreate", byref(c_uint64()), byref(resource), byref(how), None) == INVALID_VALUE


def test_integers_that_stay_integers_are_not_interpolated(cuda):
    """The programming guide: "linear filtering ... only for textures that are configured to return floating-point data"."""
    resource = Resource(type=0)
    resource.of.array = cuda.handle("cuArrayCreate_v2", byref(ArrayDescriptor(8, 4, UNSIGNED_INT8, 1))).value
    as_floats, as_is = (TextureDescriptor(address=(1, 1, 1), filter=1, flags=flags) for flags in (0, AS_IS))
    cuda.cuTexObjectDestroy(cuda.handle("cuTexObjectCreate", byref(resource), byref(as_floats), None))
    assert cuda.result("cuTexObjectCreate", byref(c_uint64()), byref(resource), byref(as_is), None) == INVALID_VALUE


def test_a_kernel_writes_an_array_through_a_surface(cuda):
    array = cuda.handle("cuArray3DCreate_v2", byref(Array3DDescriptor(8, 4, 0, FLOAT, 1, SURFACE)))
    resource = Resource(type=0)
    resource.of.array = array.value
    cuda.launch(kernel(cuda, b"write"), (8, 4, 1), cuda.handle("cuSurfObjectCreate", byref(resource)))
    found = np.empty((2, 3), np.int32)
    copy = Copy3D(source_type=ARRAY, source_array=array.value, source_x=8, source_y=1)
    copy.target_type, copy.target_host, copy.target_pitch, copy.target_height = HOST, found.ctypes.data, 12, 2
    copy.width, copy.height, copy.depth = 12, 2, 1
    cuda.cuMemcpy3D_v2(byref(copy))
    assert found.tolist() == [[12, 13, 14], [22, 23, 24]]
    copy.height = 4  # one row too many
    assert cuda.result("cuMemcpy3D_v2", byref(copy)) == INVALID_VALUE
    plain = cuda.handle("cuArrayCreate_v2", byref(ArrayDescriptor(8, 4, FLOAT, 1)))
    resource.of.array = plain.value
    assert cuda.result("cuSurfObjectCreate", byref(c_uint64()), byref(resource)) == INVALID_VALUE  # not made for surfaces


def test_arrays_have_forms_that_they_tell(cuda):
    layered = cuda.handle("cuArray3DCreate_v2", byref(Array3DDescriptor(8, 4, 3, FLOAT, 2, 1)))
    told = Array3DDescriptor()
    cuda.cuArray3DGetDescriptor_v2(byref(told), layered)
    assert (told.width, told.height, told.depth, told.format, told.channels, told.flags) == (8, 4, 3, FLOAT, 2, 1)
    row = (c_float * 4)(1, 2, 3, 4)
    cuda.cuMemcpyHtoA_v2(layered, c_size_t(16), row, c_size_t(16))
    back = (c_float * 4)()
    cuda.cuMemcpyAtoH_v2(back, layered, c_size_t(16), c_size_t(16))
    assert list(back) == [1, 2, 3, 4]
    levels = cuda.handle("cuMipmappedArrayCreate", byref(Array3DDescriptor(8, 4, 0, FLOAT, 1, 0)), 9)
    cuda.cuArray3DGetDescriptor_v2(byref(told), cuda.handle("cuMipmappedArrayGetLevel", levels, 2))
    assert (told.width, told.height) == (2, 1)
    made = c_void_p()
    assert cuda.result("cuMipmappedArrayGetLevel", byref(made), levels, 4) == INVALID_VALUE  # 8, 4, 2, 1
    assert cuda.result("cuArrayCreate_v2", byref(made), byref(ArrayDescriptor(8, 4, 0xB0, 1))) == NOT_SUPPORTED  # NV12
    assert cuda.result("cuArrayCreate_v2", byref(made), byref(ArrayDescriptor(8, 4, 0x77, 1))) == INVALID_VALUE
    assert cuda.result("cuArrayCreate_v2", byref(made), byref(ArrayDescriptor(8, 4, FLOAT, 3))) == INVALID_VALUE


WIDEST, LAYERS = 131072, 2048  # of textures of one or two dimensions
LAYERED, CUBEMAP, GATHER = 1, 4, 8


@pytest.mark.parametrize(
    ("largest", "beyond"),
    [
        ((WIDEST, 0, 0, 0), (WIDEST + 1, 0, 0, 0)),
        ((32768, 0, 0, SURFACE), (32769, 0, 0, SURFACE)),
        ((WIDEST, 1, 0, 0), (WIDEST + 1, 1, 0, 0)),
        ((1, 65536, 0, SURFACE), (1, 65537, 0, SURFACE)),
        ((32768, 1, 0, GATHER), (32769, 1, 0, GATHER)),
        ((1, 1, 16384, 0), (1, 1, 16385, 0)),
        ((32768, 0, LAYERS, LAYERED), (1, 0, LAYERS + 1, LAYERED)),
        ((1, 32768, 1, LAYERED), (1, 32769, 1, LAYERED)),
        ((1, 1, 6, CUBEMAP), (32769, 32769, 6, CUBEMAP)),
        ((1, 1, 2046, CUBEMAP | LAYERED), (1, 1, 2052, CUBEMAP | LAYERED)),
    ],
)
def test_arrays_are_within_the_limits_of_the_device(cuda, largest, beyond):
    """The table of cuArray3DCreate, with the limits of compute capabilities (CUDA C++ Programming Guide)."""
    made = c_void_p()

    def create(width, height, depth, flags):
        return cuda.result("cuArray3DCreate_v2", byref(made), byref(Array3DDescriptor(width, height, depth, FLOAT, 1, flags)))

    assert (create(*largest), create(*beyond)) == (0, INVALID_VALUE)


def test_an_array_larger_than_the_memory_is_refused(cuda):
    made = c_void_p()
    assert (
        cuda.result("cuArray3DCreate_v2", byref(made), byref(Array3DDescriptor(16384, 16384, 16384, FLOAT, 4, 0)))
        == OUT_OF_MEMORY
    )
    assert cuda.result("cuArrayCreate_v2", byref(made), byref(ArrayDescriptor(1 << 30, 1 << 30, FLOAT, 1))) == INVALID_VALUE
    large = byref(Array3DDescriptor(1 << 20, 1 << 20, 0, FLOAT, 1, 0))
    assert cuda.result("cuMipmappedArrayCreate", byref(made), large, 3) == INVALID_VALUE


def test_arrays_take_memory_of_the_device_until_they_end(cuda):
    def free():
        here = c_size_t()
        cuda.cuMemGetInfo_v2(byref(here), None)
        return here.value

    before, form = free(), Array3DDescriptor(1024, 512, 0, FLOAT, 2, 0)
    array = cuda.handle("cuArray3DCreate_v2", byref(form))
    assert before - free() == 1024 * 512 * 8
    levels = cuda.handle("cuMipmappedArrayCreate", byref(form), 2)
    assert before - free() == 2 * 1024 * 512 * 8 + 512 * 256 * 8
    cuda.cuMipmappedArrayDestroy(levels)
    cuda.cuArrayDestroy(array)
    assert free() == before


def reference(cuda, name, kind=b"image"):
    """A kernel and a reference of its module."""
    module = cuda.handle("cuModuleLoadData", KERNELS)
    get = "cuModuleGetTexRef" if kind == b"image" else "cuModuleGetSurfRef"
    return cuda.handle("cuModuleGetFunction", module, name), cuda.handle(get, module, kind), module


def test_a_texture_reference_is_bound_to_an_array_and_read_as_it_says(cuda, rng):
    image = rng.random((4, 8), np.float32)
    array = cuda.handle("cuArrayCreate_v2", byref(ArrayDescriptor(8, 4, FLOAT, 1)))
    upload(cuda, array, image)
    launched, texture, module = reference(cuda, b"read_image")
    assert cuda.handle("cuModuleGetTexRef", module, b"image").value == texture.value
    assert cuda.result("cuModuleGetTexRef", byref(c_void_p()), module, b"target") == NOT_FOUND
    cuda.cuTexRefSetArray(texture, array, 1)
    assert np.array_equal(result(cuda, launched, (8, 4, 1), np.float32), image)
    for direction in range(2):
        cuda.cuTexRefSetAddressMode(texture, direction, 3)  # border
    cuda.cuTexRefSetBorderColor(texture, (c_float * 4)(7, 7, 7, 7))
    cuda.cuTexRefSetFlags(texture, 2)  # normalized: what was beside the origin is outside
    expected = np.full((4, 8), 7, np.float32)
    expected[0, 0] = image[2, 4]  # at half of each extent
    assert np.array_equal(result(cuda, launched, (8, 4, 1), np.float32), expected)
    told = c_int()
    cuda.cuTexRefGetAddressMode(byref(told), texture, 1)
    assert told.value == 3
    assert cuda.handle("cuTexRefGetArray", texture).value == array.value


def test_a_texture_reference_reads_rows_of_memory(cuda):
    memory, pitch = c_uint64(), c_size_t()
    cuda.cuMemAllocPitch_v2(byref(memory), byref(pitch), c_size_t(8), c_size_t(4), 4)
    cuda.cuMemsetD2D8_v2(memory, pitch, ctypes.c_ubyte(51), c_size_t(8), c_size_t(4))
    launched, texture, _ = reference(cuda, b"read_image")
    cuda.cuTexRefSetAddress2D_v3(texture, byref(ArrayDescriptor(8, 4, UNSIGNED_INT8, 1)), memory, pitch)
    assert np.allclose(result(cuda, launched, (8, 4, 1), np.float32), 51 / 255)
    told = c_uint64()
    cuda.cuTexRefGetAddress_v2(byref(told), texture)
    assert told.value == memory.value
    assert cuda.result("cuTexRefGetArray", byref(told), texture) == INVALID_VALUE


def test_a_texture_reference_of_its_module_is_given_to_a_kernel(cuda):
    """Driver API, `cuParamSetTexRef`: the unit is CU_PARAM_TR_DEFAULT, and the reference one of a module."""
    launched, texture, _ = reference(cuda, b"read_image")
    cuda.cuParamSetTexRef(launched, -1, texture)
    assert cuda.result("cuParamSetTexRef", launched, 0, texture) == INVALID_VALUE
    assert cuda.result("cuParamSetTexRef", launched, -1, cuda.handle("cuTexRefCreate")) == INVALID_VALUE
    assert cuda.result("cuParamSetTexRef", texture, -1, texture) == INVALID_HANDLE


def test_a_surface_reference_is_bound_to_an_array(cuda):
    array = cuda.handle("cuArray3DCreate_v2", byref(Array3DDescriptor(8, 4, 0, FLOAT, 1, SURFACE)))
    launched, target, _ = reference(cuda, b"write_target", b"target")
    cuda.cuSurfRefSetArray(target, array, 0)
    cuda.launch(launched, (8, 1, 1))
    found = np.empty(8, np.int32)
    cuda.cuMemcpyAtoH_v2(c_void_p(found.ctypes.data), array, c_size_t(0), c_size_t(32))
    assert (found == 5).all()


def test_a_view_shows_some_layers_as_other_elements(cuda):
    """Two channels of 16 bits are seen as one of 32 (driver API, `CUDA_RESOURCE_VIEW_DESC`)."""
    layers = np.arange(3 * 4 * 8 * 2, dtype=np.uint16).reshape(3, 4, 8, 2)
    array = cuda.handle("cuArray3DCreate_v2", byref(Array3DDescriptor(8, 4, 3, 0x02, 2, 1)))
    copy = Copy3D(source_type=HOST, source_host=layers.ctypes.data, target_type=ARRAY, target_array=array.value)
    copy.source_pitch, copy.source_height, copy.width, copy.height, copy.depth = 32, 4, 32, 4, 3
    cuda.cuMemcpy3D_v2(byref(copy))
    resource = Resource(type=0)
    resource.of.array = array.value
    view = ResourceView(format=13, width=8, height=4, depth=3, first_layer=1, last_layer=2)  # one channel of 32 bits
    how = TextureDescriptor(address=(1, 1, 1), flags=1)
    texture = cuda.handle("cuTexObjectCreate", byref(resource), byref(how), byref(view))
    found = result(cuda, kernel(cuda, b"read_layer"), (8, 2, 1), np.uint32, texture)
    assert np.array_equal(found[:2], layers[1:, 0].copy().view(np.uint32)[..., 0])
    told = ResourceView()
    cuda.cuTexObjectGetResourceViewDesc(byref(told), texture)
    assert (told.format, told.first_layer, told.last_layer) == (13, 1, 2)
    for wrong, status in (
        (ResourceView(format=14, first_layer=1, last_layer=2), INVALID_VALUE),  # eight bytes
        (ResourceView(format=13, first_layer=1, last_layer=3), INVALID_VALUE),
        (ResourceView(format=25), NOT_SUPPORTED),  # compressed pixels
    ):
        made = byref(c_uint64())
        assert cuda.result("cuTexObjectCreate", made, byref(resource), byref(how), byref(wrong)) == status
    plain = cuda.handle("cuTexObjectCreate", byref(resource), byref(how), None)
    assert cuda.result("cuTexObjectGetResourceViewDesc", byref(told), plain) == INVALID_VALUE


def levels_by_number(cuda):
    """An array of 4 levels, each of which has its number as elements."""
    array = cuda.handle("cuMipmappedArrayCreate", byref(Array3DDescriptor(8, 8, 0, FLOAT, 1, 0)), 4)
    for level in range(4):
        size = 8 >> level
        upload(cuda, cuda.handle("cuMipmappedArrayGetLevel", array, level), np.full((size, size), level, np.float32))
    return array


@pytest.mark.parametrize(
    ("level", "bias", "limits", "expected"),
    [
        (1.25, 0, (0, 3), 1.25), (1.25, 0.5, (0, 3), 1.75), (1.25, -3, (0, 3), 0), (0, 0, (1.5, 3), 1.5),
        (3, 0, (0, 1.5), 1.5), (2, 0, (0, 0), 0), (2, 9, (0, 99), 3),
    ],
)  # fmt: skip
def test_a_level_has_a_bias_and_limits(cuda, level, bias, limits, expected):
    """CUDA_TEXTURE_DESC and `cuTexRefSetMipmapLevelClamp`: a texture whose greatest level is 0 has that one."""
    array, resource, linear = levels_by_number(cuda), Resource(type=1), 1
    resource.of.array = array.value
    how = TextureDescriptor(address=(1, 1, 1), flags=2, mipmap_filter=linear, bias=bias)
    how.least_level, how.most_level = limits
    texture = cuda.handle("cuTexObjectCreate", byref(resource), byref(how), None)
    kernel = cuda.handle("cuModuleGetFunction", cuda.handle("cuModuleLoadData", KERNELS), b"read_level")
    assert result(cuda, kernel, (1, 1, 1), np.float32, c_uint64(texture.value), c_float(level)).flat[0] == expected
    launched, reference_of_image, _ = reference(cuda, b"read_level_of_image")
    cuda.cuTexRefSetFlags(reference_of_image, 2)
    cuda.cuTexRefSetMipmapFilterMode(reference_of_image, linear)
    cuda.cuTexRefSetMipmappedArray(reference_of_image, array, 1)
    cuda.cuTexRefSetMipmapLevelBias(reference_of_image, c_float(bias))
    cuda.cuTexRefSetMipmapLevelClamp(reference_of_image, *map(c_float, limits))
    assert result(cuda, launched, (1, 1, 1), np.float32, c_float(level)).flat[0] == expected
    told = (c_float * 3)()
    cuda.cuTexRefGetMipmapLevelBias(byref(told), reference_of_image)
    cuda.cuTexRefGetMipmapLevelClamp(byref(told, 4), byref(told, 8), reference_of_image)
    assert tuple(told) == (bias, *limits)


def test_a_view_shows_some_levels(cuda):
    levels = cuda.handle("cuMipmappedArrayCreate", byref(Array3DDescriptor(8, 4, 0, FLOAT, 1, 0)), 3)
    upload(cuda, cuda.handle("cuMipmappedArrayGetLevel", levels, 1), np.full((2, 4), 3, np.float32))
    resource = Resource(type=1)
    resource.of.array = levels.value
    view, how = ResourceView(first_level=1, last_level=2), TextureDescriptor(address=(1, 1, 1), flags=NORMALIZED)
    texture = cuda.handle("cuTexObjectCreate", byref(resource), byref(how), byref(view))
    assert (read(cuda, texture, 0.5) == 3).all()
    view.last_level = 3
    assert cuda.result("cuTexObjectCreate", byref(c_uint64()), byref(resource), byref(how), byref(view)) == INVALID_VALUE
    how.flags = 0  # whose coordinates are not normalized
    assert cuda.result("cuTexObjectCreate", byref(c_uint64()), byref(resource), byref(how), None) == INVALID_VALUE
