"""`ptxvm run`: launches a kernel on arrays, and prints them afterwards."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import cache
from math import prod
from pathlib import Path
from typing import cast

import numpy as np
from rich.text import Text

import ptxvm
from ptxvm.api import wanted
from ptxvm.cli import arguments
from ptxvm.cli.check import known_format, known_target, read, read_suppressions, tell_unused
from ptxvm.cli.failures import InFile, WrongCall, one_line, say
from ptxvm.cli.run_report import RunReport, short_name
from ptxvm.cli.terminal import console, has_color, tabulated, width, working
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics.render import render, summary
from ptxvm.machine import options
from ptxvm.machine.arguments import pack_arguments
from ptxvm.machine.launch import LaunchShape
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.options import COMPLETIONS, DUMPS, Check, Completion, Dump, EngineName, Numerics
from ptxvm.profile.stores import StoreLog
from ptxvm.profile.trace import Trace
from ptxvm.syntax.source import Source

Extent = tuple[int, ...]
FORMATS = ("text", "json", "sarif", "junit", "github")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What the command line asks for, as it stands there; `source` is that of the file, where it has been read."""

    file: str
    arguments: Sequence[str]
    grid: str | None
    block: str | None
    entry: str | None = None
    shared: int = 0
    cluster: str | None = None
    target: str | None = None
    save: Sequence[str] = ()
    seed: int | None = None
    engine: str = "auto"
    checks: str = ""
    allow: str = ""
    schedules: int = 1
    form: str = "text"
    steps: int | None = None
    timeout: float | None = None
    time: bool = False
    threads: int | None = None
    numerics: str = "exact"
    dump: str | None = None
    asynchronous: str | None = None
    suppress: str | None = None
    workers: int | None = None
    scheduler: str | None = None
    source: Source | None = None


@dataclass(frozen=True, slots=True)
class Following:
    """What follows a launch, and what is shown of it: the arrays, a profile or a trace, with counters where they are wanted.

    `begin` is called before the launch, `end` after it, whatever the format of the output is.
    """

    show: Callable[[RunReport], None]
    profile: bool = False
    trace: Trace | StoreLog | None = None
    begin: Callable[[ptxvm.Kernel, LaunchOptions, Sequence[object]], None] = lambda *_: None
    end: Callable[[RunReport], None] = lambda _: None
    counters: bool = False


def print_arrays(report: RunReport) -> None:
    """A line for each array."""
    rows = []
    for number, value in enumerate(report.args):
        if isinstance(value, np.ndarray):
            described, shown = arguments.described(value), arguments.preview(value)
            rows.append((str(number), report.name(number), described, shown, *arguments.statistics(value)))
    if rows:
        headings = ("", "argument", "array", "values", "min", "max", "sum")
        console().print(tabulated(headings, rows, {0, 4, 5, 6}), soft_wrap=True)


ARRAYS = Following(print_arrays, counters=True)


def run(request: RunRequest, following: Following = ARRAYS) -> int:
    """Load, launch, print: the arrays, or what followed the launch."""
    if request.dump is not None:
        return print_dump(request)
    grid, block = extent("grid", request.grid), extent("block", request.block)
    cluster = extent("cluster", request.cluster) if request.cluster else None
    named = tuple(name for name in options.names_of_checks(request.checks) if name not in ("", "none"))
    checks = named if request.checks else None  # and for `none` nothing at all
    if request.timeout is not None and not request.timeout > 0:
        raise WrongCall(f"--timeout takes a number of seconds above 0, not {request.timeout:g}")
    known_target(request.target)
    known_format(request.form, FORMATS)
    known_completion(request.asynchronous)
    allow = known_findings(request.allow)
    source = request.source or read(request.file)
    report, began = RunReport(source, suppressions=read_suppressions(request.suppress)), time.perf_counter()
    try:
        kernel = report.kernel = find_kernel(load(request.file, source, request.target), request.entry)
        loaded = time.perf_counter()
        random = cache(lambda: np.random.default_rng(request.seed or 0))
        args = report.args = [arguments.parse(word, random) for word in request.arguments]
        how = request.engine, named, request.threads, request.numerics
        refuse_wrong_launch(kernel, (grid, block, cluster), args, how, following.trace)
        saved = [which_to_save(kernel, args, each) for each in request.save]
        what = f"running {kernel.name} on {prod(grid) * prod(block):,} threads"
        with working(what, lambda: kernel.module.share), printing(report, request.form):
            following.begin(kernel, asked(request, grid, block, cluster), args)
            if request.workers is not None or request.scheduler is not None:
                result = report.result = launch_spread(request, kernel, grid, block, args)
            else:
                result = report.result = launch(request, kernel, (grid, block, cluster), args, (checks, allow), following)
    except (ptxvm.InvalidPTX, ptxvm.Fault, ptxvm.Unsupported) as wrong:
        if request.form != "text":
            report.wrong = wrong
            return print_report(report, request.form)
        if isinstance(wrong, ptxvm.Unsupported):
            raise
        raise InFile(source, wrong) from wrong
    for number, path in saved:
        arguments.save(path, np.asarray(args[number]))
    following.end(report)
    if request.form != "text":
        report.saved, report.compiling = saved, kernel.module.compiling
        return print_report(report, request.form)
    following.show(report)
    if following.counters or request.time:
        print_counters(result, (loaded - began, kernel.module.compiling) if request.time else None)
    return print_findings(report, request)


