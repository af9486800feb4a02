"""Requests that run: forwards and backwards, by steps."""

from __future__ import annotations

from ptxvm.debug.dap.adapter import OVER, Adapter, Over, handler
from ptxvm.debug.dap.fields import Arguments, whole
from ptxvm.debug.dap.ids import Json
from ptxvm.debug.steps import Step
from ptxvm.debug.stops import Stop

BY_LINE = {"next": Step.NEXT_LINE, "stepIn": Step.LINE, "stepBack": Step.NEXT_LINE}
BY_INSTRUCTION = {"next": Step.NEXT_INSTRUCTION, "stepIn": Step.INSTRUCTION, "stepBack": Step.NEXT_INSTRUCTION}


def kind(adapter: Adapter, request: str, arguments: Arguments) -> Step:
    """How far a step goes: a source line where these are shown, else a line of the PTX, which has an instruction."""
    by_instruction = arguments.get("granularity") == "instruction" or adapter.configuration.get("show") != "source"
    return (BY_INSTRUCTION if by_instruction else BY_LINE)[request]


@handler("continue")
def continue_(adapter: Adapter, arguments: Arguments) -> Json:
    """Run to the next breakpoint; from the end, or from a fault that is still there, end the launch."""
    adapter.look(whole(arguments, "threadId"))
    session, before = adapter.session, adapter.session.stop
    time = session.time

    def resume() -> Stop:
        stop = session.resume()
        if before is not None and stop.reason is before.reason and stop.reason in OVER and session.time == time:
            raise Over
        return stop

    adapter.go(resume, continues=True)
    return {"allThreadsContinued": True}


@handler("next")
def next_(adapter: Adapter, arguments: Arguments) -> Json:
    """Step past calls."""
    adapter.look(whole(arguments, "threadId"))
    return adapter.go(lambda: adapter.session.step(kind(adapter, "next", arguments)))


@handler("stepIn")
def step_in(adapter: Adapter, arguments: Arguments) -> Json:
    """Step into calls."""
    adapter.look(whole(arguments, "threadId"))
    return adapter.go(lambda: adapter.session.step(kind(adapter, "stepIn", arguments)))


@handler("stepOut")
def step_out(adapter: Adapter, arguments: Arguments) -> Json:
    """Step out of the function; from the kernel, run on."""
    adapter.look(whole(arguments, "threadId"))
    session = adapter.session
    return adapter.go(lambda: session.step(Step.FINISH) if session.view().depth else session.resume())


@handler("stepBack")
def step_back(adapter: Adapter, arguments: Arguments) -> Json:
    """Step back."""
    adapter.look(whole(arguments, "threadId"))
    return adapter.go(lambda: adapter.session.reverse_step(kind(adapter, "stepBack", arguments)))


@handler("reverseContinue")
def reverse_continue(adapter: Adapter, arguments: Arguments) -> Json:
    """Go back to the last breakpoint."""
    adapter.look(whole(arguments, "threadId"))
    return adapter.go(adapter.session.reverse_resume)


@handler("pause")
def pause(adapter: Adapter, arguments: Arguments) -> Json:  # noqa: ARG001 - a Handler
    """Stop the run.  What reads requests interrupts a run that is under way: it is suspended now.

    A program that runs no kernel stops in its next one.
    """
    if adapter.held is None and adapter.program is not None:
        adapter.stops_at_next = True
    else:
        adapter.pause()
    return {}


__all__: list[str] = []
