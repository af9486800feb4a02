"""Traces for tools: a JSON document, and the trace events of Chrome, which Perfetto reads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ptxvm.algebra.types import Type
from ptxvm.profile.trace import Datum, Extent, Step, Touched, Trace, WarpName

TIME = "a step of the schedule for each instruction that some warp executes, shown as a microsecond; not the time of a GPU"

Said = Callable[[Type, int], str]
"""A value as people read it, of a type and bits."""


def document(trace: Trace, said: Said) -> dict[str, object]:
    """All of a trace."""
    return {
        "time": "steps of the schedule",
        "executed": [{"cta": list(cta), "warp": warp, "instructions": n} for (cta, warp), n in trace.executed.items()],
        "steps": [fields(step, said) for step in trace.steps],
    }


def fields(step: Step, said: Said) -> dict[str, object]:
    """An instruction, with its values by lane."""
    return {
        "cta": list(step.warp.cta), "warp": step.warp.warp, "time": step.time, "end": step.end, "line": step.line,
        "function": step.function, "text": step.text, "lanes": list(step.lanes), "off": sorted(step.off),
        "reads": [of_datum(each, said) for each in step.reads], "writes": [of_datum(each, said) for each in step.writes],
        "accesses": [of_access(each, said) for each in step.accesses],
        "goes_on_at": {str(lane): line for lane, line in step.targets.items()},
    }  # fmt: skip


def of_datum(datum: Datum, said: Said) -> dict[str, object]:
    """A value: its digits, and its place in memory if it is an address, by lane."""
    values = {str(lane): said(datum.type, bits) for lane, bits in datum.bits.items()}
    bits = {str(lane): hex(bits) for lane, bits in datum.bits.items()}
    places = {str(lane): place for lane, place in datum.places.items()}
    return {"operand": datum.text, "type": datum.type.name, "values": values, "bits": bits, "places": places}


def of_access(touched: Touched, said: Said) -> dict[str, object]:
    """An access: what it does, where, and the elements; of an atomic those before and after it, and operands."""
    return {
        "access": str(touched.verb), "space": str(touched.space), "type": touched.type.name, "bytes": touched.size,
        "places": {str(lane): place for lane, place in touched.places.items()},
        "values": {str(lane): [said(touched.type, bits) for bits in some] for lane, some in touched.values.items()},
    }  # fmt: skip


def events(trace: Trace, told: Callable[[Step], str]) -> dict[str, object]:
    """Trace events: a process for each CTA, a thread for each warp, a slice for each instruction.

    All have numbers of their own, from 1 on: for Perfetto 0 is the idle process, and the name of a thread belongs to its
    number, whichever process it is in.
    """
    warps = sorted(trace.executed, key=lambda each: (each.cta[::-1], each.warp))
    processes = {cta: number for number, cta in enumerate(dict.fromkeys(warp.cta for warp in warps), 1)}
    threads = {warp: number for number, warp in enumerate(warps, 1 + len(processes))}
    slices = [
        {
            "name": step.text, "cat": step.bound.i.of.family, "ph": "X", "ts": step.time, "dur": step.end - step.time,
            "pid": processes[step.warp.cta], "tid": threads[step.warp],
            "args": {"line": step.line, "lanes": len(step.lanes), "guard off": len(step.off), "values": told(step)},
        }
        for step in trace.steps
    ]  # fmt: skip
    return {"traceEvents": [*names(processes, threads), *slices], "otherData": {"time": TIME}}


def names(processes: Mapping[Extent, int], threads: Mapping[WarpName, int]) -> Iterator[dict[str, object]]:
    """The names of the tracks, and their order."""
    for cta, number in processes.items():
        at = ",".join(map(str, cta))
        yield {"ph": "M", "name": "process_name", "pid": number, "args": {"name": f"CTA {at}"}}
        yield {"ph": "M", "name": "process_sort_index", "pid": number, "args": {"sort_index": number}}
    for warp, number in threads.items():
        track = {"pid": processes[warp.cta], "tid": number}
        yield {"ph": "M", "name": "thread_name", **track, "args": {"name": f"warp {warp.warp}"}}
        yield {"ph": "M", "name": "thread_sort_index", **track, "args": {"sort_index": number}}


__all__ = ["document", "events"]
