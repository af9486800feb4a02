"""Streams and events: which launches are ordered (CUDA C++ programming guide, "Streams" and "Events").

A launch runs when it is made, whatever its stream is, or on a thread of its own beside others (the driver's streams); but only
streams, events and waits of the host order launches, so the check `race` finds launches that a device may run at once.  A
launch without a stream is on the legacy default stream, and the host waits for it: it comes after all earlier launches and
before all later ones.

A *programmatic* launch may begin before the launch before it on its stream has ended, once that one has executed
`griddepcontrol.launch_dependents`; it waits by itself, with `griddepcontrol.wait` (PTX 9.7.13.13; CUDA C++ programming guide,
"Programmatic Dependent Launch and Synchronization").
"""

from __future__ import annotations

from _thread import RLock  # the import of `threading` takes longer than the start of a cached kernel
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from itertools import count
from typing import TYPE_CHECKING, Any

from ptxvm.dataclass import dataclass
from ptxvm.machine.handles import HANDLES

if TYPE_CHECKING:
    from ptxvm.machine.allocation import Allocation  # which needs NumPy

NUMBERS = count(1)


@dataclass(eq=False, slots=True)
class StreamLaunch:
    """One launch in the order of the device: its number, its kernel and stream, and the launches that come before it.

    `keeps_alive` are its arguments and all images: they keep their addresses as long as other launches may run beside it.
    `footprint` is the record of a checker; `others` are the launches with which it is compared in the end: those under way
    when it began, and those that ended beside it.  `begins_after` are the launches that come before what the kernel does ahead
    of `griddepcontrol.wait`: fewer than `before` where the launch is programmatic.
    """

    number: int
    kernel: str
    stream: str
    before: frozenset[int]
    begins_after: frozenset[int]
    keeps_alive: Sequence[object] = ()
    followed: bool = True  # is it on a stream, so that other launches may run beside it?
    device: int = 0  # the number of the device
    footprint: Any = None  # the checker's own type: a room above this
    others: list[StreamLaunch] = field(default_factory=list)
    ended: bool = False  # has the checker of the launch seen its end?

    def ended_beside(self) -> list[StreamLaunch]:
        """The others with a footprint that have ended, also where they are about to leave those that run."""
        ending = [each for each in DEVICE.running if each.ended and each is not self and each not in self.others]
        return [each for each in (*self.others, *ending) if each.footprint is not None]

    def dependent(self, known: frozenset[int]) -> tuple[frozenset[int], frozenset[int]]:
        """`before` and `begins_after` of a programmatic launch that follows this one on a stream which knows some launches."""
        if self.footprint is None or not self.footprint.lets_dependents_begin:
            return known, known
        begins_after = self.begins_after if self.footprint.lets_them_begin_ahead else self.before
        return known if self.footprint.waited else self.begins_after | {self.number}, begins_after

    def supersedes(self, earlier: StreamLaunch) -> bool:
        """Does this launch follow an earlier one and repeat its accesses, so that the earlier record is not needed?"""
        return earlier.number in self.before and bool(self.footprint.supersedes(earlier.footprint))

    def __str__(self) -> str:
        return f"launch {self.number} ('{self.kernel}' on {self.stream})"


@dataclass(eq=False, slots=True)
class Submission:
    """Work that the host has submitted: the launches for which it has waited since do not come before this one."""

    waited: list[StreamLaunch] = field(default_factory=list)


