"""The texture unit: requests of many lanes at once, each with a handle of its own.

An operand is a list of arrays, one element for each lane; handles are addresses of opaque variables or handles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.dataclass import dataclass
from ptxvm.isa.effects import Verb
from ptxvm.machine import texture_surface
from ptxvm.machine.backing import address_of
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.memory import Memory
from ptxvm.machine.opaque import Opaque, find, is_a
from ptxvm.machine.per_lane import Array
from ptxvm.machine.texture import Sampler, Sampling, Surface, Texture, query_sampling
from ptxvm.machine.texture_sampling import AccessedTexels, Fetch, fetch
from ptxvm.machine.texture_surface import AccessedBytes, SurfaceAccess

Operands = Mapping[str, Sequence[Array]]
Work = Callable[[Memory, Operands], list[Array]]
"""What an instruction does with its operands: some arrays of results."""


@dataclass(frozen=True)
class OnSurface:
    """An instruction on a surface: it reads, writes or updates (`atomic`) elements."""

    verb: Verb
    access: SurfaceAccess
    work: Work
    proxy = Proxy.SURFACE

    def __call__(self, memory: Memory, operands: Operands) -> list[Array]:
        """Execute it."""
        return self.work(memory, operands)

    def touched(self, memory: Memory, operands: Operands) -> Iterator[AccessedBytes]:
        """The bytes that lanes access, surface by surface; a fault where some cannot."""
        writing = self.verb is not Verb.READ
        for surface, lanes, of_lanes in groups(memory, operands, "surfref"):
            if isinstance(surface, Surface):
                with among(lanes):
                    found = texture_surface.touched(self.access, surface, of_lanes["coordinates"], writing=writing)
                yield replace(found, lanes=lanes[found.lanes])

    def good(self, memory: Memory, operands: Operands) -> Array:
        """Which lanes of one handle can execute it?"""
        surface, writing = find(memory, int(operands["handle"][0][0]), "surfref"), self.verb is not Verb.READ
        if not isinstance(surface, Surface):
            return np.zeros(len(operands["handle"][0]), np.bool_)
        return texture_surface.fitting(self.access, surface, operands["coordinates"], writing=writing)


@dataclass(frozen=True)
class LookUp:
    """A look-up in a texture: four components for each lane, as u32."""

    kind: Fetch
    verb = Verb.READ
    proxy = Proxy.TEXTURE

    def __call__(self, memory: Memory, operands: Operands) -> list[Array]:
        """Execute it."""
        result = np.zeros((4, len(operands["handle"][0])), np.uint32)
        for texture, lanes, of_lanes in groups(memory, operands, "texref"):
            if isinstance(texture, Texture):
                with among(lanes):
                    result[:, lanes] = one_texture(self.kind, memory, texture, of_lanes)
        return list(result)

    def touched(self, memory: Memory, operands: Operands) -> Iterator[AccessedBytes]:
        """The bytes of the elements that results depend on; a fault where a lane cannot look up anything."""
        for texture, lanes, of_lanes in groups(memory, operands, "texref"):
            if isinstance(texture, Texture):
                reached: list[AccessedTexels] = []
                with among(lanes):
                    one_texture(self.kind, memory, texture, of_lanes, reached)
                for each in reached:
                    texels, size = each.level.texels, each.level.texels.itemsize
                    (z, y, x), (slice, row, column, step) = each.indexes, texels.strides
                    addresses: Array = address_of(texels) + z * slice + y * row + x * column
                    together = texels.shape[3] if step == size else 1
                    for channel in range(0, texels.shape[3], together):
                        yield AccessedBytes(texels, lanes[each.lanes], addresses + channel * step, size, together)


Watched = LookUp | OnSurface
"""What touches the memory of images."""


def spared(work: Work, memory: Memory, operands: Operands, lane: int) -> Array:
    """The lanes that go on after a refusal: lanes of other handles, and lanes that the surface can serve."""
    handles = operands["handle"][0]
    mine = np.flatnonzero(handles == handles[lane])
    good: Array = handles != handles[lane]
    if isinstance(work, OnSurface):
        try:
            good[mine] = work.good(memory, {name: [a[mine] for a in arrays] for name, arrays in operands.items()})
        except AccessFault:
            good[mine] = False  # the handle is of no surface
    good[lane] = False
    return good


def groups(memory: Memory, operands: Operands, kind: str) -> Iterator[tuple[Opaque, Array, dict[str, list[Array]]]]:
    """The lanes that share a handle: its object, their numbers, and their operands."""
    handles = operands["handle"][0]
    for handle in np.unique(handles):
        lanes = np.flatnonzero(handles == handle)
        of_lanes = {name: [array[lanes] for array in arrays] for name, arrays in operands.items() if name != "handle"}
        with among(lanes):
            found = find(memory, int(handle), kind)
        yield found, lanes, of_lanes


@contextmanager
def among(lanes: Array) -> Iterator[None]:
    """The fault of one of some lanes, with the lane's number among all."""
    try:
        yield
    except AccessFault as fault:
        raise fault.at_lane(int(lanes[min(fault.lane_index, len(lanes) - 1)])) from None


