"""Arrays, textures and surfaces."""

from __future__ import annotations

from typing import Protocol

from ptxvm.driver.attributes import Attribute
from ptxvm.driver.cuda_arrays import (
    CudaArray,
    Elements,
    Format,
    Linear,
    Mipmapped,
    Sampling,
    TextureView,
    fitting,
    format_of,
    surface,
    texture,
)
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import put_bytes, put_u64, structure_at
from ptxvm.libcuda.session import OpaqueObject, function, session, then_failure
from ptxvm.libcuda.structures import Array3DDescriptor, ArrayDescriptor, Resource, ResourceView, TextureDescriptor

A = Attribute
ARRAY, MIPMAPPED, LINEAR, ROWS = range(4)  # CUresourcetype
AS_IS, NORMALIZED, SRGB = 0x01, 0x02, 0x10  # CU_TRSF_*
LINEAR_FILTER = 1


# ── arrays ──────────────────────────────────────────────────────────────────────────────


@function("cuArrayCreate_v2")
def create(out: int, description: int) -> None:
    """A new array of one or two dimensions."""
    d = structure_at(ArrayDescriptor, description)
    elements = Elements(format_of(d.format), d.channels)
    put_u64(out, counted(made(CudaArray(d.width, d.height, 0, elements))))


def counted(array: CudaArray | Mipmapped) -> int:
    """The handle of a new array, whose memory is no longer free."""
    current = session()
    current.driver.count(array, current.context.device)
    return current.own(array)


def made(array: CudaArray) -> CudaArray:
    """An array on the device of the current context; DriverError beyond the device's limits."""
    return fitting(array, session().context.device)


def array_3d(description: int) -> CudaArray:
    """The array that a structure describes."""
    d = structure_at(Array3DDescriptor, description)
    return made(CudaArray(d.width, d.height, d.depth, Elements(format_of(d.format), d.channels), d.flags))


@function("cuArray3DCreate_v2")
def create_3d(out: int, description: int) -> None:
    """A new array."""
    put_u64(out, counted(array_3d(description)))


@function("cuArrayDestroy", any_state=True)
@then_failure
def destroy(handle: int) -> None:
    """Forget an array; textures of it keep it."""
    session().handles.object(handle, CudaArray)
    session().driver.finish()
    session().handles.drop(handle)


@function("cuArrayGetMemoryRequirements", "cuMipmappedArrayGetMemoryRequirements")
def requirements(out: int, handle: int, ordinal: int) -> None:
    """The memory that an array still needs: DriverError, for all arrays have theirs."""
    refuse(handle, "is mapped to memory later")


@function("cuArrayGetSparseProperties", "cuMipmappedArrayGetSparseProperties")
def sparse_properties(out: int, handle: int) -> None:
    """The tiles of a sparse array: DriverError, for none is."""
    refuse(handle, "is sparse")


@function("cuArrayGetPlane")
def plane(out: int, handle: int, number: int) -> None:
    """A plane of an array: DriverError, for no format here has several."""
    refuse(handle, "has several planes")


def refuse(handle: int, quality: str) -> None:
    """DriverError for an array, which lacks a quality."""
    if not isinstance(session().handles.objects.get(handle), CudaArray | Mipmapped):
        raise DriverError(Result.INVALID_HANDLE, f"{handle:#x} is no handle of an array")
    raise DriverError(Result.INVALID_VALUE, f"no array {quality}")


@function("cuArrayGetDescriptor_v2")
def describe(out: int, handle: int) -> None:
    """The descriptor of an array without its depth: width, height, format and channels."""
    a = session().handles.object(handle, CudaArray)
    d = structure_at(ArrayDescriptor, out, writing=True)
    d.width, d.height, d.format, d.channels = a.width, a.height, a.elements.format, a.elements.channels


@function("cuArray3DGetDescriptor_v2")
def describe_3d(out: int, handle: int) -> None:
    """The form of an array."""
    a = session().handles.object(handle, CudaArray)
    d = structure_at(Array3DDescriptor, out, writing=True)
    d.width, d.height, d.depth, d.flags = a.width, a.height, a.depth, a.flags
    d.format, d.channels = a.elements.format, a.elements.channels


