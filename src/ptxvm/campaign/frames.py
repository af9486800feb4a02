"""The messages between the process of a campaign and its workers, many of which are read at once.

A frame is its size and its bytes.  Most outcomes say that a case passed, and how long it took: nine bytes.
"""

from __future__ import annotations

import os
import pickle
import struct
from collections.abc import Iterator, Sequence

from ptxvm.campaign.outcome import Job, Outcome

SIZE = struct.Struct("<Q")
PASSED = struct.Struct("<cd")
PASSED_TAG = b"P"  # no pickle begins with it
ROOM = 1 << 20  # bytes that are read at once


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


def frame_of_jobs(jobs: Sequence[Job]) -> bytes:
    """The frame of some jobs; of most the number is all."""
    plain = [job.number if job.parameters is None and job.text is None else job for job in jobs]
    return frame(pickle.dumps(plain, pickle.HIGHEST_PROTOCOL))


def jobs_in(content: bytes) -> list[Job]:
    """The jobs in a frame."""
    found: list[int | Job] = pickle.loads(content)  # noqa: S301 - from the process that started this one
    return [Job(each) if isinstance(each, int) else each for each in found]


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

    def frames(self) -> Iterator[bytes]:
        """Wait for bytes, and give the frames that are complete; EOFError where the other end is closed."""
        data = os.read(self.descriptor, ROOM)
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

    def next(self) -> Iterator[bytes]:
        """All frames until the other end is closed."""
        while True:
            yield from self.frames()


__all__ = ["FrameReader", "frame", "frame_of", "frame_of_jobs", "jobs_in", "outcome_in", "written"]