def asked(request: RunRequest, grid: Extent, block: Extent, cluster: Extent | None) -> LaunchOptions:
    """The launch that the request asks for, without its checks."""
    return LaunchOptions(
        grid, block, request.shared, request.steps, request.timeout, request.threads, request.numerics == "fast",
        cluster=cluster, asynchronous=request.asynchronous or "", seed=request.seed or 0,
    )  # fmt: skip


def launch(
    request: RunRequest, kernel: ptxvm.Kernel, shape: tuple[Extent, Extent, Extent | None], args: Sequence[object],
    looked_for: tuple[tuple[str, ...] | None, frozenset[str]], following: Following,
) -> ptxvm.LaunchResult:  # fmt: skip
    """Run the kernel in this process, with all options; `looked_for` are the checks, and the findings that are meant."""
    (grid, block, cluster), (checks, allow) = shape, looked_for
    return kernel.launch(
        grid, block, args, shared=request.shared, cluster=cluster, engine=cast("EngineName", request.engine),
        check=cast("tuple[Check, ...] | None", checks), allow=allow, schedules=request.schedules, seed=request.seed,
        steps=request.steps, timeout=request.timeout, threads=request.threads, numerics=cast("Numerics", request.numerics),
        asynchronous=cast("Completion | None", request.asynchronous), profile=following.profile, trace=following.trace,
    )  # fmt: skip


def launch_spread(
    request: RunRequest, kernel: ptxvm.Kernel, grid: Extent, block: Extent, args: Sequence[object]
) -> ptxvm.LaunchResult:
    """Run the grid in ranges of CTAs; a line says why, where it runs whole."""
    alone = {
        "engine": request.engine != "auto", "check": request.checks, "schedules": request.schedules > 1, "steps": request.steps,
        "timeout": request.timeout, "cluster": request.cluster, "numerics": request.numerics != "exact",
        "async": request.asynchronous,
    }  # fmt: skip
    if other := next((name for name, given in alone.items() if given), None):
        raise WrongCall(f"--{other} is of a launch in this process; leave out --workers and --scheduler")
    try:
        done = ptxvm.spread(
            kernel, grid, block, args, shared=request.shared, workers=request.workers, scheduler=request.scheduler
        )
    except (ValueError, ImportError) as wrong:
        raise WrongCall(one_line(str(wrong))) from None
    if done.reason:
        say(f"ptxvm run: the grid runs whole: {done.reason}", 0)
    return done.result


@contextmanager
def printing(report: RunReport, form: str) -> Iterator[None]:
    """Around the launch: what the kernel prints is a field of the report, where it would stand in the midst of JSON."""
    if form == "text":
        yield
        return
    with redirect_stdout(io.StringIO()) as printed:
        try:
            yield
        finally:
            report.output = printed.getvalue()


# ── what may be wrong with the call ─────────────────────────────────────────────────────


def extent(option: str, text: str | None) -> Extent:
    """`X[,Y,Z]` as numbers."""
    if text is None:
        raise WrongCall(f"missing option '--{option}'; see --help")
    try:
        sizes = tuple(int(size, 0) for size in text.split(","))
    except ValueError:
        sizes = ()
    if not 1 <= len(sizes) <= 3 or min(sizes) < 1:
        raise WrongCall(f"--{option} takes X, X,Y or X,Y,Z, not '{text}'")
    return sizes


def load(file: str, source: Source, target: str | None) -> ptxvm.Module:
    """The module in the file, or of what the standard input gave."""
    with working(f"reading {source.name}"):
        return ptxvm.load(Path(file) if file != "-" else source.text.encode(), target)


def find_kernel(module: ptxvm.Module, name: str | None) -> ptxvm.Kernel:
    """The kernel that is meant."""
    try:
        return module.kernel(name)
    except KeyError as wrong:
        (message,) = wrong.args
        raise WrongCall(f"{message}" + ("; name it with --entry" if name is None and module.kernels else "")) from None


