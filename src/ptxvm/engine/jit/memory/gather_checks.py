"""Bounds checks of gathers and scatters, as shared functions."""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.algebra.types import Type, u64
from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.ir.lane_values import scalar_type, vector_type
from ptxvm.engine.jit.memory import slow_path
from ptxvm.isa.special_registers import WARP


def inside(code: Code, type: Type, log: int, low: str, bound: str, *, some: bool) -> str:
    """Is each lane of `%a` (with `some`: those of `%lanes`) a multiple of 1 << log from `low`, and within `bound` of them?"""
    if cpu.has("avx512f"):
        return _compared(code, type, log, low, bound, some=some)
    quick = _signs(code, type, log, low, bound)
    if not some:
        return quick
    exact, before, compared, end = (code.label() for _ in range(4))
    code.jump(before)
    code.block(before)
    code.branch(quick, end, exact, likely=True)
    code.block(exact)
    answer = _compared(code, type, log, low, bound, some=True)
    code.jump(compared)
    code.block(compared)
    code.jump(end)
    code.block(end)
    return code.emit(f"phi i1 [ true, %{before} ], [ {answer}, %{compared} ]", pure=False)


def _signs(code: Code, type: Type, log: int, low: str, bound: str) -> str:
    """The same for all lanes, without comparisons, of which AVX2 has none of unsigned integers, and no mask registers.

    An offset is wrong if it is negative, if the last offset less it is, or if it has bits below `log`.
    """
    llvm, vector = scalar_type(type), vector_type(type, code.width)
    name = f"llvm.vector.reduce.or.v{code.width}{llvm}"
    last = code.emit(f"shl {llvm} {code.emit(f'sub {llvm} {bound}, 1')}, {log}")
    offsets = code.emit(f"sub {vector} %a, {code.splat(llvm, low)}")
    left = code.emit(f"sub {vector} {code.splat(llvm, last)}, {offsets}")
    some = code.intrinsic(llvm, name, (vector, offsets))
    signs = code.emit(f"or {llvm} {some}, {code.intrinsic(llvm, name, (vector, left))}")
    wrong = code.emit(f"and {llvm} {signs}, {-1 << type.bits - 1}")
    if log:
        wrong = code.emit(f"or {llvm} {wrong}, {code.emit(f'and {llvm} {some}, {(1 << log) - 1}')}")
    right = code.emit(f"icmp eq {llvm} {wrong}, 0")
    return code.emit(f"and i1 {right}, {code.emit(f'icmp ne {llvm} {bound}, 0')}")


def outside(code: Code, type: Type, addresses: str, log: int, low: str, bound: str) -> str:
    """The lanes whose address is no multiple of 1 << log from `low`, or not within `bound` of them, as a mask."""
    width, llvm, vector = code.width, scalar_type(type), vector_type(type, code.width)
    offsets = code.emit(f"sub {vector} {addresses}, {code.splat(llvm, low)}")
    if log:
        name, amount = f"llvm.fshr.v{width}{llvm}", f"splat ({llvm} {log})"
        offsets = code.intrinsic(vector, name, (vector, offsets), (vector, offsets), (vector, amount))
    return code.mask_bits(code.emit(f"icmp uge {vector} {offsets}, {code.splat(llvm, bound)}"))


def _compared(code: Code, type: Type, log: int, low: str, bound: str, *, some: bool) -> str:
    width, wrong = code.width, outside(code, type, "%a", log, low, bound)
    if some:
        wrong = code.emit(f"and i{width} {wrong}, %lanes")
    return code.emit(f"icmp eq i{width} {wrong}, 0")


def parameters(type: Type, width: int, *, some: bool) -> str:
    """The parameters: the addresses, and with `some` the mask of active lanes."""
    return f"{vector_type(type, width)} %a" + (f", i{width} %lanes" if some else "")


def compared(unit: Unit, type: Type, log: int, *, some: bool) -> str:
    """Define the function of the comparison; returns its name."""
    llvm = scalar_type(type)
    signature = f"{parameters(type, unit.width, some=some)}, {llvm} %low, {llvm} %bound"

    def write(code: Code) -> str:
        return inside(code, type, log, "%low", "%bound", some=some)

    return unit.piece(f"ptxvm.inside.{llvm}.{log}{'.some' if some else ''}", "i1", signature, write)


def allowed(unit: Unit, shape: slow_path.CheckKind, type: Type, search: Callable[[], str]) -> str:
    """Define the function that compares with the last allocation of `%site`, or the window, with the slow path; its name."""
    some, log = not shape.full, shape.size.bit_length() - 1

    def write(code: Code) -> str:
        low, bound = "0", str(shape.window)
        if shape.window is None:
            record = code.emit("getelementptr [4 x i64], ptr %sites, i64 %site")
            low = code.emit(f"load i64, ptr {record}, align 8", pure=False)
            last = code.emit(f"getelementptr i64, ptr {record}, i64 2")
            bound = code.emit(f"load i64, ptr {last}, align 8", pure=False)
        good = inside(code, type, log, low, bound, some=some)
        here, ask, end = code.label(), code.label(), code.label()
        code.jump(here)
        code.block(here)
        code.branch(good, end, ask, likely=True)
        code.block(ask)
        lanes = "%a" if type is u64 else code.emit(f"zext {vector_type(type, code.width)} %a to {vector_type(u64, code.width)}")
        words: list[slow_path.Word] = [(slow_path.SITE, "i64", "%site")]
        for n in code.warps() if some else ():
            own = code.emit(f"lshr i{code.width} %lanes, {n * WARP}") if n else "%lanes"
            own = code.emit(f"trunc i{code.width} {own} to i32") if code.width > WARP else own
            words.append((slow_path.MASKS + n, "i32", own))
        where = code.emit(f"getelementptr i64, ptr {slow_path.ROOM}, i64 {slow_path.ADDRESS}")
        code.run(f"store {vector_type(u64, code.width)} {lanes}, ptr {where}, align 64")
        answer = slow_path.ask(code, shape, search(), words)
        code.jump(end)
        code.block(end)
        return code.emit(f"phi i1 [ true, %{here} ], [ {answer}, %{ask} ]", pure=False)

    caller = ", ".join(f"{llvm} {name}" for _, llvm, name in slow_path.CALLER)
    signature = f"ptr {slow_path.ROOM}, {caller}, i64 %site, {parameters(type, unit.width, some=some)}"
    return unit.piece(f"ptxvm.allowed.{slow_path.kind(shape)}", "i1", signature, write)