@function("cuMipmappedArrayCreate")
def create_mipmapped(out: int, description: int, levels: int) -> None:
    """A new array with smaller copies of it."""
    put_u64(out, counted(Mipmapped(array_3d(description), levels)))


@function("cuMipmappedArrayGetLevel")
def level(out: int, handle: int, number: int) -> None:
    """The array of one level."""
    put_u64(out, session().own(session().handles.object(handle, Mipmapped).level(number)))


@function("cuMipmappedArrayDestroy", any_state=True)
@then_failure
def destroy_mipmapped(handle: int) -> None:
    """Forget an array and its copies."""
    handles = session().handles
    for each in handles.object(handle, Mipmapped).levels:
        if id(each) in handles.numbers:
            handles.drop(handles.numbers[id(each)])
    handles.drop(handle)


# ── textures and surfaces ───────────────────────────────────────────────────────────────


class DescribedMemory(Protocol):
    """Plain memory in a resource, of the driver or of the runtime; `width` counts bytes where there is one row."""

    pointer: int
    width: int
    height: int
    pitch: int


class OfResource(Protocol):
    """What a resource is of: the handle of an array, or memory."""

    array: int


class DescribedResource(Protocol):
    """The structure of a resource, of the driver or of the runtime."""

    type: int
    flags: int
    of: OfResource


def resource(d: Resource) -> CudaArray | Mipmapped | Linear:
    """The resource that a structure describes."""
    if (array := array_of(d)) is not None:
        return array
    linear = d.of.linear
    return plain_memory(d.type, linear, Elements(format_of(linear.format), linear.channels))


def array_of(d: DescribedResource) -> CudaArray | Mipmapped | None:
    """The array of a resource, None for plain memory; DriverError for another kind of resources, and for flags."""
    if d.flags or d.type not in (ARRAY, MIPMAPPED, LINEAR, ROWS):
        raise DriverError(Result.INVALID_VALUE, f"there is no kind {d.type} of resources with flags {d.flags:#x}")
    handles = session().handles
    if d.type == ARRAY:
        return handles.object(d.of.array, CudaArray)
    return handles.object(d.of.array, Mipmapped) if d.type == MIPMAPPED else None


def plain_memory(kind: int, d: DescribedMemory, elements: Elements) -> Linear:
    """Plain memory as a resource: one row by its bytes, or several; DriverError beyond the limits of textures."""
    attribute, address = session().context.device.attribute, d.pointer
    rows = kind == ROWS
    width = d.width if rows else d.width // elements.size
    most = A.MAXIMUM_TEXTURE2D_LINEAR_WIDTH if rows else A.MAXIMUM_TEXTURE1D_LINEAR_WIDTH
    if address % attribute(A.TEXTURE_ALIGNMENT):
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is no multiple of {attribute(A.TEXTURE_ALIGNMENT)} bytes")
    if not 0 < width <= attribute(most):
        raise DriverError(Result.INVALID_VALUE, f"a row of a texture has up to {attribute(most)} elements, not {width}")
    if not rows:
        session().driver.blocks.check(address, d.width)
        return Linear(address, elements, width)
    if not 0 < d.height <= attribute(A.MAXIMUM_TEXTURE2D_LINEAR_HEIGHT):
        said = f"a texture of memory has up to {attribute(A.MAXIMUM_TEXTURE2D_LINEAR_HEIGHT)} rows, not {d.height}"
        raise DriverError(Result.INVALID_VALUE, said)
    unit, longest = attribute(A.TEXTURE_PITCH_ALIGNMENT), attribute(A.MAXIMUM_TEXTURE2D_LINEAR_PITCH)
    if d.pitch % unit or not width * elements.size <= d.pitch <= longest:
        said = f"rows of {width * elements.size} bytes are a multiple of {unit} apart, up to {longest}, not {d.pitch}"
        raise DriverError(Result.INVALID_VALUE, said)
    session().driver.blocks.check(address, (d.height - 1) * d.pitch + width * elements.size)
    return Linear(address, elements, width, d.height, d.pitch)