def refuse_wrong_launch(
    kernel: ptxvm.Kernel,
    shape: tuple[Extent, Extent, Extent | None],
    args: Sequence[object],
    how: tuple[str, Sequence[str], int | None, str],
    trace: Trace | StoreLog | None = None,
) -> None:
    """Find what is wrong with the arguments before the launch, where such errors could be bugs of ours."""
    try:
        wanted(*how)
        chosen = LaunchShape.of(*shape).for_kernel(kernel.function)
        if trace is not None:
            trace.begin(chosen.grid, chosen.block)
        parameters = kernel.function.signature.parameters
        pack_arguments(parameters, args, kernel.module.memory, f"kernel '{kernel.name}'").release()
    except (TypeError, ValueError) as wrong:
        raise WrongCall(one_line(str(wrong))) from None


def which_to_save(kernel: ptxvm.Kernel, args: Sequence[object], text: str) -> tuple[int, str]:
    """The argument and the file of `I=out.npy`."""
    which, _, path = text.partition("=")
    names = [parameter.name for parameter in kernel.function.signature.parameters]
    shown = [short_name(kernel, number) for number in range(len(names))]
    number = next((known.index(which) for known in (names, shown) if which in known), int(which) if which.isdecimal() else -1)
    if not path:
        raise WrongCall(f"--save takes I=FILE.npy, not '{text}'")
    if not 0 <= number < len(args):
        named = f"; they are called {', '.join(shown)}" if shown and not which.isdecimal() else ""
        numbered = f"they are numbered from 0 to {len(args) - 1}" if args else "the kernel has none"
        raise WrongCall(f"--save {text}: there is no argument {which}; {numbered}{named}")
    if not isinstance(args[number], np.ndarray):
        raise WrongCall(f"--save {text}: argument {which} is no array")
    return number, path


def known_findings(text: str) -> frozenset[str]:
    """The codes of findings to say nothing of."""
    try:
        return options.allowed_in(text)
    except ValueError as wrong:
        raise WrongCall(f"--allow {text}: {wrong}") from None


def known_completion(asynchronous: str | None) -> None:
    """Refuse a time at which asynchronous work does not end."""
    if asynchronous is not None and asynchronous not in COMPLETIONS:
        raise WrongCall(f"--async takes {', '.join(COMPLETIONS)}, not '{asynchronous}'")


# ── what is printed ─────────────────────────────────────────────────────────────────────


def print_report(report: RunReport, form: str) -> int:
    """All of it on the output, for tools; the exit code."""
    print(report.rendered(form), end="")
    return report.exit_code


def print_findings(report: RunReport, request: RunRequest) -> int:
    """What the checks found, on the standard error; the exit code, which warnings leave at 0."""
    source, findings, count = report.source, report.findings, report.suppressions.count
    suppressed = f"{count} suppressed" if count else ""
    if findings or suppressed:
        sys.stdout.flush()
        shown = render([(source, findings)], width=width(), color=has_color(sys.stderr)) + "\n" if findings else ""
        told = ", ".join(filter(None, (summary(findings), suppressed)))
        sys.stderr.write(f"{shown}{told} in {source.name}\n")
    tell_unused(report.suppressions, request.suppress)
    return report.exit_code


def print_counters(result: ptxvm.LaunchResult, before: tuple[float, float] | None) -> None:
    """What the launch did, and how long it took where that was asked for: `before` is of reading and of compiling."""
    threads = prod(result.grid) * prod(result.block)
    ctas = prod(result.grid)
    counts = ((ctas, "CTA"), (threads, "thread"), (result.thread_instructions, "thread-instruction"))
    line = ", ".join(f"{count:,} {noun}{'s' if count != 1 else ''}" for count, noun in counts)
    console().print(Text(line))
    if before is not None:
        reading, compiling = before
        running = max(result.seconds - compiling, 1e-9)
        compiled = f"compiled in {compiling:.3f} s, " if compiling else ""
        rate = result.thread_instructions / running / 1e6
        took = f"read in {reading:.3f} s, {compiled}ran in {running:.6f} s"
        console().print(Text(f"{took}: {rate:,.1f} million thread-instructions a second"), soft_wrap=not sys.stdout.isatty())


def print_dump(request: RunRequest) -> int:
    """What the JIT makes of the kernel."""
    block = extent("block", request.block)
    if request.dump not in DUMPS:
        raise WrongCall(f"no such dump: '{request.dump}'; there are {', '.join(DUMPS)}")
    source = read(request.file)
    try:
        kernel = find_kernel(load(request.file, source, request.target), request.entry)
        what, numerics = cast("Dump", request.dump), cast("Numerics", request.numerics)
        print(kernel.dump(what, block, shared=request.shared, numerics=numerics).rstrip())
    except ptxvm.InvalidPTX as wrong:
        raise InFile(source, wrong) from wrong
    except ValueError as wrong:
        raise WrongCall(one_line(str(wrong))) from None
    return 0
