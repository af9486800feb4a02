"""What graphs and nodes are called: their numbers, the graph that a node is in, and a picture of all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ptxvm.driver.graph import Child, Conditional, Graph, Node
from ptxvm.driver.graph_executables import Executable
from ptxvm.driver.launch import Launch
from ptxvm.libcuda.c_values import put_i32, put_u64, string
from ptxvm.libcuda.calls.graph import graph_of
from ptxvm.libcuda.session import function, session

KINDS = (
    "kernel", "memcpy", "memset", "host", "graph", "empty", "event wait", "event record", "semaphore signal", "semaphore wait",
    "memory allocation", "memory free", "memory operations", "conditional",
)  # fmt: skip
"""The kinds of nodes by CUgraphNodeType."""


@function("cuGraphNodeGetContainingGraph")
def graph_with(handle: int, out: int) -> None:
    """The graph that a node is in."""
    put_u64(out, session().handles.handle(session().handles.object(handle, Node).graph))


@function("cuGraphNodeGetLocalId")
def local_number(handle: int, out: int) -> None:
    """A number that no other node of the graph has."""
    put_i32(out, session().handles.object(handle, Node).number)


@function("cuGraphNodeGetToolsId")
def number(handle: int, out: int) -> None:
    """A number that no other node has."""
    put_u64(out, session().handles.object(handle, Node).number)


@function("cuGraphGetId")
def graph_number(handle: int, out: int) -> None:
    """A number that no other graph has."""
    put_i32(out, graph_of(handle).number)


@function("cuGraphExecGetId")
def executable_number(handle: int, out: int) -> None:
    """A number that no other executable graph has."""
    put_i32(out, session().handles.object(handle, Executable).graph.number)


@function("cuGraphDebugDotPrint")
def draw(handle: int, path: int, flags: int) -> None:
    """Write a graph as one of DOT into a file; graphs that are nodes stand in boxes."""
    lines = ["digraph cuda {", "node [shape=box];", *drawn(graph_of(handle)), "}"]
    Path(string(path)).write_text("\n".join(lines) + "\n", encoding="utf-8")


def drawn(graph: Graph) -> Iterator[str]:
    """The lines of DOT for the nodes of a graph."""
    for node in graph.nodes:
        name = node.task.kernel.function.name if isinstance(node.task, Launch) else ""
        yield f'n{node.number} [label="{node.number}: {KINDS[node.type]} {name}"];'.replace(' "]', '"]')
        yield from (f"n{each.number} -> n{node.number};" for each in node.after)
        inner = [node.task.graph] if isinstance(node.task, Child) else []
        for each in node.task.bodies if isinstance(node.task, Conditional) else inner:
            yield f'subgraph cluster_{each.number} {{ label="of {node.number}";'
            yield from drawn(each)
            yield "}"
