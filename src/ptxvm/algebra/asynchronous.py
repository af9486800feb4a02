"""Work that goes on beside the threads: its kinds, the steps of mbarriers, and proxies (PTX 8.6, 9.7.9.25, 9.7.13.15)."""

from __future__ import annotations

import enum


class AsyncKind(enum.StrEnum):
    """A kind of asynchronous work: each has waits of its own, some for groups of it."""

    COPY = "cp.async"
    BULK = "cp.async.bulk"
    MBARRIER = "mbarrier"  # transfers whose end an mbarrier tells
    PRODUCT = "wgmma"
    TENSOR = "tcgen05"  # work on tensor memory that a commit and its mbarrier wait for
    TENSOR_LOAD = "tcgen05.ld"
    TENSOR_STORE = "tcgen05.st"


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
    """How an access reaches memory (PTX 8.6); a proxy fence orders accesses of the generic proxy and of another."""

    GENERIC = "generic"
    ALIAS = "alias"  # a second address of the same memory
    ASYNC = "async"
    ASYNC_GLOBAL = "async.global"  # a fence for it is for accesses of global memory alone
    ASYNC_SHARED = "async.shared"
    CONSTANT = "constant"
    SURFACE = "surface"
    TENSORMAP = "tensormap"
    TEXTURE = "texture"
