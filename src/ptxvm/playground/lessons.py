"""The lessons: a text, a kernel, a task, and what says whether it is solved.

They stand in `course/`, a file each.  A kernel solves a lesson if it leaves what `EXPECTED` computes with NumPy from what was
in the arrays, for several random values of them, without a finding, and within limits on instructions and counters.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from ptxvm.dataclass import dataclass
from ptxvm.playground.requests import LaunchRequest, LessonRequest, Nothing, RequestError

if TYPE_CHECKING:
    import numpy as np

    from ptxvm.machine.per_lane import Array
    from ptxvm.playground.launching import Launched
    from ptxvm.profile.profile import Profile

SEEDS = (1, 2)
"""Of the random values with which a solution is tried."""


@dataclass(frozen=True)
class Lesson:
    """A lesson, and how its kernel is launched.

    `solution` replaces parts of `source`.  `uses` are instructions that have to be executed, `most` is how many instructions a
    warp may execute, `at_most` bounds metrics of a profile, `shared_bytes` the shared memory of a CTA.
    """

    name: str
    title: str
    text: str
    task: str
    source: str
    solution: Sequence[Mapping[str, str]]
    grid: str
    block: str
    arguments: Sequence[str]
    checks: Sequence[str]
    uses: Sequence[str] = ()
    most: int | None = None
    at_most: Mapping[str, int] = field(default_factory=dict)
    shared_bytes: int | None = None

    @property
    def solved(self) -> str:
        """A kernel that solves it."""
        text = self.source
        for part in self.solution:
            text = text.replace(part["replace"], part["by"])
        return text

    def request(self, source: str, seed: int, *, checked: bool) -> LaunchRequest:
        """A launch of a kernel."""
        checks = tuple(self.checks) if checked else ()
        return LaunchRequest(source, tuple(self.arguments), self.grid, self.block, checks=checks, seed=seed)


SMALL = 0xFFFF
"""The largest number without sign that is read better as a decimal one."""


@cache
def course() -> dict[str, Lesson]:
    """All lessons by name, in their order."""
    folder = files("ptxvm.playground").joinpath("course")
    names = sorted(each.name for each in folder.iterdir() if each.name.endswith(".toml"))
    return {lesson.name: lesson for lesson in map(read, names)}


def read(file: str) -> Lesson:
    """A lesson, of its file: NUMBER-NAME.toml."""
    text = files("ptxvm.playground").joinpath("course", file).read_text(encoding="utf-8")
    return Lesson(file.partition("-")[2].removesuffix(".toml"), **tomllib.loads(text))


def lessons(request: Nothing) -> list[dict[str, object]]:
    """All lessons, for the page."""
    del request
    return [
        {
            "name": lesson.name, "title": lesson.title, "text": lesson.text.strip(), "task": lesson.task.strip(),
            "source": lesson.source, "solution": lesson.solved, "grid": lesson.grid, "block": lesson.block,
            "arguments": list(lesson.arguments), "checks": list(lesson.checks),
        }
        for lesson in course().values()
    ]  # fmt: skip


# ── is it solved? ───────────────────────────────────────────────────────────────────────


def solve(request: LessonRequest) -> dict[str, object]:
    """Try a kernel: the launch, and what is missing, which is empty if it solves the lesson."""
    from ptxvm.playground.launching import document, launched  # noqa: PLC0415 - the list of lessons needs no NumPy

    lesson = course().get(request.lesson)
    if lesson is None:
        raise RequestError(f"there is no lesson '{request.lesson}'")
    for seed in SEEDS:
        done = launched(lesson.request(request.source, seed, checked=True))
        if missing := next(wrong_in(lesson, done), ""):
            return {**document(done), "missing": missing}
    counted = launched(lesson.request(request.source, SEEDS[0], checked=False), profile=True)
    assert counted.result is not None  # noqa: S101 - for mypy; the same launch has run
    assert counted.result.profile is not None  # noqa: S101
    return {**document(done), "missing": next(too_much(lesson, counted.result.profile), "")}


def wrong_in(lesson: Lesson, done: Launched) -> Iterator[str]:
    """What is wrong with a launch: a fault, a finding, a result."""
    if done.wrong is not None:
        yield str(done.wrong).partition("\n")[0]
    if done.diagnostics:
        yield f"There is a finding: {done.diagnostics[0].message}."
    before = [each for each in done.before if not isinstance(each, int | float | bytes)]
    after = [each for each in done.arguments if not isinstance(each, int | float | bytes)]
    expected, found = EXPECTED[lesson.name](*before).ravel(), after[-1].ravel()
    if (wrong := differences(expected, found)).size:
        first = int(wrong[0])
        values = f"element {first} is {number(found[first])}, and should be {number(expected[first].astype(found.dtype))}"
        yield f"{wrong.size:,} of {found.size:,} values of the last array are not what the task asks for; {values}."


def differences(expected: Array, found: Array) -> Array:
    """The elements that are not what is expected.  Sums of products may be rounded in another order."""
    import numpy as np  # noqa: PLC0415

    equal = np.isclose(found, expected, rtol=1e-3) if found.dtype.kind == "f" else found == expected
    return np.flatnonzero(~equal)


def number(value: np.number[Any]) -> str:
    """A value; one of many bits, of a type without sign, in the base in which bytes are seen."""
    if value.dtype.kind == "f":
        return f"{float(value):.7g}"
    whole = int(value)
    return f"{whole:#010x}" if value.dtype.kind == "u" and whole > SMALL else str(whole)


def too_much(lesson: Lesson, profile: Profile) -> Iterator[str]:
    """What a launch did that the lesson does not allow, or did not do."""
    executed = {line.text.split()[0].partition(".")[0] for line in profile.lines}
    for word in lesson.uses:
        if word not in executed:
            yield f"The result is right, but the task asks for {word}."
    warps = max(line["inst_executed"] or 0 for line in profile.lines)
    if lesson.most is not None and (profile["inst_executed"] or 0) > lesson.most * warps:
        yield f"The result is right, with more than the {lesson.most} instructions that it takes."
    for metric, most in lesson.at_most.items():
        if (profile[metric] or 0) > most:
            yield f"The result is right, but {metric} is {profile[metric]:,}: Count shows where."
    if lesson.shared_bytes is not None and profile.shared_bytes > lesson.shared_bytes:
        yield f"The result is right, in {profile.shared_bytes:,} bytes of shared memory; {lesson.shared_bytes:,} are enough."


def _half(bytes: Array, _: Array) -> Array:
    import numpy as np  # noqa: PLC0415

    return bytes.astype(np.float16)


EXPECTED: dict[str, Callable[..., Array]] = {
    "one-thread": lambda a, b, _: a + b,
    "thread-index": lambda a, b, _: a + b,
    "guard": lambda data: data * 2,
    "loop": lambda rows, _: rows.sum(axis=1, dtype=rows.dtype),
    "byte-order": lambda data: data.byteswap(),
    "choice": lambda a, b, c, _: (a & b) | (~a & c),
    "int8-to-fp16": _half,
    "shuffle": lambda data: (data * 0) + data.sum(dtype=data.dtype),
    "bank-conflict": lambda matrix, _: matrix.T,
    "race": lambda numbers, _: numbers[::-1],
    "mma-fragment": lambda a, b, _: a.astype("f4") @ b.astype("f4"),
    "swizzle": lambda matrix, _: matrix.T,
}
"""What the last array has afterwards, of what all arrays had before."""


__all__ = ["course", "lessons", "solve"]
