"""Identifiers of the protocol: of threads, frames, places in memory, and instructions; and handles of variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.dataclass import dataclass
from ptxvm.debug.breakpoints import Bytes
from ptxvm.debug.focus import NotThere
from ptxvm.named_tuple import NamedTuple

LEVELS = 1 << 10  # frames of a thread that have identifiers
ROUTINE = 1 << 24  # instructions of a function at most
Json = dict[str, object]


class Warp(NamedTuple):
    """A thread of the protocol: a warp, with the numbers of its CTA and of itself there."""

    cta: int
    warp: int

    def identifier(self, warps: int) -> int:
        """Its number in the grid, from 1 on; `warps` is how many a CTA has."""
        return self.cta * warps + self.warp + 1

    @classmethod
    def of(cls, identifier: int, warps: int) -> Warp:
        """The warp of an identifier."""
        return cls(*divmod(identifier - 1, warps))


def frame_identifier(thread: int, level: int) -> int:
    """The identifier of a frame."""
    return thread * LEVELS + level


def frame_of(identifier: int) -> tuple[int, int]:
    """The thread and the level of a frame."""
    return divmod(identifier, LEVELS)


def instruction_address(routine: int, index: int) -> str:
    """The address of an instruction: such addresses are for the protocol alone, as PTX has none."""
    return f"{(routine + 1) * ROUTINE + index:#x}"


def instruction_at(address: str, offset: int = 0) -> tuple[int, int]:
    """The routine and the number of an instruction; NotThere for another address."""
    try:
        routine, index = divmod(int(address, 0) + offset, ROUTINE)
    except ValueError:
        raise NotThere(f"'{address}' is no address of an instruction") from None
    return routine - 1, index


def memory_reference(wanted: Bytes) -> str:
    """How bytes are named: by their address, or by their space, CTA, thread and offset."""
    if wanted.space in (Space.SHARED, Space.LOCAL):
        return f"{wanted.space}:{wanted.cta}:{wanted.thread}:{wanted.start:#x}"
    return f"{wanted.start:#x}"


def bytes_of(reference: str, offset: int = 0, size: int = 0) -> Bytes:
    """The bytes that a reference names; NotThere where it names none."""
    try:
        if ":" not in reference:
            return Bytes(Space.GLOBAL, int(reference, 0) + offset, size)
        space, cta, thread, start = reference.split(":")
        return Bytes(Space(space), int(start, 0) + offset, size, int(cta), int(thread))
    except ValueError:
        raise NotThere(f"'{reference}' names no memory") from None


def data_identifier(wanted: Bytes, type: Type, name: str) -> str:
    """How a data breakpoint is named."""
    return f"{type.name}/{wanted.size}/{memory_reference(wanted)}/{name}"


def data_of(identifier: str) -> tuple[Bytes, Type, str]:
    """The bytes, their type and their name; NotThere for what names none."""
    type, _, rest = identifier.partition("/")
    size, _, rest = rest.partition("/")
    reference, _, name = rest.partition("/")
    if type not in Type.named or not size.isdigit():
        raise NotThere(f"'{identifier}' names no data")
    return bytes_of(reference, size=int(size)), Type.named[type], name


@dataclass(frozen=True, slots=True)
class Children:
    """The variables within something, which `make` makes: from a number on, so many.

    `look` lets the session be about the thread and the frame that they are of; `place` gives the expression for the child of
    a name.
    """

    make: Callable[[int, int], Iterator[Json]]
    look: Callable[[], None]
    place: Callable[[str], str] = str


class Handles:
    """References to variables, which are valid until the run goes on."""

    def __init__(self) -> None:
        self._held: list[Children] = []

    def clear(self) -> None:
        """The run goes on."""
        self._held = []

    def add(self, children: Children) -> int:
        """A reference, from 1 on."""
        self._held.append(children)
        return len(self._held)

    def get(self, reference: int) -> Children:
        """What a reference is for; NotThere where the run has gone on."""
        if not 0 < reference <= len(self._held):
            raise NotThere("the run has gone on since these variables were shown")
        return self._held[reference - 1]


__all__ = [
    "Children", "Handles", "Json", "Warp", "bytes_of", "data_identifier", "data_of", "frame_identifier", "frame_of",
    "instruction_address", "instruction_at", "memory_reference",
]  # fmt: skip
