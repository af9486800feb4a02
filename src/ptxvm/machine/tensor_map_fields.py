"""The fields of a tensor map in words (PTX 5.5.8, 9.7.9.28; the arguments of cuTensorMapEncodeTiled and its siblings)."""

from __future__ import annotations

from collections.abc import Sequence

from ptxvm.machine.tensor_tiles import MODE_NAMES, DecodedMap, decoded

ATOMS = "", ", 32 at once", ", 32 at once, with halves exchanged", ", 64 at once"
"""What moves at once, by the atomicity of the swizzle (table 33); else 16 bytes."""


def fields(data: bytes) -> list[tuple[str, str]]:
    """The fields of a map and what they hold, dimensions innermost first.

    ValueError where the bytes are no tensor map.
    """
    found = decoded(data)
    if not found.is_map:
        raise ValueError("the bytes are no tensor map of this machine: such maps have another layout than NVIDIA's")
    packed = found.element.packed * 8 // found.element.count
    rows = [
        ("mode", MODE_NAMES.get(found.number("mode"), "unknown")),
        ("tensor", f"{by(found.sizes)} of .{found.element.name}, {packed} bits each"),
        ("address", f"{found.number('global_address'):#x}"),
    ]
    if found.strides:
        rows.append(("strides", f"{listed(found.strides)} bytes"))
    rows += of_boxes(found) if found.number("mode") == 0 else of_columns(found)
    if any(step != 1 for step in found.steps):
        rows.append(("element strides", listed(found.steps)))
    rows.append(("interleave", ("none", "16 bytes", "32 bytes")[found.number("interleave_layout") % 3]))
    width = ("none", "32 bytes", "64 bytes", "128 bytes", "96 bytes")[found.number("swizzle_mode") % 5]
    rows.append(("swizzle", width + ATOMS[found.number("swizzle_atomicity") % 4]))
    of_floats = found.number("fill_mode") and found.fill != b"\0"
    rows.append(("outside", "NaN" if of_floats else "zeros"))
    rows.append(("L2 promotion", ("none", "64 bytes", "128 bytes", "256 bytes")[found.number("l2_promotion") % 4]))
    return rows


def of_boxes(found: DecodedMap) -> list[tuple[str, str]]:
    """The box that a copy has, and its bytes in shared memory."""
    box = [found.number("box_dim", n) for n in range(found.rank)]
    count = 1
    for size, step in zip(box, found.steps, strict=True):
        count *= -(-size // step)
    return [("box", by(box)), ("copied", f"{count * found.element.padded // found.element.count:,} bytes")]


def of_columns(found: DecodedMap) -> list[tuple[str, str]]:
    """The columns of an image, and the corners of the box of their pixels."""
    corners = [
        ", ".join(str(found.number(name, n, signed=True)) for n in range(found.rank - 2))
        for name in ("lower_corner", "upper_corner")
    ]
    return [
        ("channels", f"{found.number('channels_per_pixel')} of each pixel"),
        ("pixels", f"{found.number('pixels_per_column')} of each column"),
        ("corners", f"({corners[0]}) and ({corners[1]})"),
    ]


def by(sizes: Sequence[int]) -> str:
    """Sizes as `64 x 32`."""
    return " x ".join(f"{size:,}" for size in sizes)


def listed(numbers: Sequence[int]) -> str:
    """Numbers with commas between them."""
    return ", ".join(f"{number}" for number in numbers)


__all__ = ["fields"]
