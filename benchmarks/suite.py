"""What `ptxvm bench` measures: how long an import takes, how fast modules are checked and kernels run.

Each benchmark gives measurements, which keep the time of every run: the machine is never quiet, so that a median is
compared, and two things that are compared are measured in turn.  Reference data lies beside the repository, in
`shared/`; what needs it raises `Missing` where it is not there.

    python benchmarks/suite.py          # is the same as ptxvm bench
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import lzma
import os
import platform
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import ptxvm
from ptxvm import model
from ptxvm.analysis.check import analyse
from ptxvm.analysis.validate import recogniser
from ptxvm.cli import main
from ptxvm.engine.jit.abi.specialisation import Tier
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import candidates
from ptxvm.syntax.source import Source

HERE = Path(__file__).resolve().parent
SHARED = HERE.parents[1] / "shared"
ENOUGH = 5.0
"""Seconds after which a kernel is not run once more."""


class Missing(Exception):  # noqa: N818 - it says what happened
    """Data that a benchmark needs is not there."""


@dataclass
class Measurement:
    """A number of a benchmark: `work` units were done in each of `seconds`; without `work` the time itself counts.

    `goal` is what the project asks of it: at least so many units a second, or at most so many seconds.  A ratio of two times
    has the unit `times`.
    """

    name: str
    what: str
    seconds: list[float]
    work: int = 0
    unit: str = "s"
    goal: float | None = None
    first: float | None = None  # seconds of a first run, which the others do not repeat
    correct: bool | None = None  # do the results agree with NumPy's?

    @property
    def values(self) -> list[float]:
        """The number of each run."""
        return [self.work / s if self.work else s for s in self.seconds]

    @property
    def median(self) -> float:
        """The number."""
        return statistics.median(self.values)

    @property
    def is_met(self) -> bool | None:
        """Is the goal met?  None where there is none."""
        if self.goal is None:
            return None
        return self.median >= self.goal if self.work else self.median <= self.goal

    def as_json(self) -> dict[str, Any]:
        """All of it, for a file."""
        return {**asdict(self), "median": self.median, "met": self.is_met}


@dataclass
class Setup:
    """How to measure: how often, where the reference data is, and whether what takes many minutes is measured, too."""

    repeat: int = 5
    shared: Path = field(default=SHARED)
    large: bool = False

    def need(self, *parts: str) -> Path:
        """A file or folder of the reference data."""
        path = self.shared.joinpath(*parts)
        if not path.exists():
            raise Missing(f"{path} is missing; name the folder of the reference data with --shared")
        return path


def timed(work: Callable[[], Any]) -> float:
    """The seconds that something takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


# ── import ──────────────────────────────────────────────────────────────────────────────


def import_time(setup: Setup) -> Iterator[Measurement]:
    """A fresh Python that imports ptxvm, less one that imports nothing; both in turn."""

    def fresh(statement: str) -> float:
        return timed(lambda: subprocess.run([sys.executable, "-c", statement], check=True))  # noqa: S603 - our own statements

    fresh("import ptxvm")  # writes the byte code
    seconds = [max(fresh("import ptxvm") - fresh("pass"), 0.0) for _ in range(2 * setup.repeat)]
    yield Measurement("import", "import ptxvm, in a fresh process", seconds, goal=0.3)


# ── check ───────────────────────────────────────────────────────────────────────────────


def check_speed(setup: Setup) -> Iterator[Measurement]:
    """Families of PTX, and the largest module of the corpus, as by a process that has checked nothing yet."""
    yield from reading(setup)
    index = json.loads(setup.need("corpus", "index.json").read_text())
    largest = max(index, key=lambda entry: entry["instructions"])["file"]
    text = member(setup.need("corpus", "corpus.tar.xz"), largest)
    program, report = analyse(Source(text))  # the declarations are loaded by the first
    count = sum(len(function.instructions) for function in program.functions.values())
    seconds = []
    for _ in range(setup.repeat):
        forget_verdicts()
        seconds.append(timed(lambda: analyse(Source(text))))
    what = f"parse and check {largest}, {count:,} instructions"
    yield Measurement("check", what, seconds, count, "instructions/s", 20_000, correct=not report.has_errors)


