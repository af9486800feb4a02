"""The code images that clients load: PTX as text, fatbins, and the output of this driver's linker.

A cubin has the machine code of one GPU and no PTX: it cannot run here.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterator
from struct import unpack_from

from ptxvm.driver.compression import lz4_block, zstandard
from ptxvm.driver.results import BuildError, Result

ELF = b"\x7fELF"
FATBIN = 0xBA55ED50
WRAPPER = 0x466243B1
RELOCATABLE = 2  # version of a wrapper
DEVICE_RUNTIME = b"__CNPRT_VERSION_NUMBER__"  # a variable that it has
LINKED = b"ptxvm linked image\0"
PTX_ENTRY, ELF_ENTRY = 1, 2
LZ4, ZSTANDARD = 0x2000, 0x8000  # flags of an entry
ANY = (1 << 16, 0)  # a compute capability
HOW_TO_GET_PTX = (
    "the image has machine code of a GPU and no PTX. Ask the compiler for PTX: nvcc with "
    "-gencode arch=compute_XX,code=compute_XX, NVRTC with nvrtcGetPTX, nvJitLink with -ptx"
)


def texts_at(address: int, capability: tuple[int, int] = ANY) -> list[bytes]:
    """The PTX modules of the image at an address, in the order of the link; DriverError where there are none.

    A fatbin gives the PTX for the newest architecture that a device of a compute capability can run.
    """
    if word_at(address) == WRAPPER:  # of a fatbin
        if word_at(address + 4) == RELOCATABLE:
            return linked_texts(ctypes.c_uint64.from_address(address + 16).value, capability)
        address = ctypes.c_uint64.from_address(address + 8).value
    head = ctypes.string_at(address, 4)
    if word_at(address) == FATBIN:
        return [newest(ptx_of(fatbin_at(address)), capability)]
    if head == ELF:
        raise BuildError(Result.NO_BINARY_FOR_GPU, HOW_TO_GET_PTX)
    if head == LINKED[:4] and ctypes.string_at(address) == LINKED[:-1]:
        size = ctypes.c_uint64.from_address(address + len(LINKED)).value
        return unpacked(ctypes.string_at(address + len(LINKED) + 8, size))
    return [ctypes.string_at(address)]


def fatbin_at(address: int) -> bytes:
    """The bytes of a fatbin; its header has the size."""
    return ctypes.string_at(address, 16 + ctypes.c_uint64.from_address(address + 8).value)


def linked_texts(address: int, capability: tuple[int, int]) -> list[bytes]:
    """The modules of a program that `nvcc -rdc=true` has linked: their PTX, from a list of fatbins that ends with 0.

    The device runtime (`cudadevrt`) among them adds nothing: the machine has its functions.
    """
    found = []
    while fatbin := ctypes.c_uint64.from_address(address).value:
        each = ptx_of(fatbin_at(fatbin))
        if not any(DEVICE_RUNTIME in text for text in each.values()):
            found.append(newest(each, capability))
        address += 8
    return found


def word_at(address: int) -> int:
    """The magic number of an image."""
    return int.from_bytes(ctypes.string_at(address, 4), "little")


def texts_of(data: bytes) -> list[bytes]:
    """The PTX modules of an image, as `texts_at` finds them."""
    buffer = ctypes.create_string_buffer(data)  # which ends with a 0
    return texts_at(ctypes.addressof(buffer))


def linked_image(texts: list[bytes]) -> bytes:
    """The image of several modules: the output of the linker, for a client to load."""
    data = json.dumps([text.decode("latin-1") for text in texts]).encode("ascii")
    return LINKED + len(data).to_bytes(8, "little") + data


def unpacked(data: bytes) -> list[bytes]:
    """The modules of such an image."""
    return [text.encode("latin-1") for text in json.loads(data)]


def ptx_of(fatbin: bytes) -> dict[int, bytes]:
    """The PTX of a fatbin by architecture; DriverError without PTX."""
    if not (found := dict(entries(fatbin))):
        raise BuildError(Result.NO_BINARY_FOR_GPU, HOW_TO_GET_PTX)
    return found


def newest(texts: dict[int, bytes], capability: tuple[int, int]) -> bytes:
    """The PTX for the newest architecture that a device can run; DriverError where all are newer than the device."""
    if fitting := [each for each in texts if divmod(each, 10) <= capability]:
        return texts[max(fitting)]
    major, minor = capability
    said = f"the image has PTX for sm_{min(texts)} and newer, and the device is sm_{major}{minor}; PTXVM_DEVICE chooses another"
    raise BuildError(Result.NO_BINARY_FOR_GPU, said)


def entries(fatbin: bytes) -> Iterator[tuple[int, bytes]]:
    """The PTX entries of a fatbin: architecture (90 for sm_90) and text."""
    at = unpack_from("<H", fatbin, 6)[0]
    while at + 64 <= len(fatbin):
        kind, _, head, size, packed = unpack_from("<HHIQI", fatbin, at)
        architecture, flags, unpacked = unpack_from("<I8xQ8xQ", fatbin, at + 28)
        if kind == PTX_ENTRY:
            data = fatbin[at + head : at + head + size]
            yield architecture, text(data, packed, unpacked, flags).rstrip(b"\0")
        at += head + size


def text(data: bytes, packed: int, unpacked: int, flags: int) -> bytes:
    """The bytes of an entry: as they are, or `packed` bytes that stand for `unpacked` ones."""
    if flags & ZSTANDARD:
        return zstandard(data[:packed], unpacked)
    if flags & LZ4:
        return lz4_block(data[:packed], unpacked)
    return data


__all__ = ["linked_image", "texts_at", "texts_of"]
