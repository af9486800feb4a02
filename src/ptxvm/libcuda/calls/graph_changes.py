"""What of the work of a node can change (driver API, `cuGraphExecUpdate`, `cuGraphExecMemcpyNodeSetParams` and its like)."""

from __future__ import annotations

import ctypes
from typing import TypeVar

from ptxvm.driver.graph import Node, Task
from ptxvm.driver.graph_executables import Executable, UpdateResult
from ptxvm.driver.launch import FunctionTask, Launch
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.session import session
from ptxvm.libcuda.structures import Copy3D, MemsetNode

S = TypeVar("S", Copy3D, MemsetNode)
ARRAY = 3  # CUmemorytype


def replace(node: Node, task: Task, type: int) -> None:
    """Let a node of a type do something else; DriverError for a node of another type.

    A launch keeps its cluster, and whether it is cooperative, which are attributes of the node; what kernels have changed
    is overwritten.
    """
    if node.type != type:
        raise DriverError(Result.INVALID_VALUE, f"the node is one of type {node.type}, not {type}")
    if isinstance(task, Launch) and isinstance(node.task, Launch):
        task = task.as_cooperative(node.task.configuration.options.cooperative)
        if node.task.configuration.cluster is not None:
            task = task.in_clusters(node.task.configuration.cluster)
        if node.task.record is not None:
            task = task.of_node(node.task.record)
    node.task = task


def replace_in(handle: int, which: int, task: Task, type: int) -> None:
    """The same for a node of an executable graph; DriverError for a change that such a graph does not allow."""
    node = executable_node(handle, which)
    if node.type == type and (found := refused(node.task, task)) is not None:
        raise DriverError(Result.INVALID_VALUE, found[1])
    if any(has_rows(each) for each in (node.task, task)):
        raise DriverError(Result.INVALID_VALUE, "only a copy of one dimension can be changed in an executable graph")
    replace(node, task, type)


def executable_node(handle: int, node: int) -> Node:
    """The copy of a node in an executable graph."""
    handles = session().handles
    return handles.object(handle, Executable).node(handles.object(node, Node))


def refused(before: Task, after: Task) -> tuple[UpdateResult, str] | None:
    """Why an executable graph does not do one task for another of the same type; None where it does."""
    if isinstance(before, Launch) and isinstance(after, Launch):
        if before.context.device is not after.context.device:
            return UpdateResult.UNSUPPORTED_FUNCTION_CHANGE, "the kernel is one of another device"
    elif (copies := both(Copy3D, before, after)) is not None:
        if kinds(copies[0]) != kinds(copies[1]):
            return UpdateResult.PARAMETERS_CHANGED, "a copy changes between arrays and memory"
    elif (fills := both(MemsetNode, before, after)) is not None and fixed(fills[0]) != fixed(fills[1]):
        return UpdateResult.PARAMETERS_CHANGED, "a fill of rows changes its extents"
    return None


def both(type: type[S], *tasks: Task) -> list[S] | None:
    """The structures of tasks, if all of them are described by one of a type."""
    found = [each.description for each in tasks if isinstance(each, FunctionTask)]
    if len(found) != len(tasks) or any(len(each) != ctypes.sizeof(type) for each in found):
        return None
    return [type.from_buffer_copy(each) for each in found]


def kinds(copy: Copy3D) -> tuple[bool, bool]:
    """Is the source of a copy an array, and the target?"""
    return copy.source_type == ARRAY, copy.target_type == ARRAY


def fixed(fill: MemsetNode) -> tuple[int, ...]:
    """The extents of a fill that no change touches: of one with rows all, of one without that it has none."""
    return (fill.height, fill.pitch, fill.element, fill.width) if fill.height > 1 else (1,)


def has_rows(task: Task) -> bool:
    """Is a task a copy of more than one dimension?"""
    found = both(Copy3D, task)
    return found is not None and max(found[0].height, found[0].depth) > 1


__all__ = ["executable_node", "refused", "replace", "replace_in"]