def reading(setup: Setup) -> Iterator[Measurement]:
    """What a MB takes to parse and check, in seconds and in memory, by families."""
    here = imported("reading")
    load_catalog()
    for name, family in here.FAMILIES.items():
        text = family(here.TEXT_SIZE).encode()
        runs = [here.read(text) for _ in range(setup.repeat)]
        correct = not any(run.errors for run in runs)
        yield Measurement(
            "check", f"parse and check: {name}", [r.seconds for r in runs], unit="s a MB", goal=0.25, correct=correct
        )
        yield Measurement("check", f"{name}: memory", [r.memory for r in runs], unit="MB a MB", goal=12)


def imported(name: str, folder: Path = HERE) -> Any:
    """A module that lies beside this one, or in another folder that is no package."""
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    return importlib.import_module(name)


def member(archive: Path, name: str) -> bytes:
    """A file of a compressed archive."""
    with lzma.open(archive) as stream, tarfile.open(fileobj=stream) as files:
        found = files.extractfile(name)
        if found is None:
            raise Missing(f"{archive} has no file {name}")
        return found.read()


def forget_verdicts() -> None:
    """Forget what earlier checks have found out about single instructions."""
    recogniser.cache_clear()
    candidates.cache_clear()


# ── kernels ─────────────────────────────────────────────────────────────────────────────


@dataclass
class Launch:
    """A kernel on its arguments: what runs it, what restores the arguments, and what checks them afterwards."""

    run: Callable[[], ptxvm.LaunchResult]
    check: Callable[[], bool]
    reset: Callable[[], Any] | None = None


def measure(setup: Setup, name: str, what: str, launch: Launch, goal: float | None = None) -> Measurement:
    """Launch a kernel several times; the first time it is traced."""

    def once() -> tuple[float, ptxvm.LaunchResult]:
        if launch.reset:
            launch.reset()
        start = time.perf_counter()
        result = launch.run()
        return time.perf_counter() - start, result

    first, result = once()
    correct = bool(launch.check())
    seconds: list[float] = []
    while len(seconds) < setup.repeat and sum(seconds) < ENOUGH:
        seconds.append(once()[0])
    work, unit = result.thread_instructions, "thread-instructions/s"
    return Measurement(name, what, seconds, work, unit, goal, first=first, correct=correct)


def workload(setup: Setup, name: str, engine: str, *, what: str = "", goal: float | None = None) -> Measurement:
    """One of the reference kernels, at its small size, on an engine."""
    folder = setup.need("kernels", "workloads.py").parent
    work = imported("workloads", folder).work(name, small=True)
    kernel = ptxvm.load(folder / "kernels.ptx").kernel(name)
    threads = int(np.prod(work["grid"]) * np.prod(work["bd"]))
    launch = Launch(
        lambda: kernel.launch(work["grid"], work["bd"], work["args"], engine=engine), work["chk"], work.get("reset")
    )
    return measure(setup, name, what or f"{threads:,} threads, {engine}", launch, goal)


def matmul(setup: Setup) -> Iterator[Measurement]:
    """A matrix product of 256 in tiles of shared memory."""
    yield workload(setup, "mmtiled", "interp", what="tiled matrix product of 256, interp", goal=100e6)


def checkers(setup: Setup) -> Iterator[Measurement]:
    """What the checks cost on the interpreter: the tiled matrix product with and without them, in turn."""
    folder = setup.need("kernels", "workloads.py").parent
    work = imported("workloads", folder).work("mmtiled", small=True)
    kernel = ptxvm.load(folder / "kernels.ptx").kernel("mmtiled")

    def run(check: tuple[str, ...] | None) -> ptxvm.LaunchResult:
        return kernel.launch(work["grid"], work["bd"], work["args"], engine="interp", check=check)

    for name, goal in (("memory", None), ("init", None), ("sync", None), ("race", 20.0)):
        clean = not run((name,)).findings
        ratios = [timed(lambda: run((name,))) / timed(lambda: run(None)) for _ in range(setup.repeat)]  # noqa: B023
        what = f"check '{name}' of the tiled matrix product of 256, over the run without it"
        yield Measurement("checkers", what, ratios, unit="times", goal=goal, correct=clean and bool(work["chk"]()))


