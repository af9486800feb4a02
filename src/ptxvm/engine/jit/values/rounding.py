"""Directed rounding: arithmetic and conversions in rounding modes other than to nearest.

Out of line, in functions that set the mode of the processor and put it back, which every target has; arithmetic on
whole vectors by the instructions of AVX-512 that name their rounding, where the processor has them.
"""

from __future__ import annotations

import platform

from ptxvm.algebra.types import Type, bf16, f16, f32, f64
from ptxvm.algebra.value import Rounding
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.ir.lane_values import Affine, Raw, Varying, scalar_type, splat_literal
from ptxvm.engine.jit.values import f16_soft
from ptxvm.engine.jit.values.vector_algebra import VectorAlgebra

MODES = {"rn": 1, "rz": 0, "rp": 2, "rm": 3}  # of llvm.set.rounding
MXCSR_MODES = {"rn": 0, "rm": 1, "rp": 2, "rz": 3}  # its bits 13 and 14 (Intel SDM 1, 10.2.3)
MXCSR = 0x1F80  # to nearest, subnormal numbers kept, all exceptions masked: the environment in which grids run
EMBEDDED = {"rn": 8, "rm": 9, "rp": 10, "rz": 11}  # of AVX-512, without exceptions
HALF_MODES = {"rn": 0, "rm": 1, "rp": 2, "rz": 3}  # of vcvtps2ph
SHORT = {f32: "f32", f64: "f64"}


def narrowed(alg: VectorAlgebra, type: Type, name: str, uniform: bool) -> Raw:  # noqa: FBT001
    """A vector as a value: of its first lane where all inputs were uniform."""
    if not uniform:
        return Varying(name)
    return Affine(alg.code.emit(f"extractelement {alg.vector_type(type)} {name}, i64 0"))


def arithmetic(alg: VectorAlgebra, op: str, type: Type, rounding: Rounding, args: tuple[Raw, ...]) -> Raw:
    """`add sub mul div sqrt fma`, rounded in a direction or to odd."""
    uniform = not alg.operands(type, *args)[0]
    vectors = [alg.vector(type, a) for a in args]
    if rounding == "odd":
        low, high = (_directed(alg, op, type, mode, vectors) for mode in ("rm", "rp"))
        return narrowed(alg, type, _to_odd(alg, type, low, high), uniform)
    return narrowed(alg, type, _directed(alg, op, type, rounding, vectors), uniform)


def _to_odd(alg: VectorAlgebra, type: Type, low: str, high: str) -> str:
    """Where rounding down and up differ, the neighbour whose last bit is 1."""
    code, floats, words = alg.code, alg.vector_type(type), alg.vector_type(type.as_bits)
    inexact = code.emit(f"fcmp une {floats} {low}, {high}")
    a, b = (code.emit(f"bitcast {floats} {x} to {words}") for x in (low, high))
    least = code.intrinsic(words, f"llvm.umin.v{alg.width}i{type.bits}", (words, a), (words, b))
    lost = code.emit(f"zext <{alg.width} x i1> {inexact} to {words}")
    return code.emit(f"bitcast {words} {code.emit(f'or {words} {least}, {lost}')} to {floats}")


def _directed(alg: VectorAlgebra, op: str, type: Type, mode: str, args: list[str]) -> str:
    if cpu.has("avx512f"):
        return _embedded(alg, op, type, mode, args)
    vector = alg.vector_type(type)
    names = [f"%a{n}" for n in range(len(args))]
    arguments = ", ".join(f"{vector} {n}" for n in names)
    word = {"sqrt": "sqrt", "fma": "fma"}.get(op, f"f{op}")
    intrinsic = f"llvm.experimental.constrained.{word}.v{alg.width}{SHORT[type]}"
    alg.code.unit.declare(intrinsic, vector, *[vector] * len(args), "metadata", "metadata")
    body = f'call {vector} @{intrinsic}({arguments}, metadata !"round.dynamic", metadata !"fpexcept.ignore") strictfp'
    return _helper(alg, f"ptxvm.{op}.{SHORT[type]}.{mode}", mode, vector, [(vector, n) for n in names], body, args)


