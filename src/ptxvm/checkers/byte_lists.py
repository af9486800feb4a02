"""Lists of bytes in messages."""

from __future__ import annotations

from collections.abc import Sequence


def listed(numbers: Sequence[int]) -> str:
    """Bytes and a verb: `byte 3 has`, `bytes 1 to 3 have`, `bytes 1, 4 to 7 have`."""
    runs: list[list[int]] = []
    for n in numbers:
        if runs and runs[-1][-1] == n - 1:
            runs[-1].append(n)
        else:
            runs.append([n])
    said = ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)
    return f"bytes {said} have" if len(numbers) > 1 else f"byte {said} has"