def collatz(setup: Setup) -> Iterator[Measurement]:
    """A loop that every lane leaves at another time."""
    n = 65_536
    start, steps = np.arange(1, n + 1, dtype=np.uint32), np.zeros(n, np.uint32)
    kernel = ptxvm.load(HERE / "collatz.ptx").kernel()
    launch = Launch(
        lambda: kernel.launch(n // 256, 256, [start, steps, n], engine="interp"),
        lambda: np.array_equal(steps, collatz_steps(start)),
    )
    yield measure(setup, "collatz", f"divergent Collatz loop, {n:,} threads, interp", launch, goal=30e6)


def collatz_steps(start: np.ndarray[Any, np.dtype[np.uint32]]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """The same with NumPy."""
    x, steps = start.copy(), np.zeros_like(start)
    while (going := x > 1).any():
        x = np.where(going, np.where(x & 1, 3 * x + 1, x >> 1), x)
        steps += going
    return steps


def kernels(setup: Setup) -> Iterator[Measurement]:
    """All reference kernels, at their small sizes, on both engines."""
    folder = setup.need("kernels", "workloads.py").parent
    for name in imported("workloads", folder).NAMES:
        for engine in ("jit", "interp"):
            yield workload(setup, name, engine)


def tensor(setup: Setup) -> Iterator[Measurement]:
    """The examples' products by wgmma and tcgen05, on both engines: floating-point operations a second."""
    spec = importlib.util.spec_from_file_location("ptxvm_examples", HERE.parent / "examples" / "run.py")
    if spec is None or spec.loader is None:
        raise Missing("the examples are missing")
    examples = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(examples)
    for name, engine in ((name, engine) for name in ("gemm_wgmma", "gemm_tcgen05") for engine in ("jit", "interp")):
        example = getattr(examples, name)(np.random.default_rng(1))
        kernel = ptxvm.load(HERE.parent / "examples" / f"{name}.ptx").kernel(name)
        (rows, columns), depth = example.result.shape, example.args[4]
        launch = partial(kernel.launch, example.grid, example.block, example.args[:5], engine=engine)
        first, seconds = timed(launch), [timed(launch) for _ in range(setup.repeat)]
        right = bool((example.result == example.expected).all())
        yield Measurement(
            "tensor", f"{name}, {engine}", seconds, work=2 * rows * columns * depth, unit="FLOP/s", first=first, correct=right
        )


# ── wild ────────────────────────────────────────────────────────────────────────────────


def wild(setup: Setup) -> Iterator[Measurement]:
    """C's time over ptxvm's on kernels of many kinds."""
    script = setup.need("kernels", "wild", "speed.py")
    here = imported("wild")
    for kernel in here.kernels(script):
        found = here.speed(script, kernel, setup.repeat)
        said = f"{kernel}: {found['ms']:.3g} ms, C {found['c_ms']:.3g} ms"
        ratios = [found["spread"][0], found["cpu"], found["spread"][1]]
        yield Measurement(
            "wild", said, [1 / ratio for ratio in ratios], work=1, unit="C's time over ours", goal=0.1, correct=found["right"]
        )


# ── compile ─────────────────────────────────────────────────────────────────────────────


def compiling(setup: Setup) -> Iterator[Measurement]:
    """Milliseconds that an instruction takes to compile: unrolled, by Triton, and families of 10^2 to 10^5 instructions."""
    here = imported("compiling")
    kernels, archive = setup.need("kernels", "kernels.ptx").read_text(), setup.need("corpus", "corpus.tar.xz")
    from_triton = {name: member(archive, f"triton/{name}_sm80.ptx").decode() for name in ("attn", "matmul_f16")}
    for what, source, name, threads, shared, is_long in (
        ("SHA-256, unrolled", kernels, "sha", 128, 0, False),
        ("bitonic sort, unrolled", kernels, "bitonic", 512, 0, False),
        ("attention, by Triton", from_triton["attn"], "attn", 128, 1 << 16, False),
        ("matrix product, by Triton", from_triton["matmul_f16"], "matmul", 128, 1 << 16, False),
        *(
            (what, family(size), "kernel", 128, 0, size > here.ONCE)
            for what, family in here.FAMILIES
            for size in here.SIZES
            if setup.large or size < here.LARGE
        ),
    ):
        for tier, goal in ((Tier.QUICK, 0.5), (Tier.BEST, None)):
            if is_long and tier is Tier.BEST and not setup.large:
                continue
            runs = setup.repeat if tier is Tier.QUICK and not is_long else 1
            found = here.compiled(source, name, (threads, 1, 1), shared, tier, runs)
            said = f"{what}, {found.instructions:,} instructions, {tier.name.lower()} code: {found.parts} ms"
            yield Measurement("compile", said, found.milliseconds, unit="ms an instruction", goal=goal)


# ── litmus ──────────────────────────────────────────────────────────────────────────────


def litmus(setup: Setup) -> Iterator[Measurement]:
    """The collected litmus tests under both models: all of them, and the one that takes longest."""
    index = setup.need("litmus", "index.json")
    files = dict.fromkeys(record["file"] for record in json.loads(index.read_text()))
    tests = [test for file in files for test in model.read_tests(index.parent / file)]
    rounds = [[model.judge(test, version) for test in tests for version in model.MODELS] for _ in range(setup.repeat)]
    whole = [sum(judgement.seconds for judgement in judgements) for judgements in rounds]
    slowest = max(zip(*rounds, strict=True), key=lambda alike: statistics.median(each.seconds for each in alike))
    yield Measurement("litmus", f"all {len(rounds[0]):,} verdicts", whole, goal=20.0)
    yield Measurement("litmus", f"the slowest test, {slowest[0].test.name}", [each.seconds for each in slowest], goal=1.0)


# ── start ───────────────────────────────────────────────────────────────────────────────

LAUNCH = """
import sys, time
import numpy as np, ptxvm
kernel = ptxvm.load(sys.argv[1]).kernel()
x = np.ones(1024, np.float32)
args = [1024, np.float32(2), x, x.copy()]
seconds = []
for _ in range(int(sys.argv[2])):
    began = time.perf_counter()
    kernel.launch(4, 256, args, engine="jit")
    seconds.append(time.perf_counter() - began)
print(sorted(seconds)[len(seconds) // 2])
"""


def start(setup: Setup) -> Iterator[Measurement]:
    """How long a user waits for a small kernel: compiled, kept on disk, compiled before, and by the command line."""
    source = HERE.parent / "examples" / "saxpy.ptx"

    def environment(cache: str) -> dict[str, str]:
        """With byte code at hand, as whoever installs a package has it."""
        others = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        return {**others, "PYTHONPYCACHEPREFIX": str(Path(folder, "code")), "PTXVM_CACHE": cache}

    def launched(cache: str, times: int = 1) -> float:
        command = [sys.executable, "-c", LAUNCH, str(source), str(times)]
        done = subprocess.run(  # noqa: S603 - our own statements
            command, check=True, capture_output=True, text=True, env=environment(cache)
        )
        return float(done.stdout)

    def command_line() -> None:
        words = ["run", str(source), "--grid", "4", "--block", "256", "1000", "2.5", "f32[1000]=arange", "f32[1000]=ones"]
        command = [sys.executable, "-m", "ptxvm", *words]
        subprocess.run(command, check=True, capture_output=True, env=environment("off"))  # noqa: S603 - our own command

    with tempfile.TemporaryDirectory() as folder:
        kept = str(Path(folder, "kernels"))
        launched(kept)
        command_line()
        times = range(setup.repeat)
        yield Measurement("first launch", "of saxpy in a process, compiled", [launched("off") for _ in times], goal=0.06)
        yield Measurement("kept", "the same, found on disk", [launched(kept) for _ in times], goal=0.01)
        yield Measurement("launch", "of a compiled kernel, 1,024 threads", [launched(kept, 2000) for _ in times], goal=30e-6)
        yield Measurement("ptxvm run", "saxpy from start to end", [timed(command_line) for _ in times], goal=0.8)


# ── driver ──────────────────────────────────────────────────────────────────────────────


def driver(setup: Setup) -> Iterator[Measurement]:
    """What a call of the driver and a launch of a small kernel cost a program; the clock is the processor's."""
    calls = imported("driver_calls")
    for name, what, goal, run in calls.costs():
        yield Measurement("driver", f"{name}: {what}", [run() for _ in range(setup.repeat)], goal=goal)


# ── clients ─────────────────────────────────────────────────────────────────────────────


def clients(setup: Setup) -> Iterator[Measurement]:
    """What a launch by Numba costs, the least of many, and whether a Triton kernel's second process needs LLVM."""
    costs = imported("clients")
    if not (costs.HAS_NUMBA and costs.HAS_TRITON):
        raise Missing("Numba or Triton is not installed; `make clients-quick` makes .venv-clients, whose Python has both")
    both = [costs.numba_launch() for _ in range(setup.repeat)]
    yield Measurement("clients", "a launch of 64 threads by Numba", [whole for whole, _ in both], goal=60e-6)
    yield Measurement("clients", "of it, what Numba does without a driver", [own for _, own in both])
    again = [costs.triton_again() for _ in range(setup.repeat)]
    right = all(each.correct and not each.loads_llvm for each in again)
    yield Measurement("clients", "a Triton kernel kept on disk, without LLVM", [each.seconds for each in again], correct=right)


# ── campaigns ───────────────────────────────────────────────────────────────────────────


def campaigns(setup: Setup) -> Iterator[Measurement]:
    """What a campaign of small launches costs, and whether more processes are as many times as fast."""
    costs = imported("campaigns")
    workers, times = os.cpu_count() or 1, range(setup.repeat)
    alone, together = [costs.launches(1) for _ in times], [costs.launches(workers) for _ in times]
    yield Measurement("campaign", "small launches, on one process", alone, costs.CASES, "cases/s")
    goal = 0.9 * workers * costs.CASES / statistics.median(alone)
    yield Measurement("campaign", f"the same, on {workers}", together, costs.CASES, "cases/s", goal)
    threads, one, two = costs.WIDTH**2, costs.grid(0), costs.grid(2)
    yield Measurement("campaign", "a grid, on one thread", [one], threads, "threads/s")
    yield Measurement("campaign", "in ranges, on two processes", [two], threads, "threads/s", 1.8 * threads / one)
    case = costs.case_costs()
    one_simulated = costs.SIMULATED_CASES / costs.simulated_launches(1, case)
    for many in (2, 8, 32):
        seconds = costs.simulated_launches(many, case)
        yield Measurement(
            "campaign",
            f"small launches, simulated on {many}",
            [seconds],
            costs.SIMULATED_CASES,
            "cases/s",
            0.9 * many * one_simulated,
        )
    for many in (2, 8, 32):
        ranges, rest = costs.range_seconds(many, costs.WIDTH // 2)
        seconds, points = costs.simulated_grid(ranges, rest, many), (costs.WIDTH // 2) ** 2
        goal = 0.9 * many * points / sum(ranges)
        yield Measurement("campaign", f"a grid in ranges, simulated on {many}", [seconds], points, "threads/s", goal)
    yield Measurement("campaign", "a case that does nothing", [costs.overhead() for _ in times], goal=1e-3)
    yield Measurement("campaign", "memory for 10^6 cases, in GB", [costs.memory() / 1e9], unit="GB", goal=0.5)


BENCHMARKS: dict[str, Callable[[Setup], Iterator[Measurement]]] = {
    "import": import_time,
    "check": check_speed,
    "matmul": matmul,
    "checkers": checkers,
    "collatz": collatz,
    "kernels": kernels,
    "tensor": tensor,
    "wild": wild,
    "start": start,
    "compile": compiling,
    "litmus": litmus,
    "driver": driver,
    "clients": clients,
    "campaign": campaigns,
}


def machine() -> dict[str, Any]:
    """What was measured on."""
    return {
        "ptxvm": ptxvm.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    }


if __name__ == "__main__":
    sys.exit(main(["bench", *sys.argv[1:]]))
