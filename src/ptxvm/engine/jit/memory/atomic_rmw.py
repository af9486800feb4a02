"""Atomic read-modify-write of one lane: `atomicrmw`, a compare-exchange loop, or a plain update."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Value
from ptxvm.engine.jit.ir.lane_values import Affine, scalar_type, text
from ptxvm.engine.jit.values.algebra import LlvmAlgebra

# The operations of `atomicrmw`, for unsigned types and bits, and for signed types.
READY = {
    "add": ("add", "add"), "and": ("and", "and"), "or": ("or", "or"), "xor": ("xor", "xor"), "exch": ("xchg", "xchg"),
    "min": ("umin", "min"), "max": ("umax", "max"), "inc": ("uinc_wrap", "uinc_wrap"), "dec": ("udec_wrap", "udec_wrap"),
}  # fmt: skip


def plain(alg: LlvmAlgebra, type: Type, pointer: str, update: Callable[..., Value], operands: Sequence[Value]) -> Value:
    """Update memory that only this host thread uses."""
    llvm = scalar_type(type)
    old = Value(alg, type, Affine(alg.code.emit(f"load {llvm}, ptr {pointer}, align {type.bytes}", pure=False)))
    alg.code.run(f"store {llvm} {_scalar(alg, update(old, *operands))}, ptr {pointer}, align {type.bytes}")
    return old


def atomic(
    alg: LlvmAlgebra, type: Type, pointer: str, update: Callable[..., Value], operands: Sequence[Value], operation: str | None
) -> Value:
    """Update memory that host threads share: by `atomicrmw`, or by a compare-exchange loop."""
    code, word = alg.code, f"i{type.bits}"
    if operation in READY and not type.is_float:
        name = READY[operation][type.is_signed]
        (operand,) = operands
        instruction = f"atomicrmw {name} ptr {pointer}, {word} {_bits(alg, operand)} seq_cst, align {type.bytes}"
        return _of_bits(alg, type, code.emit(instruction, pure=False))
    seen = alg.buffer(word, 12)
    atomically = "atomic " if type.bits <= 64 else ""  # a torn guess only costs an iteration
    ordered = " monotonic" if atomically else ""
    guess = code.emit(f"load {atomically}{word}, ptr {pointer}{ordered}, align {type.bytes}", pure=False)
    code.run(f"store {word} {guess}, ptr {seen}, align {type.bytes}")
    again, done = code.label(), code.label()
    code.jump(again)
    code.block(again)
    expected = code.emit(f"load {word}, ptr {seen}, align {type.bytes}", pure=False)
    old = _of_bits(alg, type, expected)
    new = _bits(alg, update(old, *operands))
    instruction = f"cmpxchg ptr {pointer}, {word} {expected}, {word} {new} seq_cst seq_cst, align {type.bytes}"
    found = code.emit(instruction, pure=False)
    code.run(f"store {word} {code.emit(f'extractvalue {{ {word}, i1 }} {found}, 0')}, ptr {seen}, align {type.bytes}")
    code.branch(code.emit(f"extractvalue {{ {word}, i1 }} {found}, 1"), done, again)
    code.block(done)
    return old


def _scalar(alg: LlvmAlgebra, value: Value) -> str:
    """A value of one lane as an LLVM operand."""
    raw = alg.tight(value.type, value.raw)
    if not isinstance(raw, Affine) or raw.terms:
        raise TypeError(f"{raw} varies between lanes")
    return text(scalar_type(value.type), raw.base)


def _bits(alg: LlvmAlgebra, value: Value) -> str:
    """The bits of a value of one lane."""
    llvm, operand = scalar_type(value.type), _scalar(alg, value)
    if llvm in ("float", "double"):
        return alg.code.emit(f"bitcast {llvm} {operand} to i{value.type.bits}")
    return operand


def _of_bits(alg: LlvmAlgebra, type: Type, bits: str) -> Value:
    llvm = scalar_type(type)
    if llvm in ("float", "double"):
        bits = alg.code.emit(f"bitcast i{type.bits} {bits} to {llvm}")
    return Value(alg, type, Affine(bits))
