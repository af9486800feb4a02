"""Captures of work that a graph has already: its nodes take new parameters (driver API, `cuStreamBeginRecaptureToGraph`)."""

from __future__ import annotations

import ctypes
from collections.abc import Callable

from ptxvm.driver.graph import Node, Task
from ptxvm.driver.graph_events import EventNode
from ptxvm.driver.launch import FunctionTask
from ptxvm.libcuda.calls.graph import capturable, separate
from ptxvm.libcuda.calls.graph_any_node import NODE, describe
from ptxvm.libcuda.session import function, session

ELIGIBLE = 0  # CUgraphRecaptureStatus: an executable graph can take the parameters too, as it can here every time
CALLBACK = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4, ctypes.c_int)
Describe = Callable[[int, Task, int], None]
"""Writes the structure of a node of a type and its task to an address."""


@function("cuStreamBeginRecaptureToGraph")
def begin(stream: int, mode: int, handle: int, callback: int, data: int) -> None:
    """Let the work of a stream take the place of that of the nodes of a graph, in their order.

    The client may have a function that is called for each node whose parameters change, and that refuses them by its result.
    """
    begin_recapture(stream, mode, handle, callback, data, describe)


def begin_recapture(stream: int, mode: int, handle: int, callback: int, data: int, described: Describe) -> None:
    """The same, with structures of an interface."""
    called = CALLBACK(callback) if callback else None

    def agreed(node: Node, task: Task) -> bool:
        if called is None or same(node.task, task):
            return True
        before, now = (ctypes.create_string_buffer(NODE) for _ in range(2))
        described(node.type, node.task, ctypes.addressof(before))
        described(node.type, task, ctypes.addressof(now))
        return not called(data, session().handles.handle(node), ctypes.addressof(before), ctypes.addressof(now), ELIGIBLE)

    found, how = capturable(stream, mode)
    found.begin_recapture(how, separate(handle), agreed)


def same(task: Task, other: Task) -> bool:
    """Do two tasks of nodes of one type do the same?"""
    match task, other:
        case FunctionTask(description=description), FunctionTask(description=theirs) if description:
            return description == theirs
        case EventNode(), EventNode():
            return (task.event, task.records) == (other.event, other.records)
    return task == other


__all__ = ["begin_recapture"]
