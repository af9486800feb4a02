"""What a GPU answered to the cases of a group, as a file: the bytes of each case, or why there are none."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

Answer = bytes | str
"""The bytes of the kept arrays, one after the other; or the error that the launch or the driver ended with."""


def save(path: Path, answers: Mapping[str, Answer]) -> None:
    """Write answers by the names of their cases."""
    names = list(answers)
    data = [each if isinstance(each, bytes) else b"" for each in answers.values()]
    errors = ["" if isinstance(each, bytes) else each for each in answers.values()]
    ends = np.cumsum([len(each) for each in data])
    np.savez_compressed(path, names=names, errors=errors, ends=ends, data=np.frombuffer(b"".join(data), np.uint8))


def load(path: Path) -> dict[str, Answer]:
    """The answers by the names of their cases."""
    file = np.load(path)
    data, ends = file["data"].tobytes(), file["ends"].tolist()
    parts = (data[start:end] for start, end in zip([0, *ends], ends, strict=False))
    return {str(name): str(error) or part for name, error, part in zip(file["names"], file["errors"], parts, strict=True)}
