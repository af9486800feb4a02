"""Lines of LLVM assembly that the functions of look-ups are made of: operands, words of a plan, faces of cubes, logarithms."""

from __future__ import annotations

from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.ir.constant_folding import f64_bits
from ptxvm.engine.jit.ir.lane_values import literal
from ptxvm.machine.texture_sampling import HALF_ROOT, LIMIT, SERIES, SHORTEST

F64, F32, I64, I32, B = (f"<8 x {llvm}>" for llvm in ("double", "float", "i64", "i32", "i1"))
NUMBERS = range(4)  # of the components


def logarithm(first: str, second: str) -> list[str]:
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


def truth(holds: bool) -> str:  # noqa: FBT001 - the one thing that it is about
    """A truth as an LLVM constant."""
    return str(holds).lower()


def no_samplers() -> list[str]:
    """The sampler 0, of textures that have samplers of their own: no lane has another one."""
    return ["  %sampler.own = add i64 0, 0", "  %samplers.bits = add i32 0, 0"]


def samplers(offset: int) -> list[str]:
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


def splat(name: str, llvm: str) -> list[str]:
    """A scalar in all lanes of a vector: `%NAME.s`."""
    vector = f"<8 x {llvm}>"
    return [
        f"  %{name}.one = insertelement {vector} poison, {llvm} %{name}, i32 0",
        f"  %{name}.s = shufflevector {vector} %{name}.one, {vector} poison, <8 x i32> zeroinitializer",
    ]


def splat_of_number(name: str) -> list[str]:
    """The bits of a number as a vector of it: `%NAME.f.s`."""
    return [f"  %{name}.f = bitcast i64 %{name} to double", *splat(f"{name}.f", "double")]


def operand_as_integers(name: str, place: int) -> list[str]:
    """Load an operand as unsigned integers: `%NAME.wide`."""
    return [
        f"  %{name}.at = getelementptr i8, ptr %own, i64 {STEP * place}",
        f"  %{name}.given = load {I32}, ptr %{name}.at, align 32",
        f"  %{name}.wide = zext {I32} %{name}.given to {I64}",
    ]


def operand_as_f64(name: str, place: int, *, integers: bool) -> list[str]:
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


def faces() -> list[str]:
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


def load_each(room: str, name: str) -> list[str]:
    """Load the four components that a function has left in a room."""
    lines = []
    for n in NUMBERS:
        lines += [
            f"  %{name}.at.{n} = getelementptr {F64}, ptr %{room}, i32 {n}",
            f"  %{name}.{n} = load {F64}, ptr %{name}.at.{n}, align 64",
        ]
    return lines


def leave_each(name: str) -> list[str]:
    """Store the four components in the room of the caller."""
    lines = []
    for n in NUMBERS:
        lines += [
            f"  %found.at.{n} = getelementptr {F64}, ptr %found, i32 {n}",
            f"  store {F64} %{name}.{n}, ptr %found.at.{n}, align 64",
        ]
    return lines


def store_each(kind: str, shorter: str, words: str) -> list[str]:
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
