"""The bar of work that is under way: as full as the work is done, or moving where that is not known."""

from __future__ import annotations

from collections.abc import Callable

from rich.progress import ProgressColumn, Task
from rich.progress_bar import ProgressBar

Share = Callable[[], float | None] | float | None
"""How much of the work is done, from 0 to 1, or what tells it; None where that is not known."""

WIDTH = 20
OTHERS = 12
"""The columns of what else stands in the line, but for the words."""


def shortened(task: str, columns: int) -> str:
    """The words beside the bar, in so many columns for all of the line: the middle of a long path is left out."""
    room = max(columns - WIDTH - OTHERS, 10)
    if len(task) <= room:
        return task
    ahead = room // 3
    return f"{task[:ahead]}…{task[len(task) - (room - ahead - 1) :]}"


class Bar(ProgressColumn):
    """Shows the share, for which it asks at each refresh."""

    max_refresh = None

    def __init__(self, share: Share) -> None:
        self.share = share
        super().__init__()

    def render(self, task: Task) -> ProgressBar:
        """The bar of now."""
        share = self.share() if callable(self.share) else self.share
        if share is None:
            return ProgressBar(total=None, width=WIDTH, pulse=True, animation_time=task.get_time())
        return ProgressBar(total=1.0, completed=share, width=WIDTH)


__all__ = ["Bar", "Share", "shortened"]