def _helper(
    alg: VectorAlgebra, name: str, mode: str, result: str, parameters: list[tuple[str, str]], body: str, args: list[str]
) -> str:
    """Call a function that computes in a rounding mode."""
    formal = ", ".join(f"{t} {n}" for t, n in parameters)
    before, after = (_set_mode(alg.code.unit, each) for each in (mode, "rn"))
    head = f"define internal {result} @{name}({formal}) noinline strictfp #0 {{"
    alg.code.unit.helper(name, f"{head}\n  {before}\n  %r = {body}\n  {after}\n  ret {result} %r\n}}")
    return alg.code.call(result, name, *[(t, a) for (t, _), a in zip(parameters, args, strict=True)])


def _set_mode(unit: Unit, mode: str) -> str:
    """The instruction that sets the mode; on x86 one that loads the whole environment, which is known."""
    if platform.machine() not in ("x86_64", "AMD64"):
        unit.declare("llvm.set.rounding", "void", "i32")
        return f"call void @llvm.set.rounding(i32 {MODES[mode]}) strictfp"
    word = MXCSR | MXCSR_MODES[mode] << 13
    unit.declare("llvm.x86.sse.ldmxcsr", "void", "ptr")
    name = unit.helper(f"ptxvm.mxcsr.{mode}", f"@ptxvm.mxcsr.{mode} = internal constant i32 {word}, align 4")
    return f"call void @llvm.x86.sse.ldmxcsr(ptr @{name}) strictfp"


def _embedded(alg: VectorAlgebra, op: str, type: Type, mode: str, args: list[str]) -> str:
    """Arithmetic by AVX-512 instructions, a register at a time."""
    code, one, each = alg.code, scalar_type(type), 512 // type.bits
    part = f"<{each} x {one}>"
    suffix = "ps.512" if type is f32 else "pd.512"
    name = f"llvm.x86.avx512.{'vfmadd' if op == 'fma' else op}.{suffix}"
    code.unit.declarations[name] = f"declare {part} @{name}({', '.join([part] * len(args))}, i32 immarg)"
    pieces = zip(*(code.pieces(one, a, each) for a in args), strict=True)
    mode_word = ("i32", str(EMBEDDED[mode]))
    return code.joined(one, [code.call(part, name, *((part, a) for a in own), mode_word) for own in pieces], each)


# ── conversions ─────────────────────────────────────────────────────────────────────────


def from_integer(alg: VectorAlgebra, source: Type, target: Type, a: Raw, rounding: Rounding) -> Raw:
    """Integer to float; to f16 and bf16 by way of an f32 that is rounded to odd."""
    if target.bits < 32:
        return between_floats(alg, f32, target, from_integer(alg, source, f32, a, "odd"), rounding)
    word = "sitofp" if source.is_signed else "uitofp"
    if rounding == "rn" or source.bits <= (24 if target.bits == 32 else 53) or source.kind == "p":
        varies, llvm, (x,) = alg.operands(source, a)
        result = alg.vector_type(target) if varies else scalar_type(target)
        return alg.result(varies, alg.code.emit(f"{word} {llvm} {x} to {result}"))
    return _by_mode(alg, word, source, target, a, rounding)


def _by_mode(alg: VectorAlgebra, word: str, source: Type, target: Type, a: Raw, rounding: Rounding) -> Raw:
    """A conversion in a mode, or to odd."""
    uniform = not alg.operands(source, a)[0]
    x, before, after = alg.vector(source, a), alg.vector_type(source), alg.vector_type(target)

    def directed(mode: str) -> str:
        kinds = f"v{alg.width}{SHORT[target]}.v{alg.width}{SHORT.get(source, f'i{source.bits}')}"
        intrinsic = f"llvm.experimental.constrained.{word}.{kinds}"
        alg.code.unit.declare(intrinsic, after, before, "metadata", "metadata")
        body = f'call {after} @{intrinsic}({before} %a, metadata !"round.dynamic", metadata !"fpexcept.ignore") strictfp'
        name = f"ptxvm.{word}.{source.bits}.{SHORT[target]}.{mode}"
        made = _helper(alg, name, mode, after, [(before, "%a")], body, [x])
        if word != "uitofp":
            return made
        # without AVX-512, LLVM adds two halves to a large constant and its opposite, which downwards makes 0 a -0
        return alg.code.intrinsic(after, f"llvm.fabs.v{alg.width}{SHORT[target]}", (after, made))

    made = _to_odd(alg, target, directed("rm"), directed("rp")) if rounding == "odd" else directed(rounding)
    return narrowed(alg, target, made, uniform)


