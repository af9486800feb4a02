"""Settings of core dumps of devices (driver API, "Coredump Attributes Control API").

There are none: the log names the line and the thread of a fault.  Files, pipes and kinds of contents are kept and told, and
what would let a core dump be written is refused.
"""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from enum import IntEnum
from weakref import WeakKeyDictionary

from ptxvm.driver.context import Context
from ptxvm.driver.results import DriverError, Result, member
from ptxvm.libcuda.c_values import bytes_from, put_bytes, put_u64, u64
from ptxvm.libcuda.session import function, session

MOST = 1024  # bytes of the name of a file, with the 0 behind it


class Setting(IntEnum):
    """What can be set (CUcoredumpSettings)."""

    ENABLE_ON_EXCEPTION = 1
    TRIGGER_HOST = 2
    LIGHTWEIGHT = 3
    ENABLE_USER_TRIGGER = 4
    FILE = 5
    PIPE = 6
    GENERATION_FLAGS = 7

    @property
    def size(self) -> int:
        """The bytes of a value."""
        return MOST if self in NAMES else 4 if self is Setting.GENERATION_FLAGS else 1

    @property
    def default(self) -> bytes:
        """The value that it has from the start."""
        if self in NAMES:
            return f"core{'pipe' * (self is Setting.PIPE)}.cuda.{socket.gethostname()}.{os.getpid()}".encode()
        return int(self is Setting.TRIGGER_HOST).to_bytes(self.size, "little")


NAMES = frozenset({Setting.FILE, Setting.PIPE})
ENABLING = frozenset({Setting.ENABLE_ON_EXCEPTION, Setting.ENABLE_USER_TRIGGER})
OF_PROCESSES = frozenset({Setting.PIPE, Setting.ENABLE_USER_TRIGGER})
Values = MutableMapping[Setting, bytes]
CHOSEN: Values = {}
"""What a client has set for the process."""
CHOSEN_OF: WeakKeyDictionary[Context, Values] = WeakKeyDictionary()
"""What a client has set for a context."""


def setting(number: int) -> Setting:
    """A setting by its number; DriverError where there is none."""
    return member(Setting, number, "setting of core dumps")


def get(which: Setting, held: bytes, out: int, size: int) -> None:
    """Write a value, or its size where there is no room for it at all; DriverError for too little room."""
    if not out:
        put_u64(size, which.size)
        return
    value = held + bytes(which in NAMES)
    if u64(size) < len(value):
        raise DriverError(Result.INVALID_VALUE, f"the value has {len(value)} bytes")
    put_bytes(out, value)


def put(values: Values, which: Setting, value: int, size: int) -> None:
    """Keep a value; DriverError for one that asks for core dumps, and for a name that is too long."""
    if not value:
        put_u64(size, which.size)
        return
    room = u64(size)
    if room > MOST or (which not in NAMES and room < which.size):
        raise DriverError(Result.INVALID_VALUE, f"the value has {which.size} bytes, not {room}")
    data = bytes_from(value, room if which in NAMES else which.size)
    if which in ENABLING and any(data):
        raise DriverError(Result.NOT_SUPPORTED, "no core dumps are written; the log names the line and the thread of a fault")
    values[which] = data.split(b"\0")[0] if which in NAMES else data


@function("cuCoredumpGetAttributeGlobal")
def get_of_process(number: int, out: int, size: int) -> None:
    """A setting of the process."""
    which = setting(number)
    get(which, CHOSEN.get(which, which.default), out, size)


@function("cuCoredumpGetAttribute")
def get_of_context(number: int, out: int, size: int) -> None:
    """A setting of the current context, which is that of the process unless the context has its own."""
    which, own = setting(number), CHOSEN_OF.get(session().context, {})
    get(which, own.get(which, CHOSEN.get(which, which.default)), out, size)


@function("cuCoredumpSetAttributeGlobal")
def set_of_process(number: int, value: int, size: int) -> None:
    """Choose a setting of the process."""
    put(CHOSEN, setting(number), value, size)


@function("cuCoredumpSetAttribute")
def set_of_context(number: int, value: int, size: int) -> None:
    """Choose a setting of the current context."""
    if setting(number) in OF_PROCESSES:
        raise DriverError(Result.NOT_PERMITTED, "the pipe of core dumps is one of the process")
    put(CHOSEN_OF.setdefault(session().context, {}), setting(number), value, size)
