"""Counters of executed instructions: of whole warps, of partial warps, and of lanes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ptxvm.algebra.types import pred, s64
from ptxvm.algebra.value import Value
from ptxvm.analysis.program import Bound
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.errors import Crash
from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.abi.launch_record import offset
from ptxvm.engine.jit.ir.lane_values import Affine
from ptxvm.engine.jit.node.context import KernelContext
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.machine.per_lane import Array, LaneNumbers

COUNTED = 64  # bits of a counter
WHOLE, PARTS, LANES = "%ran.whole", "%ran.parts", "%ran.lanes"
ANSWER = "%answer"  # the result of the warp function
SUMS = ("instructions", "thread_instructions")


def begin() -> list[str]:
    """The lines that set up the counters of the warp function."""
    return [line for name in (WHOLE, PARTS, LANES)
            for line in (f"  {name} = alloca i64, align 8", f"  store i64 0, ptr {name}, align 8")]  # fmt: skip


def node(at: NodeBuilder) -> None:
    """Count a node; one that begins after a wait was counted when lanes arrived."""
    length = 0 if at.node.waits else at.node.head
    if at.events is not None:
        at.events.node(at.node, at.kernel.instruction_number, length, at.mask)
    if not length:
        return
    if at.mask is None:
        _add(at, WHOLE, str(length))
        meter(at, 0, length, str(at.width))
        return
    lanes = _count(at, at.mask)
    _add(at, PARTS, str(length))
    _add(at, LANES, at.code.emit(f"mul i64 {lanes}, {length}"))
    meter(at, 0, length, lanes)


def meter(at: NodeBuilder, first: int, length: int, lanes: str) -> None:
    """Count executed instructions against the limit, and fault at the first beyond it."""
    if not at.kernel.metered:
        return
    code = at.code
    pointer = at.kernel.launch_field(code, "left")
    spent = code.emit(f"mul i64 {lanes}, {length}")
    left = code.emit(f"sub i64 {code.emit(f'load i64, ptr {pointer}, align 8', pure=False)}, {spent}", pure=False)
    code.run(f"store i64 {left}, ptr {pointer}, align 8")
    wrong = Value(at.alg, pred, Affine(code.emit(f"icmp slt i64 {left}, 0", pure=False)))
    bounds = at.node.code[first : first + length]
    numbers = tuple(at.kernel.instruction_number(bound) for bound in bounds)
    guard, at.guard = at.guard, None
    at.refuse(
        bounds[-1],
        wrong,
        StepLimitExceeded(numbers),
        [(s64, Affine(left)), (s64, Affine(lanes if lanes[0] == "%" else int(lanes)))],
    )
    at.guard = guard


@dataclass(frozen=True, slots=True)
class StepLimitExceeded:
    """Host call: the step limit is exceeded within the instructions of these numbers."""

    numbers: tuple[int, ...]

    def __call__(self, host: Host, bound: Bound, threads: LaneNumbers, values: list[Array]) -> None:
        """Raise the fault at the first instruction beyond the limit."""
        left, lanes = int(values[0][0]), int(values[1][0])
        index = (len(self.numbers) * lanes + left) // lanes
        limits = host.launch.limits
        if limits is None:
            raise Crash("a launch without limits ran metered code; please report this")
        raise limits.overrun(host.place(self.numbers[max(index, 0)], int(threads[0])))


def predicated(at: NodeBuilder, first: int, length: int, bits: str | None) -> None:
    """Count predicated instructions for the lanes that ran them, as bits, or None for all."""
    code, word = at.code, f"i{at.width}"
    if at.events is not None:
        at.events.block(at.node.code[first : first + length], at.kernel.instruction_number, ("block", first), bits)
    if bits is None:
        _add(at, WHOLE, str(length))
        meter(at, first, length, str(at.width))
        return
    count = _count(at, bits)
    ran = code.emit(f"zext i1 {code.emit(f'icmp ne {word} {bits}, 0')} to i64")
    _add(at, PARTS, code.emit(f"mul i64 {ran}, {length}"))
    _add(at, LANES, code.emit(f"mul i64 {count}, {length}"))
    meter(at, first, length, count)


def _count(at: NodeBuilder, bits: str) -> str:
    """The number of lanes of a mask."""
    word = f"i{at.width}"
    count = at.code.intrinsic(word, f"llvm.ctpop.{word}", (word, bits))
    if at.width == COUNTED:
        return count
    return at.code.emit(f"{'zext' if at.width < COUNTED else 'trunc'} {word} {count} to i{COUNTED}")


def _add(at: NodeBuilder, name: str, count: str) -> None:
    before = at.code.emit(f"load i64, ptr {name}, align 8", pure=False)
    at.code.run(f"store i64 {at.code.emit(f'add i64 {before}, {count}', pure=False)}, ptr {name}, align 8")


def single_exit(lines: Iterable[str]) -> Iterator[str]:
    """The body of the warp function with its returns as jumps to one exit."""
    yield f"  {ANSWER} = alloca i32, align 4"
    for line in lines:
        if line.startswith("  ret i32"):
            yield f"  store i32 {line.removeprefix('  ret i32 ')}, ptr {ANSWER}, align 4"
            yield "  br label %out"
        else:
            yield line


def report(kernel: KernelContext) -> Iterator[str]:
    """The exit: add the counters to those of the launch.

    Where CTAs run one after the other, they are added to sums of the grid function, which LLVM holds in registers.
    """
    yield "out:"
    for counter in (WHOLE, PARTS, LANES) if kernel.runs_partial_warps else (WHOLE,):
        yield f"  {counter}.all = load i64, ptr {counter}, align 8"
    if not kernel.runs_partial_warps:
        yield from _added(f"{WHOLE}.all", "%sums, i64 0")
    else:
        yield f"  %ran.abreast = mul i64 {WHOLE}.all, {kernel.width}"
        for n, (whole, part) in enumerate(((f"{WHOLE}.all", PARTS), ("%ran.abreast", LANES))):
            yield f"  %{SUMS[n]} = add i64 {whole}, {part}.all"
            yield from _added(f"%{SUMS[n]}", f"%sums, i64 {8 * n}" if kernel.sequential else f"%ctx, i64 {offset(SUMS[n])}")
    yield f"  %answer.all = load i32, ptr {ANSWER}, align 4"
    yield "  ret i32 %answer.all"


def _added(name: str, pointer: str) -> Iterator[str]:
    yield f"  {name}.at = getelementptr i8, ptr {pointer}"
    yield f"  {name}.old = load i64, ptr {name}.at, align 8"
    yield f"  {name}.new = add i64 {name}.old, {name}"
    yield f"  store i64 {name}.new, ptr {name}.at, align 8"


def grid_begins() -> list[str]:
    """The lines that set up the sums of the grid function."""
    return ["  %sums = alloca [2 x i64], align 8", "  store [2 x i64] zeroinitializer, ptr %sums, align 8"]


def grid_ends(kernel: KernelContext) -> Iterator[str]:
    """Add the sums of the grid function to the counters of the launch."""
    yield "  %instructions = load i64, ptr %sums, align 8"
    if not kernel.runs_partial_warps:
        yield f"  %thread_instructions = mul i64 %instructions, {kernel.width}"
    else:
        yield "  %lanes.ran = getelementptr i8, ptr %sums, i64 8"
        yield "  %thread_instructions = load i64, ptr %lanes.ran, align 8"
    for field in SUMS:
        yield from _added(f"%{field}", f"%ctx, i64 {offset(field)}")
