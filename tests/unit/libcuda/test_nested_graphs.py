"""Graphs as nodes of others: who has them, their clones, and changes of them (driver API, "Graph Management")."""

from __future__ import annotations

import ctypes
import time
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest
from test_conditional_nodes import IF, add, append, condition, conditional, described, run
from test_graph_memory import AUTO_FREE, ON_DEVICE

from ptxvm.libcuda.structures import AllocationNode, PoolProperties

CHILD, CLONE, MOVE, INVALID = 4, 0, 1, -1  # CUgraphNodeType, CUgraphChildGraphNodeOwnership
INVALID_VALUE, NOT_SUPPORTED = 1, 801


def empty_graph(cuda):
    return cuda.handle("cuGraphCreate", 0)


def child_node(graph, ownership):
    return described(CHILD, graph.value.to_bytes(8, "little") + ownership.to_bytes(8, "little", signed=True))


def child_of(cuda, node):
    return got(cuda, "cuGraphChildGraphNodeGetGraph", node)


def got(cuda, name, *arguments):
    """What a function puts behind its last argument."""
    found = c_void_p()
    getattr(cuda, name)(*arguments, byref(found))
    return found


def allocation(cuda, graph):
    node = AllocationNode(PoolProperties(type=1, location=ON_DEVICE), size=64)
    return cuda.library.cuGraphAddMemAllocNode(byref(c_void_p()), graph, None, c_size_t(0), byref(node))


def instantiated(cuda, graph, flags=0):
    return cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(flags))


def launched(cuda, executable):
    """What a launch appends to the cell."""
    cuda.cell.value, stream = 0, cuda.stream()
    cuda.cuGraphLaunch(executable, stream)
    cuda.cuStreamSynchronize(stream)
    return cuda.cell.value


def test_the_copy_of_a_node_is_found_in_a_child_graph(cuda):
    parent, child = empty_graph(cuda), empty_graph(cuda)
    first = add(cuda, child, append(cuda, 1))
    second = add(cuda, child, append(cuda, 2), [first])
    node = cuda.handle("cuGraphAddChildGraphNode", parent, None, c_size_t(0), child)
    embedded = child_of(cuda, node)
    copies = [cuda.handle("cuGraphNodeFindInClone", each, embedded) for each in (first, second)]
    assert [got(cuda, "cuGraphNodeGetContainingGraph", each).value for each in copies] == [embedded.value] * 2
    assert cuda.library.cuGraphNodeFindInClone(byref(c_void_p()), copies[0], embedded) == INVALID_VALUE
    cuda.cuGraphNodeSetParams(copies[1], byref(append(cuda, 3)))
    run(cuda, parent)
    assert cuda.cell.value == 13


def test_a_clone_has_copies_of_child_graphs(cuda):
    parent, child = empty_graph(cuda), empty_graph(cuda)
    add(cuda, child, append(cuda, 1))
    node = cuda.handle("cuGraphAddChildGraphNode", parent, None, c_size_t(0), child)
    clone = cuda.handle("cuGraphClone", parent)
    twin = cuda.handle("cuGraphNodeFindInClone", node, clone)
    add(cuda, child_of(cuda, twin), append(cuda, 2))
    assert child_of(cuda, twin).value != child_of(cuda, node).value
    run(cuda, parent)
    assert cuda.cell.value == 1


def test_an_executable_graph_has_copies_of_nested_graphs(cuda):
    graph = empty_graph(cuda)
    child = empty_graph(cuda)
    add(cuda, child, append(cuda, 1))
    _, (body,) = conditional(cuda, graph, condition(cuda, graph, 1), IF, 1)
    chosen = add(cuda, body, append(cuda, 2))
    node = cuda.handle("cuGraphAddChildGraphNode", graph, None, c_size_t(0), child)
    (inner,) = nodes_of(cuda, child_of(cuda, node))
    executable = instantiated(cuda, graph)
    cuda.cuGraphNodeSetParams(inner, byref(append(cuda, 7)))
    cuda.cuGraphNodeSetParams(chosen, byref(append(cuda, 8)))
    assert launched(cuda, executable) == 21
    cuda.cuGraphExecNodeSetParams(executable, inner, byref(append(cuda, 3)))
    assert launched(cuda, executable) == 23
    cuda.cuGraphNodeSetEnabled(executable, inner, c_uint(0))
    assert launched(cuda, executable) == 2
    cuda.cuGraphNodeSetEnabled(executable, inner, c_uint(1))
    cuda.cuGraphExecUpdate_v2(executable, graph, byref((c_uint64 * 3)()))
    assert launched(cuda, executable) == 87
    cuda.cuGraphExecNodeSetParams(executable, inner, byref(append(cuda, 4)))
    assert launched(cuda, executable) == 84
    (still,) = nodes_of(cuda, child_of(cuda, node))
    assert still.value == inner.value


