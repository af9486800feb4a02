"""Threads run one at a time by the interpreter, for a script that decides what they read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ptxvm.algebra.types import Type, bf16x2, f16x2
from ptxvm.analysis.program import Function
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.engine.interp.barriers import Key
from ptxvm.engine.interp.cohort import CLOCKS, Cohort
from ptxvm.engine.interp.engine import Interpreter
from ptxvm.engine.interp.executable import Executable
from ptxvm.engine.interp.ports import Access, Action, Update
from ptxvm.engine.interp.routine import Routine
from ptxvm.engine.interp.schedule import Schedule
from ptxvm.engine.interp.watched import WatchedCohort
from ptxvm.engine.launch import Counters
from ptxvm.engine.watching import Snapshot
from ptxvm.machine.alone import Enough, Script, Stage, Touch
from ptxvm.machine.builtins import Library
from ptxvm.machine.environment import Environment
from ptxvm.machine.image import Image
from ptxvm.machine.launch import LaunchShape

PACKED: dict[Type, int] = {f16x2: 2, bf16x2: 2}
ASYNCHRONOUS = {"cp", "mbarrier"}  # whose operations are not in program order (PTX 8.9.1.1)
TURNS = 100_000  # of a thread that never jumps back as often as the script allows


class Alone:
    """An engine whose launch does not run the grid, but hands a stage to `explore`; memory stays as it was."""

    def __init__(self, interpreter: Interpreter, explore: Callable[[Stage], None]) -> None:
        self.interpreter, self.explore = interpreter, explore

    @property
    def image(self) -> Image:
        """The program in memory."""
        return self.interpreter.image

    @property
    def library(self) -> Library:
        """The functions of the device, and what they printed."""
        return self.interpreter.library

    def launch(
        self, kernel: Function, shape: LaunchShape, parameters: int, *, shared: int = 0, budget: int | None = None
    ) -> Counters:
        """Set the stage; `budget` is for engines that run the grid."""
        memory = self.image.memory
        before = Snapshot(memory.table.items)
        stage = InterpretedStage(Executable(self.image), kernel, shape, parameters, shared)
        try:
            with np.errstate(all="ignore"):
                self.explore(stage)
        finally:
            stage.environment.release()
            before.restore()
        return Counters()


class InterpretedStage:
    """A grid whose threads the interpreter runs alone."""

    def __init__(self, code: Executable, kernel: Function, shape: LaunchShape, parameters: int, shared: int) -> None:
        routine = code.routine(kernel)
        if routine is None:
            raise ValueError(f"the kernel '{kernel.name}' has no body")
        self.code, self.routine, self.kernel, self.shape = code, routine, kernel, shape
        self.parameters, self.shared = parameters, code.image.shared_size(kernel, shared)
        self.stack = -(-code.image.frame(routine.function).size // 16) * 16 + 32
        self.memory = code.image.memory
        self.environment = Environment(self.memory, shared, self.shared, 0)
        for bound in routine.function.instructions:
            if bound.node.opcode in ASYNCHRONOUS:
                raise Unsupported(f"'{bound.i.mnemonic}' in a litmus kernel")
        for segment in routine.segments:
            segment.live_out = -1  # a register is kept to the end, to be asked for

    def run(self, thread: int, script: Script, keep: Sequence[str] = ()) -> Mapping[str, int] | None:
        """Run one thread; it has a CTA to itself."""
        cta, lane = divmod(thread, self.shape.threads)
        cohort = LoneCohort(
            self.shape, range(cta, cta + 1), self.memory, self.parameters, self.shared, self.stack, self.environment
        )  # fmt: skip
        cohort.obey(script)
        schedule = LoneSchedule(cohort, self.code, self.routine, lane, script)
        try:
            while not schedule.run(TURNS):
                pass
        except Enough:
            return None
        finally:
            cohort.release()
        file = schedule.file(self.routine, 0)
        wanted = [register for register in self.kernel.registers if register.name in keep and register.count == 1]
        return {register.name: bits(at(file[self.routine.slots.of(register)], lane)) for register in wanted}


def at(value: Any, lane: int) -> Any:
    """A lane's element of a register, which may be one for all."""
    return value[lane] if np.ndim(value) else value


def bits(value: Any) -> int:
    """The bits of a scalar, or of an array of one."""
    return int.from_bytes(np.asarray(value).tobytes(), "little")


