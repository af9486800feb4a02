"""Runs a kernel for the page: the arrays afterwards, what was printed, the counters, and what was found."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, cast

import numpy as np

from ptxvm.analysis.faults import as_diagnostic
from ptxvm.api import Kernel, Module, load
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Diagnostic
from ptxvm.diagnostics.errors import Fault, InvalidPTX, PTXVMError, Unsupported
from ptxvm.diagnostics.json import objects
from ptxvm.machine import argument_texts
from ptxvm.machine.argument_texts import Argument
from ptxvm.machine.backing import address_of
from ptxvm.machine.options import Check, EngineName
from ptxvm.machine.per_lane import Array
from ptxvm.machine.result import LaunchResult
from ptxvm.playground.checking import NAME
from ptxvm.playground.requests import LaunchRequest, RequestError
from ptxvm.syntax.source import Source

if TYPE_CHECKING:
    from ptxvm.profile.trace import Trace

SECONDS = 10.0
"""How long a kernel may run."""
MOST_ELEMENTS = 1 << 22
"""Elements of all arrays together."""
ALIGNMENT = 256
"""Bytes of which the address of an allocation is a multiple (CUDA C++ programming guide, "Device Memory Accesses")."""
MOST_THREADS = 1 << 20
SHOWN = 4096
"""Elements of an array that are shown."""
EXACT = 1 << 53
"""Integers up to which a number of JavaScript has all digits."""


@dataclass
class Launched:
    """A launch, filled as far as it came."""

    source: Source
    kernel: Kernel | None = None
    arguments: Sequence[Argument] = ()
    before: Sequence[Argument] = ()
    result: LaunchResult | None = None
    output: str = ""
    wrong: PTXVMError | None = None
    words: Sequence[str] = field(default=())

    @property
    def outcome(self) -> str:
        """How it ended, in a word."""
        if self.wrong is None:
            return "done"
        return {InvalidPTX: "invalid", Fault: "fault"}.get(type(self.wrong), "unsupported")

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What was found in the module or in the launch, with the fault that ended it."""
        if isinstance(self.wrong, InvalidPTX):
            return self.wrong.diagnostics
        found = [each.diagnostic() for each in self.result.findings] if self.result is not None else []
        return [*found, as_diagnostic(self.wrong, self.source)] if isinstance(self.wrong, Fault) else found


def run(request: LaunchRequest) -> dict[str, object]:
    """Launch a kernel."""
    return document(launched(request))


def launched(request: LaunchRequest, *, profile: bool = False, trace: Trace | None = None) -> Launched:
    """Launch a kernel, for a profile or a trace too; raises `RequestError` where the request makes no sense."""
    done = Launched(Source(request.source, NAME), words=request.arguments)
    grid, block = extent("grid", request.grid), extent("block", request.block)
    if math.prod(grid) * math.prod(block) > MOST_THREADS:
        raise RequestError(f"the grid has {math.prod(grid) * math.prod(block):,} threads; the playground runs {MOST_THREADS:,}")
    if request.seed < 0:
        raise RequestError(f"the seed is 0 or more, not {request.seed}")
    printed = io.StringIO()
    try:
        done.kernel = kernel_of(load_named(done.source, request.target), request.entry)
        done.arguments = arguments_of(request)
        done.before = [each.copy() if isinstance(each, np.ndarray) else each for each in done.arguments]
        with redirect_stdout(printed):
            done.result = done.kernel.launch(
                grid, block, done.arguments, shared=request.shared, engine=cast("EngineName", request.engine),
                check=cast("tuple[Check, ...]", request.checks) or None, schedules=request.schedules, seed=request.seed,
                timeout=SECONDS, profile=profile, trace=trace,
            )  # fmt: skip
    except (InvalidPTX, Fault, Unsupported) as wrong:
        done.wrong = wrong
    except (TypeError, ValueError) as wrong:
        raise RequestError(" ".join(str(wrong).split())) from None
    finally:
        done.output = printed.getvalue()
    return done


# ── what goes in ────────────────────────────────────────────────────────────────────────


def extent(what: str, text: str) -> tuple[int, ...]:
    """`X[,Y,Z]` as numbers."""
    try:
        sizes = tuple(int(size, 0) for size in text.split(","))
    except ValueError:
        sizes = ()
    if not 1 <= len(sizes) <= len("xyz") or min(sizes) < 1:
        raise RequestError(f"the {what} is X, X,Y or X,Y,Z, not '{text}'")
    return sizes


