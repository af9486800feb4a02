"""`launch_report`: runs a kernel, and makes the page of what it did."""

from __future__ import annotations

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

from ptxvm.api import Kernel
from ptxvm.dataclass import dataclass
from ptxvm.driver.models import MODELS, model_of
from ptxvm.machine import options
from ptxvm.machine.launch_options import LaunchOptions
from ptxvm.machine.options import Extent
from ptxvm.machine.result import LaunchResult
from ptxvm.report.page import page
from ptxvm.report.sample import Sample, sample

FRAME = "width: 100%; height: 48rem; border: 0"


@dataclass(frozen=True)
class LaunchReport:
    """The result of a launch with its profile, and a page about it in HTML, which needs no other file and no network."""

    result: LaunchResult
    html: str

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file."""
        Path(path).write_text(self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        """The page in a frame of a notebook."""
        return f'<iframe title="ptxvm profile" style="{FRAME}" srcdoc="{escape(self.html)}"></iframe>'


def launch_report(
    kernel: Kernel,
    grid: Extent = 1,
    block: Extent = 1,
    args: Sequence[object] = (),
    *,
    shared: int = 0,
    cluster: Extent | None = None,
    device: str | None = None,
) -> LaunchReport:
    """Launch a kernel for a profile and a page about it: source with heat, counters, accesses, lanes over time, a roofline.

    The arguments are those of `Kernel.launch`; `device` is the card whose published figures are drawn, if not that of the
    module's target.  The kernel runs up to two times before the launch, for a sample of its first CTA and for a timeline, and
    memory is put back after each.  Raises what a launch raises, and ValueError for an unknown device.
    """
    options.instance("a kernel", kernel, Kernel, "of a module")
    device = model_of(kernel.module.programs[0].target) if device is None else device
    options.one_of("device", device, tuple(MODELS), "there is no model of")
    args = options.arguments(args)
    asking = LaunchOptions(
        options.extent("grid", grid), options.extent("block", block), options.count("shared", shared),
        cluster=options.cluster(cluster),
    )  # fmt: skip
    taken = sample(kernel, asking, args)
    result = kernel.launch(grid, block, args, shared=shared, cluster=cluster, profile=True)
    return LaunchReport(result, page_of(kernel, result, taken, device))


def page_of(kernel: Kernel, result: LaunchResult, taken: Sample, device: str) -> str:
    """The page of a launch with a profile."""
    if result.profile is None:
        raise ValueError("a report is of a launch with a profile: launch(..., profile=True)")
    return page(result.profile, kernel.module.programs, taken, device)


__all__ = ["LaunchReport", "launch_report", "page_of"]
