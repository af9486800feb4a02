"""Look-ups by compiled code: textures of one level in one to three directions, with or without layers (`abi.texture_plan`)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.abi.texture_plan import ELEMENTS, MODES, PLANS, WORDS
from ptxvm.engine.jit.ir.runtime import runtime, words_of_plan
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.machine import texture_unit
from ptxvm.machine.opaque import find
from ptxvm.machine.per_lane import Array
from ptxvm.machine.texture import Sampling, Texture
from ptxvm.machine.texture_sampling import DIRECTIONS, LIMIT

GEOMETRIES = ("1d", "2d", "3d", "a1d", "a2d")


def suits(work: texture_unit.Work, operands: Sequence[tuple[str, int]]) -> bool:
    """Is it a look-up at coordinates, and nothing else?  The operands are given by their names and counts of values."""
    if not isinstance(work, texture_unit.LookUp) or work.kind.geometry not in GEOMETRIES or work.kind.component is not None:
        return False
    return [name for name, _ in operands] in (["handle", "coordinates"], ["handle", "coordinates", "sampler"])


def written(at: NodeBuilder, work: texture_unit.Work, operands: Sequence[tuple[str, int]]) -> str | None:
    """Write the function for a look-up, given its operands; its name, or None where it is left to the host."""
    kernel = at.kernel
    if not isinstance(work, texture_unit.LookUp) or not suits(work, operands) or kernel.shadow is not None or kernel.recorded:
        return None
    unit, kind, counts = at.code.unit, work.kind, dict(operands)
    own, behind = "sampler" not in counts, 1 + counts["coordinates"]
    name = f"ptxvm.look_up.{kind.geometry}{'.integers' if kind.integers else ''}{'' if own else f'.sampler.{behind}'}"
    if name not in unit.helpers:
        directions, layered = DIRECTIONS[kind.geometry], kind.geometry.startswith("a")
        unit.declare("llvm.cttz.i32", "i32", "i32", "i1 immarg")
        for intrinsic in ("smin.i64", "smax.i64", "umin.i64"):
            unit.declare(f"llvm.{intrinsic}", "i64", "i64", "i64")
        unit.declare("llvm.floor.f64", "double", "double")
        unit.helper("ptxvm.texel", runtime("texel"))
        coordinates = _coordinates(directions, integers=kind.integers, layered=layered)
        unit.helper(name, runtime(
            "look_up", name=name, last_plan=PLANS - 1, words=len(WORDS), step=STEP, integers=str(kind.integers).lower(),
            floats=str(not kind.integers).lower(), sampler=STEP * behind, own=str(own).lower(),
            corners=1 << directions, fields=words_of_plan(WORDS, *WORDS[2:]), coordinates="\n".join(coordinates),
            corner="\n".join(_corner(directions)),
        ))  # fmt: skip
    return name


def _coordinates(directions: int, *, integers: bool, layered: bool) -> list[str]:
    """Load the coordinates: the slice, and in each direction the first element, and the weight of the one behind it."""
    lines = []
    if layered:
        lines += [
            f"  %slice.at.first = getelementptr i8, ptr %room, i64 {STEP}",
            "  %slice.at = getelementptr i32, ptr %slice.at.first, i32 %lane",
            "  %slice.given = load i32, ptr %slice.at, align 4",
            "  %slice.wide = zext i32 %slice.given to i64",
        ]
    lines += [
        f"  %slice.most = call i64 @llvm.umin.i64(i64 {'%slice.wide' if layered else '0'}, i64 %layer)",
        "  %depth.last = sub i64 %size.2, 1",
        "  %slice = call i64 @llvm.smin.i64(i64 %slice.most, i64 %depth.last)",
    ]
    for n in range(directions):
        lines += [
            f"  %c.{n}.at.first = getelementptr i8, ptr %room, i64 {STEP * (1 + layered + n)}",
            f"  %c.{n}.at = getelementptr i32, ptr %c.{n}.at.first, i32 %lane",
            *_number(n, integers=integers),
            f"  %size.{n}.f = sitofp i64 %size.{n} to double",
            f"  %c.{n}.scaled = fmul double %c.{n}, %size.{n}.f",
            f"  %u.{n}.0 = select i1 %is.normalized, double %c.{n}.scaled, double %c.{n}",
            f"  %repeats.{n}.0 = fdiv double %u.{n}.0, %size.{n}.f",
            f"  %repeats.{n} = call double @llvm.floor.f64(double %repeats.{n}.0)",
            f"  %before.{n} = fmul double %repeats.{n}, %size.{n}.f",
            f"  %rest.{n} = fsub double %u.{n}.0, %before.{n}",
            f"  %back.{n} = fsub double %size.{n}.f, %rest.{n}",
            f"  %half.{n} = fmul double %repeats.{n}, 5.000000e-01",
            f"  %half.{n}.floor = call double @llvm.floor.f64(double %half.{n})",
            f"  %odd.{n} = fcmp une double %half.{n}, %half.{n}.floor",
            f"  %mirrored.{n} = select i1 %odd.{n}, double %back.{n}, double %rest.{n}",
            f"  %wraps.{n} = icmp eq i64 %mode.{n}, {MODES.index('wrap')}",
            f"  %mirrors.{n} = icmp eq i64 %mode.{n}, {MODES.index('mirror')}",
            f"  %u.{n}.1 = select i1 %wraps.{n}, double %rest.{n}, double %u.{n}.0",
            f"  %u.{n} = select i1 %mirrors.{n}, double %mirrored.{n}, double %u.{n}.1",
            f"  %moved.{n} = fsub double %u.{n}, 5.000000e-01",
            f"  %fine.{n} = fmul double %moved.{n}, 2.560000e+02",
            f"  %round.{n} = fadd double %fine.{n}, 5.000000e-01",
            f"  %fixed.{n} = call double @llvm.floor.f64(double %round.{n})",
            f"  %parts.{n} = fmul double %fixed.{n}, 3.906250e-03",
            f"  %lower.{n} = call double @llvm.floor.f64(double %parts.{n})",
            f"  %weight.{n} = fsub double %parts.{n}, %lower.{n}",
            f"  %nearest.{n} = call double @llvm.floor.f64(double %u.{n})",
            f"  %first.{n}.f = select i1 %is.linear, double %lower.{n}, double %nearest.{n}",
            f"  %first.{n} = fptosi double %first.{n}.f to i64",
        ]
    return lines


def _number(n: int, *, integers: bool) -> list[str]:
    """Load a coordinate as f64: of a float that is no number 0, and what is far outside of any image as the limit."""
    if integers:
        return [f"  %c.{n}.given = load i32, ptr %c.{n}.at, align 4", f"  %c.{n} = sitofp i32 %c.{n}.given to double"]
    most, least = (f"{sign}{LIMIT:e}" for sign in ("", "-"))
    return [
        f"  %c.{n}.given = load float, ptr %c.{n}.at, align 4",
        f"  %c.{n}.wide = fpext float %c.{n}.given to double",
        f"  %c.{n}.nan = fcmp uno double %c.{n}.wide, 0.000000e+00",
        f"  %c.{n}.number = select i1 %c.{n}.nan, double 0.000000e+00, double %c.{n}.wide",
        f"  %c.{n}.low = fcmp olt double %c.{n}.number, {least}",
        f"  %c.{n}.not.low = select i1 %c.{n}.low, double {least}, double %c.{n}.number",
        f"  %c.{n}.high = fcmp ogt double %c.{n}.not.low, {most}",
        f"  %c.{n} = select i1 %c.{n}.high, double {most}, double %c.{n}.not.low",
    ]


def _corner(directions: int) -> list[str]:
    """The weight of an element around the point, its address, and whether it is outside; the last direction varies first."""
    lines, weight, outside, address = [], "1.000000e+00", "false", "%base"
    for n in range(directions):
        lines += [
            f"  %corner.{n} = lshr i32 %corner, {directions - 1 - n}",
            f"  %second.{n} = trunc i32 %corner.{n} to i1",
            f"  %other.{n} = fsub double 1.000000e+00, %weight.{n}",
            f"  %part.{n} = select i1 %second.{n}, double %weight.{n}, double %other.{n}",
            f"  %weight.to.{n} = fmul double {weight}, %part.{n}",
            f"  %step.{n} = zext i1 %second.{n} to i64",
            f"  %at.{n} = add i64 %first.{n}, %step.{n}",
            f"  %last.{n} = sub i64 %size.{n}, 1",
            f"  %not.over.{n} = call i64 @llvm.smin.i64(i64 %at.{n}, i64 %last.{n})",
            f"  %inside.{n} = call i64 @llvm.smax.i64(i64 %not.over.{n}, i64 0)",
            f"  %is.out.{n} = icmp ne i64 %inside.{n}, %at.{n}",
            f"  %bordered.{n} = icmp eq i64 %mode.{n}, {MODES.index('border')}",
            f"  %out.{n} = and i1 %is.out.{n}, %bordered.{n}",
            f"  %outside.{n} = or i1 {outside}, %out.{n}",
            f"  %across.{n} = sub i64 %last.{n}, %inside.{n}",  # behind the last element is the first, and vice versa
            f"  %around.{n} = and i1 %is.out.{n}, %wraps.{n}",
            f"  %index.{n} = select i1 %around.{n}, i64 %across.{n}, i64 %inside.{n}",
            f"  %far.{n} = mul i64 %index.{n}, %stride.{'xyz'[n]}",
            f"  %address.{n} = add i64 {address}, %far.{n}",
        ]
        weight, outside, address = f"%weight.to.{n}", f"%outside.{n}", f"%address.{n}"
    if directions < len("xyz"):
        lines += ["  %slice.far = mul i64 %slice, %stride.z", f"  %address.slice = add i64 {address}, %slice.far"]
        address = "%address.slice"
    return [*lines, f"  %address = add i64 {address}, 0", f"  %outside = or i1 {outside}, false",
            f"  %part.whole = fmul double {weight}, 1.000000e+00"]  # fmt: skip


# ── the host's part ─────────────────────────────────────────────────────────────────────


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
        made |= {"texture": numbers[0], "sampler": numbers[1] if sampler else 0}
        host.plan_tables.texture([made[word] for word in WORDS], texture.levels[0].texels)


def plan(texture: Texture, sampling: Sampling) -> dict[str, int] | None:
    """The words of a plan but for the handles; None where look-ups are not as simple as compiled code has them."""
    image, texels = texture.image, texture.levels[0].texels
    least, most = sampling.mipmap_range
    plain = image.slices == 1 and not texture.srgb and min(max(0.0, least), most, len(texture.levels) - 1) == 0
    together = image.channels == 1 or texels.strides[3] == texels.itemsize
    if not plain or not together or image.dtype.name not in ELEMENTS:
        return None
    size, greatest = image.level.size, 2 ** (8 * texels.itemsize - (image.dtype.kind == "i")) - 1
    found = {
        "base": texels.ctypes.data, "layer": size[2] - 1, "linear": sampling.filter == "linear" and texture.is_float,
        "normalized": sampling.normalized, "float": texture.is_float, "scaled": texture.read == "normalized_float",
        "element": ELEMENTS.index(image.dtype.name), "bytes": texels.itemsize, "channels": image.channels,
        "greatest": bits_of(greatest),
    }  # fmt: skip
    found |= {f"stride.{axis}": stride & (1 << 64) - 1 for axis, stride in zip("zyx", texels.strides, strict=False)}
    found |= {f"size.{n}": each for n, each in enumerate(size)}
    found |= {f"mode.{n}": MODES.index(mode) for n, mode in enumerate(sampling.address)}
    found |= {f"border.{n}": bits_of(each) for n, each in enumerate(sampling.border)}
    return found


def bits_of(number: float) -> int:
    """The bits of a number as f64."""
    return int(np.float64(number).view(np.uint64))