def nodes_of(cuda, graph):
    found, count = (c_void_p * 8)(), c_size_t(8)
    cuda.cuGraphGetNodes(graph, found, byref(count))
    return [c_void_p(found[n]) for n in range(count.value)]


@pytest.mark.parametrize("form", ["cuGraphExecChildGraphNodeSetParams", "cuGraphExecNodeSetParams"])
def test_the_child_graph_of_an_executable_graph_takes_one_of_the_same_form(cuda, form):
    parent, child, other, longer = (empty_graph(cuda) for _ in range(4))
    for graph, digits in ((child, [1]), (other, [2]), (longer, [3, 4])):
        for digit in digits:
            add(cuda, graph, append(cuda, digit))
    node = cuda.handle("cuGraphAddChildGraphNode", parent, None, c_size_t(0), child)
    executable = instantiated(cuda, parent)

    def set_child(graph):
        takes_structure = form == "cuGraphExecNodeSetParams"
        return cuda.library[form](executable, node, byref(child_node(graph, CLONE)) if takes_structure else graph)

    assert set_child(other) == 0
    assert launched(cuda, executable) == 2
    assert set_child(longer) == INVALID_VALUE
    assert launched(cuda, executable) == 2


def test_a_graph_that_was_moved_belongs_to_its_node(cuda):
    parent, child = empty_graph(cuda), empty_graph(cuda)
    inner = add(cuda, child, append(cuda, 1))
    assert allocation(cuda, child) == 0
    assert cuda.library.cuGraphAddChildGraphNode(byref(c_void_p()), parent, None, c_size_t(0), child) == NOT_SUPPORTED
    node = add(cuda, parent, child_node(child, MOVE))
    assert child_of(cuda, node).value == child.value
    told = (c_int * 64)()
    cuda.cuGraphNodeGetParams(node, told)
    assert (told[0], told[6]) == (CHILD, MOVE)
    executable = instantiated(cuda, parent)
    refused = [
        cuda.library.cuGraphInstantiateWithFlags(byref(c_void_p()), child, c_uint64(0)),
        cuda.library.cuGraphDestroy(child),
        cuda.library.cuGraphAddChildGraphNode(byref(c_void_p()), parent, None, c_size_t(0), child),
        cuda.library.cuGraphAddNode_v2(byref(c_void_p()), parent, None, None, c_size_t(0), byref(child_node(child, MOVE))),
        cuda.library.cuGraphExecUpdate_v2(executable, child, byref((c_uint64 * 3)())),
        allocation(cuda, child),
    ]
    assert refused == [INVALID_VALUE] * 6
    cuda.cuGraphNodeSetParams(inner, byref(append(cuda, 6)))
    assert launched(cuda, executable) == 1
    again = cuda.library.cuGraphInstantiateWithFlags(byref(c_void_p()), parent, c_uint64(0))
    assert again == INVALID_VALUE  # a graph that allocates has one executable graph at a time
    cuda.cuGraphExecDestroy(executable)
    assert launched(cuda, instantiated(cuda, parent, AUTO_FREE)) == 6
    cuda.cuGraphDestroy(parent)
    assert cuda.library.cuGraphGetNodes(child, None, byref(c_size_t())) != 0


