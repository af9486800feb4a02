"""Fatbins: which entry is chosen, and what its compression means (LZ4 block format; RFC 8878)."""

from __future__ import annotations

import ctypes
from struct import pack

import pytest

from ptxvm.driver.code_images import FATBIN, WRAPPER, texts_at
from ptxvm.driver.compression import lz4_block, zstandard
from ptxvm.driver.results import DriverError, Result

PLAIN, LZ4, ZSTANDARD = 0x11, 0x2011, 0x8011


def entry(data: bytes, architecture: int, flags: int = PLAIN, size: int = 0, kind: int = 1) -> bytes:
    """An entry of a fatbin, with a head of 64 bytes; the data is padded to 8."""
    padded = data.ljust(-(-len(data) // 8) * 8, b"\0")
    head = pack("<HHIQIIIIIIQQQ", kind, 0x101, 64, len(padded), len(data), 0, 0, architecture, 0, 0, flags, 0, size)
    return head + padded


def fatbin(*entries: bytes) -> bytes:
    data = b"".join(entries)
    return pack("<IHHQ", FATBIN, 1, 16, len(data)) + data


def texts(image: bytes, capability=(8, 9)) -> list[bytes]:
    held = ctypes.create_string_buffer(image)
    return texts_at(ctypes.addressof(held), capability)


def test_the_newest_ptx_that_the_device_has_is_chosen():
    image = fatbin(*(entry(b"for %d" % n, n) for n in (75, 86, 90)), entry(b"machine code", 89, kind=2))
    assert texts(image, (8, 9)) == [b"for 86"]
    assert texts(image, (12, 0)) == [b"for 90"]
    with pytest.raises(DriverError, match="PTX for sm_75 and newer, and the device is sm_70") as raised:
        texts(image, (7, 0))
    assert raised.value.result is Result.NO_BINARY_FOR_GPU


def test_modules_that_were_linked_are_those_of_the_list_without_the_device_runtime():
    runtime = fatbin(entry(b".global .u32 __CNPRT_VERSION_NUMBER__ = 1;", 120))  # for any device
    images = [fatbin(entry(b"one", 80)), runtime, fatbin(entry(b"two", 80))]
    buffers = [ctypes.create_string_buffer(image, len(image)) for image in images]
    listed = (ctypes.c_uint64 * 4)(*map(ctypes.addressof, buffers), 0)
    assert texts(pack("<IIQQ", WRAPPER, 2, 0, ctypes.addressof(listed))) == [b"one", b"two"]


def test_lz4_has_literals_and_matches_that_may_overlap():
    # token 0x3f: 3 literals, a match of 15 + 5 + 4 bytes; offset 3.  Then 5 literals to the end.
    block = b"\x3fabc\x03\x00\x05" + b"\x50world"
    wanted = b"abc" * 9 + b"world"
    assert lz4_block(block, len(wanted)) == wanted
    assert texts(fatbin(entry(block, 80, LZ4, len(wanted)))) == [wanted]
    long = b"\xf0" + bytes([255, 10]) + b"x" * (15 + 255 + 10)  # lengths go on in bytes of 255
    assert lz4_block(long, 280) == b"x" * 280


@pytest.mark.parametrize("block", [b"", b"\x3fab", b"\x1fa\x09\x00\x00", b"\x1fa\x00\x00\x00", b"\x10ab"])
def test_damaged_lz4_is_an_error(block):
    with pytest.raises(DriverError, match="damaged"):
        lz4_block(block, 20)


# "ptx" eight times: a frame of one block of raw bytes, and one of a byte that repeats.
RAW = b"\x28\xb5\x2f\xfd\x20\x18" + (24 << 3 | 1).to_bytes(3, "little") + b"ptx" * 8
REPEATED = b"\x28\xb5\x2f\xfd\x20\x18" + (24 << 3 | 1 << 1 | 1).to_bytes(3, "little") + b"p"


def test_zstandard_frames_are_decoded():
    assert zstandard(RAW, 24) == b"ptx" * 8
    assert zstandard(REPEATED, 24) == b"p" * 24
    assert texts(fatbin(entry(RAW, 80, ZSTANDARD, 24))) == [b"ptx" * 8]
    for data, size in ((RAW[:-3], 24), (RAW, 23), (b"nothing", 24)):
        with pytest.raises(DriverError, match="damaged"):
            zstandard(data, size)
