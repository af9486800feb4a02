"""Asymmetric synchronisation: does one host thread run kernels alone, so that its atomics need no locked instructions?

A locked instruction waits until all earlier stores have left the processor, whether or not another one looks: three times the
time of a hash table.  Threads of one device are all that an atomic of scope .gpu must be atomic to (PTX 8.5), so compiled code
updates memory by plain loads and stores while no other host thread runs kernels.  It does so between a store of 1 and one of 0
to `updating`, if `sole` is 1 after the first.  A second thread takes `sole` away, has the system run a memory barrier on every
processor of this process (`membarrier` of Linux: what makes Dekker's algorithm right although one side has no fence), and waits
until `updating` is 0.  So does the interpreter: beside compiled code it compares and exchanges; while there is none, it updates
memory under a lock.
"""

from __future__ import annotations

import ctypes
import os
import platform
import sys
import time
from _thread import allocate_lock
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

SYSTEM_CALL = {"x86_64": 324, "aarch64": 283}  # the number of `membarrier`
EXPEDITED, REGISTER = 1 << 3, 1 << 4  # its commands: a barrier on the processors that run this process, and leave to ask for it
PAYS = 0.1  # seconds that kernels have run for, after which leave is asked for: that takes ten milliseconds


class HostThread:
    """A host thread that runs kernels, by the two words of its launch records that others read and write."""

    def __init__(self, words: memoryview, sole: int, updating: int) -> None:
        """`sole` and `updating` are the positions of the words."""
        self._records, self._sole, self._updating = [words], sole, updating

    def share(self, other: HostThread) -> None:
        """It uses the records of another one as well, which never runs by itself."""
        self._records += other._records

    def take(self) -> None:
        """Let it update memory without locked instructions."""
        for words in self._records:
            words[self._sole] = 1

    def give_up(self) -> None:
        """Have it update memory by locked instructions, from now on; returns when it does."""
        if not self._records[0][self._sole]:
            return
        for words in self._records:
            words[self._sole] = 0
        _system_call(EXPEDITED)
        while any(words[self._updating] for words in self._records):  # for some updates of one instruction
            time.sleep(0)


class Running:
    """The host threads of this process that run compiled kernels, and launches of the interpreter.

    While `lock` is held, none of the threads begins or ends.
    """

    def __init__(self) -> None:
        self._threads: list[HostThread] = []
        self._interpreted = 0  # launches
        self.lock = allocate_lock()
        self._shared = False
        self._began = self._ran = 0.0  # when one began to run alone, and the seconds that any have run alone

    def enter(self, thread: HostThread) -> None:
        """A host thread begins to run CTAs."""
        with self.lock:
            self._threads.append(thread)
            if len(self._threads) > 1:
                self._threads[0].give_up()
                return
            self._began = time.perf_counter()
            if not self._shared and not self._interpreted and self._ran > PAYS and _available():
                thread.take()

    def leave(self, thread: HostThread) -> None:
        """A host thread has run its CTAs; one that is left stays as it is, since it may soon be joined again."""
        with self.lock:
            self._threads.remove(thread)
            if not self._threads:
                self._ran += time.perf_counter() - self._began

    @property
    def compiled(self) -> bool:
        """Does compiled code run?"""
        return bool(self._threads)

    @contextmanager
    def interpreting(self) -> Iterator[None]:
        """Within `with` the interpreter runs a kernel: no host thread is alone."""
        with self.lock:
            self._interpreted += 1
            for thread in self._threads:
                thread.give_up()
        try:
            yield
        finally:
            with self.lock:
                self._interpreted -= 1

    def share(self) -> None:
        """Other processes may run kernels on memory of this one: no thread is ever alone again."""
        with self.lock:
            self._shared = True
            for thread in self._threads:
                thread.give_up()

    def forget(self) -> None:
        """In a child process: no thread of its parent runs there."""
        self._threads, self._interpreted, self.lock = [], 0, allocate_lock()


RUNNING = Running()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=RUNNING.forget)


@cache
def _available() -> bool:
    """Has the system the barrier, and may this process ask for it?"""
    return sys.platform == "linux" and platform.machine() in SYSTEM_CALL and _system_call(REGISTER) == 0


def _system_call(command: int) -> int:
    return int(ctypes.CDLL(None).syscall(SYSTEM_CALL[platform.machine()], command, 0, 0))
