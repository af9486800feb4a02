"""The messages between the process of a campaign and its workers, many of which are read at once.

A frame is its size and its bytes.  Most outcomes say that a case passed, and how long it took: nine bytes.  A worker is told
what it runs (a setting), then jobs, and at last that it is released.
"""

from __future__ import annotations

import os
import pickle
import socket
import struct
from collections.abc import Iterator, Sequence
from io import BytesIO

from ptxvm.campaign.case import Workload
from ptxvm.campaign.outcome import Job, Outcome
from ptxvm.named_tuple import NamedTuple

SIZE = struct.Struct("<Q")
PASSED = struct.Struct("<cd")
PASSED_TAG = b"P"  # no pickle begins with it
ROOM = 1 << 20  # bytes that are read at once
MOST_DESCRIPTORS = 16  # of a setting


class Descriptor(int):
    """The descriptor of an open file; in a setting it is one of the same file in the worker."""


class Setting(NamedTuple):
    """What a worker runs, and the MiB that a case may have besides what the process has; 0 is no limit."""

    workload: Workload
    memory: int


class PackedSetting(NamedTuple):
    """A setting as it is sent: a frame, and the descriptors that go with its first byte."""

    frame: bytes
    descriptors: list[Descriptor]


def frame(content: bytes) -> bytes:
    """The bytes of a frame."""
    return SIZE.pack(len(content)) + content


def frame_of(outcome: Outcome | None) -> bytes:
    """The frame of an outcome; None says that the worker is ready."""
    if outcome is not None and outcome == Outcome(seconds=outcome.seconds):
        return frame(PASSED.pack(PASSED_TAG, outcome.seconds))
    return frame(pickle.dumps(outcome, pickle.HIGHEST_PROTOCOL))


def outcome_in(content: bytes) -> Outcome | None:
    """The outcome in a frame."""
    if content[:1] == PASSED_TAG:
        return Outcome(seconds=PASSED.unpack(content)[1])
    found: Outcome | None = pickle.loads(content)  # noqa: S301 - from a process that this one has started
    return found


def packed(setting: Setting) -> PackedSetting:
    """A setting as it is sent."""
    file = BytesIO()
    pickler = _Packer(file, pickle.HIGHEST_PROTOCOL)
    pickler.dump(setting)
    return PackedSetting(frame(file.getvalue()), pickler.descriptors)


def frame_of_release() -> bytes:
    """The frame that releases a worker: it forgets its setting."""
    return frame(pickle.dumps(None))


def frame_of_jobs(jobs: Sequence[Job]) -> bytes:
    """The frame of some jobs; of most the number is all."""
    plain = [job.number if job.parameters is None and job.text is None else job for job in jobs]
    return frame(pickle.dumps(plain, pickle.HIGHEST_PROTOCOL))


def message_in(content: bytes, descriptors: Sequence[int] = ()) -> Setting | list[Job] | None:
    """What a frame tells a worker, with the descriptors that have come: a setting, jobs, or that it is released."""
    found: Setting | list[int | Job] | None = _Unpacker(BytesIO(content), descriptors).load()
    if isinstance(found, list):
        return [Job(each) if isinstance(each, int) else each for each in found]
    return found


class _Packer(pickle.Pickler):
    """Descriptors stand outside of the pickle."""

    def __init__(self, file: BytesIO, protocol: int) -> None:
        super().__init__(file, protocol)
        self.descriptors: list[Descriptor] = []

    def persistent_id(self, value: object) -> int | None:
        """The number of a descriptor; None for all else."""
        if not isinstance(value, Descriptor):
            return None
        self.descriptors.append(value)
        return len(self.descriptors) - 1


class _Unpacker(pickle.Unpickler):
    """What it reads is from the process that started this one."""

    def __init__(self, file: BytesIO, descriptors: Sequence[int]) -> None:
        super().__init__(file)
        self.descriptors = descriptors

    def persistent_load(self, number: int) -> Descriptor:
        """A descriptor by its number."""
        return Descriptor(self.descriptors[number])


def written(descriptor: int, data: bytes) -> None:
    """Write all bytes of a frame."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


class FrameReader:
    """The frames that come from a descriptor."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.buffer = bytearray()

    def read(self) -> bytes:
        """Wait for bytes; none where the other end is closed."""
        return os.read(self.descriptor, ROOM)

    def frames(self) -> Iterator[bytes]:
        """Wait for bytes, and give the frames that are complete; EOFError where the other end is closed."""
        data = self.read()
        if not data:
            raise EOFError
        self.buffer += data
        at = 0
        while len(self.buffer) - at >= SIZE.size:
            (size,) = SIZE.unpack_from(self.buffer, at)
            end = at + SIZE.size + size
            if len(self.buffer) < end:
                break
            yield bytes(memoryview(self.buffer)[at + SIZE.size : end])
            at = end
        del self.buffer[:at]


class SocketReader(FrameReader):
    """The frames that come from a socket, and the descriptors that came with them and have not been taken."""

    def __init__(self, end: socket.socket) -> None:
        super().__init__(end.fileno())
        self.end = end
        self.descriptors: list[int] = []

    def read(self) -> bytes:
        """Wait for bytes, with descriptors perhaps."""
        data, descriptors, _, _ = socket.recv_fds(self.end, ROOM, MOST_DESCRIPTORS)
        self.descriptors += descriptors
        return data

    def taken(self) -> list[int]:
        """The descriptors, which from now on are the caller's."""
        found, self.descriptors = self.descriptors, []
        return found


__all__ = [
    "Descriptor", "FrameReader", "PackedSetting", "Setting", "SocketReader", "frame_of", "frame_of_jobs", "frame_of_release",
    "message_in", "outcome_in", "packed", "written",
]  # fmt: skip
