"""Plans of look-ups: what compiled code needs to read a texture, which the host finds from the handles.

Its words have 64 bits, in the order of `WORDS`: the handles of the texture and of its sampler, 0 where the texture has its own;
the address of the levels of detail, whose words are `LEVEL`: the address of the elements, the strides of slices, rows and
columns in bytes, and the size in three directions; the last level, the level of instructions that name none, or a negative
number where they would read two, and 1 where levels are interpolated; the least and the greatest level and what is added, as
f64; how many slices a layer has, and the number of the last layer; 1 where elements are interpolated, where coordinates are
normalized, where a component is a float, and where it is a part of the greatest integer; the address modes, by their places
in `MODES`; the type of a component and that of colours, by their places in `ELEMENTS`, the bytes of a component, the number of
channels, and the greatest integer as f64; the address of the light of 256 colours, as f32; the comparisons that hold, by the
bits of `COMPARED`; and the border as f64.
"""

from __future__ import annotations

PLANS = 16  # that a host thread remembers, by the handle
MODES = ("clamp", "border", "wrap", "mirror")
ELEMENTS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "float32", "float16", "srgb")
COMPARED = ("lt", "eq", "gt", "unordered")
LEVEL = ("base", "stride.z", "stride.y", "stride.x", "size.0", "size.1", "size.2")
WORDS = (
    "texture", "sampler", "levels", "last", "first", "blended", "least", "most", "bias", "slices", "last.layer",
    "linear", "normalized", "float", "scaled", "mode.0", "mode.1", "mode.2", "element", "colour", "bytes", "channels",
    "greatest", "light", "compared", "border.0", "border.1", "border.2", "border.3",
)  # fmt: skip
