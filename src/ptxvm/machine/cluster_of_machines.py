"""Launches on a cluster of machines, as `kernel.launch(..., cluster=client)`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

if TYPE_CHECKING:
    from ptxvm.machine.result import LaunchResult

SPREAD = "ptxvm.campaign.spread"
"""What runs them, by its name: it stands above kernels, which do not know it, and is loaded with the first such launch."""


class Client(Protocol):
    """A client of a scheduler, as Dask's is."""

    @property
    def scheduler(self) -> Any:  # noqa: ANN401 - Dask has no types
        """The scheduler, which has an `address`."""


def is_client(value: object) -> TypeGuard[Client]:
    """Is it a client of a scheduler?"""
    return hasattr(getattr(value, "scheduler", None), "address")


def launch_on(client: Client, kernel: object, grid: object, block: object, args: object, shared: int) -> LaunchResult:
    """Run a kernel on the cluster of a client."""
    result: LaunchResult = import_module(SPREAD).launch_on(client, kernel, grid, block, args, shared)
    return result


__all__ = ["Client", "is_client", "launch_on"]
