"""The functions of look-ups in textures: what compiled code does with a plan (`abi.texture_plan`).

There are three templates: `look_up` finds the plan and stores the results, `sampled` reads elements of one level, and `levels`
reads one level or two where an instruction says which.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.abi.texture_plan import COMPARED, LEVEL, MODES, PLANS, WORDS
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.ir.constant_folding import f64_bits
from ptxvm.engine.jit.ir.lane_values import literal
from ptxvm.engine.jit.ir.runtime import runtime, words_of_plan
from ptxvm.machine.texture_sampling import DIRECTIONS, HALF_ROOT, LIMIT, SERIES, SHORTEST, Fetch

F64, F32, I64, I32, B = (f"<8 x {llvm}>" for llvm in ("double", "float", "i64", "i32", "i1"))
GRADIENTS = ("dPdx", "dPdy")
CORNERS = ((0, 1), (1, 1), (1, 0), (0, 0))  # of the elements that `tld4` gathers: to the right, and below
NUMBERS = range(4)  # of the components


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
            integers=_truth(self.kind.integers), compares=_truth(self.compares), one_level=_truth(not self.levels),
            fields=words_of_plan(WORDS, "texture", "sampler", "float", "levels", "first", *(f"mode.{n}" for n in range(3))),
            sampler="\n".join(_no_samplers() if own else _samplers(STEP * self.places["sampler"])),
            results="\n".join(_loaded("found", "result")),
            as_floats="\n".join(_stored("floats", f"fptrunc {F64} %result.$ to {F32}", f"bitcast {F32} %short.$ to {I32}")),
            as_integers="\n".join(_stored("integers", f"fptosi {F64} %result.$ to {I64}", f"trunc {I64} %short.$ to {I32}")),
        )  # fmt: skip

    # ── one level ───────────────────────────────────────────────────────────────────────

    def _sampled(self, name: str) -> str:
        gathers, interpolates = self.gathers, not (self.gathers or self.kind.integers)
        modes = [f"  %mode.{n} = add i64 0, {MODES.index('clamp')}" for n in range(3)] if self.cube else []
        fields = [word for word in WORDS[WORDS.index("slices") :] if not (self.cube and word.startswith("mode"))]
        return runtime(
            "sampled", name=name, corners=1 << self.directions, interpolates=_truth(interpolates), gathers=_truth(gathers),
            cube=_truth(self.cube), floats=_truth(not self.kind.integers),
            fields="\n".join([words_of_plan(WORDS, *fields), *modes]), level=words_of_plan(LEVEL, *LEVEL, table="level"),
            splats="\n".join(self._splats()), coordinates="\n".join(self._coordinates()), corner="\n".join(self._corner()),
            components="\n".join(self._components()), given="\n".join([] if gathers else _kept("result")),
        )  # fmt: skip

    def _splats(self) -> list[str]:
        """Words of the plan as vectors: `%NAME.s`, and the border as f64."""
        lines = []
        for n in NUMBERS:
            lines += _number_splat(f"border.{n}")
        for name in ("base", *(f"stride.{axis}" for axis in "xyz"), *(f"size.{n}" for n in range(3)), "slices", "last.layer"):
            lines += _splat(name, "i64")
        return lines

    def _coordinates(self) -> list[str]:
        """Load the coordinates: the slices, and in each direction the first elements and the weights of those behind them."""
        lines, place = [f"  %slice.0 = add {I64} zeroinitializer, zeroinitializer"], self.places["coordinates"]
        if self.layered:
            lines += [
                *_whole("layer", place),
                f"  %layer = call {I64} @llvm.umin.v8i64({I64} %layer.wide, {I64} %last.layer.s)",
                f"  %slice.1 = mul {I64} %layer, %slices.s",
            ]
            place += 1
        if self.sampled_apart:
            lines += [
                *_whole("sample", place),
                f"  %sample.last = sub {I64} %slices.s, splat (i64 1)",
                f"  %sample = call {I64} @llvm.umin.v8i64({I64} %sample.wide, {I64} %sample.last)",
                f"  %slice.2 = add {I64} %slice.{int(self.layered)}, %sample",
            ]
            place += 1
        slice = f"%slice.{2 if self.sampled_apart else int(self.layered)}"
        count = 3 if self.cube else self.directions
        for n in range(count):
            lines += _number(f"given.{n}", place + n, integers=self.kind.integers)
        if self.cube:
            lines += _faces()
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
            lines += _number(f"step.{n}", self.places["offset"] + n, integers=True)
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
        splats = [*_splat("last", "i64"), *(line for word in ("least", "most", "bias") for line in _number_splat(word))]
        sums = _loaded("read", "part")
        for n in NUMBERS:
            sums += [
                f"  %product.{n} = fmul {F64} %share, %part.{n}",
                f"  %sum.{n} = fadd {F64} %total.{n}, %product.{n}",
                f"  %blend.{n} = select i1 %is.blended, {F64} %sum.{n}, {F64} %part.{n}",
                f"  %new.{n} = select {B} %mine, {F64} %blend.{n}, {F64} %total.{n}",
            ]
        return runtime(
            "levels", name=name, sampled=sampled, level_words=len(LEVEL), compares=_truth(self.compares),
            floats=_truth(not self.kind.integers), splats="\n".join(splats),
            fields=words_of_plan(WORDS, "float", "blended", "last", "least", "most", "bias"),
            lod="\n".join(self._level_of_detail()),
            sums="\n".join(sums), given="\n".join(_kept("so.far")),
        )  # fmt: skip

    def _level_of_detail(self) -> list[str]:
        """The level that the operands give, `%lod.given`: their own, or `texture_sampling.level_of`."""
        if "lod" in self.places:
            return _number("lod.given", self.places["lod"], integers=self.kind.integers)
        directions = 3 if self.cube else self.directions
        lines = [
            words_of_plan(WORDS, "normalized"),
            words_of_plan(LEVEL, *(f"size.{n}" for n in range(3)), table="level"),
            "  %is.normalized.asked = icmp ne i64 %normalized, 0",
            f"  %is.normalized = or i1 %is.normalized.asked, {_truth(self.cube)}",
        ]
        for n in range(directions):
            size = f"size.{0 if self.cube else n}"
            lines += [
                f"  %scale.{n}.0 = sitofp i64 %{size} to double",
                f"  %scale.{n}.1 = fmul double %scale.{n}.0, {0.5 if self.cube else 1.0:e}",
                f"  %scale.{n} = select i1 %is.normalized, double %scale.{n}.1, double 1.000000e+00",
                *_splat(f"scale.{n}", "double"),
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
        return [*lines, *_logarithm(*(f"%{name}" for name in GRADIENTS))]


def _logarithm(first: str, second: str) -> list[str]:
    """`%lod.given`, the binary logarithm of the longer one: `texture_sampling.binary_logarithm`; 0 where one is no number."""
    lines = [
        f"  %no.length = fcmp uno {F64} {first}, {second}",
        f"  %first.longer = fcmp ogt {F64} {first}, {second}",
        f"  %longer = select {B} %first.longer, {F64} {first}, {F64} {second}",
        f"  %is.short = fcmp olt {F64} %longer, splat (double {_exact(SHORTEST)})",
        f"  %length = select {B} %is.short, {F64} splat (double {_exact(SHORTEST)}), {F64} %longer",
        f"  %length.bits = bitcast {F64} %length to {I64}",
        f"  %power = lshr {I64} %length.bits, splat (i64 52)",
        f"  %power.half = sub {I64} %power, splat (i64 1022)",
        f"  %part.bits = and {I64} %length.bits, splat (i64 {(1 << 52) - 1})",
        f"  %half.bits = or {I64} %part.bits, splat (i64 {1022 << 52})",
        f"  %half = bitcast {I64} %half.bits to {F64}",
        f"  %is.lower = fcmp ole {F64} %half, splat (double {_exact(HALF_ROOT)})",
        f"  %double = fmul {F64} %half, splat (double 2.000000e+00)",
        f"  %mantissa = select {B} %is.lower, {F64} %double, {F64} %half",
        f"  %is.lower.i = zext {B} %is.lower to {I64}",
        f"  %exponent.i = sub {I64} %power.half, %is.lower.i",
        f"  %exponent = sitofp {I64} %exponent.i to {F64}",
        f"  %t.above = fsub {F64} %mantissa, splat (double 1.000000e+00)",
        f"  %t.below = fadd {F64} %mantissa, splat (double 1.000000e+00)",
        f"  %t = fdiv {F64} %t.above, %t.below",
        f"  %t.square = fmul {F64} %t, %t",
    ]
    total = f"splat (double {_exact(SERIES[-1])})"
    for n, term in enumerate(SERIES[-2::-1]):
        lines += [
            f"  %series.{n}.0 = fmul {F64} {total}, %t.square",
            f"  %series.{n} = fadd {F64} %series.{n}.0, splat (double {_exact(term)})",
        ]
        total = f"%series.{n}"
    return [
        *lines,
        f"  %fraction = fmul {F64} %t, {total}",
        f"  %logarithm = fadd {F64} %exponent, %fraction",
        f"  %lod.given = select {B} %no.length, {F64} zeroinitializer, {F64} %logarithm",
    ]


def _exact(number: float) -> str:
    """A number as LLVM writes one that no short decimal gives."""
    return literal("double", f64_bits(number))


def _truth(holds: bool) -> str:  # noqa: FBT001 - the one thing that it is about
    return str(holds).lower()


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


def _splat(name: str, llvm: str) -> list[str]:
    vector = f"<8 x {llvm}>"
    return [
        f"  %{name}.one = insertelement {vector} poison, {llvm} %{name}, i32 0",
        f"  %{name}.s = shufflevector {vector} %{name}.one, {vector} poison, <8 x i32> zeroinitializer",
    ]


def _number_splat(name: str) -> list[str]:
    """The bits of a number as a vector of it: `%NAME.f.s`."""
    return [f"  %{name}.f = bitcast i64 %{name} to double", *_splat(f"{name}.f", "double")]


def _whole(name: str, place: int) -> list[str]:
    """Load an operand as unsigned integers: `%NAME.wide`."""
    return [
        f"  %{name}.at = getelementptr i8, ptr %own, i64 {STEP * place}",
        f"  %{name}.given = load {I32}, ptr %{name}.at, align 32",
        f"  %{name}.wide = zext {I32} %{name}.given to {I64}",
    ]


def _number(name: str, place: int, *, integers: bool) -> list[str]:
    """Load an operand as f64: of a float that is no number 0, and what is far outside of any image as the limit."""
    at = f"  %{name}.at = getelementptr i8, ptr %own, i64 {STEP * place}"
    if integers:
        return [at, f"  %{name}.i = load {I32}, ptr %{name}.at, align 32", f"  %{name} = sitofp {I32} %{name}.i to {F64}"]
    most, least = (f"splat (double {_exact(limit)})" for limit in (LIMIT, -LIMIT))
    return [
        at,
        f"  %{name}.short = load {F32}, ptr %{name}.at, align 32",
        f"  %{name}.wide = fpext {F32} %{name}.short to {F64}",
        f"  %{name}.nan = fcmp uno {F64} %{name}.wide, zeroinitializer",
        f"  %{name}.number = select {B} %{name}.nan, {F64} zeroinitializer, {F64} %{name}.wide",
        f"  %{name}.low = fcmp olt {F64} %{name}.number, {least}",
        f"  %{name}.not.low = select {B} %{name}.low, {F64} {least}, {F64} %{name}.number",
        f"  %{name}.high = fcmp ogt {F64} %{name}.not.low, {most}",
        f"  %{name} = select {B} %{name}.high, {F64} {most}, {F64} %{name}.not.low",
    ]


def _faces() -> list[str]:
    """The faces of a cube in the directions `%given.$`, and the coordinates in them: `texture_sampling.face_of`."""
    lines = [f"  %long.{n} = call {F64} @llvm.fabs.v8f64({F64} %given.{n})" for n in range(3)]
    lines += [f"  %minus.{n} = fneg {F64} %given.{n}" for n in range(3)]
    lines += [
        f"  %x.y = fcmp oge {F64} %long.0, %long.1",
        f"  %x.z = fcmp oge {F64} %long.0, %long.2",
        f"  %y.z = fcmp oge {F64} %long.1, %long.2",
        f"  %along.x = and {B} %x.y, %x.z",
        f"  %not.x = xor {B} %along.x, splat (i1 true)",
        f"  %along.y = and {B} %not.x, %y.z",
        f"  %axis.yz = select {B} %along.y, {F64} %given.1, {F64} %given.2",
        f"  %axis = select {B} %along.x, {F64} %given.0, {F64} %axis.yz",
        f"  %negative = fcmp olt {F64} %axis, zeroinitializer",
        f"  %face.yz = select {B} %along.y, {I64} splat (i64 2), {I64} splat (i64 4)",
        f"  %face.even = select {B} %along.x, {I64} zeroinitializer, {I64} %face.yz",
        f"  %face.odd = zext {B} %negative to {I64}",
        f"  %face = add {I64} %face.even, %face.odd",
        f"  %s.x = select {B} %negative, {F64} %given.2, {F64} %minus.2",
        f"  %s.z = select {B} %negative, {F64} %minus.0, {F64} %given.0",
        f"  %s.yz = select {B} %along.y, {F64} %given.0, {F64} %s.z",
        f"  %s = select {B} %along.x, {F64} %s.x, {F64} %s.yz",
        f"  %t.y = select {B} %negative, {F64} %minus.2, {F64} %given.2",
        f"  %t = select {B} %along.y, {F64} %t.y, {F64} %minus.1",
        f"  %no.axis = fcmp oeq {F64} %axis, zeroinitializer",
        f"  %m.long = call {F64} @llvm.fabs.v8f64({F64} %axis)",
        f"  %m = select {B} %no.axis, {F64} splat (double 1.000000e+00), {F64} %m.long",
    ]
    for n, name in enumerate("st"):
        lines += [
            f"  %{name}.part = fdiv {F64} %{name}, %m",
            f"  %{name}.from = fadd {F64} %{name}.part, splat (double 1.000000e+00)",
            f"  %c.{n} = fmul {F64} %{name}.from, splat (double 5.000000e-01)",
        ]
    return lines


def _loaded(room: str, name: str) -> list[str]:
    """Load the four components that a function has left in a room."""
    lines = []
    for n in NUMBERS:
        lines += [
            f"  %{name}.at.{n} = getelementptr {F64}, ptr %{room}, i32 {n}",
            f"  %{name}.{n} = load {F64}, ptr %{name}.at.{n}, align 64",
        ]
    return lines


def _kept(name: str) -> list[str]:
    """Store the four components in the room of the caller."""
    lines = []
    for n in NUMBERS:
        lines += [
            f"  %found.at.{n} = getelementptr {F64}, ptr %found, i32 {n}",
            f"  store {F64} %{name}.{n}, ptr %found.at.{n}, align 64",
        ]
    return lines


def _stored(kind: str, shorter: str, words: str) -> list[str]:
    """Store the four components as words, by two operations in which `$` stands for the number of a component."""
    lines = []
    for n in NUMBERS:
        lines += [
            f"  %short.{kind}.{n} = {shorter.replace('$', str(n))}",
            f"  %words.{kind}.{n} = {words.replace('short.$', f'short.{kind}.{n}')}",
            f"  %{kind}.at.{n} = getelementptr i8, ptr %own, i64 {STEP * n}",
            f"  store {I32} %words.{kind}.{n}, ptr %{kind}.at.{n}, align 32",
        ]
    return lines
