"""Whether a process may read or write some bytes: a copy asks first, since a wrong access would end the process.

Linux answers with one call, which also brings the pages into memory, as the copy would do (madvise(2), MADV_POPULATE_READ).
Where it cannot tell, the list of mappings does.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
from collections.abc import Callable
from functools import cache

from ptxvm.driver.host_memory import MAPS, mappings

POPULATE_READ, POPULATE_WRITE = 22, 23  # advice for madvise, since Linux 5.14
UNTOLD = frozenset({errno.EINVAL, errno.ENOMEM, errno.EAGAIN, errno.EINTR})
"""Answers that the mappings must explain: the permissions or an older Linux, a gap or no memory left, an interruption."""


def is_accessible(address: int, size: int, *, writing: bool = False) -> bool:
    """May this process read some bytes, or write them?  True where the system has no list of its mappings."""
    start = address & -mmap.PAGESIZE
    length = address + size - start
    if address + size > 1 << 64:
        return False
    wrong = _advice()(start, length, POPULATE_WRITE if writing else POPULATE_READ)
    return not wrong or (wrong in UNTOLD and is_mapped(address, size, writing=writing))


def is_mapped(address: int, size: int, *, writing: bool = False) -> bool:
    """Are some bytes in mappings without a gap that may be read, or written?  True where the system has no list of them."""
    if not MAPS.exists():
        return True
    for each in mappings():
        if each.start <= address < each.end and (each.writable or not writing):
            size -= min(size, each.end - address)
            address = each.end
    return not size


@cache
def _advice() -> Callable[[int, int, int], int]:
    """The function madvise of the C library; its result is an error, 0 for none.  Other systems know no such advice."""
    call = getattr(ctypes.CDLL(None, use_errno=True), "madvise", None)
    if call is None:
        return lambda start, length, advice: errno.EINVAL  # noqa: ARG005 - as the call has them
    call.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    return lambda start, length, advice: ctypes.get_errno() if call(start, length, advice) else 0


__all__ = ["is_accessible", "is_mapped"]
