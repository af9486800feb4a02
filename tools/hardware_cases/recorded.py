"""What a GPU answered to the cases of a group, as a file: the bytes of each case, or why there are none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from . import Case

Answer = bytes | str
"""The bytes of the kept arrays, one after the other; or the error that the launch or the driver ended with."""


def save(path: Path, answers: Mapping[str, Answer], cases: Iterable[Case] = ()) -> None:
    """Write answers by the names of their cases; where the cases are given, as what is other than before the launch."""
    before = {case.name: given(case) for case in cases}
    names = list(answers)
    data = [differing(answers[name], before.get(name, b"")) for name in names]
    errors = ["" if isinstance(each, bytes) else each for each in answers.values()]
    ends = np.cumsum([len(each) for each in data])
    changes = np.array(bool(before))
    np.savez_compressed(
        path, names=names, errors=errors, ends=ends, data=np.frombuffer(b"".join(data), np.uint8), changes=changes
    )


def load(path: Path, cases: Iterable[Case] = ()) -> dict[str, Answer]:
    """The answers by the names of their cases, which a file of changes needs."""
    file = np.load(path)
    changes = bool(file["changes"]) if "changes" in file else False
    before = {case.name: given(case) for case in cases} if changes else {}
    data, ends, found = file["data"].tobytes(), file["ends"].tolist(), dict[str, Answer]()
    for name, error, start, end in zip(file["names"].tolist(), file["errors"].tolist(), [0, *ends], ends, strict=False):
        if error or not changes or name in before:
            found[name] = error or differing(data[start:end], before.get(name, b""))
    return found


def given(case: Case) -> bytes:
    """What is in the kept arrays before the launch."""
    return b"".join(array.tobytes() for n in case.kept if isinstance(array := case.arguments[n], np.ndarray))


def differing(answer: Answer, before: bytes) -> bytes:
    """The bits that differ; all of them where nothing was before."""
    if not isinstance(answer, bytes):
        return b""
    if not before:
        return answer
    return (np.frombuffer(answer, np.uint8) ^ np.frombuffer(before, np.uint8)).tobytes()
