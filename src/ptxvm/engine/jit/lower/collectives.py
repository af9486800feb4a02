"""Warp collectives whose lanes arrive from several nodes: each stores its operands in the record of the warp."""

from __future__ import annotations

from ptxvm.algebra.types import Type, pred
from ptxvm.algebra.value import Value
from ptxvm.engine.jit.ir.builder import Code
from ptxvm.engine.jit.ir.lane_values import Affine, Varying, vector_type
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory import barrier_epochs
from ptxvm.engine.jit.node import counters
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.engine.jit.node.port import Request
from ptxvm.isa.special_registers import WARP

WORDS = f"<{WARP} x i32>"


def _held(type: Type) -> str:
    return f"<{WARP} x i8>" if type is pred else vector_type(type, WARP)


def arrive(at: NodeBuilder, mnemonic: str, request: Request) -> None:
    """Let lanes arrive at a collective: store their operands for the others."""
    at.code.one_warp()
    members, *payload = request.values
    if members is None:
        raise TypeError(f"'{mnemonic}' has no member mask")
    barrier_epochs.lanes_meet(at, None)
    _blend(at, at.kernel.layout.exchange, WORDS, at.alg.vector(members.type, members.raw))
    for number, value in enumerate(p for p in payload if p is not None):
        vector = at.alg.vector(value.type, at.alg.tight(value.type, value.raw))
        if value.type is pred:
            vector = at.code.emit(f"zext <{WARP} x i1> {vector} to {_held(pred)}")
        _blend(at, at.kernel.layout.payload(mnemonic, number), _held(value.type), vector)


def expect_agreement(at: NodeBuilder, mnemonic: str, request: Request) -> None:
    """Check the masks of lanes that arrive together: lanes with different masks wait for different members."""
    members, code = request.values[0], at.code
    if members is None or (isinstance(members.raw, Affine) and not members.raw.terms):
        return
    known = at.alg.known(members.type, members.raw)
    if known is not None and all(known[n] == mask for mask in set(known) for n in range(WARP) if mask >> n & 1):
        return
    vector, active = at.alg.vector(members.type, members.raw), at.active_text()
    helper = code.unit.helper("ptxvm.agree", runtime("agree"))
    ask, good, apart = code.label(), code.label(), code.label()
    first = code.emit(f"and i32 {code.intrinsic('i32', 'llvm.cttz.i32', ('i32', active), ('i1', 'false'))}, {WARP - 1}")
    one = code.splat("i32", code.emit(f"extractelement {WORDS} {vector}, i32 {first}"))
    differ = code.emit(f"and i32 {code.mask_bits(code.emit(f'icmp ne {WORDS} {vector}, {one}'))}, {active}")
    code.branch(code.emit(f"icmp eq i32 {differ}, 0"), good, ask, likely=True)
    with code.scope():
        code.block(ask)
        code.branch(code.emit(f"call i1 @{helper}({WORDS} {vector}, i32 {active})", pure=False), good, apart)
    with code.scope():
        code.block(apart)
        if at.kernel.general:
            arrive(at, mnemonic, request)
            counters.node(at)
            pending = f"%pending.{at.node.wait}"
            old = code.emit(f"load i32, ptr {pending}, align 4", pure=False)
            code.run(f"store i32 {code.emit(f'or i32 {old}, {active}')}, ptr {pending}, align 4")
            code.jump("dispatch")
        else:
            at.leaves = True
            code.jump(at.name("leave"))
    code.block(good)


def _blend(at: NodeBuilder, offset: int, llvm: str, vector: str) -> None:
    """Write a vector to the record for the active lanes."""
    where = at.code.emit(f"getelementptr i8, ptr %record, i64 {offset}")
    lanes = at.active_vector()
    if lanes is not None:
        old = at.code.emit(f"load {llvm}, ptr {where}, align 64", pure=False)
        vector = at.code.emit(f"select <{WARP} x i1> {lanes}, {llvm} {vector}, {llvm} {old}")
    at.code.run(f"store {llvm} {vector}, ptr {where}, align 64")


def released_payload(at: NodeBuilder, mnemonic: str, request: Request) -> tuple[Varying, tuple[Value, ...]]:
    """The members of a released collective, and their operands."""
    found = []
    for number, value in enumerate(p for p in request.values[1:] if p is not None):
        name = _read(at.code, at.kernel.layout.payload(mnemonic, number), _held(value.type))
        if value.type is pred:
            name = at.code.emit(f"icmp ne {_held(pred)} {name}, zeroinitializer")
        found.append(Value(at.alg, value.type, Varying(name)))
    return Varying(_read(at.code, at.kernel.layout.exchange, WORDS)), tuple(found)


def _read(code: Code, offset: int, llvm: str) -> str:
    where = code.emit(f"getelementptr i8, ptr %record, i64 {offset}")
    return code.emit(f"load {llvm}, ptr {where}, align 64", pure=False)
