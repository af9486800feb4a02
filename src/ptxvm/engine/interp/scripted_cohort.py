"""The cohort of a single lane: a script chooses the values of its reads, and its accesses are reported to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from ptxvm.algebra.types import Type, bf16x2, f16x2
from ptxvm.analysis.program import Bound
from ptxvm.diagnostics.errors import Fault, Unsupported
from ptxvm.engine.interp.cohort import CLOCKS, Cohort
from ptxvm.engine.interp.copies import Copies, Copy
from ptxvm.engine.interp.lanes import at
from ptxvm.engine.interp.ports import Access, Update
from ptxvm.engine.interp.watched import WatchedCohort
from ptxvm.isa.mbarrier import VALID
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.single_thread import Meeting, Script, Touch

PACKED: dict[Type, int] = {f16x2: 2, bf16x2: 2}


def bits(value: Any) -> int:
    """The bits of a scalar, or of an array of one."""
    return int.from_bytes(np.asarray(value).tobytes(), "little")


def raw(access: Access, value: int) -> Any:
    """A scalar with these bits, as the lane holds it."""
    return np.frombuffer(value.to_bytes(access.type.bytes, "little"), access.held).copy()


def modification(access: Access, update: Update, given: Sequence[Any]) -> Callable[[int], int]:
    """What an atomic operation makes of the bits that it finds."""
    return cache(lambda old: bits(update(raw(access, old), *given)))


def members_of(mask: int) -> list[int]:
    """The numbers of the bits that are set."""
    return [n for n in range(WARP) if mask >> n & 1]


class LoneCohort(WatchedCohort):
    """One of whose lanes runs; what it reads is the script's."""

    def obey(self, script: Script) -> None:
        """Let a script decide."""
        self.script = script
        self.variables = {}  # an access that leaves its variable is looked for in runs, not here
        self.copies = LoneCopies(self)
        self.threads = self.layout.numbers + int(self.layout.ctas[0]) * self.layout.threads

    def state_asked(self, access: Access, lanes: Any, guard: Any, address: Any, state: Any) -> None:
        """Nothing happens: no check follows the states of mbarriers."""

    def lanes_meant(self, bound: Bound, lanes: Any, guard: Any, lane: Any) -> None:
        """Nothing happens: no check follows what lanes read of each other."""

    def release(self) -> None:
        """Give the windows back."""
        Cohort.release(self)

    def stack_of(self, lane: int, depth: int) -> bytes:
        """The local memory of a lane, up to the end of the frame at a depth of calls."""
        if self._local is None:
            return b""
        start, end = int(self._local.home[lane]), int(np.ravel(at(self.ends[depth], np.array([lane])))[0])
        return bytes(self._local.allocation.bytes[start : start + end])

    def touch(self, access: Access, lanes: Any, address: Any) -> Touch:
        """Where the lane's access goes, which is known to be right."""
        if access.type.bits > 64:
            raise Unsupported(f"'{access.bound.i.mnemonic}' in a litmus kernel: a scalar has up to 64 bits (PTX 8.2.4)")
        ((allocation, _, offsets),) = self.places(access, lanes, address)
        order = access.attributes.get("order") or "weak"
        scope = "" if order == "weak" else access.attributes.get("scope") or "sys"
        size, parts = access.type.bytes, PACKED.get(access.type, 1)
        proxy = access.attributes.get("proxy", "generic")
        return Touch(access.bound, allocation, int(np.ravel(offsets)[0]), size, access.count, parts, order, scope, proxy)

    def _load(self, access: Access, lanes: Any, address: Any, chosen: Any) -> Any:
        held = Cohort._load(self, access, lanes, address, chosen)  # noqa: SLF001 - a fault is a fault here too
        found = self.script.reads(self.touch(access, lanes, address))
        if found is None:
            return held
        self.keep_to_mbarriers(access, lanes, found[0])
        values = np.frombuffer(b"".join(each.to_bytes(access.type.bytes, "little") for each in found), access.held)
        return values.reshape(-1, 1) if access.count > 1 else values.copy()

    def _store(self, access: Access, lanes: Any, address: Any, values: Sequence[Any]) -> None:
        Cohort._store(self, access, lanes, address, values)  # noqa: SLF001 - as above
        self.script.writes(self.touch(access, lanes, address), [bits(value) for value in values])

    def atomic(self, access: Access, lanes: Any, guard: Any, address: Any, update: Update, operands: Sequence[Any]) -> Any:
        """Ask what it finds."""
        if self._stays(guard):
            return np.zeros(1, access.held)
        self.reachable(access, lanes, np.ravel(address)[:1], writing=True)
        given = [np.ravel(operand)[:1] for operand in operands]
        compared = bits(given[0]) if update.operation == "cas" else None
        old = self.script.updates(self.touch(access, lanes, address), modification(access, update, given), compared)
        self.keep_to_mbarriers(access, lanes, old)
        return raw(access, old)

    def keep_to_mbarriers(self, access: Access, lanes: Any, word: int) -> None:
        """What is done to an mbarrier is undefined where there is none (PTX 9.7.13.15.9)."""
        if "mbarrier" in access.attributes and not word & VALID:
            fault = AccessFault("no-mbarrier", f"'{access.bound.i.mnemonic}' where no mbarrier has been made yet")
            raise self._placed(fault, access, lanes)

    def fence(self, bound: Bound, lanes: Any, guard: Any, order: str, scope: str) -> None:
        """Tell of it."""
        if not self._stays(guard):
            self.script.fences(bound, order, scope)

    def phase_over(self, access: Access, lanes: Any, guard: Any, address: Any, over: Any) -> None:
        """Tell of it, where it is so."""
        if not self._stays(guard) and np.all(over):
            self.script.finds_over(access.attributes["order"], access.attributes["scope"])

    def arrive(self, bound: Any, lanes: Any, guard: Any, number: Any, threads: Any) -> None:
        """Report it; no lane waits."""
        if not self._stays(guard):
            self.script.arrives(Meeting(bound, "bar", int(np.ravel(number)[0]), int(np.ravel(threads)[0])))

    def copy_started(self, copying: Any, lanes: Any, target: Any, source: Any, given: Any) -> None:
        """`LoneCopies` tells of it."""

    def abandoned(self, fault: Fault, bound: Bound, lanes: Any) -> bool:
        """A fault is one."""
        return False

    def arrival_posted(self, lanes: Any) -> None:
        """`LoneCopies` tells of it."""

    # ── the values of others ────────────────────────────────────────────────────────────

    def receive(self, lane: int, payload: Sequence[tuple[Any, int]]) -> None:
        """What another lane gives to a collective: of each value, how it is held, and its bits."""
        for n, (held, value) in enumerate(payload):
            self.keep_payload(n, held, np.array([lane]), np.frombuffer(value.to_bytes(held.itemsize, "little"), held))

    def peer(self, lanes: Any, number: int, held: Any, lane: Any) -> Any:
        """Report the lane whose value is used."""
        other = int(np.ravel(lane)[0]) & 31
        if int(self.members[lanes[0]]) >> other & 1:
            self.script.learns(int(self.layout.warp_start[lanes[0]]) + other)
        return super().peer(lanes, number, held, lane)

    def ballot(self, lanes: Any, number: int, held: Any) -> Any:
        """Tell that all values are used."""
        for other in members_of(int(self.members[lanes[0]])):
            self.script.learns(int(self.layout.warp_start[lanes[0]]) + other)
        return super().ballot(lanes, number, held)

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
        raise Unsupported("a collective of the lanes that happen to be active, in a litmus kernel")

    def multiply(self, work: Any, lanes: Any, *fragments: Any) -> Any:
        """The lane has a part of the matrices only."""
        raise Unsupported(f"'{work.bound.i.mnemonic}' in a litmus kernel")

    @staticmethod
    def _stays(guard: Any) -> bool:
        """Does its guard keep the lane from doing it?"""
        return guard is not None and not np.all(guard)


