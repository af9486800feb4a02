"""The plugin of pytest: tests of CUDA code run with ptxvm as their driver, on machines without a GPU.

    pytest --ptxvm
    pytest --ptxvm --ptxvm-device=sm_90 --ptxvm-check=memory,race

With a check, a test fails in whose kernels it finds an error, whatever the test itself compares.  A kernel that fails ends no
more than its own test: the context works again afterwards.  The workers of pytest-xdist inherit all of it.  pytest imports
this module in every run: it imports the machine only where it is asked for.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Generator
from pathlib import Path

import pytest

FINDINGS = pytest.StashKey[Path]()
PATIENCE = {"setup": 1.0, "call": 1.0, "teardown": 30.0}  # seconds for work that no call has waited for, by the phase of a test
OF_THE_DRIVER = ("device", "check", "allow", "suppress")  # options that mean nothing without --ptxvm


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options of the command line."""
    group = parser.getgroup("ptxvm", "CUDA without a GPU")
    group.addoption("--ptxvm", action="store_true", help="make ptxvm the CUDA driver of the tests")
    group.addoption("--ptxvm-device", metavar="sm_NN", help="the card whose limits the device has")
    group.addoption(
        "--ptxvm-check", metavar="all|memory,init,sync,race", help="what to look for in every kernel; an error fails the test"
    )
    group.addoption("--ptxvm-allow", metavar="CODE,...", help="findings that are meant, by their codes")
    group.addoption("--ptxvm-suppress", metavar="FILE", help="findings that are meant: a line CODE KERNEL:LINE for each")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Become the driver before any conftest imports a client."""
    chosen = early_config.known_args_namespace
    if not chosen.ptxvm:
        if given := [f"--ptxvm-{name}" for name in OF_THE_DRIVER if getattr(chosen, f"ptxvm_{name}")]:
            raise pytest.UsageError(f"{given[0]} is of --ptxvm, which is missing; run_kernel has --ptx-check")
        return
    from ptxvm.driver.environment import WrongVariable, environment  # noqa: PLC0415 - see above
    from ptxvm.driver.models import MODELS  # noqa: PLC0415
    from ptxvm.libcudart.process import enter  # noqa: PLC0415
    from ptxvm.machine import options  # noqa: PLC0415

    if chosen.ptxvm_device:
        if chosen.ptxvm_device not in MODELS:
            raise pytest.UsageError(f"--ptxvm-device: there is no '{chosen.ptxvm_device}'; there are {', '.join(MODELS)}")
        os.environ["PTXVM_DEVICE"] = chosen.ptxvm_device
    set_known_findings(chosen.ptxvm_allow, chosen.ptxvm_suppress)
    if chosen.ptxvm_check:
        try:
            options.checks_in(chosen.ptxvm_check)
        except ValueError as wrong:
            raise pytest.UsageError(f"--ptxvm-check: {wrong}") from wrong
        os.environ["PTXVM_CHECK"] = chosen.ptxvm_check
        file, path = tempfile.mkstemp(prefix="ptxvm-findings-", suffix=".jsonl")
        os.close(file)
        early_config.stash[FINDINGS] = Path(path)
        os.environ["PTXVM_FINDINGS"] = path  # of this process and the programs that its tests start
    try:
        environment()
    except WrongVariable as wrong:
        raise pytest.UsageError(str(wrong)) from wrong
    enter()


def set_known_findings(allow: str | None, suppress: str | None) -> None:
    """Tell the driver which findings are meant; UsageError for an unknown code, or a file that there is not."""
    from ptxvm.machine import options  # noqa: PLC0415 - see above

    if allow:
        try:
            options.allowed_in(allow)
        except ValueError as wrong:
            raise pytest.UsageError(f"--ptxvm-allow: {wrong}") from wrong
        os.environ["PTXVM_ALLOW"] = allow
    if suppress:
        if not (file_of_suppressions := Path(suppress).resolve()).is_file():
            raise pytest.UsageError(f"--ptxvm-suppress: there is no file {file_of_suppressions}")
        os.environ["PTXVM_SUPPRESS"] = str(file_of_suppressions)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Remove the file of findings."""
    if (path := config.stash.get(FINDINGS, None)) is not None:
        path.unlink(missing_ok=True)


def pytest_report_header(config: pytest.Config) -> str | None:
    """The device and the checks."""
    if not config.option.ptxvm:
        return None
    from ptxvm.driver.environment import environment  # noqa: PLC0415

    model, count = environment().model, environment().devices
    checks = f", checks {config.option.ptxvm_check}" if config.option.ptxvm_check else ""
    major, minor = model.capability
    return f"ptxvm: {count} × {model.name} (sm_{major}{minor}){checks}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let each test have its own findings: one that an earlier test had too is reported again."""
    if (path := item.config.stash.get(FINDINGS, None)) is not None:
        from ptxvm.driver.launch_checks import FINDINGS as REPORTED  # noqa: PLC0415

        REPORTED.seen.clear()
        path.write_bytes(b"")
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Fail a test in whose kernels an error was found, or one of whose kernels has failed unnoticed."""
    report = yield
    if item.config.option.ptxvm:
        recover(report)
    path = item.config.stash.get(FINDINGS, None)
    if path is None or call.when == "setup":
        return report
    from ptxvm.driver.environment import environment  # noqa: PLC0415 - see above

    written = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    found = [each for each in written if not environment().suppressions.names(each["kernel"], each["code"], each["line"])]
    path.write_bytes(b"")
    if found:
        report.sections.append(("ptxvm", "\n\n".join(each["text"] for each in found)))
    errors = [each for each in found if each["severity"] == "error"]
    if errors and report.outcome == "passed":
        report.outcome = "failed"
        report.longrepr = "\n\n".join(described(each) for each in errors)
    return report


def recover(report: pytest.TestReport) -> None:
    """Let later tests use the contexts in which kernels have failed; a test that no call told of the error fails."""
    from ptxvm.libcuda.session import session  # noqa: PLC0415 - see above

    unseen = "\n\n".join(f"ptxvm: a kernel failed: {each}" for each in session().driver.recover(PATIENCE[report.when]))
    if unseen and report.outcome == "passed":
        report.outcome, report.longrepr = "failed", unseen


def described(finding: dict[str, object]) -> str:
    """An error, with the kernel that it is in."""
    from ptxvm.diagnostics.kernel_names import displayed  # noqa: PLC0415 - see above

    return f"ptxvm: in kernel {displayed(str(finding['kernel']))}: {finding['text']}"


__all__ = ["pytest_addoption"]
