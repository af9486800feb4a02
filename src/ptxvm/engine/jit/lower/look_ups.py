"""The functions of look-ups in textures: what compiled code does with a plan (`abi.texture_plan`).

There are three templates: `look_up` finds the plan and stores the results, `sampled` reads elements of one level, and `levels`
reads one level or two where an instruction says which.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.abi.texture_plan import COMPARED, LEVEL, MODES, PLANS, WORDS
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.ir.runtime import runtime, words_of_plan
from ptxvm.engine.jit.lower.look_up_lines import (
    F32,
    F64,
    I32,
    I64,
    NUMBERS,
    B,
    faces,
    leave_each,
    load_each,
    logarithm,
    no_samplers,
    operand_as_f64,
    operand_as_integers,
    samplers,
    splat,
    splat_of_number,
    store_each,
    truth,
)
from ptxvm.machine.texture_sampling import DIRECTIONS, Fetch

GRADIENTS = ("dPdx", "dPdy")
CORNERS = ((0, 1), (1, 1), (1, 0), (0, 0))  # of the elements that `tld4` gathers: to the right, and below


class LookUpWriter:
    """Writes the functions of a kind of look-up, given the names of its operands and their counts of values."""

    def __init__(self, unit: Unit, kind: Fetch, operands: Sequence[tuple[str, int]]) -> None:
        self.unit, self.kind = unit, kind
        self.places: dict[str, int] = {}  # of the first value of each operand, in steps
        place = 0
        for name, count in operands:
            self.places[name] = place
            place += count
        self.offsets = dict(operands).get("offset", 0)
        self.cube, self.gathers = kind.geometry.endswith("cube"), kind.component is not None
        self.compares = "compare" in self.places
        self.levels = "lod" in self.places or "dPdx" in self.places
        self.directions = DIRECTIONS[kind.geometry]
        self.layered, self.sampled_apart = kind.geometry.startswith("a"), kind.geometry.endswith("ms")
        words = [kind.geometry, *["integers"] * kind.integers, *[f"gather.{kind.component}"] * self.gathers]
        words += [f"{name}.{self.places[name]}" for name in self.places if name not in ("handle", "coordinates")]
        self.name = ".".join(words)

    def write(self) -> str:
        """Define the functions; returns the name of the one that is called."""
        name, sampled = f"ptxvm.look_up.{self.name}", f"ptxvm.sampled.{self.name}"
        if name in self.unit.helpers:
            return name
        self._declare()
        self.unit.helper("ptxvm.texel", runtime("texel"))
        self.unit.helper(sampled, self._sampled(sampled))
        reader = sampled
        if self.levels:
            reader = f"ptxvm.levels.{self.name}"
            self.unit.helper(reader, self._levels(reader, sampled))
        return self.unit.helper(name, self._look_up(name, reader))

    def _declare(self) -> None:
        """Declare the intrinsics of look-ups."""
        unit = self.unit
        unit.declare("llvm.cttz.i32", "i32", "i32", "i1 immarg")
        for intrinsic in ("smin", "smax", "umin"):
            unit.declare(f"llvm.{intrinsic}.v8i64", I64, I64, I64)
        for intrinsic in ("floor", "fabs", "sqrt"):
            unit.declare(f"llvm.{intrinsic}.v8f64", F64, F64)
        for llvm in ("i8", "i16", "i32", "float"):
            vector, short = f"<8 x {llvm}>", llvm.replace("float", "f32")
            unit.declare(f"llvm.masked.gather.v8{short}.v8p0", vector, "<8 x ptr>", "i32 immarg", B, vector)

    # ── the plan ────────────────────────────────────────────────────────────────────────

    def _look_up(self, name: str, reader: str) -> str:
        own = "sampler" not in self.places
        return runtime(
            "look_up", name=name, sampled=reader, last_plan=PLANS - 1, words=len(WORDS), level_words=len(LEVEL),
            integers=truth(self.kind.integers), compares=truth(self.compares), one_level=truth(not self.levels),
            fields=words_of_plan(WORDS, "texture", "sampler", "float", "levels", "first", *(f"mode.{n}" for n in range(3))),
            sampler="\n".join(no_samplers() if own else samplers(STEP * self.places["sampler"])),
            results="\n".join(load_each("found", "result")),
            as_floats="\n".join(store_each("floats", f"fptrunc {F64} %result.$ to {F32}", f"bitcast {F32} %short.$ to {I32}")),
            as_integers="\n".join(store_each("integers", f"fptosi {F64} %result.$ to {I64}", f"trunc {I64} %short.$ to {I32}")),
        )  # fmt: skip

    # ── one level ───────────────────────────────────────────────────────────────────────

    def _sampled(self, name: str) -> str:
        gathers, interpolates = self.gathers, not (self.gathers or self.kind.integers)
        modes = [f"  %mode.{n} = add i64 0, {MODES.index('clamp')}" for n in range(3)] if self.cube else []
        fields = [word for word in WORDS[WORDS.index("slices") :] if not (self.cube and word.startswith("mode"))]
        return runtime(
            "sampled", name=name, corners=1 << self.directions, interpolates=truth(interpolates), gathers=truth(gathers),
            cube=truth(self.cube), floats=truth(not self.kind.integers),
            fields="\n".join([words_of_plan(WORDS, *fields), *modes]), level=words_of_plan(LEVEL, *LEVEL, table="level"),
            splats="\n".join(self._splats()), coordinates="\n".join(self._coordinates()), corner="\n".join(self._corner()),
            components="\n".join(self._components()), given="\n".join([] if gathers else leave_each("result")),
        )  # fmt: skip

    def _splats(self) -> list[str]:
        """Words of the plan as vectors: `%NAME.s`, and the border as f64."""
        lines = []
        for n in NUMBERS:
            lines += splat_of_number(f"border.{n}")
        for name in ("base", *(f"stride.{axis}" for axis in "xyz"), *(f"size.{n}" for n in range(3)), "slices", "last.layer"):
            lines += splat(name, "i64")
        return lines

    def _coordinates(self) -> list[str]:
        """Load the coordinates: the slices, and in each direction the first elements and the weights of those behind them."""
        lines, place = [f"  %slice.0 = add {I64} zeroinitializer, zeroinitializer"], self.places["coordinates"]
        if self.layered:
            lines += [
                *operand_as_integers("layer", place),
                f"  %layer = call {I64} @llvm.umin.v8i64({I64} %layer.wide, {I64} %last.layer.s)",
                f"  %slice.1 = mul {I64} %layer, %slices.s",
            ]
            place += 1
        if self.sampled_apart:
            lines += [
                *operand_as_integers("sample", place),
                f"  %sample.last = sub {I64} %slices.s, splat (i64 1)",
                f"  %sample = call {I64} @llvm.umin.v8i64({I64} %sample.wide, {I64} %sample.last)",
                f"  %slice.2 = add {I64} %slice.{int(self.layered)}, %sample",
            ]
            place += 1
        slice = f"%slice.{2 if self.sampled_apart else int(self.layered)}"
        count = 3 if self.cube else self.directions
        for n in range(count):
            lines += operand_as_f64(f"given.{n}", place + n, integers=self.kind.integers)
        if self.cube:
            lines += faces()
            lines.append(f"  %slice.3 = add {I64} {slice}, %face")
            slice = "%slice.3"
        else:
            lines += [f"  %c.{n} = fadd {F64} %given.{n}, splat (double -0.000000e+00)" for n in range(count)]
        lines += [
            f"  %slice.last = sub {I64} %size.2.s, splat (i64 1)",
            f"  %slice = call {I64} @llvm.umin.v8i64({I64} {slice}, {I64} %slice.last)",
        ]
        for n in range(self.directions):
            lines += self._direction(n)
        return lines

    def _direction(self, n: int) -> list[str]:
        """From a coordinate to the first element in a direction, and the weight of the one behind it."""
        lines = [
            f"  %size.{n}.f = sitofp {I64} %size.{n}.s to {F64}",
            f"  %c.{n}.scaled = fmul {F64} %c.{n}, %size.{n}.f",
            f"  %u.{n}.here = select i1 %is.normalized, {F64} %c.{n}.scaled, {F64} %c.{n}",
        ]
        if n < self.offsets:
            lines += operand_as_f64(f"step.{n}", self.places["offset"] + n, integers=True)
        step = f"%step.{n}" if n < self.offsets else "splat (double -0.000000e+00)"
        return [
            *lines,
            f"  %u.{n}.0 = fadd {F64} %u.{n}.here, {step}",
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
            f"  %first.{n}.f = select i1 %is.between, {F64} %lower.{n}, {F64} %nearest.{n}",
            f"  %first.{n} = fptosi {F64} %first.{n}.f to {I64}",
        ]

    def _corner(self) -> list[str]:
        """The weights and addresses of elements around the points, and the lanes outside; the last direction varies first."""
        lines, weight, outside, address = [], "splat (double 1.000000e+00)", "zeroinitializer", "%base.s"
        for n in range(self.directions):
            lines += [
                *self._second(n),
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
        if self.directions < len("xyz"):
            lines += [f"  %slice.far = mul {I64} %slice, %stride.z.s", f"  %address.slice = add {I64} {address}, %slice.far"]
            address = "%address.slice"
        return [
            *lines,
            f"  %address = add {I64} {address}, zeroinitializer",
            f"  %outside = or {B} {outside}, zeroinitializer",
            f"  %part.whole = fmul {F64} {weight}, splat (double 1.000000e+00)",
        ]

    def _second(self, n: int) -> list[str]:
        """Is a corner of the second element in a direction?"""
        if self.gathers:
            chosen = sum(1 << k for k, corner in enumerate(CORNERS) if corner[n])
            return [f"  %corner.{n} = lshr i32 {chosen}, %corner", f"  %second.{n} = trunc i32 %corner.{n} to i1"]
        back = self.directions - 1 - n
        return [f"  %corner.{n} = lshr i32 %corner, {back}", f"  %second.{n} = trunc i32 %corner.{n} to i1"]

    def _components(self) -> list[str]:
        """Add each component with its weight, or take it as it is where elements are not interpolated or are gathered."""
        lines = self._reference() if self.compares else []
        for n, found in enumerate(("red", "green", "blue", "alpha")):
            lines.append(f"  %element.{n} = select {B} %outside, {F64} %border.{n}.f.s, {F64} %{found}")
            lines += (
                self._compared(n)
                if self.compares
                else [f"  %value.{n} = fadd {F64} %element.{n}, splat (double -0.000000e+00)"]
            )
            lines += [
                f"  %product.{n} = fmul {F64} %part, %value.{n}",
                f"  %weighted.{n} = select {B} %heavy, {F64} %product.{n}, {F64} zeroinitializer",
                f"  %added.{n} = fadd {F64} %sum.{n}, %weighted.{n}",
                f"  %result.{n} = select i1 %is.linear, {F64} %added.{n}, {F64} %value.{n}",
            ]
        if self.gathers:
            at = f"getelementptr {F64}, ptr %found, i32 %corner"
            lines += [f"  %corner.at = {at}", f"  store {F64} %value.{self.kind.component}, ptr %corner.at, align 64"]
        return lines

    def _reference(self) -> list[str]:
        """Load the depths that elements are compared with, and which comparisons hold."""
        lines = [
            f"  %depth.at = getelementptr i8, ptr %own, i64 {STEP * self.places['compare']}",
            f"  %depth.given = load {F32}, ptr %depth.at, align 32",
            f"  %depth = fpext {F32} %depth.given to {F64}",
        ]
        for n, name in enumerate(COMPARED):
            lines += [f"  %{name}.bit = lshr i64 %compared, {n}", f"  %{name}.holds = trunc i64 %{name}.bit to i1"]
        return lines

    def _compared(self, n: int) -> list[str]:
        """1 where the comparison of the depth with an element holds, else 0."""
        lines, so_far = [], "zeroinitializer"
        for name, predicate in zip(COMPARED, ("olt", "oeq", "ogt", "uno"), strict=True):
            lines += [
                f"  %{name}.{n} = fcmp {predicate} {F64} %depth, %element.{n}",
                f"  %{name}.counts.{n} = select i1 %{name}.holds, {B} %{name}.{n}, {B} zeroinitializer",
                f"  %{name}.or.{n} = or {B} {so_far}, %{name}.counts.{n}",
            ]
            so_far = f"%{name}.or.{n}"
        return [*lines, f"  %value.{n} = uitofp {B} {so_far} to {F64}"]

    # ── several levels ──────────────────────────────────────────────────────────────────

    def _levels(self, name: str, sampled: str) -> str:
        splats = [*splat("last", "i64"), *(line for word in ("least", "most", "bias") for line in splat_of_number(word))]
        sums = load_each("read", "part")
        for n in NUMBERS:
            sums += [
                f"  %product.{n} = fmul {F64} %share, %part.{n}",
                f"  %sum.{n} = fadd {F64} %total.{n}, %product.{n}",
                f"  %blend.{n} = select i1 %is.blended, {F64} %sum.{n}, {F64} %part.{n}",
                f"  %new.{n} = select {B} %mine, {F64} %blend.{n}, {F64} %total.{n}",
            ]
        return runtime(
            "levels", name=name, sampled=sampled, level_words=len(LEVEL), compares=truth(self.compares),
            floats=truth(not self.kind.integers), splats="\n".join(splats),
            fields=words_of_plan(WORDS, "float", "blended", "last", "least", "most", "bias"),
            lod="\n".join(self._level_of_detail()),
            sums="\n".join(sums), given="\n".join(leave_each("so.far")),
        )  # fmt: skip

    def _level_of_detail(self) -> list[str]:
        """The level that the operands give, `%lod.given`: their own, or `texture_sampling.level_of`."""
        if "lod" in self.places:
            return operand_as_f64("lod.given", self.places["lod"], integers=self.kind.integers)
        directions = 3 if self.cube else self.directions
        lines = [
            words_of_plan(WORDS, "normalized"),
            words_of_plan(LEVEL, *(f"size.{n}" for n in range(3)), table="level"),
            "  %is.normalized.asked = icmp ne i64 %normalized, 0",
            f"  %is.normalized = or i1 %is.normalized.asked, {truth(self.cube)}",
        ]
        for n in range(directions):
            size = f"size.{0 if self.cube else n}"
            lines += [
                f"  %scale.{n}.0 = sitofp i64 %{size} to double",
                f"  %scale.{n}.1 = fmul double %scale.{n}.0, {0.5 if self.cube else 1.0:e}",
                f"  %scale.{n} = select i1 %is.normalized, double %scale.{n}.1, double 1.000000e+00",
                *splat(f"scale.{n}", "double"),
            ]
        for name in GRADIENTS:
            total = "zeroinitializer"
            for n in range(directions):
                lines += [
                    f"  %{name}.{n}.at = getelementptr i8, ptr %own, i64 {STEP * (self.places[name] + n)}",
                    f"  %{name}.{n}.short = load {F32}, ptr %{name}.{n}.at, align 32",
                    f"  %{name}.{n}.wide = fpext {F32} %{name}.{n}.short to {F64}",
                    f"  %{name}.{n} = fmul {F64} %{name}.{n}.wide, %scale.{n}.s",
                    f"  %{name}.{n}.square = fmul {F64} %{name}.{n}, %{name}.{n}",
                    f"  %{name}.to.{n} = fadd {F64} {total}, %{name}.{n}.square",
                ]
                total = f"%{name}.to.{n}"
            lines.append(f"  %{name} = call {F64} @llvm.sqrt.v8f64({F64} {total})")
        return [*lines, *logarithm(*(f"%{name}" for name in GRADIENTS))]
