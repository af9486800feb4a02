"""A schedule that a debugger saved: the launch, and the warps that were chosen to run next, as a file of JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field

from ptxvm.dataclass import dataclass
from ptxvm.named_tuple import NamedTuple

VERSION = 1


class Choice(NamedTuple):
    """The warp that runs next: its CTA by its number in the grid, its number in the CTA; and a lane, for the group of that."""

    cta: int
    warp: int
    lane: int | None = None


@dataclass(frozen=True, slots=True)
class WarpSchedule:
    """A launch without its arguments, and its choices: by the number of instructions that were issued before, a warp.

    Where nothing is chosen, the order is that of the machine: diverged lanes that are least far run first, so that they meet
    again.
    """

    kernel: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    shared: int = 0
    cluster: tuple[int, ...] | None = None
    asynchronous: str = ""
    seed: int = 0
    choices: Mapping[int, Choice] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The file."""
        head: dict[str, object] = {"ptxvm-schedule": VERSION, "kernel": self.kernel, "grid": self.grid, "block": self.block}
        head |= {"shared": self.shared, "cluster": self.cluster, "async": self.asynchronous, "seed": self.seed}
        lines = ",\n".join(f"  {json.dumps([time, *choice])}" for time, choice in sorted(self.choices.items()))
        rows = "".join(f" {json.dumps(key)}: {json.dumps(value)},\n" for key, value in head.items())
        return f'{{\n{rows} "choices": [\n{lines}\n ]\n}}\n'

    @classmethod
    def of_text(cls, text: str) -> WarpSchedule:
        """The schedule in a file; ValueError where it is none."""
        try:
            read = json.loads(text)
            if read["ptxvm-schedule"] != VERSION:
                raise ValueError(f"a schedule of version {read['ptxvm-schedule']}; this ptxvm reads {VERSION}")
            choices = {int(time): Choice(int(cta), int(warp), lane) for time, cta, warp, lane in read["choices"]}
            cluster = tuple(read["cluster"]) if read["cluster"] else None
            return cls(
                str(read["kernel"]), tuple(read["grid"]), tuple(read["block"]), int(read["shared"]), cluster,
                str(read["async"]), int(read["seed"]), choices,
            )  # fmt: skip
        except (KeyError, TypeError, json.JSONDecodeError) as wrong:
            raise ValueError(f"that is no schedule that `save schedule` of ptxvm debug wrote: {wrong!r}") from None


__all__ = ["Choice", "WarpSchedule"]
