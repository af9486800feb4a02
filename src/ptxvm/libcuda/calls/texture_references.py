"""Texture and surface references: variables of a module that a client binds to arrays and memory, before it launches.

They are older than texture objects; `tex` and `suld` name the variable.  What a client sets takes effect at once.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import field, replace

from ptxvm.dataclass import dataclass
from ptxvm.driver.cuda_arrays import CudaArray, Elements, Format, Linear, Mipmapped, Sampling, format_of, surface, texture
from ptxvm.driver.module import Module
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import put_f32, put_i32, put_u64, put_u64_if, string, structure_at
from ptxvm.libcuda.session import NO_HANDLE, function, session
from ptxvm.libcuda.structures import ArrayDescriptor
from ptxvm.machine.opaque import Opaque

AS_IS, NORMALIZED, SRGB = 0x01, 0x02, 0x10  # CU_TRSF_*
LINEAR_FILTER = 1
ALIGNMENT = 512  # of plain memory: addresses that are no multiple begin with an offset
TEXTURE, SURFACE = "texref", "surfref"


@dataclass(eq=False)
class Reference:
    """A variable of a module, or of none, and what is bound to it."""

    module: Module | None = None
    name: str = ""
    resource: CudaArray | Mipmapped | Linear | None = None
    sampling: Sampling = field(default_factory=Sampling)
    elements: Elements = field(default_factory=lambda: Elements(Format.FLOAT, 1))
    flags: int = 0
    hints: dict[str, float] = field(default_factory=dict)  # that change nothing here

    def bind(self) -> None:
        """Let the variable stand for the texture that the settings describe."""
        if self.module is not None and self.resource is not None:
            self._put(texture(self.resource, self.sampling))

    def bind_surface(self, array: CudaArray) -> None:
        """Let the variable stand for a surface."""
        self.resource = array
        self._put(surface(array))

    def _put(self, found: Opaque) -> None:
        if self.module is not None:
            self.module.bind(self.name, found)

    def array(self) -> CudaArray:
        """What is bound, which is an array; DriverError where it is not."""
        if not isinstance(self.resource, CudaArray):
            raise DriverError(Result.INVALID_VALUE, "no array is bound to the reference")
        return self.resource


NO_HANDLE[Reference] = Result.INVALID_VALUE


def reference(handle: int) -> Reference:
    """A reference by its handle."""
    return session().handles.object(handle, Reference)


def of_module(out: int, handle: int, name: int, kind: str) -> None:
    """The reference of a variable; the same each time."""
    module, word = session().handles.object(handle, Module), string(name)
    if module.opaque(word) != kind:
        raise DriverError(Result.NOT_FOUND, f"the module has no .{kind} '{word}'")
    made = module.references.setdefault(word, Reference(module, word))
    put_u64(out, session().own(made))


@function("cuModuleGetTexRef")
def texture_of_module(out: int, handle: int, name: int) -> None:
    """A texture reference of a module."""
    of_module(out, handle, name, TEXTURE)


@function("cuModuleGetSurfRef")
def surface_of_module(out: int, handle: int, name: int) -> None:
    """A surface reference of a module."""
    of_module(out, handle, name, SURFACE)


@function("cuTexRefCreate")
def create(out: int) -> None:
    """A reference of no module, which only keeps settings."""
    put_u64(out, session().own(Reference()))


@function("cuTexRefDestroy", any_state=True)
def destroy(handle: int) -> None:
    """Forget a reference of no module."""
    if reference(handle).module is not None:
        raise DriverError(Result.INVALID_VALUE, "the reference is one of a module")
    session().handles.drop(handle)


# ── what is bound ───────────────────────────────────────────────────────────────────────


def bind(handle: int, resource: CudaArray | Mipmapped | Linear) -> None:
    """Bind something; unless it is plain memory, it has elements of its own."""
    found = reference(handle)
    first = resource.levels[0] if isinstance(resource, Mipmapped) else resource
    found.resource, found.elements = resource, first.elements
    found.bind()


@function("cuTexRefSetArray")
def set_array(handle: int, array: int, flags: int) -> None:
    """Bind an array."""
    bind(handle, session().handles.object(array, CudaArray))


@function("cuTexRefSetMipmappedArray")
def set_mipmapped(handle: int, array: int, flags: int) -> None:
    """Bind an array with its levels."""
    bind(handle, session().handles.object(array, Mipmapped))


@function("cuTexRefSetAddress_v2")
def set_address(offset: int, handle: int, address: int, size: int) -> None:
    """Bind plain memory, and tell by how many bytes it is behind a multiple of the alignment."""
    start = address - address % ALIGNMENT if offset else address
    if start % ALIGNMENT:
        raise DriverError(Result.INVALID_VALUE, f"{address:#x} is no multiple of {ALIGNMENT}")
    session().driver.blocks.check(address, size)
    elements = reference(handle).elements
    put_u64_if(offset, address - start)
    bind(handle, Linear(start, elements, (address - start + size) // elements.size))


@function("cuTexRefSetAddress2D_v2", "cuTexRefSetAddress2D_v3")
def set_rows(handle: int, description: int, address: int, pitch: int) -> None:
    """Bind rows of plain memory."""
    d = structure_at(ArrayDescriptor, description)
    elements = Elements(format_of(d.format), d.channels)
    session().driver.blocks.check(address, (d.height - 1) * pitch + d.width * elements.size)
    bind(handle, Linear(address, elements, d.width, d.height, pitch))


@function("cuTexRefGetAddress_v2")
def address_of(out: int, handle: int) -> None:
    """The plain memory that is bound."""
    found = reference(handle).resource
    if not isinstance(found, Linear):
        raise DriverError(Result.INVALID_VALUE, "no plain memory is bound to the reference")
    put_u64(out, found.address)


@function("cuTexRefGetArray", "cuSurfRefGetArray")
def array_of(out: int, handle: int) -> None:
    """The array that is bound."""
    put_u64(out, session().handles.handle(reference(handle).array()))


@function("cuTexRefGetMipmappedArray")
def mipmapped_of(out: int, handle: int) -> None:
    """The array with levels that is bound."""
    found = reference(handle).resource
    if not isinstance(found, Mipmapped):
        raise DriverError(Result.INVALID_VALUE, "no array with levels is bound to the reference")
    put_u64(out, session().handles.handle(found))


@function("cuSurfRefSetArray")
def set_surface(handle: int, array: int, flags: int) -> None:
    """Bind an array to a surface reference."""
    reference(handle).bind_surface(session().handles.object(array, CudaArray))


# ── how it is read ──────────────────────────────────────────────────────────────────────


def change(handle: int, setting: Callable[[Sampling], Sampling]) -> None:
    """Read otherwise from now on."""
    found = reference(handle)
    found.sampling = setting(found.sampling)
    found.bind()


@function("cuTexRefSetFormat")
def set_format(handle: int, format: int, channels: int) -> None:
    """The elements of plain memory that is bound later."""
    reference(handle).elements = Elements(format_of(format), channels)


@function("cuTexRefGetFormat")
def get_format(format: int, channels: int, handle: int) -> None:
    """The elements."""
    elements = reference(handle).elements
    put_i32(format, elements.format)
    put_i32(channels, elements.channels)


@function("cuTexRefSetAddressMode")
def set_mode(handle: int, direction: int, mode: int) -> None:
    """What is outside, in a direction."""
    if direction not in range(3) or mode not in range(4):
        raise DriverError(Result.INVALID_VALUE, f"there is no mode {mode} of direction {direction}")

    def setting(before: Sampling) -> Sampling:
        modes = list(before.address)
        modes[direction] = mode
        return replace(before, address=modes)

    change(handle, setting)


@function("cuTexRefGetAddressMode")
def get_mode(out: int, handle: int, direction: int) -> None:
    """What is outside, in a direction."""
    if direction not in range(3):
        raise DriverError(Result.INVALID_VALUE, f"there is no direction {direction}")
    put_i32(out, reference(handle).sampling.address[direction])


@function("cuTexRefSetFilterMode")
def set_filter(handle: int, mode: int) -> None:
    """Nearest elements, or what is between them."""
    change(handle, lambda before: replace(before, linear=mode == LINEAR_FILTER))


@function("cuTexRefGetFilterMode")
def get_filter(out: int, handle: int) -> None:
    """Nearest elements, or what is between them."""
    put_i32(out, int(reference(handle).sampling.linear))


@function("cuTexRefSetMipmapFilterMode")
def set_mipmap_filter(handle: int, mode: int) -> None:
    """The nearest level, or what is between two."""
    change(handle, lambda before: replace(before, linear_mipmaps=mode == LINEAR_FILTER))


@function("cuTexRefGetMipmapFilterMode")
def get_mipmap_filter(out: int, handle: int) -> None:
    """The nearest level, or what is between two."""
    put_i32(out, int(reference(handle).sampling.linear_mipmaps))


@function("cuTexRefSetMipmapLevelBias")
def set_bias(handle: int, bias: float) -> None:
    """What is added to the level that an instruction gives."""
    change(handle, lambda before: replace(before, mipmap_bias=bias))


@function("cuTexRefGetMipmapLevelBias")
def get_bias(out: int, handle: int) -> None:
    """What is added to the level."""
    put_f32(out, reference(handle).sampling.mipmap_bias)


@function("cuTexRefSetMipmapLevelClamp")
def set_range(handle: int, least: float, most: float) -> None:
    """The least and the greatest level."""
    change(handle, lambda before: replace(before, mipmap_range=(least, most)))


@function("cuTexRefGetMipmapLevelClamp")
def get_range(least: int, most: int, handle: int) -> None:
    """The least and the greatest level; without a limit that is infinite."""
    for out, value in zip((least, most), reference(handle).sampling.mipmap_range, strict=True):
        put_f32(out, value)


@function("cuTexRefSetFlags")
def set_flags(handle: int, flags: int) -> None:
    """Integers as they are, normalized coordinates, sRGB."""
    reference(handle).flags = flags
    as_is, normalized, srgb = (bool(flags & each) for each in (AS_IS, NORMALIZED, SRGB))
    change(handle, lambda before: replace(before, as_is=as_is, normalized=normalized, srgb=srgb))


@function("cuTexRefGetFlags")
def get_flags(out: int, handle: int) -> None:
    """The flags."""
    put_i32(out, reference(handle).flags)


@function("cuTexRefSetBorderColor")
def set_border(handle: int, color: int) -> None:
    """What is outside, where the border is."""
    change(handle, lambda before: replace(before, border=tuple(structure_at((ctypes.c_float * 4), color))))


@function("cuTexRefGetBorderColor")
def get_border(out: int, handle: int) -> None:
    """What is outside, where the border is."""
    for n, value in enumerate(reference(handle).sampling.border):
        put_f32(out + 4 * n, value)


@function("cuTexRefSetMaxAnisotropy")
def set_anisotropy(handle: int, most: int) -> None:
    """A hint of hardware, which is kept."""
    reference(handle).hints["anisotropy"] = most


@function("cuTexRefGetMaxAnisotropy")
def get_anisotropy(out: int, handle: int) -> None:
    """The hint."""
    put_i32(out, int(reference(handle).hints.get("anisotropy", 0)))
