"""Decompression of the PTX in fatbins: LZ4 blocks (nvcc 11 and 12) and Zstandard (nvcc 12.8 and later)."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ptxvm.driver.results import DriverError, Result


def lz4_block(data: bytes, size: int) -> bytes:
    """The `size` bytes of a block (LZ4 block format); DriverError for one that is damaged.

    A block is a series of sequences.  Each has a token, literal bytes, and a match: a distance back into the output, from
    which bytes are copied.  The copied bytes may overlap the source of the copy.
    """
    made, at = bytearray(), 0
    try:
        while len(made) < size:
            token = data[at]
            literals, at = length(data, at + 1, token >> 4)
            made += data[at : at + literals]
            at += literals
            if at >= len(data):
                break
            offset = int.from_bytes(data[at : at + 2], "little")
            matched, at = length(data, at + 2, token & 15)
            repeat(made, offset, matched + 4)
    except IndexError:
        raise damaged() from None
    if len(made) != size:
        raise damaged()
    return bytes(made)


def length(data: bytes, at: int, first: int) -> tuple[int, int]:
    """A length and its end: 4 bits, then bytes up to the first one below 255."""
    more = first == 15
    while more:
        first += data[at]
        more = data[at] == 255
        at += 1
    return first, at


def repeat(made: bytearray, offset: int, count: int) -> None:
    """Append `count` bytes that begin `offset` before the end; IndexError where there are none."""
    start = len(made) - offset
    if not 0 <= start < len(made):
        raise IndexError
    piece = made[start : start + count]
    made += (piece * -(-count // len(piece)))[:count]


def zstandard(data: bytes, size: int) -> bytes:
    """The `size` bytes of a Zstandard frame (RFC 8878); DriverError for one that is damaged, or without a decoder.

    Python has a decoder since 3.14; before, the package `zstandard` has it.
    """
    module = decoder()
    try:
        made: bytes = module.decompress(data)
    except Exception as wrong:  # each module has an exception of its own
        raise damaged() from wrong
    if len(made) != size:
        raise damaged()
    return made


def decoder() -> Any:  # noqa: ANN401 - a module, of either name
    """The module that decodes Zstandard; DriverError where there is none."""
    for name in ("compression.zstd", "zstandard"):
        try:
            return import_module(name)
        except ImportError:
            continue
    said = "the PTX of the fatbin is compressed with Zstandard: `pip install zstandard`, or compile with `nvcc --no-compress`"
    raise DriverError(Result.NOT_SUPPORTED, said)


def damaged() -> DriverError:
    """The error of a compressed entry that cannot be read."""
    return DriverError(Result.INVALID_IMAGE, "the compressed PTX of the fatbin is damaged")


__all__ = ["lz4_block", "zstandard"]