def sampling(d: TextureDescriptor) -> Sampling:
    """The sampling that a structure describes."""
    return Sampling(
        tuple(d.address), d.filter == LINEAR_FILTER, d.mipmap_filter == LINEAR_FILTER,
        as_is=bool(d.flags & AS_IS), normalized=bool(d.flags & NORMALIZED), srgb=bool(d.flags & SRGB), border=tuple(d.border),
        mipmap_bias=d.bias, mipmap_range=(d.least_level, d.most_level),
    )  # fmt: skip


def keep(out: int, made: OpaqueObject) -> None:
    """The handle of a texture or surface, which lives until a client destroys it."""
    session().opaque[made.object.handle] = made
    put_u64(out, made.object.handle)


@function("cuTexObjectCreate")
def create_texture(out: int, of: int, how: int, view: int) -> None:
    """A texture of an array, or of memory."""
    described, read = structure_at(Resource, of), structure_at(TextureDescriptor, how)
    keep_texture(out, resource(described), sampling(read), bytes(described), bytes(read), view)


def keep_texture(
    out: int, of: CudaArray | Mipmapped | Linear, how: Sampling, described: bytes, read: bytes, view: int
) -> None:  # fmt: skip
    """Give a client a texture, with how it is described, and through a view where there is one."""
    seen = b""
    if view:
        d = structure_at(ResourceView, view)
        of, seen = viewed(d, of), bytes(d)
    keep(out, OpaqueObject(texture(of, how), session().context.life, described, read, seen))


VIEWED = (
    Format.UNSIGNED_INT8, Format.SIGNED_INT8, Format.UNSIGNED_INT16, Format.SIGNED_INT16, Format.UNSIGNED_INT32,
    Format.SIGNED_INT32, Format.HALF, Format.FLOAT,
)  # fmt: skip
"""The formats of CUresourceViewFormat in its order, which has each for 1, 2 and 4 channels; 0 is the array's own."""


def viewed(d: ResourceView, of: CudaArray | Mipmapped | Linear) -> CudaArray | Mipmapped:
    """What a structure sees of an array; DriverError for plain memory, and for blocks of compressed pixels."""
    if isinstance(of, Linear):
        raise DriverError(Result.INVALID_VALUE, "a view is one of an array")
    if d.format > 3 * len(VIEWED):
        raise DriverError(Result.NOT_SUPPORTED, f"views of compressed pixels (format {d.format:#x}) are not supported")
    format, channels = divmod(d.format - 1, 3)
    elements = Elements(VIEWED[format], (1, 2, 4)[channels]) if d.format else None
    return TextureView(elements, (d.first_level, d.last_level), (d.first_layer, d.last_layer)).of(of)


@function("cuSurfObjectCreate")
def create_surface(out: int, of: int) -> None:
    """A surface of an array."""
    described = structure_at(Resource, of)
    found = resource(described)
    if not isinstance(found, CudaArray):
        raise DriverError(Result.INVALID_VALUE, "a surface is one of an array")
    keep(out, OpaqueObject(surface(found), session().context.life, bytes(described)))


@function("cuTexObjectDestroy", "cuSurfObjectDestroy", any_state=True)
def destroy_opaque(handle: int) -> None:
    """Forget a texture or surface."""
    found = opaque(handle)
    session().driver.finish()
    session().opaque.pop(found.object.handle)


def opaque(handle: int) -> OpaqueObject:
    """A texture or surface by its handle; DriverError where there is none."""
    if (found := session().opaque.get(handle)) is None:
        raise DriverError(Result.INVALID_VALUE, f"{handle:#x} is no texture or surface")
    return found


@function("cuTexObjectGetResourceDesc", "cuSurfObjectGetResourceDesc")
def resource_of(out: int, handle: int) -> None:
    """The resource of a texture or surface."""
    described = opaque(handle).resource
    put_bytes(out, described)


@function("cuTexObjectGetTextureDesc")
def sampling_of(out: int, handle: int) -> None:
    """The sampling of a texture."""
    described = opaque(handle).sampling
    put_bytes(out, described)


@function("cuTexObjectGetResourceViewDesc")
def view_of(out: int, handle: int) -> None:
    """How a texture sees its array; DriverError where it has no view."""
    if not (described := opaque(handle).view):
        raise DriverError(Result.INVALID_VALUE, "the texture was made without a view")
    put_bytes(out, described)
