"""`libnvJitLink`: a linker with an interface of its own, which calls the driver's linker (nvJitLink manual, "API").

It reports version 12.0, so that clients which can choose give it PTX.  Intermediate code (LTO-IR) goes through the toolkit's
own library first, which makes PTX of it.
"""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

from ptxvm.dataclass import dataclass
from ptxvm.driver import linker
from ptxvm.driver.linker import Linker
from ptxvm.driver.results import DriverError
from ptxvm.libcuda.c_values import bytes_from, put_bytes, put_i32, put_u64, string, u64
from ptxvm.libcuda.link_options import LinkError, LinkStatus, check_options
from ptxvm.libcuda.link_time import LTO_IR, LinkInput, linked_ptx, toolkit_linker
from ptxvm.libcuda.session import session
from ptxvm.libcuda.shared_library import CFunction, SharedLibrary, write
from ptxvm.libcuda.signatures import KINDS

LOG = logging.getLogger("ptxvm.libcuda")
VERSION = (12, 0)
NEWEST_MINOR = 9  # of CUDA
INPUTS = {1: linker.CUBIN, 2: linker.PTX, 4: linker.FATBINARY, 5: linker.OBJECT, 6: linker.LIBRARY, 10: linker.FATBINARY}
"""The driver's kinds of input, by those of nvJitLink; the last is any kind."""


@dataclass(eq=False)
class Link:
    """A link under way: its inputs and its log."""

    options: list[str]
    parts: Linker = field(default_factory=Linker)
    intermediate: list[LinkInput] = field(default_factory=list)
    errors: bytes = b"\0"
    ptx: bytes = b""


class JitLink:
    """The library for one major version of CUDA."""

    def __init__(self, folder: Path, major: str) -> None:
        plain = {name: made(signature, function) for name, (signature, function) in FUNCTIONS.items()}
        functions = {symbol: plain[name] for symbol, name in symbols(major).items()}
        self.library = SharedLibrary(write_linker(folder, major), functions)


def symbols(major: str) -> dict[str, str]:
    """The names of the functions by symbol: plain for `dlsym`, and as `nvJitLink.h` of each minor version has them."""
    minors = range(NEWEST_MINOR + 1)
    of_headers = {f"__{name}_{major}_{minor}": name for name in FUNCTIONS if name != "nvJitLinkVersion" for minor in minors}
    return {name: name for name in FUNCTIONS} | of_headers


def write_linker(folder: Path, major: str) -> Path:
    """The file of a library in a folder."""
    soname = f"libnvJitLink.so.{major}"
    return write(folder, soname, tuple(symbols(major)), LinkStatus.INTERNAL, LinkStatus.INTERNAL, version=soname)


def made(signature: str, function: Callable[..., None]) -> CFunction:
    """The C function for a Python function."""

    def call(*arguments: int) -> int:
        try:
            function(*arguments)
        except LinkError as wrong:
            LOG.info("nvJitLink: %s", wrong)
            return wrong.status
        except DriverError as wrong:
            LOG.info("nvJitLink: %s", wrong)
            return LinkStatus.PTX_COMPILE
        except Exception:
            LOG.exception("nvJitLink failed")
            return LinkStatus.INTERNAL
        return LinkStatus.SUCCESS

    return ctypes.CFUNCTYPE(ctypes.c_int, *(KINDS[kind] for kind in signature))(call)


def link_of(handle: int) -> Link:
    """A link by its handle."""
    return session().handles.object(handle, Link)


def create(out: int, count: int, options: int) -> None:
    """A new link, which has the log where an option is wrong; only the limit of registers of a thread has an effect on PTX."""
    link = Link([string(u64(options + 8 * n)) for n in range(count)])
    put_u64(out, session().handles.handle(link))
    with logged(link):
        check_options(link.options)
    for each in link.options:
        name, _, value = each.partition("=")
        if name == "-maxrregcount":
            link.parts.most_registers = int(value)


def destroy(handle: int) -> None:
    """Forget a link; its handle becomes null."""
    number = u64(handle)
    link_of(number)
    session().handles.drop(number)
    put_u64(handle, 0)


@contextmanager
def logged(link: Link) -> Iterator[None]:
    """Put errors into the log of a link."""
    try:
        yield
    except (DriverError, LinkError) as wrong:
        link.errors = str(wrong).encode() + b"\0"
        raise


def add(link: Link, kind: int, data: bytes, name: str) -> None:
    """Add an input."""
    if kind == LTO_IR:
        link.intermediate.append(LinkInput(data, name))
        return
    with logged(link):
        link.parts.add(INPUTS.get(kind, linker.OBJECT), data, name)


def add_data(handle: int, kind: int, data: int, size: int, name: int) -> None:
    """Add an input in memory."""
    add(link_of(handle), kind, bytes_from(data, size), string(name) if name else "")


def add_file(handle: int, kind: int, path: int) -> None:
    """Add a file."""
    add(link_of(handle), kind, Path(string(path)).read_bytes(), string(path))


def complete(handle: int) -> None:
    """Link the inputs."""
    link = link_of(handle)
    with logged(link):
        if link.intermediate:
            link.parts.add(linker.PTX, linked_ptx(toolkit_linker(), link.intermediate, link.options), "LTO-IR")
        link.parts.complete()
    link.ptx = b"\n".join(text.rstrip(b"\0") for text in link.parts.texts) + b"\0"


def sized(get: Callable[[Link], bytes]) -> tuple[tuple[str, Callable[..., None]], tuple[str, Callable[..., None]]]:
    """Two functions for some bytes of a link: their number, and the bytes."""

    def size(handle: int, out: int) -> None:
        put_u64(out, len(get(link_of(handle))))

    def data(handle: int, out: int) -> None:
        put_bytes(out, get(link_of(handle)))

    return ("pp", size), ("pp", data)


def version(major: int, minor: int) -> None:
    """The version of the linker."""
    put_i32(major, VERSION[0])
    put_i32(minor, VERSION[1])


def no_intermediate_code(link: Link) -> bytes:
    """An error: there is no intermediate code."""
    del link
    return b""


IMAGE, TEXT, ERRORS, INFORMATION, INTERMEDIATE = (
    sized(get)
    for get in (
        lambda link: link.parts.image,
        lambda link: link.ptx,
        lambda link: link.errors,
        lambda link: b"\0",  # noqa: ARG005 - the signature of the others
        no_intermediate_code,
    )
)
FUNCTIONS: dict[str, tuple[str, Callable[..., None]]] = {
    "nvJitLinkCreate": ("pIp", create),
    "nvJitLinkDestroy": ("p", destroy),
    "nvJitLinkAddData": ("pipQp", add_data),
    "nvJitLinkAddFile": ("pip", add_file),
    "nvJitLinkComplete": ("p", complete),
    "nvJitLinkGetLinkedCubinSize": IMAGE[0],
    "nvJitLinkGetLinkedCubin": IMAGE[1],
    "nvJitLinkGetLinkedPtxSize": TEXT[0],
    "nvJitLinkGetLinkedPtx": TEXT[1],
    "nvJitLinkGetErrorLogSize": ERRORS[0],
    "nvJitLinkGetErrorLog": ERRORS[1],
    "nvJitLinkGetInfoLogSize": INFORMATION[0],
    "nvJitLinkGetInfoLog": INFORMATION[1],
    "nvJitLinkGetLinkedLTOIRSize": INTERMEDIATE[0],
    "nvJitLinkGetLinkedLTOIR": INTERMEDIATE[1],
    "nvJitLinkVersion": ("pp", version),
}

__all__ = ["JitLink", "write_linker"]