class LoneCohort(WatchedCohort):
    """One of whose lanes runs; what it reads is the script's."""

    def obey(self, script: Script) -> None:
        """Let a script decide."""
        self.script = script
        self.threads = self.layout.numbers + int(self.layout.ctas[0]) * self.layout.threads

    def release(self) -> None:
        """Give the windows back."""
        Cohort.release(self)

    def touch(self, access: Access, lanes: Any, address: Any) -> Touch:
        """Where the lane's access goes, which is known to be right."""
        if access.type.bits > 64:
            raise Unsupported(f"'{access.bound.i.mnemonic}' in a litmus kernel: a scalar has up to 64 bits (PTX 8.2.4)")
        ((allocation, _, offsets),) = self.places(access, lanes, address)
        order = access.attributes.get("order") or "weak"
        scope = "" if order == "weak" else access.attributes.get("scope") or "sys"
        size, parts = access.type.bytes, PACKED.get(access.type, 1)
        return Touch(access.bound, allocation, int(np.ravel(offsets)[0]), size, access.count, parts, order, scope)

    def _load(self, access: Access, lanes: Any, address: Any, chosen: Any) -> Any:
        held = Cohort._load(self, access, lanes, address, chosen)  # noqa: SLF001 - a fault is a fault here too
        found = self.script.reads(self.touch(access, lanes, address))
        if found is None:
            return held
        values = np.frombuffer(b"".join(each.to_bytes(access.type.bytes, "little") for each in found), access.held)
        return values.reshape(-1, 1) if access.count > 1 else values.copy()

    def _store(self, access: Access, lanes: Any, address: Any, values: Sequence[Any]) -> None:
        Cohort._store(self, access, lanes, address, values)  # noqa: SLF001 - as above
        self.script.writes(self.touch(access, lanes, address), [bits(value) for value in values])

    def atomic(self, access: Access, lanes: Any, guard: Any, address: Any, update: Update, operands: Sequence[Any]) -> Any:
        """Ask what it finds."""
        if self._stays(guard):
            return np.zeros(1, access.held)
        Cohort.atomic(self, access, lanes, None, address, update, operands)
        given = [np.ravel(operand)[:1] for operand in operands]

        def modify(old: int) -> int:
            return bits(update(raw(old), *given))

        def raw(value: int) -> Any:
            return np.frombuffer(value.to_bytes(access.type.bytes, "little"), access.held).copy()

        compared = bits(given[0]) if update.operation == "cas" else None
        return raw(self.script.updates(self.touch(access, lanes, address), modify, compared))

    def fence(self, lanes: Any, guard: Any, order: str, scope: str) -> None:
        """Tell of it."""
        if not self._stays(guard):
            self.script.fences(order, scope)

    def arrive(self, bound: Any, lanes: Any, guard: Any, number: Any, threads: Any) -> None:
        """Tell of it; nobody waits."""
        if not self._stays(guard):
            self.script.arrives(bound, int(np.ravel(number)[0]), int(np.ravel(threads)[0]))

    def special(self, name: str, lanes: Any) -> Any:
        """A thread has to do the same each time."""
        if name in CLOCKS:
            raise Unsupported(f"the special register %{name} in a litmus kernel")
        return super().special(name, lanes)

    def texture(self, access: Any, lanes: Any, guard: Any, operands: Any) -> Any:
        """The texture unit keeps to itself what it reads."""
        raise Unsupported(f"'{access.bound.i.mnemonic}' in a litmus kernel")

    def active(self, lanes: Any, guard: Any) -> Any:
        """The lane is alone."""
        raise Unsupported("a collective of a warp in a litmus kernel")

    @staticmethod
    def _stays(guard: Any) -> bool:
        """Does its guard keep the lane from doing it?"""
        return guard is not None and not np.all(guard)


class LoneSchedule(Schedule):
    """Runs one lane."""

    def __init__(self, cohort: LoneCohort, code: Executable, kernel: Routine, lane: int, script: Script) -> None:
        super().__init__(cohort, code, kernel)
        self.script, self.here = script, -1
        self.ready = {(0, kernel.number, 0): [np.array([lane])]} if kernel.end else {}

    def step(self, key: Key, lanes: Any) -> None:
        """Tell what begins."""
        routine = self.code.routines[key[1]]
        segment = routine.segments[key[2]]
        self.here = key[2]
        self.script.enters(routine.function.instructions[segment.start : segment.end])
        super().step(key, lanes)

    def follow(self, action: Action | None, key: Key, lanes: Any, guard: Any, raws: Any) -> None:
        """Where it goes; a call would leave the kernel, whose registers are followed."""
        if action is not None and action.verb == "call":
            raise Unsupported("a call in a litmus kernel")
        super().follow(action, key, lanes, guard, raws)

    def push(self, key: Key, lanes: Any) -> None:
        """Tell of a jump back."""
        if len(lanes) and key[2] <= self.here:
            self.script.goes_back()
        super().push(key, lanes)

    def arrive_cta(self, key: Key, lanes: Any, raws: Any) -> None:
        """Meet, and go on at once: who opens the barrier is the model's question."""
        number, threads, votes = raws
        bound = self.last(key)
        if votes is not None:
            raise Unsupported(f"'{bound.i.mnemonic}' in a litmus kernel: the votes of others")
        if np.max(number) >= 16:
            super().arrive_cta(key, lanes, raws)  # which refuses it
        self.script.meets(bound, int(np.ravel(number)[0]), None if threads is None else int(np.ravel(threads)[0]))
        self.resume_one(key, lanes)

    def arrive_warp(self, key: Key, lanes: Any, raws: Any) -> None:
        """Meet the lanes of the warp; to exchange values with them takes them all."""
        bound = self.last(key)
        if len(raws) > 1:
            raise Unsupported(f"'{bound.i.mnemonic}' in a litmus kernel: the values of other lanes")
        self.script.meets_warp(bound, int(np.ravel(raws[0])[0]))
        self.resume_one(key, lanes)


__all__ = ["Alone", "InterpretedStage"]
