"""The code images that clients load: PTX as text, fatbins, cubins with line information, and what this driver's linker made.

A cubin has the machine code of one GPU, which cannot run here; one with line information has the PTX of that code too.
"""

from __future__ import annotations

import ctypes
import json
from collections.abc import Iterable, Iterator
from struct import unpack_from

from ptxvm.driver.client_memory import bytes_at, text_at, word_at
from ptxvm.driver.compression import lz4_block, zstandard
from ptxvm.driver.cubins import MAGIC, AssembledPTX, cubin_at, ptx_texts
from ptxvm.driver.results import BuildError, Result
from ptxvm.named_tuple import NamedTuple

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
    "-gencode arch=compute_XX,code=compute_XX, NVRTC with nvrtcGetPTX, nvJitLink with -ptx; or for line information "
    "(-lineinfo), which keeps the PTX beside the machine code"
)


class Entry(NamedTuple):
    """An entry of a fatbin: PTX, or the machine code of a GPU."""

    architecture: int  # 90 for sm_90
    ptx: bool
    stored: bytes
    packed: int  # bytes of `stored` that stand for `unpacked` ones, where `flags` say that it is compressed
    unpacked: int
    flags: int

    def runs_on(self, capability: tuple[int, int]) -> bool:
        """Does a device run it?  PTX is for all later ones, machine code for later ones of the major version."""
        mine = divmod(self.architecture, 10)
        return mine <= capability and (self.ptx or capability == ANY or mine[0] == capability[0])

    def texts(self) -> list[bytes]:
        """Its PTX, which machine code has in its line information or not at all."""
        data = self.stored
        if self.flags & ZSTANDARD:
            data = zstandard(data[: self.packed], self.unpacked)
        elif self.flags & LZ4:
            data = lz4_block(data[: self.packed], self.unpacked)
        if self.ptx:
            return [data.rstrip(b"\0")]
        return ptx_texts(data) if data.startswith(MAGIC) else []


def texts_at(address: int, capability: tuple[int, int] = ANY) -> list[bytes]:
    """The PTX modules of the image at an address, in the order of the link; DriverError where there are none.

    A fatbin gives the PTX for the newest architecture that a device of a compute capability can run.
    """
    if magic_at(address) == WRAPPER:  # of a fatbin
        if magic_at(address + 4) == RELOCATABLE:
            return linked_texts(address, capability)
        address = word_at(address + 8)
    head = bytes_at(address, 4)
    if magic_at(address) == FATBIN:
        return newest(entries(fatbin_at(address)), capability)
    if head == MAGIC:
        if texts := ptx_texts(cubin_at(address)):
            return texts
        raise BuildError(Result.NO_BINARY_FOR_GPU, HOW_TO_GET_PTX)
    if head == LINKED[:4] and text_at(address) == LINKED[:-1]:
        size = word_at(address + len(LINKED))
        return unpacked(bytes_at(address + len(LINKED) + 8, size))
    return [text_at(address)]


def fatbin_at(address: int) -> bytes:
    """The bytes of a fatbin; its header has the size."""
    return bytes_at(address, 16 + word_at(address + 8))


def linked_texts(wrapper: int, capability: tuple[int, int]) -> list[bytes]:
    """The modules of a program that `nvcc -rdc=true` has linked: the PTX of each, from a list of fatbins that ends with 0.

    The device runtime (`cudadevrt`) among them adds nothing: the machine has its functions.  Where they have machine code
    alone, the line information of the linked code has the PTX of all modules that were compiled with it.
    """
    linked, address = (word_at(wrapper + offset) for offset in (8, 16))
    modules = []
    while fatbin := word_at(address):
        modules.append(list(entries(fatbin_at(fatbin))))
        address += 8
    if not all(any(each.ptx for each in module) for module in modules):
        return newest(entries(fatbin_at(linked)), capability)
    return [text for module in modules if not is_device_runtime(module) for text in newest(module, capability)]


def is_device_runtime(module: Iterable[Entry]) -> bool:
    """Is a module the device runtime?"""
    return any(DEVICE_RUNTIME in text for each in module if each.ptx for text in each.texts())


def magic_at(address: int) -> int:
    """The magic number of an image."""
    return int.from_bytes(bytes_at(address, 4), "little")


def texts_of(data: bytes) -> list[bytes]:
    """The PTX modules of an image, as `texts_at` finds them."""
    buffer = ctypes.create_string_buffer(data)  # which ends with a 0
    return texts_at(ctypes.addressof(buffer))


def linked_image(texts: list[bytes]) -> bytes:
    """The image of several modules: the output of the linker, for a client to load."""
    data = json.dumps([(text.decode("latin-1"), isinstance(text, AssembledPTX)) for text in texts]).encode("ascii")
    return LINKED + len(data).to_bytes(8, "little") + data


def unpacked(data: bytes) -> list[bytes]:
    """The modules of such an image."""
    return [(AssembledPTX if assembled else bytes)(text, "latin-1") for text, assembled in json.loads(data)]


def newest(found: Iterable[Entry], capability: tuple[int, int]) -> list[bytes]:
    """The PTX for the newest architecture that a device can run; DriverError where it can run none.

    PTX is taken before the PTX in machine code: it names the lines of the source, and is there without a search.
    """
    best = sorted(found, key=lambda each: (each.ptx, each.architecture), reverse=True)
    for each in best:
        if each.runs_on(capability) and (texts := each.texts()):
            return texts
    for each in reversed(best):
        if not each.runs_on(capability) and each.texts():
            said = "PTX for sm_{} and newer" if each.ptx else "code for sm_{}"
            major, minor = capability
            device = f"and the device is sm_{major}{minor}; PTXVM_DEVICE chooses another"
            raise BuildError(Result.NO_BINARY_FOR_GPU, f"the image has {said.format(each.architecture)}, {device}")
    raise BuildError(Result.NO_BINARY_FOR_GPU, HOW_TO_GET_PTX)


def entries(fatbin: bytes) -> Iterator[Entry]:
    """The entries of a fatbin."""
    at = unpack_from("<H", fatbin, 6)[0]
    while at + 64 <= len(fatbin):
        kind, _, head, size, packed = unpack_from("<HHIQI", fatbin, at)
        architecture, flags, unpacked = unpack_from("<I8xQ8xQ", fatbin, at + 28)
        if kind in (PTX_ENTRY, ELF_ENTRY):
            yield Entry(architecture, kind == PTX_ENTRY, fatbin[at + head : at + head + size], packed, unpacked, flags)
        at += head + size


__all__ = ["linked_image", "texts_at", "texts_of"]
