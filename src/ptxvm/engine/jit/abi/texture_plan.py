"""Plans of look-ups: what compiled code needs to read a texture, which the host finds from the handles.

Its words have 64 bits, in the order of `WORDS`: the handles of the texture and of its sampler, 0 where the texture has its own;
the address of the elements of level 0, and the strides of its slices, rows and columns in bytes; its size in three directions,
the last one that of the layers; 1 where elements are interpolated, where coordinates are normalized, where a component is a
float, and where it is a part of the greatest integer; the address modes, by their places in `MODES`; the type of a component,
by its place in `ELEMENTS`, its bytes, the number of channels, and the greatest integer and the border as f64.
"""

from __future__ import annotations

PLANS = 16  # that a host thread remembers, by the handle
MODES = ("clamp", "border", "wrap", "mirror")
ELEMENTS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32")
WORDS = (
    "texture", "sampler", "base", "stride.z", "stride.y", "stride.x", "size.0", "size.1", "size.2",
    "linear", "normalized", "float", "scaled", "mode.0", "mode.1", "mode.2", "element", "bytes", "channels", "greatest",
    "border.0", "border.1", "border.2", "border.3",
)  # fmt: skip