def one_texture(
    kind: Fetch, memory: Memory, texture: Texture, of_lanes: dict[str, list[Array]], reached: list[AccessedTexels] | None = None
) -> Array:
    """The look-up of lanes that share a texture; lanes may have samplers of their own."""
    samplers = of_lanes.pop("sampler", None)
    if samplers is None:
        return sampled(kind, texture, texture.sampling, of_lanes, reached)
    result = np.zeros((4, len(samplers[0])), np.uint32)
    for number in np.unique(samplers[0]):
        lanes = np.flatnonzero(samplers[0] == number)
        with among(lanes):
            sampling = sampling_of(find(memory, int(number)))
        mine: list[AccessedTexels] | None = None if reached is None else []
        some = {name: [array[lanes] for array in arrays] for name, arrays in of_lanes.items()}
        result[:, lanes] = sampled(kind, texture, sampling, some, mine)
        if reached is not None and mine is not None:
            reached += [AccessedTexels(each.level, lanes[each.lanes], each.indexes) for each in mine]
    return result


def sampling_of(opaque: Opaque) -> Sampling:
    """The properties of a sampler; a texture has its own."""
    if isinstance(opaque, Sampler | Texture):
        return opaque.sampling
    raise AccessFault("invalid-handle", f"a .{opaque.kind} is no sampler")


def sampled(
    kind: Fetch,
    texture: Texture,
    sampling: Sampling,
    of_lanes: dict[str, list[Array]],
    reached: list[AccessedTexels] | None = None,
) -> Array:
    """The look-up with one texture and one sampler."""
    gradients = (of_lanes["dPdx"], of_lanes["dPdy"]) if "dPdx" in of_lanes else None
    lod = compare = None
    if "lod" in of_lanes:
        lod = of_lanes["lod"][0].view(np.int32 if kind.integers else np.float32)
    if "compare" in of_lanes:
        compare = of_lanes["compare"][0]
    if gradients is not None:
        gradients = ([g.view(np.float32) for g in gradients[0]], [g.view(np.float32) for g in gradients[1]])
    offset = [o.view(np.int32) for o in of_lanes["offset"]] if "offset" in of_lanes else None
    return fetch(
        kind, texture, sampling, of_lanes["coordinates"], lod=lod, gradients=gradients, offset=offset, compare=compare,
        reached=reached,
    )  # fmt: skip


def query(kind: str, attribute: str) -> Work:
    """An attribute of a texture, sampler or surface."""

    def work(memory: Memory, operands: Operands) -> list[Array]:
        result = np.zeros(len(operands["handle"][0]), np.uint32)
        for opaque, lanes, of_lanes in groups(memory, operands, ""):
            levels = of_lanes["level"][0].view(np.int32) if "level" in of_lanes else np.zeros(len(lanes), np.int32)
            with among(lanes):
                for level in np.unique(levels):
                    result[lanes[levels == level]] = attribute_of(opaque, kind, attribute, int(level))
        return [result]

    return work


def attribute_of(opaque: Opaque, kind: str, attribute: str, level: int) -> int:
    """One attribute of one object."""
    if isinstance(opaque, Sampler) and kind == "sampler":
        return query_sampling(opaque.sampling, attribute) or 0
    if isinstance(opaque, Surface if kind == "surface" else Texture):
        return int(opaque.query(attribute, level))
    raise AccessFault("invalid-handle", f"the handle is that of a .{opaque.kind}, and a {kind} is queried")


def tell_kind(kind: str) -> Work:
    """Is it a pointer to an opaque variable of this kind?"""

    def work(memory: Memory, operands: Operands) -> list[Array]:
        handles = operands["handle"][0]
        truth = {handle: is_a(memory, int(handle), kind) for handle in np.unique(handles)}
        return [np.array([truth[handle] for handle in handles], np.bool_)]

    return work


def load(access: SurfaceAccess) -> OnSurface:
    """Load elements of a surface."""

    def work(memory: Memory, operands: Operands) -> list[Array]:
        count = len(operands["handle"][0])
        results = [np.zeros(count, f"<u{access.type.bytes}") for _ in range(access.count)]
        for surface, lanes, of_lanes in groups(memory, operands, "surfref"):
            if isinstance(surface, Surface):
                with among(lanes):
                    values = texture_surface.load(access, surface, of_lanes["coordinates"])
                for result, value in zip(results, values, strict=True):
                    result[lanes] = value
        return results

    return OnSurface(Verb.READ, access, work)


def store(access: SurfaceAccess) -> OnSurface:
    """Write to a surface."""

    def work(memory: Memory, operands: Operands) -> list[Array]:
        for surface, lanes, of_lanes in groups(memory, operands, "surfref"):
            if isinstance(surface, Surface):
                with among(lanes):
                    texture_surface.store(access, surface, of_lanes["coordinates"], of_lanes["values"])
        return []

    return OnSurface(Verb.WRITE, access, work)


def reduce(operation: str, access: SurfaceAccess) -> OnSurface:
    """Apply an operation to elements of a surface."""

    def work(memory: Memory, operands: Operands) -> list[Array]:
        for surface, lanes, of_lanes in groups(memory, operands, "surfref"):
            if isinstance(surface, Surface):
                with among(lanes):
                    texture_surface.reduce(operation, access, surface, of_lanes["coordinates"], of_lanes["values"][0])
        return []

    return OnSurface(Verb.UPDATE, access, work)


def no_results(dtypes: Sequence[np.dtype[np.generic]], count: int) -> list[Array]:
    """Zeros, for lanes whose guard is false."""
    return [np.zeros(count, dtype) for dtype in dtypes]
