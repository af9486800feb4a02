"""Look-ups by compiled code: which there are, and the plans that the host makes for them (`abi.texture_plan`)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeGuard

import numpy as np

from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.abi.texture_plan import COMPARED, ELEMENTS, LEVEL, MODES, WORDS
from ptxvm.engine.jit.ir.constant_folding import f64_bits
from ptxvm.engine.jit.lower import look_ups
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.machine import texture_unit
from ptxvm.machine.opaque import find
from ptxvm.machine.per_lane import Array
from ptxvm.machine.texture import Level, Sampling, Texture
from ptxvm.machine.texture_sampling import COMPARE, linear_light


def suits(work: texture_unit.Work) -> TypeGuard[texture_unit.LookUp]:
    """Is it a look-up?"""
    return isinstance(work, texture_unit.LookUp)


def written(at: NodeBuilder, work: texture_unit.Work, operands: Sequence[tuple[str, int]]) -> str | None:
    """Write the function for a look-up, given its operands by their names and counts of values.

    Returns its name, or None where it is left to the host.
    """
    if not suits(work) or at.kernel.shadow is not None or at.kernel.recorded:
        return None
    return look_ups.LookUpWriter(at.code.unit, work.kind, operands).write()


def remember(host: Host, operands: dict[str, list[Array]]) -> None:
    """Make a plan of a texture and its sampler that all lanes look up something in, if there can be one."""
    handles = [operands[name][0] for name in ("handle", "sampler") if name in operands]
    if not all((each == each[0]).all() for each in handles):
        return
    texture, *sampler = (find(host.memory, int(each[0])) for each in handles)
    if not isinstance(texture, Texture):
        return
    numbers = [int(each[0]) for each in handles]
    made = plan(texture, texture_unit.sampling_of(sampler[0]) if sampler else texture.sampling)
    if made is not None:
        levels = np.array([level_words(level) for level in texture.levels], np.uint64)
        made |= {"texture": numbers[0], "sampler": numbers[1] if sampler else 0, "levels": levels.ctypes.data}
        host.plan_tables.texture([made[word] for word in WORDS], levels, *(level.texels for level in texture.levels))


def plan(texture: Texture, sampling: Sampling) -> dict[str, int] | None:
    """The words of a plan but for the handles and the levels; None where compiled code cannot have one."""
    image, texels, last = texture.image, texture.levels[0].texels, len(texture.levels) - 1
    together = all(image.channels == 1 or level.texels.strides[3] == texels.itemsize for level in texture.levels)
    if not together or (texture.srgb and image.channels == 2):  # the second channel is a colour there, too
        return None
    element = ELEMENTS.index(image.dtype.name)
    found = {
        "last": last, "first": only_level(sampling, last) & (1 << 64) - 1,
        "blended": sampling.mipmap_filter == "linear" and last > 0,
        "least": f64_bits(sampling.mipmap_range[0]), "most": f64_bits(sampling.mipmap_range[1]),
        "bias": f64_bits(sampling.mipmap_bias), "slices": image.slices, "last.layer": image.level.size[2] // image.slices - 1,
        "linear": sampling.filter == "linear" and texture.is_float,
        "normalized": sampling.normalized, "float": texture.is_float, "scaled": texture.read == "normalized_float",
        "element": element, "colour": ELEMENTS.index("srgb") if texture.srgb else element, "bytes": texels.itemsize,
        "channels": image.channels, "light": light().ctypes.data,
        "greatest": f64_bits(2 ** (8 * texels.itemsize - (image.dtype.kind == "i")) - 1),
        "compared": compared(sampling.compare),
    }  # fmt: skip
    found |= {f"mode.{n}": MODES.index(mode) for n, mode in enumerate(sampling.address)}
    found |= {f"border.{n}": f64_bits(each) for n, each in enumerate(sampling.border)}
    return found


def only_level(sampling: Sampling, last: int) -> int:
    """The level of look-ups that name none; -1 where they lie between two, or the kind of coordinates decides."""
    least, most = sampling.mipmap_range
    lod = min(max(min(max(0.0, least), most), 0.0), last)
    return int(lod) if lod == int(lod) else -1


def level_words(level: Level) -> list[int]:
    """The words of a level of detail."""
    texels = level.texels
    words = {"base": texels.ctypes.data} | {f"size.{n}": each for n, each in enumerate(level.size)}
    words |= {f"stride.{axis}": stride & (1 << 64) - 1 for axis, stride in zip("zyx", texels.strides, strict=False)}
    return [words[word] for word in LEVEL]


def compared(name: str) -> int:
    """The bits of what holds in a comparison of a depth with an element."""
    sides = {"lt": (0, 1), "eq": (1, 1), "gt": (1, 0), "unordered": (np.nan, 1)}
    depths, elements = np.array([sides[word] for word in COMPARED], np.float64).T
    return sum(1 << int(n) for n in np.flatnonzero(COMPARE[name](depths, elements)))


@cache
def light() -> Array:
    """The light of the 256 colours of a byte, in f32."""
    return linear_light((np.arange(256) / 255).astype(np.float32).astype(np.float64)).astype(np.float32)