def between_floats(alg: VectorAlgebra, source: Type, target: Type, a: Raw, rounding: Rounding) -> Raw:
    """Float to float, rounded once."""
    a = alg.tight(source, a)
    if source is target or scalar_type(source) == scalar_type(target) == "float":
        return a
    if source is bf16:
        wide = alg.cast("resize", Type.named["b16"], Type.named["b32"], a, "rn")
        a = alg.cast(
            "view",
            Type.named["b32"],
            f32,
            alg.integer("shl", Type.named["b32"], wide, alg.const(Type.named["b32"], 16)),
            "rn",
        )
        return between_floats(alg, f32, target, a, rounding)
    if source is f16 and not f16_soft.native():
        return between_floats(alg, f32, target, f16_soft.widened(alg, a), rounding)
    if source is f16:
        varies, llvm, (x,) = alg.operands(f16, a)
        half, result = (f"<{alg.width} x half>", f"<{alg.width} x float>") if varies else ("half", "float")
        view = alg.code.emit(f"bitcast {llvm} {x} to {half}")
        wide = alg.result(varies, alg.code.emit(f"fpext {half} {view} to {result}"))
        return between_floats(alg, f32, target, wide, rounding)
    if target is f64:
        varies, llvm, (x,) = alg.operands(source, a)
        result = alg.vector_type(f64) if varies else "double"
        return alg.result(varies, alg.code.emit(f"fpext {llvm} {x} to {result}"))
    if source is f64:
        if target is f32:
            return _from_f64(alg, a, rounding)
        return between_floats(alg, f32, target, _from_f64(alg, a, "odd"), rounding)
    return _to_f16(alg, a, rounding) if target is f16 else _to_bf16(alg, a, rounding)


def _from_f64(alg: VectorAlgebra, a: Raw, rounding: Rounding) -> Raw:
    if rounding != "rn":
        return _by_mode(alg, "fptrunc", f64, f32, a, rounding)
    varies, llvm, (x,) = alg.operands(f64, a)
    result = alg.vector_type(f32) if varies else "float"
    return alg.result(varies, alg.code.emit(f"fptrunc {llvm} {x} to {result}"))


def _to_f16(alg: VectorAlgebra, a: Raw, rounding: Rounding) -> Raw:
    """A conversion by an instruction of the processor, if it has one."""
    code = alg.code
    if rounding == "rn" and not f16_soft.native():
        return f16_soft.narrowed(alg, a)
    if rounding == "rn":
        varies, llvm, (x,) = alg.operands(f32, a)
        half, word = (f"<{alg.width} x half>", f"<{alg.width} x i16>") if varies else ("half", "i16")
        return alg.result(varies, code.emit(f"bitcast {half} {code.emit(f'fptrunc {llvm} {x} to {half}')} to {word}"))
    if not cpu.has("avx512f"):
        return _to_f16_by_steps(alg, a, rounding)
    uniform = not alg.operands(f32, a)[0]
    x = alg.vector(f32, a)

    def directed(mode: str) -> str:
        name = "llvm.x86.avx512.mask.vcvtps2ph.512"
        code.unit.declarations[name] = f"declare <16 x i16> @{name}(<16 x float>, i32 immarg, <16 x i16>, i16)"
        parts = []
        for piece in code.pieces("float", x, 16):
            arguments = [
                ("<16 x float>", piece),
                ("i32", str(HALF_MODES[mode])),
                ("<16 x i16>", "zeroinitializer"),
                ("i16", "-1"),
            ]
            parts.append(code.call("<16 x i16>", name, *arguments))
        return code.joined("i16", parts, 16)

    if rounding != "odd":
        return narrowed(alg, f16, directed(rounding), uniform)
    low, high = directed("rm"), directed("rp")
    words = f"<{alg.width} x i16>"
    least = code.intrinsic(words, f"llvm.umin.v{alg.width}i16", (words, low), (words, high))
    # -0 and +0 differ in their bits and are both exact
    both = code.emit(f"or {words} {low}, {high}")
    inexact = code.emit(f"icmp ne {words} {low}, {high}")
    nonzero = code.emit(f"icmp ne {words} {both}, {splat_literal('i16', 0x8000)}")
    lost = code.emit(f"zext <{alg.width} x i1> {code.emit(f'and <{alg.width} x i1> {inexact}, {nonzero}')} to {words}")
    return narrowed(alg, f16, code.emit(f"or {words} {least}, {lost}"), uniform)


