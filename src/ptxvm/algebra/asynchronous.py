"""Words of what goes on beside the threads: steps of mbarriers, and proxies (PTX 8.6, 9.7.13.15)."""

from __future__ import annotations

import enum


class MbarrierStep(enum.StrEnum):
    """What an access does to an mbarrier that lies there."""

    INIT = "init"
    INVAL = "inval"
    ARRIVE = "arrive"
    DROP = "drop"
    EXPECT = "expect"
    COMPLETE = "complete"
    POSTPONE = "postpone"
    TEST = "test"


class Proxy(enum.StrEnum):
    """How an access reaches memory."""

    GENERIC = "generic"
    ASYNC = "async"
    TEXTURE = "texture"
    SURFACE = "surface"
