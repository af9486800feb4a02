"""What compiled code counts: the instructions that whole warps and parts of warps run, and those of their lanes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ptxvm.engine.jit.record import AT, offset

if TYPE_CHECKING:
    from ptxvm.engine.jit.emitter import Emitter

WHOLE, PARTS, LANES = "%ran.whole", "%ran.parts", "%ran.lanes"


def begin() -> list[str]:
    """The counters of a call of a warp's function."""
    return [line for name in (WHOLE, PARTS, LANES)
            for line in (f"  {name} = alloca i64, align 8", f"  store i64 0, ptr {name}, align 8")]  # fmt: skip


def node(at: Emitter) -> None:
    """A node has run; one at which lanes have waited was counted when they came."""
    length = 0 if at.node.waits else len(at.node.code)
    if not length:
        return
    if at.mask is None:
        _add(at, WHOLE, str(length))
        return
    lanes = at.code.emit(f"zext i32 {at.code.intrinsic('i32', 'llvm.ctpop.i32', ('i32', at.mask))} to i64")
    _add(at, PARTS, str(length))
    _add(at, LANES, at.code.emit(f"mul i64 {lanes}, {length}"))


def _add(at: Emitter, name: str, count: str) -> None:
    before = at.code.emit(f"load i64, ptr {name}, align 8", pure=False)
    at.code.run(f"store i64 {at.code.emit(f'add i64 {before}, {count}', pure=False)}, ptr {name}, align 8")


def told(lines: Iterable[str], width: int) -> Iterator[str]:
    """The code of a warp's function, which tells the launch what it has counted wherever it returns."""
    for number, line in enumerate(lines):
        if line.startswith("  ret i32"):
            yield from _tell(f"%told.{number}", width)
        yield line


def _tell(name: str, width: int) -> Iterator[str]:
    for counter in (WHOLE, PARTS, LANES):
        yield f"  {name}.{counter[5:]} = load i64, ptr {counter}, align 8"
    yield f"  {name}.abreast = mul i64 {name}.whole, {width}"
    for field, whole, part in (("instructions", "whole", "parts"), ("thread_instructions", "abreast", "lanes")):
        yield f"  {name}.{field}.at = getelementptr i8, ptr %ctx, i64 {offset(field)}"
        yield f"  {name}.{field}.old = load i64, ptr {name}.{field}.at, align 8"
        yield f"  {name}.{field}.sum = add i64 {name}.{whole}, {name}.{part}"
        yield f"  {name}.{field}.new = add i64 {name}.{field}.old, {name}.{field}.sum"
        yield f"  store i64 {name}.{field}.new, ptr {name}.{field}.at, align 8"


def counted(record: Any) -> tuple[int, int]:
    """Instructions and thread-instructions, as the record of a launch has them."""
    return int(record[AT["instructions"]]), int(record[AT["thread_instructions"]])