def _to_f16_by_steps(alg: VectorAlgebra, a: Raw, rounding: Rounding) -> Raw:
    """To the nearest, and where that is on the wrong side of the number to the neighbour, whose bits are next."""
    u16, u32 = Type.named["u16"], Type.named["u32"]
    near = _to_f16(alg, a, "rn")
    back = between_floats(alg, f16, f32, near, "rn")

    def size(raw: Raw) -> Raw:
        bits = alg.cast("view", f32, Type.named["b32"], raw, "rn")
        return alg.cast("view", Type.named["b32"], f32, alg.integer("and", u32, bits, alg.const(u32, 0x7FFF_FFFF)), "rn")

    def number(condition: Raw) -> Raw:
        return alg.cast("resize", Type.named["pred"], u16, condition, "rn")

    beyond = number(alg.compare("gt", f32, size(back), size(a)))
    short = number(alg.compare("lt", f32, size(back), size(a)))
    nearer = alg.integer("sub", u16, near, beyond)
    if rounding == "rz":
        return nearer
    if rounding == "odd":
        return alg.integer("or", u16, nearer, alg.integer("or", u16, beyond, short))
    negative = alg.compare("ge", u16, near, alg.const(u16, 0x8000))
    farther = alg.integer("add", u16, near, short)
    first, second = (farther, nearer) if rounding == "rm" else (nearer, farther)
    return alg.select(u16, negative, first, second)


def _to_bf16(alg: VectorAlgebra, a: Raw, rounding: Rounding) -> Raw:
    """A conversion to bf16 by integers: a bf16 is the upper half of an f32."""
    b32, b16, u32 = Type.named["b32"], Type.named["b16"], Type.named["u32"]
    bits = alg.cast("view", f32, b32, a, "rn")

    def op(name: str, x: Raw, y: Raw | int) -> Raw:
        return alg.integer(name, u32, x, alg.const(u32, y) if isinstance(y, int) else y)

    upper = op("shr", bits, 16)
    rest = op("and", bits, 0xFFFF)
    sign = op("shr", bits, 31)
    if rounding == "rn":
        made = op("shr", op("add", bits, op("add", op("and", upper, 1), 0x7FFF)), 16)
    elif rounding == "rz":
        made = upper
    elif rounding == "odd":
        lost = alg.cast("resize", Type.named["pred"], u32, alg.compare("ne", u32, rest, alg.const(u32, 0)), "rn")
        made = op("or", upper, lost)
    else:
        away = sign if rounding == "rm" else op("xor", sign, 1)
        made = op("shr", op("add", bits, op("mul", away, 0xFFFF)), 16)
    nan = alg.compare("gt", u32, op("and", bits, 0x7FFF_FFFF), alg.const(u32, 0x7F80_0000))
    return alg.cast("resize", b32, b16, alg.select(b32, nan, op("or", upper, 0x40), made), "rn")
