"""The page of a report: HTML that needs nothing else, neither files nor a network.

Kernels, files and sources are text of anyone: Jinja escapes what it fills in, and only the one script of the page may run.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ptxvm.analysis.program import Program
from ptxvm.driver.models import MODELS
from ptxvm.driver.peaks import PEAKS
from ptxvm.profile.metrics import METRICS, Number
from ptxvm.profile.profile import Profile
from ptxvm.profile.trace import Step, WarpName
from ptxvm.report.accesses import worst_requests
from ptxvm.report.counters import counts
from ptxvm.report.listings import Entry, heat, key_of_line, listings
from ptxvm.report.roofline import roof_of, roofline
from ptxvm.report.sample import FIRST, LATER, WARPS, Sample
from ptxvm.report.time_pictures import ctas_over_time, lanes_over_time

TEMPLATES = Path(__file__).parent / "templates"
MOST_PICTURES = 64  # of accesses
WASTES = ("shared_bank_conflicts", "global_sectors_excessive", "divergent_branches")


def page(profile: Profile, programs: Sequence[Program], sample: Sample, device: str) -> str:
    """The page of a launch: its profile, a sample of it, and the card to compare it with."""
    card, peaks = MODELS[device], PEAKS[device]
    found, entries = listings(profile, programs)
    roof = roof_of(profile, peaks)
    requests = sorted(worst_requests(sample.steps), key=lambda request: request.ideal - request.cost)
    style, script = (Markup((TEMPLATES / name).read_text(encoding="utf-8")) for name in ("page.css", "page.js"))  # noqa: S704 - ours
    return environment().get_template("page.html").render(
        profile=profile, card=card, device=device, counts=counts(profile, card),
        metrics=[(metric, profile[metric.name]) for metric in METRICS.values() if profile[metric.name]],
        heat=heat(profile), coloured=coloured(profile), listings=found, entries=data(entries),
        requests=[(key(profile, request.step), request, svg(*request.drawn())) for request in requests[:MOST_PICTURES]],
        left_out=requests[MOST_PICTURES:],
        warps=[lanes_of(profile, name, steps, sample) for name, steps in sample.warps.items()],
        ctas=svg(ctas_over_time(sample.pieces)) if sample.pieces else "",
        roof=roof, roofline=svg(roofline(roof, peaks)) if roof is not None else "",
        first=FIRST, later=LATER, most_warps=WARPS, style=style, script=script, digest=digest(script),
    )  # fmt: skip


@cache
def environment() -> Environment:
    """Jinja, which escapes all that it fills in."""
    made = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    made.filters["number"] = number
    return made


def coloured(profile: Profile) -> str:
    """The metric by which lines are coloured at first: that of a waste, if there is one."""
    return next((name for name in WASTES if profile[name]), "inst_executed")


def svg(*drawn: str) -> Markup:
    """Pictures, whose texts were escaped when they were drawn."""
    return Markup("").join(Markup(each) for each in drawn)  # noqa: S704 - see above


def digest(script: str) -> str:
    """The name of a script in the policy of the page, which lets no other run."""
    return f"sha256-{b64encode(sha256(script.encode()).digest()).decode()}"


def data(entries: Sequence[Entry]) -> Markup:
    """The lines for the script, as JSON in which nothing ends an element."""
    fields = {
        entry.key: {"place": entry.place, "text": entry.text, "kinds": entry.kinds, "metrics": entry.metrics, "of": entry.of}
        for entry in entries
    }
    text = json.dumps(fields, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return Markup(text)  # noqa: S704 - no sign of HTML is left


def key(profile: Profile, step: Step) -> str:
    """The line of a step in the page."""
    program = step.bound.program
    return key_of_line(profile, program.source.name if program is not None else "", step.line)


def lanes_of(profile: Profile, name: WarpName, steps: Sequence[Step], sample: Sample) -> dict[str, object]:
    """A warp over time, for the template."""
    parted = sum(len(step.lanes) < len(steps[0].lanes) for step in steps)
    return {
        "name": f"warp {name.warp} of CTA {','.join(map(str, name.cta))}",
        "shown": len(steps), "more": sample.executed[name] > len(steps), "parted": parted,
        "picture": svg(lanes_over_time(steps, lambda step: key(profile, step))),
    }  # fmt: skip


def number(value: Number) -> str:
    """A number as people read it."""
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"


__all__ = ["page"]
