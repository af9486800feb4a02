"""Look-ups by compiled code: textures of one level in one to three directions, with or without layers (`abi.texture_plan`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.abi.texture_plan import ELEMENTS, MODES, PLANS, WORDS
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.ir.runtime import runtime, words_of_plan
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.machine import texture_unit
from ptxvm.machine.opaque import find
from ptxvm.machine.per_lane import Array
from ptxvm.machine.texture import Sampling, Texture
from ptxvm.machine.texture_sampling import DIRECTIONS, LIMIT

F64, F32, I64, I32, B = (f"<8 x {llvm}>" for llvm in ("double", "float", "i64", "i32", "i1"))
GEOMETRIES = ("1d", "2d", "3d", "a1d", "a2d")


def suits(work: texture_unit.Work, operands: Sequence[tuple[str, int]]) -> TypeGuard[texture_unit.LookUp]:
    """Is it a look-up at coordinates, and nothing else?  The operands are given by their names and counts of values."""
    if not isinstance(work, texture_unit.LookUp) or work.kind.geometry not in GEOMETRIES or work.kind.component is not None:
        return False
    return [name for name, _ in operands] in (["handle", "coordinates"], ["handle", "coordinates", "sampler"])


def written(at: NodeBuilder, work: texture_unit.Work, operands: Sequence[tuple[str, int]]) -> str | None:
    """Write the function for a look-up, given its operands; its name, or None where it is left to the host."""
    if not suits(work, operands) or at.kernel.shadow is not None or at.kernel.recorded:
        return None
    unit, kind, counts = at.code.unit, work.kind, dict(operands)
    own, behind = "sampler" not in counts, 1 + counts["coordinates"]
    name = f"ptxvm.look_up.{kind.geometry}{'.integers' if kind.integers else ''}{'' if own else f'.sampler.{behind}'}"
    if name not in unit.helpers:
        directions, layered = DIRECTIONS[kind.geometry], kind.geometry.startswith("a")
        _declare(unit)
        unit.helper("ptxvm.texel", runtime("texel"))
        unit.helper(name, runtime(
            "look_up", name=name, last_plan=PLANS - 1, words=len(WORDS), integers=str(kind.integers).lower(),
            floats=str(not kind.integers).lower(), corners=1 << directions, fields=words_of_plan(WORDS, *WORDS[2:]),
            sampler="\n".join(_no_samplers() if own else _samplers(STEP * behind)), splats="\n".join(_splats()),
            coordinates="\n".join(_coordinates(directions, integers=kind.integers, layered=layered)),
            corner="\n".join(_corner(directions)), components="\n".join(_components()),
            as_floats="\n".join(_given("floats", f"fptrunc {F64} %result.$ to {F32}", f"bitcast {F32} %short.$ to {I32}")),
            as_integers="\n".join(_given("integers", f"fptosi {F64} %result.$ to {I64}", f"trunc {I64} %short.$ to {I32}")),
        ))  # fmt: skip
    return name


def _declare(unit: Unit) -> None:
    """Declare the intrinsics of look-ups."""
    unit.declare("llvm.cttz.i32", "i32", "i32", "i1 immarg")
    for intrinsic in ("smin", "smax", "umin"):
        unit.declare(f"llvm.{intrinsic}.v8i64", I64, I64, I64)
    unit.declare("llvm.floor.v8f64", F64, F64)
    for llvm in ("i8", "i16", "i32", "float"):
        vector, short = f"<8 x {llvm}>", llvm.replace("float", "f32")
        unit.declare(f"llvm.masked.gather.v8{short}.v8p0", vector, "<8 x ptr>", "i32 immarg", B, vector)


def _no_samplers() -> list[str]:
    """The same for textures that have samplers of their own: no lane has another one."""
    return ["  %sampler.own = add i64 0, 0", "  %samplers.bits = add i32 0, 0"]


def _samplers(offset: int) -> list[str]:
    """The sampler of the first lane, and the lanes that have another one."""
    return [
        f"  %samplers.at = getelementptr i8, ptr %room, i64 {offset}",
        "  %samplers = load <32 x i64>, ptr %samplers.at, align 64",
        "  %sampler.own = extractelement <32 x i64> %samplers, i32 %lane.first",
        "  %sampler.one = insertelement <32 x i64> poison, i64 %sampler.own, i32 0",
        "  %sampler.all = shufflevector <32 x i64> %sampler.one, <32 x i64> poison, <32 x i32> zeroinitializer",
        "  %samplers.differ = icmp ne <32 x i64> %samplers, %sampler.all",
        "  %samplers.bits = bitcast <32 x i1> %samplers.differ to i32",
    ]


def _splats() -> list[str]:
    """Words of the plan as vectors: `%NAME.s`, and the border as f64."""
    lines = []
    for n in range(4):
        lines += [f"  %border.{n}.f = bitcast i64 %border.{n} to double", *_splat(f"border.{n}.f", "double")]
    for name in ("base", *(f"stride.{axis}" for axis in "xyz"), *(f"size.{n}" for n in range(3))):
        lines += _splat(name, "i64")
    return lines


def _splat(name: str, llvm: str) -> list[str]:
    vector = f"<8 x {llvm}>"
    return [
        f"  %{name}.one = insertelement {vector} poison, {llvm} %{name}, i32 0",
        f"  %{name}.s = shufflevector {vector} %{name}.one, {vector} poison, <8 x i32> zeroinitializer",
    ]


def _coordinates(directions: int, *, integers: bool, layered: bool) -> list[str]:
    """Load the coordinates: the slices, and in each direction the first elements, and the weights of the ones behind them."""
    lines = []
    if layered:
        lines += [
            f"  %slice.at = getelementptr i8, ptr %own, i64 {STEP}",
            f"  %slice.given = load {I32}, ptr %slice.at, align 32",
            f"  %slice.wide = zext {I32} %slice.given to {I64}",
        ]
    lines += [
        f"  %slice.last = sub {I64} %size.2.s, splat (i64 1)",
        f"  %slice = call {I64} @llvm.umin.v8i64({I64} {'%slice.wide' if layered else 'zeroinitializer'}, {I64} %slice.last)",
    ]
    for n in range(directions):
        lines += [
            f"  %c.{n}.at = getelementptr i8, ptr %own, i64 {STEP * (1 + layered + n)}",
            *_number(n, integers=integers),
            f"  %size.{n}.f = sitofp {I64} %size.{n}.s to {F64}",
            f"  %c.{n}.scaled = fmul {F64} %c.{n}, %size.{n}.f",
            f"  %u.{n}.0 = select i1 %is.normalized, {F64} %c.{n}.scaled, {F64} %c.{n}",
            f"  %repeats.{n}.0 = fdiv {F64} %u.{n}.0, %size.{n}.f",
            f"  %repeats.{n} = call {F64} @llvm.floor.v8f64({F64} %repeats.{n}.0)",
            f"  %before.{n} = fmul {F64} %repeats.{n}, %size.{n}.f",
            f"  %rest.{n} = fsub {F64} %u.{n}.0, %before.{n}",
            f"  %back.{n} = fsub {F64} %size.{n}.f, %rest.{n}",
            f"  %half.{n} = fmul {F64} %repeats.{n}, splat (double 5.000000e-01)",
            f"  %half.{n}.floor = call {F64} @llvm.floor.v8f64({F64} %half.{n})",
            f"  %odd.{n} = fcmp une {F64} %half.{n}, %half.{n}.floor",
            f"  %mirrored.{n} = select {B} %odd.{n}, {F64} %back.{n}, {F64} %rest.{n}",
            f"  %wraps.{n} = icmp eq i64 %mode.{n}, {MODES.index('wrap')}",
            f"  %mirrors.{n} = icmp eq i64 %mode.{n}, {MODES.index('mirror')}",
            f"  %u.{n}.1 = select i1 %wraps.{n}, {F64} %rest.{n}, {F64} %u.{n}.0",
            f"  %u.{n} = select i1 %mirrors.{n}, {F64} %mirrored.{n}, {F64} %u.{n}.1",
            f"  %moved.{n} = fsub {F64} %u.{n}, splat (double 5.000000e-01)",
            f"  %fine.{n} = fmul {F64} %moved.{n}, splat (double 2.560000e+02)",
            f"  %round.{n} = fadd {F64} %fine.{n}, splat (double 5.000000e-01)",
            f"  %fixed.{n} = call {F64} @llvm.floor.v8f64({F64} %round.{n})",
            f"  %parts.{n} = fmul {F64} %fixed.{n}, splat (double 3.906250e-03)",
            f"  %lower.{n} = call {F64} @llvm.floor.v8f64({F64} %parts.{n})",
            f"  %weight.{n} = fsub {F64} %parts.{n}, %lower.{n}",
            f"  %nearest.{n} = call {F64} @llvm.floor.v8f64({F64} %u.{n})",
            f"  %first.{n}.f = select i1 %is.linear, {F64} %lower.{n}, {F64} %nearest.{n}",
            f"  %first.{n} = fptosi {F64} %first.{n}.f to {I64}",
        ]
    return lines


def _number(n: int, *, integers: bool) -> list[str]:
    """Load coordinates as f64: of a float that is no number 0, and what is far outside of any image as the limit."""
    if integers:
        return [f"  %c.{n}.given = load {I32}, ptr %c.{n}.at, align 32", f"  %c.{n} = sitofp {I32} %c.{n}.given to {F64}"]
    most, least = (f"splat (double {sign}{LIMIT:e})" for sign in ("", "-"))
    return [
        f"  %c.{n}.given = load {F32}, ptr %c.{n}.at, align 32",
        f"  %c.{n}.wide = fpext {F32} %c.{n}.given to {F64}",
        f"  %c.{n}.nan = fcmp uno {F64} %c.{n}.wide, zeroinitializer",
        f"  %c.{n}.number = select {B} %c.{n}.nan, {F64} zeroinitializer, {F64} %c.{n}.wide",
        f"  %c.{n}.low = fcmp olt {F64} %c.{n}.number, {least}",
        f"  %c.{n}.not.low = select {B} %c.{n}.low, {F64} {least}, {F64} %c.{n}.number",
        f"  %c.{n}.high = fcmp ogt {F64} %c.{n}.not.low, {most}",
        f"  %c.{n} = select {B} %c.{n}.high, {F64} {most}, {F64} %c.{n}.not.low",
    ]


def _corner(directions: int) -> list[str]:
    """The weights of elements around the points, their addresses, and which are outside; the last direction varies first."""
    lines, weight, outside, address = [], "splat (double 1.000000e+00)", "zeroinitializer", "%base.s"
    for n in range(directions):
        lines += [
            f"  %corner.{n} = lshr i32 %corner, {directions - 1 - n}",
            f"  %second.{n} = trunc i32 %corner.{n} to i1",
            f"  %other.{n} = fsub {F64} splat (double 1.000000e+00), %weight.{n}",
            f"  %part.{n} = select i1 %second.{n}, {F64} %weight.{n}, {F64} %other.{n}",
            f"  %weight.to.{n} = fmul {F64} {weight}, %part.{n}",
            f"  %behind.{n} = add {I64} %first.{n}, splat (i64 1)",
            f"  %at.{n} = select i1 %second.{n}, {I64} %behind.{n}, {I64} %first.{n}",
            f"  %last.{n} = sub {I64} %size.{n}.s, splat (i64 1)",
            f"  %not.over.{n} = call {I64} @llvm.smin.v8i64({I64} %at.{n}, {I64} %last.{n})",
            f"  %inside.{n} = call {I64} @llvm.smax.v8i64({I64} %not.over.{n}, {I64} zeroinitializer)",
            f"  %is.out.{n} = icmp ne {I64} %inside.{n}, %at.{n}",
            f"  %bordered.{n} = icmp eq i64 %mode.{n}, {MODES.index('border')}",
            f"  %out.{n} = select i1 %bordered.{n}, {B} %is.out.{n}, {B} zeroinitializer",
            f"  %outside.{n} = or {B} {outside}, %out.{n}",
            f"  %across.{n} = sub {I64} %last.{n}, %inside.{n}",  # behind the last element is the first, and vice versa
            f"  %around.{n} = select i1 %wraps.{n}, {B} %is.out.{n}, {B} zeroinitializer",
            f"  %index.{n} = select {B} %around.{n}, {I64} %across.{n}, {I64} %inside.{n}",
            f"  %far.{n} = mul {I64} %index.{n}, %stride.{'xyz'[n]}.s",
            f"  %address.{n} = add {I64} {address}, %far.{n}",
        ]
        weight, outside, address = f"%weight.to.{n}", f"%outside.{n}", f"%address.{n}"
    if directions < len("xyz"):
        lines += [f"  %slice.far = mul {I64} %slice, %stride.z.s", f"  %address.slice = add {I64} {address}, %slice.far"]
        address = "%address.slice"
    return [
        *lines,
        f"  %address = add {I64} {address}, zeroinitializer",
        f"  %outside = or {B} {outside}, zeroinitializer",
        f"  %part.whole = fmul {F64} {weight}, splat (double 1.000000e+00)",
    ]


def _components() -> list[str]:
    """Add each component with its weight, or take it as it is where elements are not interpolated."""
    lines = []
    for n, found in enumerate(("red", "green", "blue", "alpha")):
        lines += [
            f"  %value.{n} = select {B} %outside, {F64} %border.{n}.f.s, {F64} %{found}",
            f"  %product.{n} = fmul {F64} %part, %value.{n}",
            f"  %weighted.{n} = select {B} %heavy, {F64} %product.{n}, {F64} zeroinitializer",
            f"  %added.{n} = fadd {F64} %sum.{n}, %weighted.{n}",
            f"  %result.{n} = select i1 %is.linear, {F64} %added.{n}, {F64} %value.{n}",
        ]
    return lines


def _given(kind: str, shorter: str, words: str) -> list[str]:
    """Store the four components as words, by two operations in which `$` stands for the number of a component."""
    lines = []
    for n in range(4):
        lines += [
            f"  %short.{kind}.{n} = {shorter.replace('$', str(n))}",
            f"  %words.{kind}.{n} = {words.replace('short.$', f'short.{kind}.{n}')}",
            f"  %{kind}.at.{n} = getelementptr i8, ptr %own, i64 {STEP * n}",
            f"  store {I32} %words.{kind}.{n}, ptr %{kind}.at.{n}, align 32",
        ]
    return lines


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
        "base": texels.ctypes.data, "linear": sampling.filter == "linear" and texture.is_float,
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
