"""The 14 kernels of `shared/kernels` at full size: the JIT against C, PoCL and the interpreter.

    python benchmarks/engines.py [KERNEL…] [--runs N] [--interp] [--json FILE]

Runs are interleaved: each round runs everything, from the same data, so that whatever else the machine does meets all of them
alike.  Everything runs for a while before the run that counts: who comes after something else finds its data in no cache and
the processor set for other code, which is up to half of what takes some milliseconds.  The table shows medians of CPU time on
one core, and medians of the ratios within a round: more than 1 means that the JIT is faster.  C is the best of every compiler
found, strict and with -ffast-math, and of the functions that compute the same; the JIT has its accesses checked, and its best
code.  "2 cores" is the wall time on one divided by that on two; "unchecked" how much faster `check=()` is.  All
results are checked.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("PTXVM_TIER", "best")

import numpy as np

import ptxvm

HERE = Path(__file__).parent
KERNELS = Path(__file__).parents[2] / "shared" / "kernels"
RUNS = 7
ENOUGH = 20.0  # seconds of a kernel
WARM = 0.03  # seconds of runs before one that counts
HOPELESS = 4  # times as long as the fastest C on the first run: it is not run again
# Other functions that compute the same: the plain Mandelbrot loop is vectorised by no compiler.
FUNCTIONS = {"mandel": ("mandel", "mandel_v"), "dequant": ("dequant", "dequant_v")}
STYLES = {"strict": [], "fast": ["-ffast-math"]}
LIKE = "where the JIT is faster, ratios are above 1"


@dataclass
class Contestant:
    """Something that computes a kernel; the seconds of its runs, on the clock and of the processor, and of the first one."""

    name: str
    run: Callable[[], Any]
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    correct: bool | None = None
    first: float = math.nan
    elsewhere: Callable[[], tuple[float, float]] | None = None

    def once(self) -> None:
        """One run; who runs elsewhere says how long it took."""
        if self.elsewhere is not None:
            taken, worked = self.elsewhere()
            self.wall.append(taken)
            self.cpu.append(worked)
            return
        wall, cpu = time.perf_counter(), time.process_time()
        self.run()
        self.cpu.append(time.process_time() - cpu)
        self.wall.append(time.perf_counter() - wall)

    def warm(self, reset: Callable[[], None]) -> None:
        """Runs that do not count."""
        began = time.perf_counter()
        while time.perf_counter() - began < WARM:
            reset()
            (self.elsewhere or self.run)()

    @property
    def milliseconds(self) -> float:
        """The median of its CPU time."""
        return 1000 * statistics.median(self.cpu)

    def against(self, other: Contestant, *, wall: bool = False) -> float:
        """How many times the other takes, run by run."""
        mine, theirs = (self.wall, other.wall) if wall else (self.cpu, other.cpu)
        return statistics.median(b / max(a, 1e-9) for a, b in zip(mine, theirs, strict=True))


# ── C ───────────────────────────────────────────────────────────────────────────────────


def compilers() -> dict[str, list[str]]:
    """The C compilers of this machine; Zig's package for Python has one too."""
    found = {name: [path] for name in ("gcc", "clang") if (path := shutil.which(name))}
    if "clang" not in found and importlib.util.find_spec("ziglang") is not None:
        found["clang"] = [sys.executable, "-m", "ziglang", "cc"]
    return found


