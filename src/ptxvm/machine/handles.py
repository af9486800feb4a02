"""The handles of textures, samplers and surfaces: 64-bit numbers that differ from all host addresses (PTX 5.3)."""

from __future__ import annotations

from itertools import count
from typing import Any
from weakref import WeakValueDictionary

NUMBERS = count(0x7E00_0000_0000_0000)
HANDLES: WeakValueDictionary[int, Any] = WeakValueDictionary()  # of `Opaque`, whose module stands above this
"""The live textures, samplers and surfaces, by handle."""
