"""Plans of surfaces: what compiled code needs to load and store their bytes, which the host finds from the handle.

Its words have 64 bits, in the order of `WORDS`: the handle; the address of the elements, the bytes of a row, the number of rows
and of slices; and 1 where it may be written.
"""

from __future__ import annotations

PLANS = 16  # that a host thread remembers, by the handle
WORDS = ("surface", "base", "row", "height", "slices", "writable")