class LoneCopies(Copies):
    """The asynchronous copies of the lane: the script is told of them, and of what waits for them."""

    cohort: LoneCohort

    def _begin(self, begun: Copy) -> None:
        """Check the places, and tell; a copy in bulk is of many pieces, and of one mbarrier."""
        super()._begin(begun)
        self.under_way.clear()
        copying, cohort = begun.copying, self.cohort
        for n in range(len(begun.lanes)):
            lanes, at = begun.lanes[n : n + 1], begun.source[n : n + 1]
            sources = []
            for access, offset in copying.reads(int(begun.given[n])) if begun.given[n] else ():
                held = Cohort._load(cohort, access, lanes, at + np.uint64(offset), None)  # noqa: SLF001 - told by `copies`
                sources.append((cohort.touch(access, lanes, at + np.uint64(offset)), np.asarray(held).tobytes()))
            target = cohort.touch(copying.target, lanes, begun.target[n : n + 1])
            cohort.script.copies(copying.bound, copying.kind, sources, target)
        if copying.told is not None and copying.update is not None and len(begun.lanes):
            touch = cohort.touch(copying.told, begun.lanes[:1], begun.told[:1])
            touch = replace(touch, order="release", scope="cluster")  # PTX 9.7.9.25.4.1
            amount = begun.amount[:1].astype(np.uint64)
            cohort.script.tells(touch, copying.kind, modification(copying.told, copying.update, [amount]), last=True)

    def commit(self, lanes: Any, guard: Any, kind: str) -> None:
        """Tell of it."""
        if len(self._named(lanes, guard)[0]):
            self.cohort.script.groups(kind)

    def wait(self, lanes: Any, guard: Any, left: int, kind: str, reading: bool) -> None:  # noqa: FBT001 - traced code calls it
        """Tell of it."""
        if len(self._named(lanes, guard)[0]):
            self.cohort.script.awaits(kind, left, reading=reading)

    def arrive(self, access: Access, lanes: Any, guard: Any, address: Any, update: Update) -> None:
        """Tell of it."""
        if len(self._named(lanes, guard)[0]):
            touch = self.cohort.touch(access, lanes, np.ravel(address)[:1])
            self.cohort.script.tells(touch, "copies", modification(access, update, []), last=False)
