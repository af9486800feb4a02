"""Fixtures of pytest for tests of PTX kernels: modules beside the test, launches under checks, a report of the findings.

    def test_saxpy(run_kernel):
        x, y = np.ones(100, np.float32), np.zeros(100, np.float32)
        run_kernel("saxpy.ptx", block=128, args=[100, 2.0, x, y])
        assert (y == 2).all()

    pytest --ptx-engine interp --ptx-engine jit --ptx-check memory,init --ptx-check race

An option that stands several times runs each test that launches kernels so often.  An error that a check finds fails the test;
`@pytest.mark.ptx_allow("race-of-equal-values")` says that a finding is meant.
"""

from __future__ import annotations

import errno
import itertools
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from ptxvm.dataclass import dataclass

if TYPE_CHECKING:  # pytest imports this module in every run
    from ptxvm.api import Kernel, Module
    from ptxvm.machine.options import Extent
    from ptxvm.machine.result import LaunchResult

ENGINES = ("auto", "interp", "jit")
NONE = "none"
FINDING = "ptxvm finding"
"""The property of a test that has a finding as its value."""


@dataclass(frozen=True, slots=True)
class Variant:
    """How the kernels of a test run: the engine, and the checks, separated by commas."""

    engine: str = "auto"
    checks: str = ""

    def __str__(self) -> str:
        return "-".join(filter(None, (self.engine, self.checks)))


class PtxModule(Protocol):
    """Loads a module: a file beside the test or below the folder of the run, or a text of PTX."""

    def __call__(self, source: str | Path) -> Module:
        """Return the module, loaded once in a run."""
        ...


@dataclass(repr=False)
class KernelRunner:
    """Launches kernels in the variant of a test, and keeps what the checks found.

    `frames`: what it raises has the frames of ptxvm.  `record` enters a property of the test, which JUnit's report has, too.
    """

    variant: Variant
    load: Callable[[str | Path], Module]
    allowed: frozenset[str]
    record: Callable[[str, object], None]
    frames: bool = False
    findings: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return f"<run_kernel: {self.variant}>"

    def __call__(
        self,
        kernel: Kernel | Module | str | Path,
        grid: Extent = 1,
        block: Extent = 1,
        args: Sequence[object] = (),
        *,
        entry: str | None = None,
        **options: Any,  # noqa: ANN401 - those of `Kernel.launch`, which verifies them
    ) -> LaunchResult:
        """Launch a kernel, that of a module, or that of a file or text; `entry` names one of several.

        The other arguments are those of `Kernel.launch`; `options` such as `check` come before those of the command line.
        Fails the test for an error that a check finds, and raises what the launch raises.
        """
        __tracebackhide__ = not self.frames
        try:
            return self._launch(kernel, entry, {"grid": grid, "block": block, "args": args, **options})
        except (*told(), pytest.fail.Exception) as wrong:
            raise wrong.with_traceback(wrong.__traceback__ if self.frames else None) from None

    def _launch(self, kernel: Kernel | Module | str | Path, entry: str | None, options: Mapping[str, Any]) -> LaunchResult:
        from ptxvm.api import Module  # noqa: PLC0415 - see above

        module = self.load(kernel) if isinstance(kernel, (str, Path)) else kernel
        found = module.kernel(entry) if isinstance(module, Module) else module
        chosen: dict[str, Any] = {"engine": self.variant.engine, "allow": self.allowed}
        if self.variant.checks:
            chosen["check"] = listed(self.variant.checks)
        result = found.launch(**{**chosen, **options})
        self._judge(found, result)
        return result

    def _judge(self, kernel: Kernel, result: LaunchResult) -> None:
        from ptxvm.diagnostics import Severity, render  # noqa: PLC0415

        source = kernel.module.programs[0].source
        diagnostics = [each.diagnostic() for each in result.findings]
        texts = [render([(source, [each])]).rstrip() for each in diagnostics]
        self.findings += texts
        for text in texts:
            self.record(FINDING, text)
        wrong = {text: each.code for text, each in zip(texts, diagnostics, strict=True) if each.severity is Severity.ERROR}
        if wrong:
            codes = ", ".join(dict.fromkeys(wrong.values()))
            pytest.fail(f"{codes} in kernel {kernel.name}\n" + "\n\n".join(wrong))


def told() -> tuple[type[Exception], ...]:
    """What says all in its message: faults, wrong PTX and missing files are raised without the frames of ptxvm."""
    from ptxvm.diagnostics.errors import PTXVMError  # noqa: PLC0415

    return PTXVMError, FileNotFoundError


RUNNER = pytest.StashKey[KernelRunner]()


