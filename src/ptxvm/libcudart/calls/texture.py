"""Arrays, textures and surfaces."""

from __future__ import annotations

from ptxvm.driver.cuda_arrays import CudaArray, Elements, Format, Linear, Mipmapped, Sampling, interpolates_integers, surface
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import put_bytes, put_i32, put_u64, structure_at
from ptxvm.libcuda.calls import device as devices, texture as driver
from ptxvm.libcuda.session import OpaqueObject, session
from ptxvm.libcudart import structures
from ptxvm.libcudart.runtime_state import RuntimeApiError, RuntimeResult, function
from ptxvm.libcudart.structures import Channels, Extent, Resource

SIGNED, UNSIGNED, FLOAT, NONE = range(4)  # cudaChannelFormatKind
UNSIGNED_NORMALISED = 5  # cudaChannelFormatKindUnsignedNormalized8X1, the first of a kind for each normalised format
NORMALISED = [each for each in Format if each.normalised is not None]
FORMATS = {
    (8, SIGNED): Format.SIGNED_INT8, (16, SIGNED): Format.SIGNED_INT16, (32, SIGNED): Format.SIGNED_INT32,
    (8, UNSIGNED): Format.UNSIGNED_INT8, (16, UNSIGNED): Format.UNSIGNED_INT16, (32, UNSIGNED): Format.UNSIGNED_INT32,
    (16, FLOAT): Format.HALF, (32, FLOAT): Format.FLOAT,
}  # fmt: skip
FORMATS |= {(8 * each.dtype.itemsize, UNSIGNED_NORMALISED + number): each for number, each in enumerate(NORMALISED)}
CHANNELS = {format: channel for channel, format in FORMATS.items()}


def elements(c: Channels) -> Elements:
    """The elements that a structure describes."""
    bits = [each for each in (c.x, c.y, c.z, c.w) if each]
    found = FORMATS.get((c.x, c.kind))
    if c.kind > NONE and not UNSIGNED_NORMALISED <= c.kind < UNSIGNED_NORMALISED + len(NORMALISED):
        raise DriverError(Result.NOT_SUPPORTED, f"elements of the kind {c.kind} are not supported")
    wanted = found.normalised[1:] if found is not None and found.normalised is not None else (1, 2, 4)
    if found is None or bits != [c.x] * len(bits) or len(bits) not in wanted:
        said = f"there are no elements of {bits} bits of kind {c.kind}"
        raise RuntimeApiError(RuntimeResult.INVALID_CHANNEL_DESCRIPTOR, said)
    return Elements(found, len(bits))


def described(e: Elements) -> Channels:
    """The structure for elements."""
    bits, kind = CHANNELS[e.format]
    return Channels(*[bits] * e.channels, *[0] * (4 - e.channels), kind)


# ── arrays ──────────────────────────────────────────────────────────────────────────────


@function("cudaMallocArray")
def create(out: int, channels: int, width: int, height: int, flags: int) -> None:
    """A new array of one or two dimensions."""
    put_u64(out, driver.counted(array(channels, Extent(width, height, 0), flags)))


def array(channels: int, extent: Extent, flags: int) -> CudaArray:
    """An array of an extent; DriverError beyond the limits of the device."""
    made_of = elements(structure_at(Channels, channels))
    return driver.made(CudaArray(extent.width, extent.height, extent.depth, made_of, flags))


@function("cudaDeviceGetTexture1DLinearMaxWidth")
def linear_width(out: int, channels: int, ordinal: int) -> None:
    """The most elements of a texture of plain memory."""
    found = elements(structure_at(Channels, channels))
    devices.linear_width(out, found.format, found.channels, ordinal)


@function("cudaMalloc3DArray")
def create_3d(out: int, channels: int, extent: Extent, flags: int) -> None:
    """A new array."""
    put_u64(out, driver.counted(array(channels, extent, flags)))


@function("cudaMallocMipmappedArray")
def create_mipmapped(out: int, channels: int, extent: Extent, levels: int, flags: int) -> None:
    """A new array with smaller copies of it."""
    put_u64(out, driver.counted(Mipmapped(array(channels, extent, flags), levels)))


@function("cudaGetMipmappedArrayLevel")
def level(out: int, handle: int, number: int) -> None:
    """The array of one level."""
    driver.level(out, handle, number)


@function("cudaFreeArray", any_state=True)
def destroy(handle: int) -> None:
    """Forget an array; null has no effect."""
    if handle:
        driver.destroy(handle)


@function("cudaFreeMipmappedArray", any_state=True)
def destroy_mipmapped(handle: int) -> None:
    """Forget an array and its copies; null has no effect."""
    if handle:
        driver.destroy_mipmapped(handle)


@function("cudaArrayGetInfo")
def info(channels: int, extent: int, flags: int, handle: int) -> None:
    """The form of an array."""
    array = session().handles.object(handle, CudaArray)
    if channels:
        put_bytes(channels, bytes(described(array.elements)))
    if extent:
        put_bytes(extent, bytes(Extent(array.width, array.height, array.depth)))
    if flags:
        put_i32(flags, array.flags)


@function("cudaGetChannelDesc")
def channels_of(out: int, handle: int) -> None:
    """The elements of an array."""
    info(out, 0, 0, handle)


# ── textures and surfaces ───────────────────────────────────────────────────────────────


def resource(d: Resource) -> CudaArray | Mipmapped | Linear:
    """The resource that a structure describes."""
    if (array := driver.array_of(d)) is not None:
        return array
    return driver.plain_memory(d.type, d.of.linear, elements(d.of.linear.channels))


@function("cudaCreateTextureObject")
def create_texture(out: int, of: int, how: int, view: int) -> None:
    """A texture of an array, or of memory."""
    d, s = structure_at(Resource, of), structure_at(structures.Sampling, how)
    read = Sampling(
        tuple(s.address), s.filter == driver.LINEAR_FILTER, s.mipmap_filter == driver.LINEAR_FILTER, as_is=not s.read,
        normalized=bool(s.normalized), srgb=bool(s.srgb), border=tuple(s.border),
        mipmap_bias=s.bias, mipmap_range=(s.least_level, s.most_level),
    )  # fmt: skip
    found = resource(d)
    if interpolates_integers(found, read):
        raise RuntimeApiError(RuntimeResult.INVALID_FILTER_SETTING, "integers that stay integers are not interpolated")
    driver.keep_texture(out, found, read, bytes(d), bytes(s), view)


@function("cudaCreateSurfaceObject")
def create_surface(out: int, of: int) -> None:
    """A surface of an array."""
    d = structure_at(Resource, of)
    found = resource(d)
    if not isinstance(found, CudaArray):
        raise DriverError(Result.INVALID_VALUE, "a surface is one of an array")
    driver.keep(out, OpaqueObject(surface(found), session().context.life, bytes(d)))


@function("cudaDestroyTextureObject", "cudaDestroySurfaceObject", any_state=True)
def destroy_opaque(handle: int) -> None:
    """Forget a texture or surface."""
    driver.destroy_opaque(handle)


@function("cudaGetTextureObjectResourceDesc", "cudaGetSurfaceObjectResourceDesc")
def resource_of(out: int, handle: int) -> None:
    """The resource of a texture or surface."""
    driver.resource_of(out, handle)


@function("cudaGetTextureObjectResourceViewDesc")
def view_of(out: int, handle: int) -> None:
    """How a texture sees its array."""
    driver.view_of(out, handle)


@function("cudaGetTextureObjectTextureDesc")
def sampling_of(out: int, handle: int) -> None:
    """The sampling of a texture."""
    driver.sampling_of(out, handle)
