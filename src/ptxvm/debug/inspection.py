"""What a front end shows of a session: plain records of numbers and texts, which become JSON as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.analysis.program import Bound
from ptxvm.analysis.symbols import Register, Variable, spelling
from ptxvm.dataclass import dataclass
from ptxvm.debug.focus import coordinates, shown
from ptxvm.debug.lanes import Frame, LanePlaces, Status
from ptxvm.debug.session import Session
from ptxvm.debug.source_types import ArrayOf, Number, Pointer, Structure, spelled
from ptxvm.debug.values import MemoryPlace, NoValue, Place, RegisterPlace, Values, View, bits_of
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.diagnostics.kernel_names import displayed
from ptxvm.engine.interp import value_text
from ptxvm.engine.interp.stepping import lanes_of
from ptxvm.engine.interp.stepping_schedule import SteppingSchedule
from ptxvm.isa import mbarrier
from ptxvm.isa.special_registers import SPECIAL
from ptxvm.machine.launch import Extent
from ptxvm.machine.warp_schedule import Choice

MOST = 200  # elements of an array that are shown ...
FEW = 8  # ... and of one of unknown length
DEEPEST = 8  # structures and arrays within each other that are shown


@dataclass(frozen=True, slots=True)
class FrameView:
    """A function of a thread: its level from the innermost, where it is, and the source of that."""

    level: int
    function: str
    file: str
    line: int
    origin: str
    text: str
    index: int


@dataclass(frozen=True, slots=True)
class LaneView:
    """A lane of a warp: its thread, what it does, where it is, and the values of some registers as text."""

    lane: int
    thread: Extent
    status: str
    line: int
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupView:
    """Lanes of a warp that are at one place: their mask, what they do, and the instruction."""

    mask: int
    status: str
    line: int
    text: str
    index: int


@dataclass(frozen=True, slots=True)
class WarpView:
    """A warp: its CTA, its number there, and the groups of its lanes; none where all have ended."""

    block: Extent
    cta: int
    warp: int
    groups: tuple[GroupView, ...]

    @property
    def mask(self) -> int:
        """The lanes that have not ended."""
        return sum(group.mask for group in self.groups)


@dataclass(frozen=True, slots=True)
class BarrierView:
    """A barrier at which threads wait: its number, and how many have come, of how many; no number for that of a cluster.

    `block` is the CTA, or the first one of the cluster.
    """

    block: Extent
    number: int | None
    arrived: int
    expected: int


@dataclass(frozen=True, slots=True)
class MbarrierView:
    """An mbarrier: its address in the shared memory of its CTA, the parity of its phase, the arrivals of that phase.

    `bytes` are those that are announced and have not come; below 0 those that have come unannounced.
    """

    block: Extent
    address: int
    phase: int
    arrived: int
    expected: int
    bytes: int


@dataclass(frozen=True, slots=True)
class RegisterView:
    """A register of a thread."""

    name: str
    type: str
    value: str


@dataclass(frozen=True, slots=True)
class ListedLine:
    """A line of the PTX: its number, its text, and whether the thread in focus is there or a breakpoint is."""

    number: int
    text: str
    current: bool
    breakpoint: bool


# ── code ────────────────────────────────────────────────────────────────────────────────


def frame_view(level: int, frame: Frame) -> FrameView:
    """A frame, for people."""
    bound = frame.bound
    name = displayed(frame.routine.function.name)
    return FrameView(level, name, file_of(bound), bound.line, bound.origin, bound.text, frame.index)


def file_of(bound: Bound) -> str:
    """The name of the PTX that has an instruction."""
    program = bound.program
    return "" if program is None else program.source.name


def stack(session: Session) -> list[FrameView]:
    """The functions that the thread in focus is in, the innermost first."""
    execution = session.execution
    places, schedule = execution.places(), execution.schedule
    frames = places.stack(execution.lane(schedule)) if places is not None and schedule is not None else []
    return [frame_view(level, frame) for level, frame in enumerate(frames)]


def listing(session: Session, first: int, last: int) -> list[ListedLine]:
    """Some lines of the PTX that the thread in focus is in."""
    program = session.here.function.program
    if program is None:
        return []
    here, marked = current_line(session), breakpoint_lines(session)
    lines = program.source.text.split("\n")
    return [
        ListedLine(number, lines[number - 1].rstrip().expandtabs(4), number == here, number in marked)
        for number in range(max(first, 1), min(last, len(lines)) + 1)
    ]


def current_line(session: Session) -> int:
    """The line at which the thread in focus is; 0 where it is not."""
    frames = stack(session) if session.is_running else []
    return frames[min(session.frame, len(frames) - 1)].line if frames else 0


def breakpoint_lines(session: Session) -> set[int]:
    """The lines of the PTX that have breakpoints."""
    sites = [site for each in session.breakpoints.all.values() for site in getattr(each, "sites", ())]
    return {session.code.routines[number].function.instructions[index].line for number, index in sites}


# ── warps and lanes ─────────────────────────────────────────────────────────────────────


def warp_lanes(session: Session, names: Sequence[str] = ()) -> list[LaneView]:
    """The lanes of the warp in focus, with the values of some expressions; empty for lanes where these have none."""
    execution = session.execution
    places, schedule = execution.places(), execution.schedule
    if places is None or schedule is None:
        return []
    from ptxvm.debug.expressions import parse  # noqa: PLC0415 - only tables of values need it

    wanted = [parse(name) for name in names]
    found = []
    for number in lanes_of(schedule, Choice(*execution.choice[:2])).tolist():
        frame = places.frame(number)
        values = []
        for expression in wanted if frame is not None else ():
            view = View(schedule, frame.routine, frame.depth, frame.index, np.array([number]), execution.pointees)  # type: ignore[union-attr]
            try:
                values.append(text_of(expression.values(view)))
            except NoValue:
                values.append("")
        thread = coordinates(int(schedule.cohort.layout.thread[number]), session.shape.block)
        lane, line = int(schedule.cohort.layout.lane[number]), frame.bound.line if frame is not None else 0
        found.append(LaneView(lane, thread, places.status_of(number).value, line, tuple(values)))
    return found


def warps(session: Session, cta: int | None = None) -> Iterator[WarpView]:
    """The warps of all CTAs that run, or of one."""
    for schedule in session.execution.grid.running:
        places, layout = LanePlaces(schedule), schedule.cohort.layout
        for number, each in enumerate(layout.ctas.tolist()):
            if cta in (None, each):
                for warp in range(layout.warps_of_cta):
                    yield warp_view(session, schedule, places, number * layout.warps_of_cta + warp)


def warp_view(session: Session, schedule: SteppingSchedule, places: LanePlaces, warp: int) -> WarpView:
    """A warp, by its number in its cohort."""
    layout = schedule.cohort.layout
    cta = int(layout.ctas[warp // layout.warps_of_cta])
    groups: dict[tuple[int, int, int, Status], int] = {}
    for lane in np.flatnonzero(layout.warp == warp).tolist():
        status = places.status_of(lane)
        if status is not Status.ENDED:
            key = -int(places.depth[lane]), int(places.routine[lane]), int(places.index[lane]), status
            groups[key] = groups.get(key, 0) | 1 << int(layout.lane[lane])
    made = []
    for (_, routine, index, status), mask in sorted(groups.items(), key=lambda each: each[0][:3]):
        bound = schedule.code.routines[routine].function.instructions[index]
        made.append(GroupView(mask, status.value, bound.line, bound.text, index))
    return WarpView(session.shape.ctaid(cta), cta, warp % layout.warps_of_cta, tuple(made))


def thread_runs(session: Session) -> Iterator[tuple[tuple[int, int], tuple[int, int], int, int, str]]:
    """Runs of threads at one line: the first and the last, as CTA and thread by number, how many, the line, the instruction."""
    for schedule in sorted(session.execution.grid.running, key=lambda each: int(each.cohort.layout.ctas[0])):
        places, layout = LanePlaces(schedule), schedule.cohort.layout
        alive = np.flatnonzero(schedule.cohort.alive)
        keys = np.stack([places.routine[alive], places.index[alive], places.status[alive]])
        cuts = np.flatnonzero((np.diff(keys, axis=1) != 0).any(axis=0) | (np.diff(alive) != 1)) + 1
        for run in np.split(alive, cuts) if len(alive) else ():
            first, last = (((int(layout.ctas[layout.cta[n]]), int(layout.thread[n]))) for n in (run[0], run[-1]))
            bound = schedule.code.routines[int(places.routine[run[0]])].function.instructions[int(places.index[run[0]])]
            yield first, last, len(run), bound.line, bound.text


def barriers(session: Session) -> list[BarrierView]:
    """The barriers at which threads have arrived."""
    found = []
    for schedule in session.execution.grid.running:
        layout = schedule.cohort.layout
        for (cta, number), barrier in sorted(schedule.barriers.barriers.items()):
            arrived = sum(len(lanes) for lanes in barrier.arrived)
            alive = int(schedule.cohort.alive[cta * layout.threads : (cta + 1) * layout.threads].sum())
            block = session.shape.ctaid(int(layout.ctas[cta]))
            found.append(BarrierView(block, number, arrived, alive if barrier.threads is None else barrier.threads))
        found += cluster_barriers(session, schedule)
    return found


def mbarriers(session: Session) -> Iterator[MbarrierView]:
    """The mbarriers in the shared memory of blocks that run, by their blocks and addresses."""
    for schedule in session.execution.grid.running:
        window = schedule.cohort.mem.window(Space.SHARED)
        if window is None:
            continue
        made = session.execution.accesses.mbarriers
        for offset in sorted(offset for allocation, offset in made if allocation is window.allocation):
            word = int(window.allocation.bytes[offset : offset + mbarrier.BYTES].view(np.uint64)[0])
            if word & mbarrier.MADE != mbarrier.VALID:
                continue  # it was invalidated, or is not made yet
            piece, address = divmod(offset, window.stride)
            expected, pending = (word >> shift & mbarrier.COUNT for shift in (mbarrier.EXPECTED, mbarrier.PENDING))
            come = word >> mbarrier.TRANSACTIONS & mbarrier.TRANSACTION_BITS
            bytes_ = come - (mbarrier.TRANSACTION_BITS + 1) * (come > mbarrier.TRANSACTION_BITS // 2)
            block = session.shape.ctaid(int(schedule.cohort.layout.ctas[piece]))
            yield MbarrierView(block, address, word >> mbarrier.PHASE, expected - pending, expected, bytes_)


def cluster_barriers(session: Session, schedule: SteppingSchedule) -> Iterator[BarrierView]:
    """The barriers of the clusters of a cohort at which threads have arrived."""
    barriers, layout = schedule.cluster_barriers, schedule.cohort.layout
    for cluster in np.unique(np.flatnonzero(barriers.arrived) // barriers.threads).tolist():
        threads = slice(cluster * barriers.threads, (cluster + 1) * barriers.threads)
        block = session.shape.ctaid(int(layout.ctas[cluster * session.shape.cluster_size]))
        arrived, alive = barriers.arrived[threads], schedule.cohort.alive[threads]
        yield BarrierView(block, None, int(arrived.sum()), int((arrived | alive).sum()))


# ── values ──────────────────────────────────────────────────────────────────────────────


def text_of(values: Values) -> str:
    """The value of the first lane as text; the name of a value of an enumeration."""
    names = values.source.names if isinstance(values.source, Number) else {}
    if names and (name := names.get(int(values.raw[0]))) is not None:
        return name
    if isinstance(values.source, Pointer):
        return value_text.hexadecimal(values.type.as_bits, bits_of(values)[0])
    return value_text.text(values.type, bits_of(values)[0])


def text_at(session: Session, found: Values | MemoryPlace, depth: int = 0) -> str:
    """A value as text; of arrays and structures the first elements and all members, in braces, some levels deep."""
    view = session.view()
    if isinstance(found, Values) or not (found.count > 1 or 0 in found.dimensions or isinstance(found.source, Structure)):
        return text_of(view.read(found))
    if depth == DEEPEST:
        return "{…}"
    if isinstance(found.source, Structure):
        members = [(f"{name} = ", partial(view.member, found, name)) for name in found.source.members]
        return within(members, 0, session, depth)
    if isinstance(found.source, ArrayOf):
        count = found.source.count
        elements = [("", partial(found.element, np.array([n]))) for n in range(min(count, MOST))]
        return within(elements, count - len(elements), session, depth)
    shown = [text_of(each) for each in session.elements(found, min(found.count or FEW, MOST))]
    return f"{{{', '.join(shown)}{', …' if found.count > len(shown) else ''}}}"


def type_of(found: Values | Place) -> str:
    """The type of a value, a register, or what is in memory, with its state space: that of the source where it has one."""
    space = f".{found.space} " if isinstance(found, MemoryPlace) and found.space is not Space.GENERIC else ""
    if isinstance(found.source, Number) or found.source is None:
        dimensions = found.dimensions if isinstance(found, MemoryPlace) else ()
        return f"{space}{found.type}{''.join(f'[{count}]' for count in dimensions)}"
    return space + spelled(found.source)


def within(parts: Sequence[tuple[str, Callable[[], MemoryPlace]]], more: int, session: Session, depth: int) -> str:
    """What members or elements hold, in braces; of memory that is not there, why it is not."""
    shown = []
    for name, place in parts:
        try:
            shown.append(name + text_at(session, place(), depth + 1))
        except NoValue as wrong:
            shown.append(f"{name}<{wrong}>")
    return f"{{{', '.join(shown)}{', …' if more > 0 else ''}}}"


def source_variables(session: Session) -> list[tuple[str, str]]:
    """The local variables of the source of the thread in focus, and their values as text."""
    found = []
    for name, each in session.view().source_variables.items():
        if not each.is_local:
            continue
        try:
            found.append((name, text_at(session, session.value(name))))
        except NoValue as wrong:
            found.append((name, f"<{wrong}>"))
    return found


def registers(session: Session) -> list[RegisterView]:
    """The registers of the function of the thread in focus, in the order of their first use."""
    view = session.view()
    found = []
    for register in view.routine.function.registers:
        for part in range(register.count):
            name = register.name if register.count == 1 else f"{register.name}.{'xyzw'[part]}"
            found.append(RegisterView(name, register.type.name, text_of(view.read(RegisterPlace(register, part)))))
    return found


def special_registers(session: Session) -> list[RegisterView]:
    """The special registers of the thread in focus that have a value here."""
    view, found = session.view(), []
    for name, register in SPECIAL.items():
        if register.value is not None:
            continue
        for component in (None,) if register.count == 1 else tuple("xyz"):
            try:
                values = view.special(f"%{name}", component)
            except Unsupported:  # of the hardware alone
                continue
            if values is not None:
                full = f"%{name}.{component}" if component else f"%{name}"
                found.append(RegisterView(full, register.type.name, text_of(values)))
    return found


def variables(session: Session) -> list[Variable]:
    """The variables that the thread in focus can name: those of its function, and of its module."""
    function = session.here.function
    own = [each for each in (*function.signature.parameters, *function.variables) if isinstance(each, Variable)]
    module = list(function.program.variables.values()) if function.program is not None else []
    return list({id(each): each for each in (*own, *module)}.values())


def declared(variable: Variable | Register) -> str:
    """`.shared .f32[32] buf`."""
    space = f".{variable.space} " if isinstance(variable, Variable) else ""
    return f"{space}{spelling(variable)} {variable.name}"


def focus_coordinates(session: Session) -> dict[str, str]:
    """The kernel, block, thread, warp and lane in focus, by these names."""
    focus = session.execution.focus
    block, thread = session.shape.ctaid(focus.cta), coordinates(focus.thread, session.shape.block)
    return {
        "kernel": str(session.launch[0]), "block": shown(block), "thread": shown(thread), "warp": str(focus.warp),
        "lane": str(focus.lane),
    }  # fmt: skip


def focus_text(session: Session) -> str:
    """The thread in focus, as cuda-gdb names it."""
    return named(focus_coordinates(session))


def named(coordinates: Mapping[str, object]) -> str:
    """`block (0,0,0), thread (3,0,0)`."""
    return ", ".join(f"{name} {value}" for name, value in coordinates.items())


__all__ = [
    "BarrierView", "FrameView", "GroupView", "LaneView", "ListedLine", "MbarrierView", "RegisterView", "WarpView", "barriers",
    "current_line", "declared", "file_of", "focus_coordinates", "focus_text", "listing", "mbarriers", "named", "registers",
    "source_variables", "special_registers", "stack", "text_at", "text_of", "thread_runs", "variables", "warp_lanes", "warps",
]  # fmt: skip
