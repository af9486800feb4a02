"""A case of a campaign: its launches, and whether what is expected of them holds."""

from __future__ import annotations

import itertools
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ptxvm import api
from ptxvm.campaign.declaration import Declaration, launch_options
from ptxvm.campaign.expressions import substituted
from ptxvm.campaign.outcome import Done, Job, Outcome, Verdict
from ptxvm.campaign.parameter_space import ParameterSpace
from ptxvm.campaign.python_function import PythonFunction
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Severity
from ptxvm.diagnostics.errors import Crash, Fault, InvalidPTX, Place, Unsupported
from ptxvm.machine.argument_texts import parse
from ptxvm.machine.per_lane import Array
from ptxvm.machine.result import LaunchResult

DISAGREE = "where it must agree"
PACKAGE = Path(api.__file__).parent
Parameters = Mapping[str, object]
Arguments = list[object]


class Workload(Protocol):
    """What workers run; it is sent to them once."""

    def run(self, job: Job) -> Outcome:
        """Run a case; what it raises is an outcome, too."""
        ...


class Runner(Protocol):
    """What runs jobs: processes of this machine, or a cluster."""

    def outcomes(self, jobs: Iterable[Job], until: float | None = None) -> Iterator[list[Done]]:
        """Run cases; gives those that have ended, as soon as they have, and gives up those that run at a time."""
        ...


@dataclass(frozen=True)
class DeclaredWorkload:
    """The cases of a declared campaign."""

    declaration: Declaration

    @cached_property
    def space(self) -> ParameterSpace:
        """The parameters and their values."""
        return self.declaration.space

    def run(self, job: Job) -> Outcome:
        """Run a case."""
        space, parameters = self.space, job.parameters
        if parameters is None:
            parameters = space.parameters(space.position(job.number))
        return outcome(lambda: judged(self.declaration, parameters, job.text))


class Failed(Exception):  # noqa: N818 - it says what happened
    """Something expected does not hold."""

    def __init__(self, outcome: Outcome) -> None:
        super().__init__(outcome.message)
        self.outcome = outcome


def outcome(work: Callable[[], object]) -> Outcome:
    """How some work ended."""
    began = time.perf_counter()
    try:
        work()
        found = Outcome()
    except Failed as failed:
        found = failed.outcome
    except Fault as fault:
        found = Outcome(Verdict.FAULT, fault.kind, line_of(fault.place), str(fault))
    except MemoryError as wrong:
        found = Outcome(Verdict.MEMORY, "", "", f"it ran out of memory: {wrong}".rstrip(": "))
    except InvalidPTX as wrong:
        codes = ", ".join(sorted({each.code for each in wrong.diagnostics if each.severity is Severity.ERROR}))
        found = Outcome(Verdict.ERROR, f"InvalidPTX {codes}".rstrip(), "", str(wrong))
    except (Exception, SystemExit) as wrong:  # noqa: BLE001 - whatever it is, it is how the case ended
        found = Outcome(Verdict.ERROR, type(wrong).__name__, place_of(wrong), f"{type(wrong).__name__}: {wrong}")
    return replace(found, seconds=time.perf_counter() - began)


def line_of(place: Place) -> str:
    """The file and line of an instruction."""
    return f"{Path(place.file or '<ptx>').name}:{place.line}" if place.line else ""


def place_of(wrong: BaseException) -> str:
    """The file and line that raised an exception; nothing for what ptxvm tells a user by its message."""
    frames = traceback.extract_tb(wrong.__traceback__)
    is_said = isinstance(wrong, Unsupported | ValueError | TypeError) and not isinstance(wrong, Crash)
    if not frames or (is_said and Path(frames[-1].filename).is_relative_to(PACKAGE)):
        return ""
    return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"


# ── what is run ─────────────────────────────────────────────────────────────────────────


def judged(declaration: Declaration, parameters: Parameters, text: str | None = None) -> None:
    """Run a case, and raise what is wrong with it."""
    if declaration.subject.function:
        found = PythonFunction(declaration.subject.function, declaration.folder).load()(**parameters)
        if isinstance(found, LaunchResult):
            judge_findings(declaration, found)
        return
    expect, subject = declaration.expect, declaration.subject
    whole = dict(parameters)
    launches = [
        (variant, launched(declaration, {**whole, **variant}, (subject.kernel, subject.entry), text))
        for variant in variants(expect.agree)
    ]
    first_variant, left = launches[0]
    for variant, other in launches[1:]:
        judge_arrays(declaration, left, other, DISAGREE, f"{shown(first_variant)} and {shown(variant)} disagree")
    if expect.reference:
        right = arguments(declaration, {**whole, **first_variant})
        PythonFunction(expect.reference, declaration.folder).load()(*right)
        judge_arrays(declaration, left, right, "from the reference", f"the kernel differs from {expect.reference}")
    if expect.kernel:
        right = launched(declaration, {**whole, **first_variant}, (expect.kernel, expect.entry))
        judge_arrays(declaration, left, right, "from the other kernel", f"the kernel differs from that of {expect.kernel}")


