"""Places of requests: where the lanes of a warp lie in their allocations, so that their request can be kept or counted.

A generic address may be in several spaces: its lanes make a request of each.
"""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.algebra.state_space import Space
from ptxvm.engine.jit.abi.counter_rows import CLASS, CLASSES, LENGTH, MOVED, ROW, START, WORD
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.ir.runtime import runtime
from ptxvm.engine.jit.memory.request_batches import LANE_WORDS, POINTERS, ROOM, Request, keep
from ptxvm.engine.jit.memory.row_values import COUNTS, add_row, plain_row
from ptxvm.isa.special_registers import WARP

ADDRESS = {Space.SHARED: "i32"}  # the type of an address, where it is not i64


def keeper(unit: Unit, request: Request) -> str:
    """The function that keeps the request of a warp: `f(ctx, place, rows, addresses, mask, pointers of each batch...)`.

    What needs no batch it counts in `rows`, which has a row for each class of a generic address.
    """
    held = f"<{WARP} x {ADDRESS.get(request.space, 'i64')}>"

    def write(code: Code) -> str:
        some, end = code.label(), code.label()
        # here, so that they are variables of the function that this one is written into
        code.run(f"%question = alloca [{ROOM} x i64], align 64")
        if request.space is not Space.SHARED:
            code.run(f"%room = alloca [{WARP + ROW} x i32], align 64")
            code.run(f"%lanes = alloca {held}, align 64")
        code.branch(code.emit("icmp ne i32 %mask, 0"), some, end)
        code.block(some)
        if request.space is Space.GENERIC:
            places = _places(code)
            for n, space in enumerate(CLASSES):
                _keep_class(code, request, space, places, _offset(code, "%room", 4 * (WARP + n)))
        else:
            places = "%addresses" if request.space is Space.SHARED else _places(code)
            keep(code, request, "%question", places, "%mask", _pointers(request.space))
        code.jump(end)
        code.block(end)
        return ""

    pointers = ", ".join(f"ptr {name}" for space in request.batched for name in _pointers(space))
    parameters = f"ptr %ctx, ptr %place, ptr %rows, {held} %addresses, i32 %mask, {pointers}"
    return unit.piece(f"ptxvm.keep.{request.name}", "void", parameters, write)


def _pointers(space: Space) -> Sequence[str]:
    return [f"%{name}.{space}" for name in POINTERS]


def _keep_class(code: Code, request: Request, space: Space, places: str, mask_at: str) -> None:
    """Keep or count the request of the lanes whose addresses are in one space."""
    mask = code.emit(f"load i32, ptr {mask_at}, align 4", pure=False)
    some, onward = code.label(), code.label()
    code.branch(code.emit(f"icmp ne i32 {mask}, 0"), some, onward)
    with code.scope():
        code.block(some)
        if space in request.batched:
            keep(code, request.within(space), "%question", places, mask, _pointers(space))
        else:
            rows = _offset(code, "%rows", CLASSES.index(space) * ROW * WORD)
            found = code.call(COUNTS, plain_row(code.unit), ("i32", mask), pure=False)
            add_row(code, rows, found)
        code.jump(onward)
    code.block(onward)


def _places(code: Code) -> str:
    """Where all lanes lie, as numbers of 32 bits; the lanes of each class stand in `%room` behind them."""
    words, wide = LANE_WORDS, f"<{WARP} x i64>"
    classes = _offset(code, "%room", 4 * WARP)
    code.run(f"store <{ROW} x i32> zeroinitializer, ptr {classes}, align 32")
    start, length, moved = (_load(code, "%place", n) for n in (START, LENGTH, MOVED))
    away = code.emit(f"sub {wide} %addresses, {code.splat('i64', start, WARP)}")
    outside = code.emit(f"icmp uge {wide} {away}, {code.splat('i64', length, WARP)}")
    bad = code.emit(f"and i32 {code.emit(f'bitcast <{WARP} x i1> {outside} to i32')}, %mask")
    near, far, onward = (code.label() for _ in range(3))
    code.branch(code.emit(f"icmp eq i32 {bad}, 0"), near, far, likely=True)
    code.block(near)
    low = code.emit(f"trunc {wide} %addresses to {words}", pure=False)
    moved = code.splat("i32", code.emit(f"trunc i64 {moved} to i32", pure=False), WARP)
    quick = code.emit(f"add {words} {low}, {moved}", pure=False)
    own = code.emit(f"getelementptr i32, ptr {classes}, i64 {_load(code, '%place', CLASS)}", pure=False)
    code.run(f"store i32 %mask, ptr {own}, align 4")
    code.jump(onward)
    code.block(far)
    fields = {name: offset(name) for name in ("places", "place_count")}
    search = code.unit.helper("ptxvm.find_places", runtime("find_places", **fields))
    code.run(f"store {wide} %addresses, ptr %lanes, align 64")
    pointers = (("ptr", name) for name in ("%ctx", "%place", "%lanes", "%room", classes))
    code.perform(search, *pointers, ("i32", "%mask"))
    found = code.emit(f"load {words}, ptr %room, align 64", pure=False)
    code.jump(onward)
    code.block(onward)
    return code.emit(f"phi {words} [ {quick}, %{near} ], [ {found}, %{far} ]", pure=False)


def _load(code: Code, pointer: str, word: int) -> str:
    return code.emit(f"load i64, ptr {_offset(code, pointer, WORD * word)}, align 8", pure=False)


def _offset(code: Code, pointer: str, size: int) -> str:
    return code.emit(f"getelementptr i8, ptr {pointer}, i64 {size}", pure=False)
