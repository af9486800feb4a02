"""`ptxvm trace`: launches a kernel on arrays, and prints what a thread or warp did, instruction by instruction."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Sequence

from rich.text import Text

from ptxvm.cli.failures import InFile, WrongCall
from ptxvm.cli.run import Following, RunRequest, run
from ptxvm.cli.terminal import console, width
from ptxvm.cli.trace_events import document, events
from ptxvm.engine.interp.value_text import text as value
from ptxvm.isa.effects import Verb
from ptxvm.profile.trace import Datum, Step, Touched, Trace
from ptxvm.reference.accesses import in_ranges

FORMATS = ("text", "json", "perfetto")
FIRST = 2  # of different values of lanes that are shown
FEW = 4  # different values that are all shown
INDENT = " " * 8


def trace(request: RunRequest, thread: str | None, warp: str | None, limit: int, form: str) -> int:
    """Load, launch, print; what was recorded is printed also where the launch has a fault."""
    if form not in FORMATS:
        raise WrongCall(f"--format takes {', '.join(FORMATS)}, not '{form}'")
    found = wanted(thread, warp, limit, everything=form == "perfetto")

    def show(_: object = None) -> None:
        if form == "text":
            print_trace(found)
        elif form == "perfetto":
            print(json.dumps(events(found, told)))
        else:
            print(json.dumps(document(found, value), indent=1))

    try:
        return run(request, Following(show, trace=found))
    except InFile:
        if found.steps:
            show()
        raise


def wanted(thread: str | None, warp: str | None, limit: int, *, everything: bool) -> Trace:
    """What is to be recorded: a thread, a warp, or all."""
    if thread is not None and warp is not None:
        raise WrongCall("--thread and --warp: give one of them")
    if warp is not None:
        cta, number = parted("warp", warp)
        if not isinstance(number, int):
            raise WrongCall(f"--warp takes CTA/WARP, and a warp is a number, not '{warp}'")
        return Trace(cta, warp=number, limit=limit)
    if thread is None and everything:
        return Trace(limit=limit)
    cta, which = parted("thread", thread or "0/0")
    return Trace(cta, thread=which, limit=limit)


def parted(option: str, text: str) -> tuple[int | tuple[int, ...], int | tuple[int, ...]]:
    """CTA/THREAD, or CTA/WARP."""
    cta, slash, inner = text.partition("/")
    try:
        found = [tuple(int(n, 0) for n in part.split(",")) for part in (cta, inner)]
    except ValueError:
        found = []
    if not slash or not found or max(map(len, found)) > len("xyz"):
        raise WrongCall(f"--{option} takes CTA/{option.upper()}, such as 0/5 or 0,1/5,0,0, not '{text}'")
    first, second = (part[0] if len(part) == 1 else part for part in found)
    return first, second


# ── text ────────────────────────────────────────────────────────────────────────────────


def print_trace(trace: Trace) -> None:
    """Each instruction in a line, and what it did below it."""
    out = console()
    if trace.steps:
        out.print(Text(f"{heading(trace)}\n", "bold"))
    digits, function = max((len(str(step.line)) for step in trace.steps), default=0), ""
    for step in trace.steps:
        if step.function != function and function:
            out.print(Text(f"{step.function}:", "bold"))
        function = step.function
        out.print(Text(f"{step.line:>{digits}}  {step.text}"), soft_wrap=True)
        if said := told(step):
            out.print(Text(textwrap.fill(said, width(), initial_indent=INDENT, subsequent_indent=INDENT)), soft_wrap=True)
    left = sum(trace.executed.values()) - len(trace.steps)
    if left:
        out.print(Text(f"and {left:,} more instruction{'s' if left != 1 else ''}: --limit N records more"))


def heading(trace: Trace) -> str:
    """The kernel, and what of it is shown."""
    step = trace.steps[0]
    cta = ",".join(map(str, step.warp.cta))
    if trace.thread_at is None:
        return f"{step.function}  CTA {cta}  warp {step.warp.warp}"
    return f"{step.function}  CTA {cta}  thread {','.join(map(str, trace.thread_at))}"


def told(step: Step) -> str:
    """What an instruction did, in a line: what it read and accessed, then what it wrote and where lanes go on."""
    before = [*lanes_told(step), *inputs(step)]
    if step.targets:
        before.append(f"goes on at {listed([f'line {line}' if line else 'the end' for line in step.targets.values()])}")
    written = ", ".join(datum_told(each) for each in step.writes)
    return f"{', '.join(before)} → {written}".lstrip() if written else ", ".join(before)


def lanes_told(step: Step) -> Iterator[str]:
    """The lanes that an instruction is not executed by, where it is a warp's."""
    if len(step.off) == len(step.lanes):
        yield "guard is off"
    elif step.off:
        yield f"guard is off in lanes {in_ranges(sorted(step.off))}"


def inputs(step: Step) -> Iterator[str]:
    """What an instruction read, and what it accessed; an address is told once."""
    for datum in step.reads:
        if not (step.accesses and datum.text.startswith("[")):
            yield datum_told(datum)
    for touched in step.accesses:
        yield access_told(touched)


def access_told(touched: Touched) -> str:
    """An access: the place, and what is not in a register."""
    where = listed(list(touched.places.values()))
    if touched.verb is Verb.READ:
        return f"loads {where}"
    if touched.verb is Verb.WRITE:
        return f"stores {where}"
    old, new = ([value(touched.type, bits[n]) for bits in touched.values.values()] for n in (0, 1))
    return f"updates {where} from {listed(old)} to {listed(new)}"


def datum_told(datum: Datum) -> str:
    """A value and its name."""
    return f"{datum.text} = {listed([datum.places.get(lane) or value(datum.type, bits) for lane, bits in datum.bits.items()])}"


def listed(values: Sequence[str]) -> str:
    """The values of lanes: one where they are equal, some of many."""
    if len(set(values)) == 1:
        return values[0]
    if len(values) <= FEW:
        return "{" + ", ".join(values) + "}"
    return "{" + ", ".join(values[:FIRST]) + f" … {values[-1]}" + "}"


__all__ = ["trace"]
