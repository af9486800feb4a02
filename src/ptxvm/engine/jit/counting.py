"""What compiled code counts: the instructions that whole warps and parts of warps run, and those of their lanes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ptxvm.engine.jit.record import AT, offset

if TYPE_CHECKING:
    from ptxvm.engine.jit.emitter import Emitter

WHOLE, PARTS, LANES = "%ran.whole", "%ran.parts", "%ran.lanes"
ANSWER = "%answer"  # what the function of a warp returns


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


def told(lines: Iterable[str]) -> Iterator[str]:
    """The code of a warp's function, which comes to one place wherever it returns."""
    yield f"  {ANSWER} = alloca i32, align 4"
    for line in lines:
        if line.startswith("  ret i32"):
            yield f"  store i32 {line.removeprefix('  ret i32 ')}, ptr {ANSWER}, align 4"
            yield "  br label %out"
        else:
            yield line


def tell(width: int) -> Iterator[str]:
    """That place: the launch is told what was counted."""
    yield "out:"
    for counter in (WHOLE, PARTS, LANES):
        yield f"  {counter}.all = load i64, ptr {counter}, align 8"
    yield f"  %ran.abreast.all = mul i64 {WHOLE}.all, {width}"
    for field, whole, part in (("instructions", WHOLE, PARTS), ("thread_instructions", "%ran.abreast", LANES)):
        yield f"  %{field}.at = getelementptr i8, ptr %ctx, i64 {offset(field)}"
        yield f"  %{field}.old = load i64, ptr %{field}.at, align 8"
        yield f"  %{field}.sum = add i64 {whole}.all, {part}.all"
        yield f"  %{field}.new = add i64 %{field}.old, %{field}.sum"
        yield f"  store i64 %{field}.new, ptr %{field}.at, align 8"
    yield f"  %answer.all = load i32, ptr {ANSWER}, align 4"
    yield "  ret i32 %answer.all"


def counted(record: Any) -> tuple[int, int]:
    """Instructions and thread-instructions, as the record of a launch has them."""
    return int(record[AT["instructions"]]), int(record[AT["thread_instructions"]])