def test_graphs_that_cannot_be_copied_are_refused(cuda):
    parent, with_memory, with_condition = (empty_graph(cuda) for _ in range(3))
    allocation(cuda, with_memory)
    conditional(cuda, with_condition, condition(cuda, with_condition, 1), IF, 1)
    for graph in (with_memory, with_condition):
        assert cuda.library.cuGraphClone(byref(c_void_p()), graph) == NOT_SUPPORTED
        assert cuda.library.cuGraphAddChildGraphNode(byref(c_void_p()), parent, None, c_size_t(0), graph) == NOT_SUPPORTED
    moved = byref(child_node(with_condition, MOVE))
    assert cuda.library.cuGraphAddNode_v2(byref(c_void_p()), parent, None, None, c_size_t(0), moved) == NOT_SUPPORTED
    unknown = byref(child_node(with_memory, INVALID))
    assert cuda.library.cuGraphAddNode_v2(byref(c_void_p()), parent, None, None, c_size_t(0), unknown) == INVALID_VALUE


def test_what_a_graph_uses_is_there_until_its_launches_have_ended(cuda):
    """cuGraphExecDestroy: a graph that is in flight is freed on completion.  A condition is memory of the graph."""
    ended, stream, graph = [], cuda.stream(), empty_graph(cuda)
    end = ctypes.CFUNCTYPE(None, c_void_p)(ended.append)
    resource = cuda.handle("cuUserObjectCreate", c_void_p(5), end, c_uint(1), c_uint(1))
    cuda.cuGraphRetainUserObject(graph, resource, c_uint(1), c_uint(1))
    _, (body,) = conditional(cuda, graph, condition(cuda, graph, value=1, flags=1), IF, 1)
    add(cuda, body, append(cuda, 7))
    executable = instantiated(cuda, graph)
    cuda.cuGraphDestroy(graph)
    cuda.launch(stream, b"await", cuda.flag, 1)
    cuda.cuGraphLaunch(executable, stream)
    cuda.cuGraphExecDestroy(executable)
    assert not ended
    cuda.flag.value = 1
    cuda.cuStreamSynchronize(stream)
    assert cuda.cell.value == 7
    deadline = time.monotonic() + 60
    while not ended:  # the thread of the stream forgets its work last
        assert time.monotonic() < deadline


def test_objects_of_the_client_end_with_the_last_graph_that_has_a_copy(cuda):
    ended = []
    end = ctypes.CFUNCTYPE(None, c_void_p)(ended.append)
    parent, child = empty_graph(cuda), empty_graph(cuda)
    resource = cuda.handle("cuUserObjectCreate", c_void_p(5), end, c_uint(1), c_uint(1))
    cuda.cuGraphRetainUserObject(child, resource, c_uint(1), c_uint(1))
    cuda.handle("cuGraphAddChildGraphNode", parent, None, c_size_t(0), child)
    executable = instantiated(cuda, parent)
    cuda.cuGraphDestroy(child)
    cuda.cuGraphDestroy(parent)
    assert not ended
    cuda.cuGraphExecDestroy(executable)
    assert ended == [5]


def test_references_of_a_user_object_come_in_numbers_that_there_are(cuda):
    """One at least, INT_MAX at most, and the flags that the documentation names (driver API, "Graph Management")."""
    end = ctypes.CFUNCTYPE(None, c_void_p)(lambda _: None)
    library, out, graph = cuda.library, c_void_p(), empty_graph(cuda)
    resource = cuda.handle("cuUserObjectCreate", c_void_p(5), end, c_uint(1), c_uint(1))
    for count in (0, 2**31):
        assert library.cuUserObjectCreate(byref(out), c_void_p(5), end, c_uint(count), c_uint(1)) == INVALID_VALUE
        assert library.cuUserObjectRetain(resource, c_uint(count)) == INVALID_VALUE
        assert library.cuUserObjectRelease(resource, c_uint(count)) == INVALID_VALUE
        assert library.cuGraphRetainUserObject(graph, resource, c_uint(count), c_uint(0)) == INVALID_VALUE
        assert library.cuGraphReleaseUserObject(graph, resource, c_uint(count)) == INVALID_VALUE
    for flags in (0, 2, 3):
        assert library.cuUserObjectCreate(byref(out), c_void_p(5), end, c_uint(1), c_uint(flags)) == INVALID_VALUE
    assert library.cuGraphRetainUserObject(graph, resource, c_uint(1), c_uint(2)) == INVALID_VALUE
    cuda.cuUserObjectRelease(resource, c_uint(1))
