"""What all tests share: the folder of reference data, random numbers that can be had again, hypothesis's settings.

Inputs differ from run to run, so that many runs see many of them, and what failed can be had again: the header names
the seed (`PTXVM_SEED=... pytest` repeats it), hypothesis prints a blob.  On CI they are fixed: red there
means the change.
"""

from __future__ import annotations

import gc
import json
import os
import secrets
import zlib
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

SHARED = Path(__file__).parents[2] / "shared"
LONGEST_REASON = 120
ON_CI = os.environ.get("CI", "").lower() in {"1", "true"}
PURE = tuple(
    f"tests/{path}"
    for path in (
        "conformance/", "generated/test_specification.py", "generated/test_summary.py", "generated/test_types.py",
        "oracle/test_ptxas_lines.py", "oracle/test_tcgen05_sparse.py", "unit/algebra/", "unit/analysis/", "unit/cli/",
        "unit/diagnostics/", "unit/isa/", "unit/reference/", "unit/syntax/", "unit/test_misuse.py",
    )
)  # fmt: skip
"""The tests that are about the rooms that need no engine; of the conformance files those on the interpreter."""
SHARED_IS_EXPECTED = ON_CI or os.environ.get("PTXVM_SHARED") == "expected"

# A kernel's first run compiles it, so the time of one example says nothing (deadline).
settings.register_profile("ptxvm", print_blob=True, deadline=None, derandomize=ON_CI, max_examples=50)
settings.register_profile("long", settings.get_profile("ptxvm"), max_examples=4000, derandomize=False)
settings.load_profile("ptxvm")


@pytest.hookimpl(trylast=True)  # when the terminal is there
def pytest_configure(config: pytest.Config) -> None:
    """Choose the seed of this run, which the workers of pytest-xdist inherit; leave the user's compiled kernels alone."""
    if SHARED_IS_EXPECTED and not SHARED.is_dir():
        raise pytest.UsageError(f"the reference data is missing: {SHARED} is not a folder, and half of the tests need it")
    if config.pluginmanager.hasplugin("terminalreporter"):  # not in the workers
        config.pluginmanager.register(FailuresAtOnce(config), "failures-at-once")
    os.environ.setdefault("PTXVM_SEED", "0" if ON_CI else str(secrets.randbelow(2**32)))
    os.environ["PTXVM_CACHE"] = "off"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--pure",
        choices=("only", "not"),
        help="only the tests of the rooms that need no engine, of which the branches are measured; or all others",
    )


OTHERS = ("jit", "full_disk")
"""In their names, the tests among those that are about other rooms."""


def is_pure(item: pytest.Item) -> bool:
    """Is a test about the rooms that need no engine?"""
    return item.nodeid.startswith(PURE) and not any(each in item.nodeid for each in OTHERS)


def is_pure_file(path: Path, name: str) -> bool:
    """Are all tests of a file about the rooms that need no engine?"""
    return name.startswith(PURE) and not any(each in name + path.read_text(encoding="utf-8") for each in OTHERS)


collected: Counter[str] = Counter()
"""How many instances of each sampled test have been collected."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Of a test that is `sampled(n)` one instance in n is for every run; the others are long.

    Of each n in a row the seed chooses one, so that no parameter has always the same value.  What is asked for by name, runs.
    """
    mark = item.get_closest_marker("sampled")
    if mark is None or any("::" in each for each in item.config.args):
        return
    (share,), test = mark.args, item.nodeid.partition("[")[0]
    number, collected[test] = collected[test], collected[test] + 1
    if number % share != zlib.crc32(f"{os.environ['PTXVM_SEED']} {test} {number // share}".encode()) % share:
        item.add_marker(pytest.mark.long)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out whole files of which no test is wanted."""
    wanted = config.getoption("--pure", None)
    if wanted is None or not collection_path.is_file() or collection_path.suffix != ".py":
        return None
    path = collection_path.relative_to(config.rootpath).as_posix()
    left_out = is_pure_file(collection_path, path) if wanted == "not" else not path.startswith(PURE)
    return True if left_out else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of the rooms that need no engine, or all others.

    Each half has processes of its own: what one has imported or computed would not be measured in the other.
    """
    wanted = config.getoption("--pure", None)
    if wanted is not None:
        left_out = [item for item in items if is_pure(item) is (wanted == "not")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if is_pure(item) is (wanted == "only")]


class FailuresAtOnce:
    """Prints the name of a test when it fails, and not only at the end of the run."""

    def __init__(self, config: pytest.Config) -> None:
        self.terminal = config.pluginmanager.getplugin("terminalreporter")

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            said = f": {crash.message.splitlines()[0]}"[:LONGEST_REASON] if crash is not None and crash.message else ""
            self.terminal.write(f"\nFAILED {report.nodeid}{said}\n", red=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many tests there are not, for want of the reference data; `tools/left_out.py` counts them."""
    if not SHARED.is_dir():
        left = sum(json.loads((Path(__file__).parent / "left_out.json").read_text(encoding="utf-8")).values())
        terminalreporter.write_line(f"{left:,} tests of the whole suite are left out: {SHARED} is missing", yellow=True)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector from going through ten thousand tests again and again, now and later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """What is left of a file stays: later collections, which some tests ask for, need not go through it again."""
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()


def pytest_report_header() -> str:
    return f"random inputs: PTXVM_SEED={os.environ['PTXVM_SEED']}"


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> np.random.Generator:
    """Random numbers made from the run's seed and the test's name; a failure prints the seed.

    What a floor of coverage is measured by is not left to chance: its seed is 0.
    """
    seed = 0 if request.config.getoption("--pure", None) == "only" else int(os.environ["PTXVM_SEED"])
    print(f"PTXVM_SEED={seed}")  # noqa: T201  captured, and shown where the test fails
    return np.random.default_rng([seed, zlib.crc32(request.node.nodeid.encode())])


@pytest.fixture
def alone() -> Callable[..., np.ndarray]:
    """Makes arrays for kernels that go astray: `room` bytes on both sides are no other memory, and never were an argument.

    Beside any other array may be what a kernel may touch, or what a launch before this one has used.
    """
    from engines import lone_array

    return lone_array


@pytest.fixture(autouse=True)
def as_many_warps_abreast_as_pay(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the tests of the JIT launches begin with the code that they otherwise get when they have run for long."""
    if "engine/jit/" in request.node.nodeid and request.node.get_closest_marker("narrow") is None:
        from ptxvm.engine.jit.run import tiering

        monkeypatch.setattr(tiering, "may_be_narrow", lambda _: False)


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of reference data beside the repository; what needs it skips where it is missing."""
    if not SHARED.is_dir():
        pytest.skip(f"the reference data is missing: {SHARED} is not a folder")
    return SHARED


@pytest.fixture
def products_of_the_host(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The products of tensor memory that compiled code leaves to the host."""
    from ptxvm.engine.jit.lower.tensor_memory import TensorCall  # few tests look at compiled code
    from ptxvm.isa.tensor_memory import Multiply

    found: list[Any] = []
    host = TensorCall.__call__

    def counted(self: TensorCall, *of: Any) -> Any:
        found.extend([self.work] if isinstance(self.work, Multiply) else [])
        return host(self, *of)

    monkeypatch.setattr(TensorCall, "__call__", counted)
    return found
