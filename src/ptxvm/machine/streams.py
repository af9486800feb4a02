"""Streams and events: which launches are ordered (CUDA C++ programming guide, "Streams" and "Events").

A launch runs when it is made, whatever stream it is on; but only what the streams, the events and the host's waiting order
counts as ordered, so the check `race` finds launches that a device may run at once.  A launch without a stream is one of
the legacy default stream, for which the host waits: it comes after all that is before it and before all that follows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any

from ptxvm.machine.handles import HANDLES

if TYPE_CHECKING:
    from ptxvm.machine.allocation import Allocation  # which needs NumPy

NUMBERS = count(1)


@dataclass(eq=False, slots=True)
class StreamLaunch:
    """One launch in the order of the device: its number, its kernel and stream, and the launches that come before it.

    `holds` are its arguments and all images, so that their addresses stay theirs as long as others may run beside it; `left`
    is what a checker keeps of it, to compare later launches with.
    """

    number: int
    kernel: str
    stream: str
    before: frozenset[int]
    holds: Sequence[Any] = ()
    followed: bool = True  # is it on a stream, so that others may run beside it?
    left: Any = None

    def supersedes(self, earlier: StreamLaunch) -> bool:
        """Is nothing to be remembered of an earlier launch, since this one came after it and did the same?"""
        return earlier.number in self.before and bool(self.left.supersedes(earlier.left))

    def __str__(self) -> str:
        return f"launch {self.number} ('{self.kernel}' on {self.stream})"


@dataclass(slots=True)
class Device:
    """The launches that later ones may run beside: those that a checker has followed, and that the host has not waited for."""

    under_way: list[StreamLaunch] = field(default_factory=list)

    def wait_for(self, launches: frozenset[int]) -> None:
        """The host waits for some launches."""
        self.under_way = [turn for turn in self.under_way if turn.number not in launches]

    def freed(self, allocation: Allocation) -> None:
        """The host frees memory of the device, for which it waits, as `cudaFree` does; what used it says so."""
        for turn in self.under_way:
            turn.left.freed(allocation)

    def waited(self) -> None:
        """A launch for which the host waits; later checks do not follow it."""
        self.under_way = []
        next(NUMBERS)

    @contextmanager
    def launched(self, kernel: str, stream: Stream | None, args: Sequence[Any]) -> Iterator[StreamLaunch]:
        """A launch, while it runs."""
        if stream is None:
            self.under_way = []
            yield StreamLaunch(next(NUMBERS), kernel, "the default stream", frozenset(), followed=False)
            return
        stream.known &= {turn.number for turn in self.under_way}
        turn = StreamLaunch(next(NUMBERS), kernel, stream.name, stream.known, (*args, *HANDLES.values()))
        yield turn
        if turn.left is not None:
            stream.known |= {turn.number}
            self.under_way = [each for each in self.under_way if not turn.supersedes(each)]
            self.under_way.append(turn)


DEVICE = Device()


class Event:
    """A point in a stream, for other streams and the host to wait for."""

    def __init__(self) -> None:
        self.known: frozenset[int] = frozenset()
        self.recorded = False

    def sync(self) -> None:
        """Let the host wait until the stream has come to where it recorded the event."""
        DEVICE.wait_for(self.known)

    def __repr__(self) -> str:
        return f"Event({'after ' + str(len(self.known)) + ' launches' if self.recorded else 'not recorded'})"


class Stream:
    """Launches that run one after the other; those of different streams may run at once."""

    def __init__(self, name: str = "") -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of a stream is a word, not {name!r}")
        self.name = f"stream '{name}'" if name else f"stream {next(NAMES)}"
        self.known: frozenset[int] = frozenset()

    def record(self, event: Event | None = None) -> Event:
        """Let an event, a new one unless it is given, be what the stream does up to here."""
        if not isinstance(event, Event | None):
            raise TypeError(f"a stream records a ptxvm.Event, not {event!r}")
        event = Event() if event is None else event
        event.known, event.recorded = self.known, True
        return event

    def wait(self, other: Event | Stream) -> None:
        """Let what follows on this stream come after an event, or after all that is on another stream now.

        An event that was never recorded is over.
        """
        if not isinstance(other, Event | Stream):
            raise TypeError(f"a stream waits for a ptxvm.Event or ptxvm.Stream, not for {other!r}")
        self.known |= other.known

    def sync(self) -> None:
        """Let the host wait for all that is on the stream."""
        DEVICE.wait_for(self.known)

    def __repr__(self) -> str:
        return f"<{self.name}>"


NAMES = count(1)