def c_libraries(folder: Path) -> dict[str, ctypes.CDLL]:
    """`kernels.c` and `fair.c` by each compiler in each style."""
    found = {}
    (folder / "omp.h").write_text("static inline void omp_set_num_threads(int n) { (void)n; }\n")
    for compiler, command in compilers().items():
        for style, flags in STYLES.items():
            made = folder / f"{compiler}-{style}.so"
            common = [*command, "-O3", "-march=native", *flags, "-shared", "-fPIC", "-o", str(made)]
            sources = [str(KERNELS / "kernels.c"), str(HERE / "fair.c"), "-lm"]
            for threads in (["-fopenmp"], ["-fopenmp-simd", f"-I{folder}"]):  # where OpenMP is missing, on one core only
                done = subprocess.run([*common, *threads, *sources], capture_output=True, text=True, check=False)  # noqa: S603
                if not done.returncode:
                    found[f"{compiler} {style}"] = ctypes.CDLL(str(made))
                    break
            else:
                print(f"{compiler} does not compile the kernels: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    for library in found.values():
        library.set_threads(1)
    return found


def in_c(library: ctypes.CDLL, function: str, name: str, work: dict[str, Any]) -> Callable[[], None]:
    """The work in C, which takes the same arguments."""

    def argument(a: Any) -> Any:
        if isinstance(a, np.ndarray):
            return ctypes.c_void_p(a.ctypes.data)
        return ctypes.c_float(a) if isinstance(a, float) else ctypes.c_int(a)

    given = [argument(a) for a in work["args"]]
    if name == "bitonic":
        given.append(ctypes.c_int(work["grid"][0]))
    called = getattr(library, function)
    called.restype = None
    return lambda: called(*given)


# ── PoCL ────────────────────────────────────────────────────────────────────────────────


class OpenCL:
    """The kernels in OpenCL C on PoCL (`opencl.py`), on one core."""

    def __init__(self) -> None:
        command = [sys.executable, str(HERE / "opencl.py"), str(KERNELS)]
        environment = {**os.environ, "POCL_MAX_PTHREAD_COUNT": "1"}
        self.process = subprocess.Popen(  # noqa: S603 - our own script
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        )
        if self._answer() != ["ready"]:
            raise RuntimeError("it does not start")

    def _answer(self, line: str = "") -> list[str]:
        if self.process.stdin is None or self.process.stdout is None:
            raise RuntimeError("nobody answers")
        if line:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
        return self.process.stdout.readline().split()

    def prepare(self, name: str) -> bool:
        """Get the work of a kernel ready; is its result right?"""
        answer = self._answer(name)
        if not answer:
            raise RuntimeError(f"it ends with {name}")
        return answer == ["1"]

    def times(self) -> tuple[float, float]:
        """The seconds of one more run, on the clock and of the processor."""
        wall, cpu = map(float, self._answer("run"))
        return wall, cpu


def open_cl() -> OpenCL | None:
    """PoCL, if it is there."""
    try:
        return OpenCL()
    except (OSError, RuntimeError) as missing:
        print(f"PoCL is left out (pip install pyopencl pocl-binary-distribution): {missing}", file=sys.stderr)
        return None


# ── a kernel ────────────────────────────────────────────────────────────────────────────


@dataclass
class Setting:
    """What is measured against what."""

    module: ptxvm.Module
    libraries: dict[str, ctypes.CDLL]
    pocl: OpenCL | None
    runs: int
    interpreter: bool


def contestants(setting: Setting, name: str, work: dict[str, Any]) -> Iterator[Contestant]:
    """Everything that can run a kernel."""
    kernel = setting.module.kernel(name)

    def launch(**how: Any) -> Callable[[], Any]:
        return lambda: kernel.launch(work["grid"], work["bd"], work["args"], **how)

    yield Contestant("jit", launch(engine="jit", threads=1))
    yield Contestant("jit 2", launch(engine="jit", threads=2))
    yield Contestant("unchecked", launch(engine="jit", threads=1, check=()))
    yield Contestant("numerics=fast", launch(engine="jit", threads=1, numerics="fast"))
    for build, library in setting.libraries.items():
        for function in FUNCTIONS.get(name, (name,)):
            if hasattr(library, function):
                label = f"C {build}" + (f" {function}" if function != name else "")
                yield Contestant(label, in_c(library, function, name, work))


def measure(setting: Setting, name: str, work: dict[str, Any]) -> tuple[dict[str, Contestant], float, float]:
    """All contestants of a kernel; seconds of the first launch, and of the interpreter if it is wanted."""
    reset, check = work.get("reset", lambda: None), work["chk"] or (lambda: True)
    everybody = []
    for one in contestants(setting, name, work):
        reset()
        began = time.perf_counter()
        try:
            one.run()
        except ptxvm.Unsupported:
            continue
        one.first = time.perf_counter() - began
        one.correct = bool(check())
        everybody.append(one)
    first = next((one.first for one in everybody if one.name == "jit"), math.nan)
    everybody = [one for one in everybody if not one.name.startswith("C ") or one.first < HOPELESS * _least(everybody, one)]
    if setting.pocl is not None:
        right = setting.pocl.prepare(name)
        everybody.append(Contestant("PoCL", lambda: None, correct=right, elsewhere=setting.pocl.times))
    began = time.perf_counter()
    for _ in range(setting.runs):
        for one in everybody:
            one.warm(reset)
            reset()
            one.once()
        if time.perf_counter() - began > ENOUGH:
            break
    slow = math.nan
    if setting.interpreter:
        reset()
        began = time.perf_counter()
        setting.module.kernel(name).launch(work["grid"], work["bd"], work["args"], engine="interp")
        slow = time.perf_counter() - began
    return {one.name: one for one in everybody}, first, slow


def _least(everybody: list[Contestant], like: Contestant) -> float:
    """The seconds of the first run of the fastest C of a style."""
    style = like.name.split()[2]
    return min(one.first for one in everybody if one.name.startswith("C ") and one.name.split()[2] == style)


def best(found: dict[str, Contestant], style: str) -> Contestant | None:
    """The fastest C of a style."""
    of_style = [one for name, one in found.items() if name.startswith("C ") and f" {style}" in name and one.correct]
    return min(of_style, key=lambda one: one.milliseconds, default=None)


COLUMNS = (
    "kernel", "first", "jit", "C strict", "ratio", "C fast", "ratio", "PoCL", "ratio", "2 cores", "unchecked", "fast", "interp",
)  # fmt: skip


def row(name: str, found: dict[str, Contestant], first: float, slow: float) -> list[str]:
    """A line of the table."""
    jit = found["jit"]

    def pair(other: Contestant | None) -> list[str]:
        return ["", ""] if other is None else [f"{other.milliseconds:.2f}", f"{jit.against(other):.2f}"]

    def times(label: str, *, wall: bool = False) -> str:
        return f"{found[label].against(jit, wall=wall):.2f}" if label in found else ""

    wrong = [one.name for one in found.values() if one.correct is False]
    return [
        name, f"{1000 * first:.0f}", f"{jit.milliseconds:.2f}", *pair(best(found, "strict")), *pair(best(found, "fast")),
        *pair(found.get("PoCL")), times("jit 2", wall=True), times("unchecked"), times("numerics=fast"),
        "" if math.isnan(slow) else f"{1000 * slow:.0f}", *([f"WRONG: {', '.join(wrong)}"] if wrong else []),
    ]  # fmt: skip


def main() -> None:
    """Print the table."""
    sys.path.insert(0, str(KERNELS))
    from workloads import NAMES, work  # noqa: PLC0415 - it lies beside the kernels

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", default=NAMES)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--interp", action="store_true", help="time the interpreter too, which takes minutes")
    parser.add_argument("--json", type=Path, help="write every run to a file")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        libraries = c_libraries(Path(folder))
        module = ptxvm.load(KERNELS / "kernels.ptx")
        setting = Setting(module, libraries, open_cl(), chosen.runs, chosen.interp)
        print(f"{platform.processor() or platform.machine()}, load {os.getloadavg()[0]:.1f}; C: {', '.join(libraries)}\n")
        print_row(list(COLUMNS))
        kept: dict[str, Any] = {"machine": platform.platform(), "load": os.getloadavg()[0], "kernels": {}}
        ratios = []
        for name in chosen.kernels:
            found, first, slow = measure(setting, name, work(name))
            print_row(row(name, found, first, slow))
            ratios += [found["jit"].against(one) for one in [best(found, "strict")] if one is not None]
            kept["kernels"][name] = {
                "first": first,
                "interpreter": None if math.isnan(slow) else slow,
                **{one.name: {"wall": one.wall, "cpu": one.cpu, "correct": one.correct} for one in found.values()},
            }
    if ratios:
        mean = math.exp(statistics.fmean(map(math.log, ratios)))
        print(f"\nTimes in ms; {LIKE}.  Geometric mean of strict C over the JIT: {mean:.2f}")
    if chosen.json:
        chosen.json.write_text(json.dumps(kept, indent=1))


def print_row(cells: list[str]) -> None:
    """The name to the left, numbers to the right."""
    print(f"{cells[0]:10}" + "".join(f"{cell:>10}" for cell in cells[1:]), flush=True)


if __name__ == "__main__":
    main()
