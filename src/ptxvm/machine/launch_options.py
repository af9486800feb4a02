"""The options of a launch: all that a caller asks of the grid and of the engine, checked, in one record."""

from __future__ import annotations

from ptxvm.named_tuple import NamedTuple


class LaunchOptions(NamedTuple):
    """All that a launch is asked for besides its kernel, its arguments and its checks.

    A named tuple, since compiled code looks for short launches by kernel and options.  `shared` counts the bytes of dynamic
    shared memory, `steps` the instructions that all threads may execute, `timeout` the seconds.  `threads` of the host run
    the grid, `fast` arithmetic may approximate, and a `trusted` kernel is not checked: these are for the JIT.  `cluster` is
    None where the launch says nothing of clusters.  `asynchronous` says when asynchronous work ends: `early`, `late`, or at
    `random` by a `seed`; empty where it may be whatever is fast.  A `cooperative` launch has a workspace for `grid.sync()`.
    """

    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    shared: int = 0
    steps: int | None = None
    timeout: float | None = None
    threads: int | None = None
    fast: bool = False
    trusted: bool = False
    cluster: int | tuple[int, ...] | None = None
    asynchronous: str = ""
    seed: int = 0
    cooperative: bool = True

    @property
    def limited(self) -> bool:
        """Is the number of instructions or the time limited?"""
        return self.steps is not None or self.timeout is not None


__all__ = ["LaunchOptions"]
