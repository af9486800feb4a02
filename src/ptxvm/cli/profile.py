"""`ptxvm profile`: launches a kernel on arrays, and prints what it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from pathlib import Path, PurePath
from typing import cast

from rich.text import Text

from ptxvm.api import Kernel
from ptxvm.cli.failures import WrongCall
from ptxvm.cli.run import Following, RunRequest, run
from ptxvm.cli.run_report import RunReport
from ptxvm.cli.terminal import GAP, console, labelled, tabulated, width
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import did_you_mean
from ptxvm.driver.models import MODELS, Model, model_of
from ptxvm.driver.occupancy import multiprocessor
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.result import LaunchResult
from ptxvm.profile.metrics import METRICS, Number
from ptxvm.profile.occupancy import occupancy_limits
from ptxvm.profile.profile import Line, Measured, Profile

KINDS = 6  # that are listed
LIMITS = {"blocks": "their number", "warps": "warps", "shared_mem": "shared memory"}
COST = ("inst_executed", "global_sectors", "shared_wavefronts")  # by which lines are sorted: issued, and passes of memory
HEADINGS = ("line", "warps", "lanes", "sectors", "wavefronts", "")
NUMBERS = range(len(HEADINGS) - 1)
LEAST = 20  # columns of the text of a line


@dataclass(frozen=True, slots=True)
class Shown:
    """What is shown of a profile: so many lines, the greatest by a metric first, and the occupancy of a card."""

    lines: int = 10
    sort: str | None = None
    device: str | None = None

    def __call__(self, report: RunReport) -> None:
        """Print the profile of a launch."""
        out, profile = console(), cast("LaunchResult", report.result).profile
        if profile is None:
            out.print("There is no profile: without checks the kernel comes to a fault.")
            return
        grid, block = (",".join(map(str, extent)) for extent in (profile.grid, profile.block))
        out.print(Text.assemble((profile.kernel, "bold"), f"  grid {grid}  block {block}\n"))
        for label, said in summary(profile, MODELS[self.device or card_of(report)]):
            out.print(labelled(label, [(said,)]))
        lines = sorted(profile.lines, key=self.weight, reverse=True)[: self.lines]
        if lines:
            out.print()
            out.print(tabulated(HEADINGS, rows(lines), NUMBERS), soft_wrap=True)
            out.print(Text("\nwarps: how often one executed it; lanes: with a true guard; × of the ideal"))

    def weight(self, line: Line) -> float:
        """By what a line is sorted."""
        return sum(line[name] or 0 for name in ((self.sort,) if self.sort else COST))


def card_of(report: RunReport) -> str:
    """The card of the target of the module."""
    assert report.kernel is not None  # noqa: S101 - for mypy; it was launched
    return model_of(report.kernel.module.programs[0].target)


def profile(request: RunRequest, lines: int, sort: str | None, device: str | None, html: str | None) -> int:
    """Load, launch, print; write a page."""
    if sort is not None and sort not in METRICS:
        raise WrongCall(f"--sort {sort}: no such metric; {did_you_mean(sort, METRICS) or '--json names all'}")
    if device is not None and device not in MODELS:
        raise WrongCall(f"--device is one of {', '.join(MODELS)}, not {device}")
    shown = Shown(lines, sort, device)
    if html is None:
        return run(request, Following(shown, profile=True))
    written = Written(html, device)
    return run(request, Following(shown, profile=True, begin=written.begin, end=written.end))


class Written:
    """The page of a launch, written to a file: a sample is taken before the launch."""

    def __init__(self, path: str, device: str | None) -> None:
        self.path, self.device = path, device

    def begin(self, kernel: Kernel, asking: LaunchOptions, args: Sequence[object]) -> None:
        """Take the sample."""
        from ptxvm.report.sample import sample

        self.sample = sample(kernel, asking, args)

    def end(self, report: RunReport) -> None:
        """Write the page."""
        from ptxvm.report.report import page_of

        kernel, result = report.kernel, report.result
        assert kernel is not None  # noqa: S101 - for mypy; it was launched
        assert result is not None  # noqa: S101
        if result.profile is None:
            return
        try:
            Path(self.path).write_text(page_of(kernel, result, self.sample, self.device or card_of(report)), encoding="utf-8")
        except OSError as wrong:
            raise WrongCall(f"cannot write '{self.path}': {wrong.strerror or wrong}") from None


def summary(profile: Profile, card: Model) -> Iterator[tuple[str, str]]:
    """What the kernel did, in a line for each kind of work that there was."""
    yield (
        "executed",
        (
            f"{counted(profile, 'inst_executed', 'instruction')} of warps, "
            f"{amount(profile, 'threads_per_inst')} of {WARP} lanes active, "
            f"{amount(profile, 'threads_true_per_inst')} with a true guard"
        ),
    )
    yield "kinds", ", ".join(shares(profile))
    if profile["branches"]:
        yield "branches", f"{amount(profile, 'branches')}, {amount(profile, 'divergent_branches')} of them divergent"
    if profile["barriers"]:
        yield "barriers", f"{counted(profile, 'barriers', 'arrival')} of warps"
    if profile["global_sectors"]:
        yield (
            "global",
            (
                f"{counted(profile, 'global_bytes', 'byte')} in {counted(profile, 'global_sectors', 'sector')}, ideal "
                f"{amount(profile, 'global_sectors_ideal')} ({amount(profile, 'global_coalesced_pct')} %); "
                f"{amount(profile, 'global_sectors_per_request')} a request"
            ),
        )
    if profile["shared_wavefronts"]:
        yield (
            "shared",
            (
                f"{counted(profile, 'shared_bytes', 'byte')} in {counted(profile, 'shared_wavefronts', 'wavefront')}, ideal "
                f"{amount(profile, 'shared_wavefronts_ideal')}; {amount(profile, 'shared_bank_conflicts')} by bank conflicts"
            ),
        )
    yield from rest(profile)
    yield "occupancy", occupancy(profile, card)
    if profile.waits:
        ends = ", ".join(map(str, profile.waits))
        yield "chance", f"how often loops go round that wait for other threads: they end at line {ends}"
    why = f": compiled code does not count {profile.uncounted}" if profile.uncounted else ""
    yield "engine", f"{profile.engine}{why}"


def counted(profile: Profile, name: str, noun: str) -> str:
    """A metric that is a count, with its noun: `1 sector`, `1,024 sectors`."""
    return f"{number(profile[name])} {noun}{'s' * (profile[name] != 1)}"


def rest(profile: Profile) -> Iterator[tuple[str, str]]:
    """Work that few kernels do."""
    if profile["local_bytes"]:
        yield "local", f"{amount(profile, 'local_bytes')} bytes"
    if profile["bulk_copy_bytes"]:
        yield "bulk copies", f"{amount(profile, 'bulk_copy_bytes')} bytes"
    if profile["atomic_operations"]:
        operations, rivals = amount(profile, "atomic_operations"), amount(profile, "atomic_contention")
        yield "atomics", f"{operations} of threads, {rivals} of a warp to an address"
    if profile["flop"] or profile["tensor_operations"]:
        intensity = profile["arithmetic_intensity"]
        told = f"; {number(intensity)} for each byte of .global" if intensity is not None else ""
        yield "arithmetic", f"{amount(profile, 'flop')} flop, {amount(profile, 'tensor_operations')} by matrices{told}"


def occupancy(profile: Profile, card: Model) -> str:
    """How many CTAs a multiprocessor of a card holds, by each limit that is known."""
    holds = multiprocessor(card.attributes().__getitem__)
    limits = occupancy_limits(holds, prod(profile.block), profile.shared_bytes)
    each = ", ".join(f"{count} by {LIMITS[limit]}" for limit, count in limits.items())
    share = min(limits.values()) * -(-prod(profile.block) // WARP) * WARP / holds.threads
    return f"at most {share:.0%} of the warps of {card.name}: CTAs {each}; registers are not known from PTX"


def shares(profile: Profile) -> Iterator[str]:
    """The kinds of instructions that were executed most, in percent, and the others together."""
    executed = {name: kind.counts["inst_executed"] for name, kind in profile.kinds.items()}
    total, listed = sum(executed.values()), list(executed.items())[:KINDS]
    for name, count in listed:
        yield f"{name} {count / total:.0%}"
    if others := total - sum(count for _, count in listed):
        yield f"others {others / total:.0%}"


def rows(lines: Sequence[Line]) -> list[tuple[str, ...]]:
    """The table: the numbers of each line, then its text as far as it fits."""
    numbers = [(str(line.number), *cells(line)) for line in lines]
    taken = sum(max(map(len, column)) + len(GAP) for column in zip(HEADINGS[:-1], *numbers, strict=True))
    left = max(width() - taken, LEAST)
    return [(*each, shortened(told(line), left)) for each, line in zip(numbers, lines, strict=True)]


def cells(line: Line) -> Iterator[str]:
    """How often a line was executed and by how many lanes, and what it asked of memory, against the ideal."""
    yield amount(line, "inst_executed")
    yield f"{line['threads_true_per_inst'] or 0:.1f}"
    for name in ("global_sectors", "shared_wavefronts"):
        count, ideal = line[name], line[f"{name}_ideal"]
        yield f"{number(count)} ×{count / ideal:.1f}" if count and ideal else ""


def told(line: Line) -> str:
    """The text of a line, and where it comes from: FILE:LINE without the folder, for which there is no room."""
    return f"{line.text}  // {PurePath(line.source).name}" if line.source else line.text


def shortened(text: str, columns: int) -> str:
    """A text in so many columns."""
    return text if len(text) <= columns else f"{text[: columns - 1]}…"


def amount(measured: Measured, name: str) -> str:
    """A metric as people read it."""
    return number(measured[name])


def number(value: Number) -> str:
    """A number with few digits."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.1f}" if value >= 10 else f"{value:.2g}"
