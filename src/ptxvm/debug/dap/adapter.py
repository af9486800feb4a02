"""The debug adapter: answers requests one after the other.  A thread of the protocol is a warp of a block that runs.

Each warp shows the stack of one of its lanes: that in focus, or the first that is not over; the other lanes are in the scope
`Lanes`.  `send` receives messages at once, so that the answer to `continue` is out before the kernel runs.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import count
from threading import Lock
from typing import Protocol, TypeAlias

from ptxvm.debug.breakpoints import AT_LINE, Breakpoint, Breakpoints, CodeBreakpoint, line_of
from ptxvm.debug.console import Console, Files
from ptxvm.debug.dap.capabilities import CAPABILITIES, FAULT
from ptxvm.debug.dap.fields import Arguments, Refused, an_object, whole
from ptxvm.debug.dap.framing import Message
from ptxvm.debug.dap.ids import Handles, Json, Warp, frame_of, instruction_address
from ptxvm.debug.dap.pending_launch import PendingLaunch
from ptxvm.debug.dap.variables import Variables
from ptxvm.debug.focus import Focus, NotThere
from ptxvm.debug.session import Session
from ptxvm.debug.steps import NoStep
from ptxvm.debug.stops import Reason, Stop
from ptxvm.debug.values import NoValue
from ptxvm.diagnostics.errors import PTXVMError
from ptxvm.isa.special_registers import WARP
from ptxvm.syntax.source import Source

Handler: TypeAlias = "Callable[[Adapter, Arguments], Json | None]"
"""Answers a request: the body of the response."""

REASONS = {
    Reason.ENTRY: "entry", Reason.BREAKPOINT: "breakpoint", Reason.WATCHPOINT: "data breakpoint",
    Reason.CATCHPOINT: "exception", Reason.STEP: "step", Reason.BEGIN: "entry", Reason.INTERRUPT: "pause",
    Reason.FAULT: "exception", Reason.ENDED: "pause",
}  # fmt: skip


class Over(Exception):  # noqa: N818 - nothing is wrong
    """The kernel cannot go on from its end, or its fault."""


OVER = (Reason.ENDED, Reason.FAULT)


class Program(Protocol):
    """A program whose launches are debugged, one after the other."""

    def start(self) -> None:
        """Run it, in another thread; it ends with `Adapter.program_ended`."""

    def stop(self) -> None:
        """Let it end soon."""


class Launcher(Protocol):
    """Makes a session, or a program, of what a `launch` request asks for."""

    def __call__(self, arguments: Arguments) -> Session | Program:
        """The session or program; Refused says what is wrong."""
        ...


class Adapter:
    """One client, and the kernel that it debugs, or the program whose kernels it debugs."""

    handlers: dict[str, Handler] = {}  # noqa: RUF012 - what `handler` declares

    def __init__(
        self, launch: Launcher, send: Callable[[Message], None], files: Files | None = None,
        has_requests: Callable[[], bool] = lambda: False,
    ) -> None:  # fmt: skip
        """`has_requests` tells whether requests wait for their answer."""
        self.launch, self._send, self.files, self.has_requests = launch, send, files, has_requests
        self.continues = False  # does a run that may be suspended go on now?
        self.suspended: tuple[Callable[[], Stop], bool] | None = None  # a run that a request has interrupted; does it continue?
        self._numbers, self._sending = count(1), Lock()
        self.held: Session | None = None
        self.program: Program | None = None
        self.pending: PendingLaunch | None = None  # the launch of the program that is debugged
        self.lasting = Breakpoints()  # those of the program, from launch to launch
        self.stops_at_next = False
        self.handles = Handles()
        self.configuration: Arguments = {}
        self.initial: Arguments = {}
        self.owned: dict[str, list[int]] = {}  # the breakpoints of each source, or kind
        self.texts: list[Source] = []  # those in no file that the client has heard of, in the order of their references
        self.stops_at_faults = True
        self.after: list[Callable[[], None]] = []  # what follows a response
        self.is_done = False
        self.exit_code = 0

    # ── messages ────────────────────────────────────────────────────────────────────────

    def handle(self, request: Message) -> None:
        """Answer a request, and do what follows from it."""
        name = str(request.get("command", ""))
        answer: Message = {"type": "response", "request_seq": request.get("seq", 0), "command": name}
        try:
            arguments = an_object(request.get("arguments") or {}, "what stands in 'arguments'")
            body = self.handlers.get(name, unsupported)(self, arguments)
            answer |= {"success": True} | ({"body": body} if body is not None else {})
        except (Refused, NotThere, NoStep, NoValue, PTXVMError, TypeError, ValueError, KeyError, OverflowError) as wrong:
            answer |= failure(f"the request has no '{wrong.args[0]}'" if isinstance(wrong, KeyError) else str(wrong))
            self.after.clear()
        except Exception as wrong:  # noqa: BLE001 - the client waits for an answer
            answer |= failure(own_error(wrong))
            self.after.clear()
        self.send(answer)
        while self.after:
            self.after.pop(0)()

    def note(self, request: Message) -> None:
        """Carry out a request that something else answers: breakpoints are known here, too."""
        with suppress(Refused, NotThere, NoValue):
            self.handlers[request["command"]](self, an_object(request.get("arguments") or {}, "what stands in 'arguments'"))
        self.after.clear()

    def send(self, message: Message) -> None:
        """Send a message, with its number; other threads may send what a program prints."""
        with self._sending:
            self._send({"seq": next(self._numbers), **message})

    def event(self, name: str, **body: object) -> None:
        """Send an event."""
        self.send({"type": "event", "event": name} | ({"body": body} if body else {}))

    def output(self, text: str, category: str = "stdout") -> None:
        """Send what the kernel prints."""
        self.event("output", category=category, output=text)

    # ── texts in no file ────────────────────────────────────────────────────────────────

    def reference(self, source: Source) -> int:
        """The number by which the client asks for a text; clients keep what they got, so one number is one text."""
        known = next((n for n, each in enumerate(self.texts) if (each.name, each.text) == (source.name, source.text)), None)
        if known is None:
            known = len(self.texts)
            self.texts.append(source)
        return known + 1

    def referred(self, reference: int) -> Source:
        """The text that a number is for."""
        if not 0 < reference <= len(self.texts):
            raise Refused(f"there is no source {reference}")
        return self.texts[reference - 1]

    # ── the session ─────────────────────────────────────────────────────────────────────

    @property
    def session(self) -> Session:
        """The session; Refused before `launch`."""
        if self.held is None:
            raise Refused("nothing has been launched")
        return self.held

    @property
    def breakpoints(self) -> Breakpoints:
        """The breakpoints; those of a program there are before it has launched anything."""
        return self.lasting if self.program is not None else self.session.breakpoints

    @property
    def variables(self) -> Variables:
        """What makes variables."""
        return Variables(self.session, self.handles)

    @property
    def warps(self) -> int:
        """The warps of a block."""
        return -(-self.session.shape.threads // WARP)

    @property
    def thread(self) -> int:
        """The identifier of the warp in focus."""
        focus = self.session.execution.focus
        return Warp(focus.cta, focus.warp).identifier(self.warps)

    def look(self, thread: int, level: int = 0) -> Focus:
        """Let the session be about a warp, and a frame of it; its focus."""
        wanted, execution = Warp.of(thread, self.warps), self.session.execution
        if (execution.focus.cta, execution.focus.warp) != wanted:
            execution.focus = Focus(*wanted, self.first_lane(wanted))
        self.session.frame = level
        return execution.focus

    def look_at_frame(self, arguments: Arguments) -> None:
        """Let the session be about the frame of a request, where it names one."""
        if arguments.get("frameId") is not None:
            self.look(*frame_of(whole(arguments, "frameId")))

    def first_lane(self, warp: Warp) -> int:
        """The first lane of a warp that has not ended."""
        schedule = self.session.execution.grid.schedule_of(warp.cta)
        if schedule is None:
            raise NotThere("the block has ended, or not begun")
        layout = schedule.cohort.layout
        first = int((layout.ctas == warp.cta).argmax()) * layout.threads + warp.warp * WARP
        alive = schedule.cohort.alive[first : first + min(WARP, layout.threads - warp.warp * WARP)]
        return int(alive.argmax())

    # ── running ─────────────────────────────────────────────────────────────────────────

    def go(self, run: Callable[[], Stop], *, continues: bool = False) -> Json:
        """After the response, run; then tell of the stop.  A run that `continues` may be suspended for a request."""

        def after() -> None:
            self.handles.clear()
            self.perform(run, continues=continues)

        self.after.append(after)
        return {}

    def perform(self, run: Callable[[], Stop], *, continues: bool) -> None:
        """Run, and tell of the stop; where a request interrupts the run, it is suspended, and nothing is told."""
        self.continues, self.suspended = continues, None
        self.session.interrupted.take()
        if self.has_requests():
            self.suspended = run, continues
            return
        try:
            stop = run()
        except Over:
            self.ended(0 if self.session.stop is not None and self.session.stop.reason is Reason.ENDED else 1)
            return
        except Exception as wrong:  # noqa: BLE001 - the client waits for a stop; the grid stays where it is
            if not isinstance(wrong, (NotThere, NoValue, PTXVMError, ValueError)):
                own_error(wrong)
            self.output(f"{wrong}\n", "stderr")
            self.event("stopped", reason="pause", threadId=self.thread, allThreadsStopped=True, text=str(wrong))
            return
        finally:
            self.continues = False
        if stop.reason is Reason.INTERRUPT:
            self.suspended = run, continues
        else:
            self.stopped(stop)

    def go_on(self) -> None:
        """Go on with a run that was suspended for a request; the request has its answer, and no other one waits."""
        if self.suspended is not None:
            run, continues = self.suspended
            self.perform(run, continues=continues)

    def pause(self) -> None:
        """Stay where a run was suspended, and tell of that after the response."""
        self.session.interrupted.take()
        if self.suspended is not None:
            self.suspended = None
            self.after.append(lambda: self.stopped(Stop(Reason.INTERRUPT)))

    def stopped(self, stop: Stop) -> None:
        """Tell of a stop, or of the end."""
        if stop.reason is Reason.ENDED and not self.configuration.get("stopAtEnd"):
            self.ended(0)
        elif stop.reason is Reason.FAULT and not self.stops_at_faults:
            self.output(f"{stop.message}\n", "stderr")
            self.ended(1)
        else:
            if stop.reason is Reason.FAULT:
                self.output(f"{stop.message}\n", "stderr")
            self.tell(stop)

    def tell(self, stop: Stop) -> None:
        """Send the event of a stop."""
        body: Json = {"reason": self.reason(stop), "threadId": self.thread, "allThreadsStopped": True}
        said = stop.message.partition("\n")[0] or {Reason.ENDED: "the kernel has ended", Reason.BEGIN: "no more history"}.get(
            stop.reason, ""
        )
        for each in stop.changes:
            said = f"{each.subject}: {each.old} → {each.new}"
        body |= {"text": said, "description": said} if said else {}
        body |= {"hitBreakpointIds": list(stop.numbers)} if stop.numbers else {}
        self.event("stopped", **body)

    def reason(self, stop: Stop) -> str:
        """The word of the protocol for a stop."""
        if stop.reason is Reason.BREAKPOINT:
            for kind in ("function", "instruction"):
                if set(stop.numbers) & set(self.owned.get(kind, ())):
                    return f"{kind} breakpoint"
        return REASONS[stop.reason]

    def ended(self, code: int) -> None:
        """The kernel has ended; a program goes on."""
        if self.pending is not None:
            self.release()
            return
        self.exit_code = code
        self.event("exited", exitCode=code)
        self.event("terminated")

    def begin(self) -> None:
        """All is configured: start."""
        if self.configuration.get("noDebug"):
            self.breakpoints.clear()
            self.stops_at_faults = False
        if self.program is not None:
            self.program.start()
            return
        self.run_from_entry(self.session.start(), stays=bool(self.configuration.get("stopOnEntry")))

    def run_from_entry(self, stop: Stop, *, stays: bool) -> None:
        """A kernel is at its entry: it stays there, or runs."""
        if stays:
            self.stopped(stop)
        else:
            self.perform(self.session.resume, continues=True)

    # ── the launches of a program ───────────────────────────────────────────────────────

    def debug(self, launch: PendingLaunch) -> None:
        """Debug a launch of the program, which waits for its end."""
        try:
            self.held = session = launch.session(self.lasting)
            session.printed, session.logged = self.output, self.log
            stop = session.start()
        except (PTXVMError, TypeError, ValueError) as wrong:
            self.held = None
            launch.refuse(wrong)
            return
        self.pending = launch
        self.handles.clear()
        self.tell_of_places()
        stays = self.stops_at_next or bool(self.configuration.get("stopOnEntry"))
        self.stops_at_next = False
        self.run_from_entry(stop, stays=stays)

    def tell_of_places(self) -> None:
        """Tell where breakpoints are whose places the code of this launch has, or has not."""
        for each in self.lasting.all.values():
            if isinstance(each, CodeBreakpoint):
                self.event("breakpoint", reason="changed", breakpoint={"id": each.number} | self.placed(each))

    def release(self) -> None:
        """Let the launch end as it does, and the program go on."""
        launch, session, self.pending, self.held = self.pending, self.held, None, None
        if launch is not None and session is not None:
            launch.finish(session)

    def program_ended(self, code: int) -> None:
        """The program has ended."""
        self.exit_code = code
        self.event("exited", exitCode=code)
        self.event("terminated")

    def leave(self) -> None:
        """End what runs."""
        session, self.held, self.suspended = self.held, None, None
        if session is not None:
            session.close()
        launch, self.pending = self.pending, None
        if launch is not None:
            launch.refuse(KeyboardInterrupt())
        elif self.program is not None:
            self.program.stop()

    def log(self, text: str) -> None:
        """Send what a logpoint says."""
        self.output(f"{text}\n", "console")

    def placed(self, made: Breakpoint) -> Json:
        """Is a breakpoint somewhere, and where?"""
        if not isinstance(made, CodeBreakpoint):
            return {"verified": True}
        if not made.sites or self.held is None:
            return {"verified": False, "message": "no kernel that has been launched has this place"}
        number, index = min(made.sites)
        file = found["file"] if (found := AT_LINE.fullmatch(made.location)) else None
        line = line_of(self.session.code.routines[number], index, file, self.session.kernel_routine)
        reference: Json = {"verified": True, "instructionReference": instruction_address(number, index)}
        return reference | ({"line": line} if line is not None else {})

    def interrupt(self) -> None:
        """Stop the run; another thread may call it."""
        if self.held is not None:
            self.held.interrupt()

    def console(self) -> Console:
        """The console, for commands."""
        return Console(self.session, self.files)

    def catch(self, filters: Iterable[tuple[str, str]]) -> list[Json]:
        """Let what the filters name stop the run; each has a condition, or an empty text."""
        self.stops_at_faults = False
        self.forget("exceptions")
        return [self.caught(name, condition) for name, condition in filters]

    def caught(self, name: str, condition: str) -> Json:
        """Let what a filter names stop the run; the breakpoint, or why it is none."""
        if name == FAULT:
            self.stops_at_faults = True
            return {"verified": True}
        try:
            each = self.breakpoints.catch(name, condition)
        except (NotThere, NoValue) as wrong:
            return {"verified": False, "message": str(wrong)}
        self.owned.setdefault("exceptions", []).append(each.number)
        return {"verified": True, "id": each.number}

    def forget(self, owner: str) -> None:
        """Delete the breakpoints of a source, or of a kind."""
        for number in self.owned.pop(owner, []):
            self.breakpoints.discard(number)


def handler(name: str) -> Callable[[Handler], Handler]:
    """Declare what answers a request."""

    def declare(function: Handler) -> Handler:
        Adapter.handlers[name] = function
        return function

    return declare


def unsupported(adapter: Adapter, arguments: Arguments) -> Json:  # noqa: ARG001 - a Handler
    """The answer to a request that there is no answer to."""
    raise Refused("the request is not supported")


def failure(said: str) -> Message:
    """What a response has that says why there is no answer; nothing in its text stands for a variable."""
    shown = said.replace("{", "(").replace("}", ")")
    return {"success": False, "message": said.partition("\n")[0], "body": {"error": {"id": 1, "format": shown}}}


def own_error(wrong: Exception) -> str:
    """What is said of an error of the adapter itself; where it came from is on the standard error."""
    traceback.print_exception(wrong)
    return f"an error of ptxvm itself, please report it: {type(wrong).__name__}: {wrong}"


@handler("initialize")
def initialize(adapter: Adapter, arguments: Arguments) -> Json:
    """The client says what it can do, and is told what the adapter can."""
    adapter.initial = arguments
    return CAPABILITIES


@handler("launch")
def launch(adapter: Adapter, arguments: Arguments) -> None:
    """Load the kernel; the client then configures the session."""
    adapter.configuration = arguments
    launched = adapter.launch(arguments)
    if isinstance(launched, Session):
        adapter.held = launched
        launched.printed, launched.logged = adapter.output, adapter.log
    else:
        adapter.program = launched
        adapter.event("capabilities", capabilities={"supportsRestartRequest": False})
    adapter.after.append(lambda: adapter.event("initialized"))


@handler("configurationDone")
def configuration_done(adapter: Adapter, arguments: Arguments) -> None:  # noqa: ARG001 - a Handler
    """All breakpoints are set: run."""
    _ = adapter.breakpoints
    adapter.after.append(adapter.begin)


@handler("restart")
def restart(adapter: Adapter, arguments: Arguments) -> None:  # noqa: ARG001
    """Start again, with the arguments as they were."""
    if adapter.program is not None:
        raise Refused("a program cannot be started again: end it, and launch it anew")
    _ = adapter.session.execution
    adapter.suspended = None
    adapter.handles.clear()
    adapter.after.append(adapter.begin)


@handler("disconnect")
def disconnect(adapter: Adapter, arguments: Arguments) -> None:  # noqa: ARG001
    """End the session."""
    adapter.leave()
    adapter.is_done = True


@handler("terminate")
def terminate(adapter: Adapter, arguments: Arguments) -> None:  # noqa: ARG001
    """End the run; a program says itself when it has ended."""
    adapter.suspended = None
    adapter.after.append(adapter.leave if adapter.program is not None else lambda: adapter.event("terminated"))


__all__ = ["Adapter", "Launcher", "handler"]
