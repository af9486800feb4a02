"""Answers each request in a process of its own, with limits of time and memory.

The processes are forked from one that has imported everything (the fork server of `multiprocessing`), which takes
milliseconds.  Whatever a kernel does to its process, the next request has a new one.
"""

from __future__ import annotations

import multiprocessing
import threading

from ptxvm.playground.protocol import refusal
from ptxvm.playground.worker import serve

PATIENCE = 30.0
"""Seconds after which a process is ended: more than `launching.SECONDS`, with which a kernel gets a finding at its line."""
AT_ONCE = 4


class Processes:
    """Answers requests, some at once; the others wait."""

    def __init__(self, patience: float = PATIENCE, at_once: int = AT_ONCE) -> None:
        self.patience, self.turns = patience, threading.BoundedSemaphore(at_once)
        self.context = multiprocessing.get_context("forkserver")
        self.context.set_forkserver_preload(["ptxvm.playground.worker"])

    def answer(self, request: str) -> str:
        """The answer to a request; a refusal of kind `limit` if its process was ended or died."""
        receiver, sender = self.context.Pipe(duplex=False)
        with self.turns, receiver:
            process = self.context.Process(target=serve, args=(request, sender), daemon=True)
            process.start()
            sender.close()
            try:
                if receiver.poll(self.patience):
                    return receiver.recv_bytes().decode()
                return refusal("limit", f"it took more than {self.patience:g} seconds, and was ended")
            except EOFError:
                return refusal("limit", "the process that ran it has died; it may have asked for more memory than it may have")
            finally:
                process.kill()
                process.join()
                process.close()


__all__ = ["Processes"]