@dataclass(slots=True)
class DeviceWork:
    """The launches that may run beside later ones: followed by a checker, and not waited for by the host.

    Those that `run` now have threads of their own; what is `submitted` has not begun.
    """

    under_way: list[StreamLaunch] = field(default_factory=list)
    running: list[StreamLaunch] = field(default_factory=list)
    submitted: list[Submission] = field(default_factory=list)
    lock: RLock = field(default_factory=RLock)

    def wait_for(self, launches: frozenset[int]) -> None:
        """The host waits for some launches."""
        with self.lock:
            gone = [launch for launch in self.under_way if launch.number in launches]
            self.under_way = [launch for launch in self.under_way if launch.number not in launches]
            for each in self.submitted:
                each.waited += gone

    def freed(self, allocation: Allocation) -> None:
        """The host frees memory of the device after waiting, as `cudaFree` does; launches that used the memory report it."""
        for launch in self.under_way:
            launch.footprint.freed(allocation)
        for launch in (launch for each in self.submitted for launch in each.waited):
            launch.footprint.forget(allocation)

    def waited(self) -> None:
        """A launch has run for which the host waits; later checks do not follow it."""
        self.wait_for_all()
        next(NUMBERS)

    def wait_for_all(self) -> None:
        """The host waits for all launches."""
        if self.under_way:
            self.wait_for(frozenset(launch.number for launch in self.under_way))

    def submit(self) -> Submission:
        """The host submits work that another thread will begin."""
        made = Submission()
        with self.lock:
            self.submitted.append(made)
        return made

    @contextmanager
    def begun(self, submission: Submission, stream: Stream) -> Iterator[None]:
        """Within `with` the launches on a stream are of a submission, which then is over."""
        stream.submission = submission
        try:
            yield
        finally:
            stream.submission = None
            with self.lock:
                self.submitted.remove(submission)

    @contextmanager
    def launched(
        self, kernel: str, stream: Stream | None, args: Sequence[object], device: int = 0, *, programmatic: bool = False
    ) -> Iterator[StreamLaunch]:
        """The context of a launch while it runs."""
        if stream is None:
            self.wait_for_all()
            yield StreamLaunch(next(NUMBERS), kernel, "the default stream", frozenset(), frozenset(), followed=False)
            return
        with self.lock:
            others = [*self.under_way, *(stream.submission.waited if stream.submission is not None else ())]
            stream.known &= {launch.number for launch in others}
            before = begins_after = stream.known
            if programmatic and stream.last is not None:
                before, begins_after = stream.last.dependent(stream.known)
            launch = StreamLaunch(
                next(NUMBERS), kernel, stream.name, before, begins_after, (*args, *HANDLES.values()), device=device
            )
            launch.others = others
            self.running.append(launch)
        try:
            yield launch
        except BaseException:
            with self.lock:
                self.running.remove(launch)
            launch.others.clear()
            raise
        with self.lock:  # in one step: those that end now find it running, or among those that have ended
            self.running.remove(launch)
            launch.others.clear()
            if launch.footprint is not None:
                stream.known |= {launch.number}
                stream.last = launch
                self.under_way = [each for each in self.under_way if not launch.supersedes(each)]
                self.under_way.append(launch)
                for each in self.running:
                    each.others.append(launch)


DEVICE = DeviceWork()


class Event:
    """A point in a stream, for other streams and the host to wait for."""

    def __init__(self) -> None:
        self.known: frozenset[int] = frozenset()
        self.recorded = False

    def sync(self) -> None:
        """Let the host wait until the stream has reached the event."""
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
        self.last: StreamLaunch | None = None  # the last launch, where nothing else came after it
        self.submission: Submission | None = None  # of what runs now

    @property
    def lets_dependents_begin(self) -> bool:
        """May a programmatic launch begin before the last launch has ended?"""
        return self.last is not None and self.last.footprint is not None and bool(self.last.footprint.lets_dependents_begin)

    def no_launch_comes_next(self) -> None:
        """Other work comes behind the last launch, whose end it waits for."""
        self.last = None

    def record(self, event: Event | None = None) -> Event:
        """Record an event, a new one by default, after the launches so far."""
        if not isinstance(event, Event | None):
            raise TypeError(f"a stream records a ptxvm.Event, not {event!r}")
        event = Event() if event is None else event
        event.known, event.recorded = self.known, True
        return event

    def wait(self, other: Event | Stream) -> None:
        """Order later launches of this stream after an event, or after all launches so far on another stream.

        An event that was never recorded orders nothing.
        """
        if not isinstance(other, Event | Stream):
            raise TypeError(f"a stream waits for a ptxvm.Event or ptxvm.Stream, not for {other!r}")
        if (other.known - self.known) & {launch.number for launch in DEVICE.under_way}:
            self.last = None
        self.known |= other.known

    def sync(self) -> None:
        """Let the host wait for all launches on the stream."""
        DEVICE.wait_for(self.known)

    def __repr__(self) -> str:
        return f"<{self.name}>"


NAMES = count(1)
