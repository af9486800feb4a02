"""Frames come out as they went in, in whatever pieces the bytes arrive."""

import os
import threading
from itertools import pairwise

from ptxvm.campaign.frames import FrameReader, frame_of, frame_of_jobs, message_in, outcome_in, written
from ptxvm.campaign.outcome import Job, Outcome, Verdict

OUTCOMES = [
    None,
    Outcome(seconds=0.25),
    Outcome(Verdict.FAULT, "out-of-bounds", "a.ptx:3", "it is", 0.5),
    Outcome(seconds=1.0, features=("x",)),
    Outcome(value=bytes(1 << 21)),
]


def test_outcomes_that_come_byte_by_byte_or_together(rng) -> None:
    data = b"".join(frame_of(each) for each in OUTCOMES)
    cuts = sorted({0, *range(1, 40), *rng.integers(0, len(data), 20).tolist(), len(data)})
    reading, writing = os.pipe()
    reader = FrameReader(reading)

    def send() -> None:
        for start, end in pairwise(cuts):
            written(writing, data[start:end])
        os.close(writing)

    sender = threading.Thread(target=send)
    sender.start()
    found = []
    try:
        while True:
            found.extend(outcome_in(content) for content in reader.frames())
    except EOFError:
        sender.join()
    os.close(reading)
    assert found == OUTCOMES


def test_jobs_keep_their_parameters_and_texts() -> None:
    jobs = [Job(3), Job(4, {"n": 5}), Job(6, None, "text")]
    assert message_in(frame_of_jobs(jobs)[8:]) == jobs
