"""Work queues: how many streams of a device run at once (driver API, "Green Contexts").

A stream of this machine has a queue of its own, so the numbers are kept and told, and limit nothing.
"""

from __future__ import annotations

import os
from enum import IntEnum

from ptxvm.dataclass import dataclass

CONNECTIONS, MOST_CONNECTIONS = 8, 32


class Sharing(IntEnum):
    """CUdevWorkqueueConfigScope: do contexts share work queues?"""

    DEVICE_CTX = 0
    GREEN_CTX_BALANCED = 1


@dataclass(frozen=True, eq=False)
class WorkQueues:
    """The work queues of a context, or of all contexts of a device."""

    limit: int
    sharing: Sharing = Sharing.DEVICE_CTX


def work_queues_of_a_device() -> WorkQueues:
    """As many as CUDA_DEVICE_MAX_CONNECTIONS says, which is 8 unless it says so (programming guide, environment variables)."""
    asked = os.environ.get("CUDA_DEVICE_MAX_CONNECTIONS", "")
    limit = int(asked) if asked.isdecimal() and 1 <= int(asked) <= MOST_CONNECTIONS else CONNECTIONS
    return WorkQueues(limit)


__all__ = ["Sharing", "WorkQueues", "work_queues_of_a_device"]