def variants(agree: Mapping[str, Sequence[object]]) -> Iterator[dict[str, object]]:
    """The combinations of values under which a case is run; one without any where nothing must agree."""
    for values in itertools.product(*agree.values()):
        yield dict(zip(agree, values, strict=True))


def shown(parameters: Parameters) -> str:
    """Parameters as people read them."""
    return ", ".join(f"{name}={value}" for name, value in parameters.items())


def launched(declaration: Declaration, parameters: Parameters, kernel: tuple[str, str], text: str | None = None) -> Arguments:
    """Launch a kernel; gives the arguments as it leaves them."""
    options = {name: parameters[name] for name in launch_options() if name in parameters}
    options |= {name: substituted(value, parameters) for name, value in declaration.launch.items() if name != "args"}
    target = options.pop("target", None)
    file, entry = kernel
    source = text if text is not None else str(Path(declaration.folder, file))
    found = loaded(source, None if target is None else str(target), entry or None)
    args = arguments(declaration, parameters)
    for name in ("grid", "block", "cluster"):
        if isinstance(options.get(name), list):
            options[name] = tuple(options[name])  # type: ignore[arg-type]
    judge_findings(declaration, found.launch(args=args, **options))  # type: ignore[arg-type]  # `launch` verifies them
    return args


@lru_cache(maxsize=64)
def loaded(source: str, target: str | None, entry: str | None) -> api.Kernel:
    """A kernel, by the path or text of its module; one that is launched again is quicker."""
    module = api.load(source, target)
    if entry is not None and entry not in module.kernels:
        raise ValueError(f"the module has no kernel '{entry}'; it has {', '.join(module.kernels) or 'none'}")
    return module.kernel(entry)


def arguments(declaration: Declaration, parameters: Parameters) -> Arguments:
    """New arguments of the kernel; random numbers are made from the parameter `seed`, or from 0."""
    seed = parameters.get("seed", 0)
    random = cache(lambda: np.random.default_rng(seed if isinstance(seed, int) else 0))
    texts = declaration.launch.get("args", [])
    return [argument(declaration, substituted(each, parameters), random) for each in texts]  # type: ignore[attr-defined]  # a list


def argument(declaration: Declaration, value: object, random: Callable[[], np.random.Generator]) -> object:
    """An argument: the array, number or bytes that a text stands for, or a number."""
    if not isinstance(value, str):
        return value
    return parse(f"@{Path(declaration.folder, value[1:])}" if value.startswith("@") else value, random)


# ── what is expected ────────────────────────────────────────────────────────────────────


def judge_findings(declaration: Declaration, result: LaunchResult) -> None:
    """Raise the first finding of a launch that is an error."""
    for each in result.findings:
        if declaration.expect.warnings or each.severity is Severity.ERROR:
            at = line_of(each.accesses[0].place) if each.accesses else f"line {each.line}"
            raise Failed(Outcome(Verdict.FINDING, each.code, at, str(each)))


def judge_arrays(declaration: Declaration, left: Arguments, right: Arguments, kind: str, said: str) -> None:
    """Raise where two lists of arguments hold other numbers."""
    for number, (mine, other) in enumerate(zip(left, right, strict=True)):
        if isinstance(mine, np.ndarray) and isinstance(other, np.ndarray):
            wrong = differences(mine, other, declaration.expect.relative, declaration.expect.absolute)
            if wrong.size:
                at = int(wrong[0])
                numbers = f"{mine.reshape(-1)[at]} and {other.reshape(-1)[at]}"
                message = f"{said} in {wrong.size:,} of {mine.size:,} elements of argument {number}: at {at} {numbers}"
                raise Failed(Outcome(Verdict.DIFFERS, kind, f"argument {number}", message))


def differences(left: Array, right: Array, relative: float, absolute: float) -> np.ndarray[Any, np.dtype[np.intp]]:
    """The positions of the elements that differ: in their bits, or by more than an error."""
    left, right = np.ascontiguousarray(left).reshape(-1), np.ascontiguousarray(right).reshape(-1)
    if not (relative or absolute):
        bits = f"u{left.itemsize}" if left.itemsize in (1, 2, 4, 8) else "u1"
        return np.flatnonzero(left.view(bits) != right.view(bits))
    a, b = left.astype(np.float64), right.astype(np.float64)
    return np.flatnonzero(~np.isclose(a, b, rtol=relative, atol=absolute, equal_nan=True))


__all__ = ["DeclaredWorkload", "Failed", "Runner", "Workload", "outcome"]