def load_named(source: Source, target: str | None) -> Module:
    """The module of a text, which messages name as the page does."""
    if not source.text.strip():
        raise RequestError("there is no kernel: the text is empty")
    return load(source.text.encode(), target)


def kernel_of(module: Module, name: str | None) -> Kernel:
    """The kernel of a name; the only one where there is none."""
    try:
        return module.kernel(name or None)
    except KeyError as wrong:
        raise RequestError(wrong.args[0]) from None


def arguments_of(request: LaunchRequest) -> list[Argument]:
    """The arguments, new arrays among them."""
    random = cache(lambda: np.random.default_rng(request.seed))
    found: list[Argument] = []
    for word in request.arguments:
        if word.startswith("@"):
            raise RequestError(f"'{word}': the playground reads no files; write TYPE[SHAPE]=FILL or hex:BYTES")
        left = MOST_ELEMENTS - sum(each.size for each in found if isinstance(each, np.ndarray))
        if (shape := argument_texts.ARRAY.fullmatch(word)) and elements(shape["shape"]) > left:
            raise RequestError(f"'{word}': the arrays of the playground have {MOST_ELEMENTS:,} elements together")
        value = argument_texts.parse(word, random)
        found.append(as_allocated(value) if isinstance(value, np.ndarray) else value)
    return found


def as_allocated(array: Array) -> Array:
    """A copy that begins where an allocation of a device does; NumPy aligns arrays to 8 bytes only in WebAssembly."""
    space = np.zeros(array.nbytes + ALIGNMENT, np.uint8)
    start = -address_of(space) % ALIGNMENT
    made: Array = space[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    made[...] = array
    return made


def elements(shape: str) -> int:
    """How many elements a shape has; 0 where it is none, which `argument_texts` says."""
    try:
        return math.prod(int(size, 0) for size in shape.split(","))
    except ValueError:
        return 0


# ── what comes out ──────────────────────────────────────────────────────────────────────


def document(done: Launched) -> dict[str, object]:
    """All of a launch; the same fields however it ended."""
    result, kernel = done.result, done.kernel
    return {
        "outcome": done.outcome,
        "message": str(done.wrong).partition("\n")[0] if done.wrong is not None else "",
        "kernel": kernel.name if kernel is not None else None,
        "arguments": [argument(done, number) for number in range(len(done.arguments))] if kernel is not None else [],
        "counters": counters(result) if result is not None else None,
        "output": done.output or (result.output if result is not None else ""),
        "diagnostics": objects([(done.source, done.diagnostics)]),
    }


def counters(result: LaunchResult) -> dict[str, object]:
    """What the launch did."""
    return {
        "ctas": math.prod(result.grid),
        "threads": math.prod(result.grid) * math.prod(result.block),
        "instructions": result.instructions,
        "thread_instructions": result.thread_instructions,
        "schedules": result.schedules,
        "seconds": result.seconds,
    }


def argument(done: Launched, number: int) -> dict[str, object]:
    """An argument after the launch: its values, and the places of those that changed."""
    parameters = done.kernel.function.signature.parameters if done.kernel is not None else ()
    name = parameters[number].name if number < len(parameters) else f"argument {number}"
    value, before = done.arguments[number], done.before[number]
    head = {"name": name, "word": done.words[number]}
    if not isinstance(value, np.ndarray) or not isinstance(before, np.ndarray):
        return {**head, "value": value.hex() if isinstance(value, bytes) else plain(value)}
    raw = [each.reshape(-1)[:SHOWN].view(np.uint8).reshape(-1, each.itemsize) for each in (before, value)]
    return {
        **head,
        "type": done.words[number].partition("[")[0],
        "shape": list(value.shape),
        "size": int(value.size),
        "values": [plain(each) for each in value.reshape(-1)[:SHOWN]],
        "changed": np.flatnonzero((raw[0] != raw[1]).any(axis=1)).tolist(),
    }


def plain(value: object) -> int | float | str:
    """A number as JSON has it; what it has not, infinities, NaN and integers of more than 53 bits, as text."""
    if isinstance(value, int | np.integer):
        return int(value) if abs(int(value)) <= EXACT else str(int(value))
    number = float(str(value))  # the fewest digits that tell it from its neighbours of the type
    return number if math.isfinite(number) else str(number)


__all__ = ["Launched", "document", "launched", "run"]
