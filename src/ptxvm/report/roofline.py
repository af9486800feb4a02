"""The roofline: how many operations a second a card could do at most at the arithmetic intensity of a kernel.

S. Williams, A. Waterman, D. Patterson, "Roofline: An Insightful Visual Performance Model for Multicore Architectures", 2009.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import log10

from ptxvm.dataclass import dataclass
from ptxvm.driver.peaks import Peaks
from ptxvm.profile.profile import Profile
from ptxvm.reference.pictures import label, line, picture, stroke

TERA = 1e12
LEFT, TOP, WIDE, HIGH = 70.0, 16.0, 600.0, 280.0
LEAST, MOST = -2, 4  # powers of ten of the intensity
DECADES = 5  # of operations a second, below the highest roof
CEILINGS = {"tensor": ".f16 matrices", "fp32": ".f32", "fp64": ".f64"}
COUNTED = {"tensor": "tensor_operations", "fp32": "fp32_operations", "fp64": "fp64_operations"}
SHORT = {0: "", 3: " k", 6: " M", 9: " G", 12: " T", 15: " P"}


@dataclass(frozen=True)
class Roof:
    """The roof over a kernel: the `peak` of its operations, and the `most` at its intensity, in operations a second."""

    intensity: float
    ceiling: str
    peak: float
    most: float
    ridge: float

    @property
    def bound_by_memory(self) -> bool:
        """Is the intensity left of the ridge?"""
        return self.most < self.peak

    @property
    def sentence(self) -> str:
        """What the picture says."""
        where = "left" if self.bound_by_memory else "right"
        holds = "device memory" if self.bound_by_memory else "arithmetic"
        return (
            f"{self.intensity:.3g} operations for each byte that is asked for of .global, {where} of the ridge at "
            f"{self.ridge:.3g}: {holds} allows {amount(self.most)} a second at most."
        )


def roof_of(profile: Profile, peaks: Peaks) -> Roof | None:
    """The roof over a kernel; None where it does no arithmetic, or asks for no byte of .global."""
    intensity = profile["arithmetic_intensity"]
    if not intensity:
        return None
    found: Mapping[str, float] = {name: profile[metric] or 0 for name, metric in COUNTED.items()}
    ceiling = max(found, key=found.__getitem__)
    peak, memory = getattr(peaks, ceiling) * TERA, peaks.memory * TERA
    return Roof(float(intensity), ceiling, peak, min(peak, memory * intensity), peak / memory)


def roofline(roof: Roof, peaks: Peaks) -> str:
    """The roof of a card, and the line of the kernel's intensity up to it."""
    top = log10(max(getattr(peaks, name) for name in CEILINGS) * TERA) + 0.3

    def at(intensity: float, rate: float) -> tuple[float, float]:
        across = (log10(intensity) - LEAST) / (MOST - LEAST)
        return LEFT + min(max(across, 0.0), 1.0) * WIDE, TOP + min(max((top - log10(rate)) / DECADES, 0.0), 1.0) * HIGH

    parts = list(axes(top))
    memory = peaks.memory * TERA
    floor, highest = 10 ** (top - DECADES), max(getattr(peaks, name) for name in CEILINGS) * TERA
    parts.append(stroke([at(max(10**LEAST, floor / memory), max(memory * 10**LEAST, floor)), at(highest / memory, highest)]))
    slope = at(highest / memory / 30, highest / 30)
    parts.append(label(slope[0] - 8, slope[1] - 2, f"{peaks.memory:g} TB/s", "end", size=11))
    for name, said in CEILINGS.items():
        peak = getattr(peaks, name) * TERA
        parts.append(stroke([at(peak / memory, peak), at(10**MOST, peak)], dashed=name != roof.ceiling))
        parts.append(label(LEFT + WIDE - 2, at(1, peak)[1] - 9, f"{said}: {amount(peak)}/s", "end", size=11))
    foot, head = at(roof.intensity, floor), at(roof.intensity, roof.most)
    parts.append(line(*foot, *head, color="rgb(217, 45, 32)"))
    parts.append(label(head[0] + 8, head[1] + 14, f"at most {amount(roof.most)}/s", "start", size=11))
    return picture(LEFT + WIDE + 24, TOP + HIGH + 42, roof.sentence, parts)


def axes(top: float) -> Iterator[str]:
    """The numbers at the axes: powers of ten."""
    bottom = TOP + HIGH
    yield stroke([(LEFT, TOP), (LEFT, bottom), (LEFT + WIDE, bottom)], faint=True)
    for power in range(LEAST, MOST + 1):
        x = LEFT + (power - LEAST) / (MOST - LEAST) * WIDE
        yield label(x, bottom + 12, f"{10.0**power:g}", size=10, opacity=0.7)
    yield label(LEFT + WIDE / 2, bottom + 30, "operations for each byte of .global", size=11, opacity=0.8)
    for power in range(int(top), int(top - DECADES), -1):
        yield label(LEFT - 6, TOP + (top - power) / DECADES * HIGH, f"{amount(10.0**power)}/s", "end", size=10, opacity=0.7)


def amount(operations: float) -> str:
    """Operations with a unit: `4.7 Top`."""
    power = min(max(int(log10(operations)) // 3 * 3, 0), max(SHORT))
    return f"{operations / 10**power:.3g}{SHORT[power] or ' '}op"


__all__ = ["Roof", "roof_of", "roofline"]