# ── options ─────────────────────────────────────────────────────────────────────────────


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the command line."""
    group = parser.getgroup("ptxvm-kernels", "PTX kernels in tests (run_kernel, ptx_module)")
    group.addoption("--ptx-engine", action="append", choices=ENGINES, help="what runs the kernels; may be repeated")
    group.addoption(
        "--ptx-check", action="append", metavar="memory,init,sync,race", help="what to look for, or none; may be repeated"
    )
    group.addoption("--ptx-target", metavar="sm_NN", help="the target to check and run modules for, instead of their own")


def pytest_configure(config: pytest.Config) -> None:
    """Refuse wrong options before any test; enter the marker."""
    config.addinivalue_line("markers", "ptx_allow(*codes): findings of the test's kernels that are meant")
    options = config.option
    if not (options.ptx_check or options.ptx_target):
        return
    from ptxvm.isa.targets import device_target  # noqa: PLC0415
    from ptxvm.machine.options import checks  # noqa: PLC0415

    try:
        for each in options.ptx_check or ():
            checks(listed(each))
        if options.ptx_target:
            device_target(options.ptx_target)
    except ValueError as wrong:
        raise pytest.UsageError(f"--ptx-check or --ptx-target: {wrong}") from wrong


def listed(checks: str) -> list[str]:
    """The checks that an option names."""
    return [] if checks == NONE else checks.split(",")


def variants(config: pytest.Config) -> list[Variant]:
    """How the kernels of each test run: once for each engine and each set of checks."""
    engines, checks = config.option.ptx_engine or ["auto"], config.option.ptx_check or [""]
    return [Variant(*each) for each in itertools.product(engines, checks)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that launches kernels in all variants."""
    if "ptx_variant" in metafunc.fixturenames and len(found := variants(metafunc.config)) > 1:
        metafunc.parametrize("ptx_variant", found, ids=str, indirect=True)


# ── fixtures ────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def ptx_variant(request: pytest.FixtureRequest) -> Variant:
    """The engine and the checks of the test's kernels."""
    return getattr(request, "param", variants(request.config)[0])


@pytest.fixture(scope="session")
def ptx_modules() -> dict[tuple[str, str | None], Module]:
    """The modules of this run that are loaded."""
    return {}


@pytest.fixture
def ptx_module(request: pytest.FixtureRequest, ptx_modules: dict[tuple[str, str | None], Module]) -> PtxModule:
    """Loads modules: `ptx_module("saxpy.ptx")`."""
    from ptxvm import api  # noqa: PLC0415

    target, frames = request.config.option.ptx_target, request.config.option.fulltrace

    def load(source: str | Path) -> Module:
        __tracebackhide__ = not frames
        try:
            return loaded(source)
        except told() as wrong:
            raise wrong.with_traceback(wrong.__traceback__ if frames else None) from None

    def loaded(source: str | Path) -> Module:
        is_text = isinstance(source, str) and api.IS_TEXT.match(source)
        chosen = str(source) if is_text else str(file_of(source, request.path.parent))
        if (chosen, target) not in ptx_modules:
            ptx_modules[chosen, target] = api.load(chosen, target)
        return ptx_modules[chosen, target]

    return load


def file_of(name: str | Path, folder: Path) -> Path:
    """The file beside a test, in its folder, or else below the folder of the run."""
    found = next((path for path in (folder / name, Path(name)) if path.is_file()), None)
    if found is None:
        folders = " or ".join(dict.fromkeys((str(folder), str(Path.cwd()))))
        raise FileNotFoundError(errno.ENOENT, f"there is no such file in {folders}", str(name))
    return found


@pytest.fixture
def run_kernel(
    request: pytest.FixtureRequest,
    ptx_variant: Variant,
    ptx_module: PtxModule,
) -> KernelRunner:
    """Launches kernels: `run_kernel("saxpy.ptx", block=128, args=[...])`."""
    allowed = frozenset(code for mark in request.node.iter_markers("ptx_allow") for code in mark.args)

    def record(name: str, value: object) -> None:  # `record_property` does so, and warns in each run with a JUnit report
        request.node.user_properties.append((name, value))

    runner = KernelRunner(ptx_variant, ptx_module, allowed, record, request.config.option.fulltrace)
    request.node.stash[RUNNER] = runner
    return runner


# ── the report ──────────────────────────────────────────────────────────────────────────


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Let the report of a test carry what the checks found in its kernels beside what failed it; workers send it on."""
    report = yield
    runner = item.stash.get(RUNNER, None)
    if call.when == "call" and runner is not None:
        failure = str(call.excinfo.value) if call.excinfo else ""
        if others := [each for each in runner.findings if each not in failure]:
            report.sections.append(("ptxvm findings", "\n\n".join(others)))
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Count the findings of each test at the end."""
    reports = [each for kind in ("passed", "failed") for each in terminalreporter.getreports(kind)]
    found = {each.nodeid: sum(name == FINDING for name, _ in each.user_properties) for each in reports}
    lines = [f"{nodeid}: {count} finding{'s' if count > 1 else ''}" for nodeid, count in found.items() if count]
    if lines:
        terminalreporter.section("findings of ptxvm")
        for line in lines:
            terminalreporter.write_line(line)
