"""Counts what a launch does, by line, and draws its costliest accesses of memory."""

from __future__ import annotations

from ptxvm.driver.models import MODELS, model_of
from ptxvm.playground.launching import document, launched
from ptxvm.playground.requests import LaunchRequest, RequestError
from ptxvm.profile.profile import Line
from ptxvm.profile.trace import Trace
from ptxvm.report.accesses import worst_requests
from ptxvm.report.counters import counts

SAMPLED = 512
"""Instructions of each warp of the first CTA among which accesses are sought."""


def count(request: LaunchRequest) -> dict[str, object]:
    """A launch with its counters; it runs twice, for the counters and for the pictures."""
    if request.checks or request.schedules > 1:
        raise RequestError("a launch is counted without checks, in one schedule")
    done = launched(request, profile=True)
    found = document(done)
    profile = done.result.profile if done.result is not None else None
    if profile is None or done.kernel is None:
        return found
    sampled = Trace(0, limit=SAMPLED)
    launched(request, trace=sampled)
    return {
        **found,
        "metrics": [
            {"title": each.title, "value": each.value, "ideal": each.ideal, "part": each.part, "sentence": each.sentence}
            for each in counts(profile, MODELS[model_of(done.kernel.module.programs[0].target)])
        ],
        "lines": [line(each) for each in profile.lines],
        "pictures": [
            {"line": each.step.line, "text": each.step.text, "sentence": each.sentence, "cost": each.cost, "ideal": each.ideal,
             "drawn": each.drawn()}
            for each in worst_requests(sampled.steps)
        ],
    }  # fmt: skip


def line(found: Line) -> dict[str, object]:
    """The counters of a line that the table has."""
    names = ("inst_executed", "threads_true_per_inst", "global_sectors", "global_sectors_ideal", "shared_wavefronts",
             "shared_wavefronts_ideal")  # fmt: skip
    return {"line": found.number, "text": found.text, **{name: found[name] for name in names}}


__all__ = ["count"]
