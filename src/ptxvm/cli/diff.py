"""`ptxvm diff`: launches two versions of a kernel on the same arguments, and prints the first place where they part."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from rich.text import Text

from ptxvm.cli.failures import FINDINGS, WrongCall
from ptxvm.cli.run import Following, RunRequest, run
from ptxvm.cli.run_report import RunReport
from ptxvm.cli.terminal import aligned, console, width
from ptxvm.cli.trace import INDENT, told as step_told
from ptxvm.engine.interp.value_text import text as value
from ptxvm.isa.effects import Verb
from ptxvm.machine.per_lane import Array
from ptxvm.profile.stores import Parting, RecordedStore, StoreLog, first_parting
from ptxvm.profile.trace import Step, Trace

MOST_STEPS = 100_000
"""Instructions of a thread that are looked through for the first value that differs."""

WORDS = {Verb.WRITE: "stores", Verb.UPDATE: "atomic with"}


def diff(request: RunRequest, second: str) -> int:
    """Load and launch both, compare, print; 1 where they differ."""
    if request.save or request.dump:
        raise WrongCall("--save and --dump are options of ptxvm run, and not of ptxvm diff")
    (one, first), (other, then) = launched(request), launched(replace(request, file=second))
    lines = list(arguments(one, other))
    parting = first_parting(first, then)
    if not lines and parting is None:
        console().print(Text("no difference: arguments and stores are equal"))
        return 0
    out = console()
    for line in lines or ["all arguments are equal in the end"]:
        out.print(Text(line), soft_wrap=True)
    if parting is not None:
        out.print(Text(f"\n{heading(parting)}", "bold"))
        for line in aligned(list(rows(parting, one, other)), (), width()):
            out.print(Text(line), soft_wrap=True)
        print_steps(
            [replace(request, file=file, source=each.source) for file, each in ((request.file, one), (second, other))], parting
        )
    else:
        out.print(
            Text("all stores to global memory are equal: what atomics found there differs, or what surfaces got"),
            soft_wrap=True,
        )
    return FINDINGS


def launched(request: RunRequest) -> tuple[RunReport, StoreLog]:
    """Run a kernel; its arguments afterwards, and its stores."""
    log, found = StoreLog(), list[RunReport]()
    run(request, Following(found.append, trace=log))
    return found[0], log


def arguments(one: RunReport, other: RunReport) -> Iterator[str]:
    """The arrays that differ after the two launches: how many elements differ, and the first of them."""
    for number, (mine, theirs) in enumerate(zip(one.args, other.args, strict=True)):
        if isinstance(mine, np.ndarray) and isinstance(theirs, np.ndarray):
            unequal = np.flatnonzero(bytes_of(mine) != bytes_of(theirs))
            if len(unequal):
                at = int(unequal[0])
                found = f"{mine.reshape(-1)[at]!s} and {theirs.reshape(-1)[at]!s}"
                count = f"{len(unequal):,} of {mine.size:,} element{'s' * (mine.size != 1)} differ"
                yield f"argument {number} ({one.name(number)}): {count}; the first is [{at}], {found}"


def bytes_of(values: Array) -> Array:
    """The elements of an array as bytes, which are equal where NaNs are the same."""
    flat = np.ascontiguousarray(values).reshape(-1)
    return flat.view(np.dtype(f"V{flat.dtype.itemsize}"))


def heading(parting: Parting) -> str:
    """Which store of which thread it is."""
    cta, thread = (",".join(map(str, each)) for each in (parting.cta, parting.thread))
    return f"first to part: CTA {cta}  thread {thread}, its store {parting.number:,} to global memory"


def rows(parting: Parting, one: RunReport, other: RunReport) -> Iterator[tuple[str, ...]]:
    """The store of each version: its line, its instruction, and what it does."""
    for report, store in ((one, parting.first), (other, parting.second)):
        if store is None:
            yield report.source.name, "has no such store"
        else:
            yield f"{report.source.name}:{store.bound.line}", f"{store.bound.text}  {told(store, one)}"


def told(store: RecordedStore, report: RunReport) -> str:
    """What a store does, with the name of the argument."""
    where, _, offset = store.place.rpartition("+")
    kind, _, number = where.partition(" ")
    name = report.name(int(number)) if kind == "argument" and number.isdecimal() else where
    return f"{WORDS[store.verb]} {name}+{offset} = {value(store.type, store.bits)}"


# ── the values before the store ─────────────────────────────────────────────────────────


def print_steps(requests: Sequence[RunRequest], parting: Parting) -> None:
    """Where the two threads come to different values, or instructions, before the stores that differ."""
    first, then = (steps_of(request, parting) for request in requests)
    pair = next(((one, other) for one, other in zip(first, then, strict=False) if outcome(one) != outcome(other)), None)
    if pair is None or any(step.accesses and not step.writes for step in pair):  # it is the store itself
        return
    what = "first value" if executed(pair[0]) == executed(pair[1]) else "first instruction"
    out = console()
    out.print(Text(f"\n{what} to part", "bold"))
    for request, step in zip(requests, pair, strict=True):
        name = request.source.name if request.source is not None else request.file
        out.print(Text(f"{name}:{step.line}  {step.text}"), soft_wrap=True)
        if said := step_told(step):
            out.print(Text(textwrap.fill(said, width(), initial_indent=INDENT, subsequent_indent=INDENT)), soft_wrap=True)


def steps_of(request: RunRequest, parting: Parting) -> list[Step]:
    """What the thread does that parts, from the same arguments again."""
    trace = Trace(parting.cta, thread=parting.thread, limit=MOST_STEPS)
    run(request, Following(lambda _: None, trace=trace))
    return trace.steps


def outcome(step: Step) -> tuple[object, ...]:
    """The instruction, and the values that it writes, whatever its registers are called; addresses by their memory."""
    return executed(step), [datum.places or datum.bits for datum in step.writes]


def executed(step: Step) -> str:
    """What it executes, without the operands."""
    return step.bound.i.mnemonic


__all__ = ["diff"]
