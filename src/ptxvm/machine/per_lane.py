"""Types of per-lane data: NumPy arrays with one element per lane, and scalars for uniform values.

NumPy types neither an operator between an array and a scalar of unknown dtype nor its result, so `PerLane` and `Guard`
are open to the type checker; their names say what they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

LaneNumbers: TypeAlias = "npt.NDArray[np.intp]"
"""The numbers of some lanes, in order."""

Lanes: TypeAlias = "LaneNumbers | None"
"""The lanes that run; None for all lanes of the cohort."""

Array: TypeAlias = "npt.NDArray[Any]"
"""An array whose type of elements is known when a kernel is read."""

PerLane: TypeAlias = Any
"""A value of each lane: an array with one element per lane, or a NumPy scalar where all lanes agree (uniform)."""

Guard: TypeAlias = Any
"""A predicate of each lane, or of all; None for an instruction without a guard."""

RegisterFile: TypeAlias = list[PerLane]
"""The registers of a frame, by slot."""

Addresses: TypeAlias = "npt.NDArray[np.uint64]"
"""The address of each lane."""
