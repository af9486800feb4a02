"""Updates of executable graphs, and data of edges (driver API, "Graph Management": cuGraphExecUpdate, cuGraphGetEdges)."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest
from test_conditional_nodes import ASSIGN_DEFAULT, IF, SWITCH, add, append, condition, conditional

from ptxvm.libcuda.structures import UpdateInformation

UPDATED, TOPOLOGY_CHANGED, TYPE_CHANGED, PARAMETERS_CHANGED = 0, 2, 3, 5  # CUgraphExecUpdateResult
FAILURE = 910  # CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE
ANY = 0xFF


def empty(cuda, graph, *after):
    """A node without work, behind others."""
    before = (c_void_p * len(after))(*(each.value for each in after))
    return cuda.handle("cuGraphAddEmptyNode", graph, before, c_size_t(len(after)))


def line(cuda, count):
    """A graph of nodes in a row, and its nodes."""
    graph, nodes = cuda.handle("cuGraphCreate", 0), []
    for _ in range(count):
        nodes.append(empty(cuda, graph, *nodes[-1:]))
    return graph, nodes


def updated(cuda, graph, other):
    """The result of an update of a graph by another, and what it says."""
    executable, found = cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0)), UpdateInformation()
    ctypes.memset(byref(found), ANY, ctypes.sizeof(found))
    return cuda.library.cuGraphExecUpdate_v2(executable, other, byref(found)), found


def test_a_graph_of_the_same_form_updates(cuda):
    code, found = updated(cuda, line(cuda, 2)[0], line(cuda, 2)[0])
    assert (code, found.result, found.node, found.before) == (0, UPDATED, 0, 0)


def test_another_number_of_nodes_is_another_topology(cuda):
    code, found = updated(cuda, line(cuda, 2)[0], line(cuda, 3)[0])
    assert (code, found.result, found.node) == (FAILURE, TOPOLOGY_CHANGED, 0)


def test_another_number_of_dependencies_is_another_topology(cuda):
    other = cuda.handle("cuGraphCreate", 0)
    empty(cuda, other)
    apart = empty(cuda, other)
    code, found = updated(cuda, line(cuda, 2)[0], other)
    assert (code, found.result, found.node) == (FAILURE, TOPOLOGY_CHANGED, apart.value)


def test_another_dependency_is_named(cuda):
    """The first sink makes pairs of the roots, so another root before the second one does not match."""
    graphs = []
    for chosen in (0, 1):
        graph = cuda.handle("cuGraphCreate", 0)
        roots = [empty(cuda, graph), empty(cuda, graph)]
        empty(cuda, graph, *roots)
        graphs.append((graph, roots[chosen], empty(cuda, graph, roots[chosen])))
    (graph, _, _), (other, root, last) = graphs
    code, found = updated(cuda, graph, other)
    assert (code, found.result, found.node, found.before) == (FAILURE, TOPOLOGY_CHANGED, last.value, root.value)


def test_more_nodes_at_the_end_are_another_topology(cuda):
    graphs = []
    for split in (False, True):
        graph = cuda.handle("cuGraphCreate", 0)
        root = empty(cuda, graph)
        second = empty(cuda, graph, root)
        graphs.append((graph, empty(cuda, graph, root if split else second)))
    (graph, _), (other, last) = graphs
    for code, found, node in ((*updated(cuda, graph, other), last.value), (*updated(cuda, other, graph), 0)):
        assert (code, found.result, found.node) == (FAILURE, TOPOLOGY_CHANGED, node)


def test_the_order_in_which_nodes_were_made_does_not_matter_before_others(cuda):
    """CUDA C++ Programming Guide, "Updating Instantiated Graphs": nodes at the end are pairs, and what is before them."""
    graph, other = cuda.handle("cuGraphCreate", 0), cuda.handle("cuGraphCreate", 0)
    first = add(cuda, graph, append(cuda, 1))
    last = add(cuda, graph, append(cuda, 2), [first])
    their_last, their_first = add(cuda, other, append(cuda, 4)), add(cuda, other, append(cuda, 3))
    cuda.cuGraphAddDependencies(other, byref(their_first), byref(their_last), c_size_t(1))
    executable, stream = cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0)), cuda.stream()
    cuda.cuGraphExecUpdate_v2(executable, other, byref(UpdateInformation()))
    cuda.cuGraphExecNodeSetParams(executable, last, byref(append(cuda, 5)))
    cuda.cuGraphLaunch(executable, stream)
    cuda.cuStreamSynchronize(stream)
    assert cuda.cell.value == 35


def test_a_graph_with_a_cycle_is_of_no_form(cuda):
    other, nodes = cuda.handle("cuGraphCreate", 0), []
    nodes += [empty(cuda, other), empty(cuda, other)]
    for before, after in (nodes, nodes[::-1]):
        cuda.cuGraphAddDependencies(other, byref(before), byref(after), c_size_t(1))
    empty(cuda, other)
    code, found = updated(cuda, line(cuda, 3)[0], other)
    assert (code, found.result) == (FAILURE, TOPOLOGY_CHANGED)


# ── what comes with the work ────────────────────────────────────────────────────────────


def with_condition(cuda, value, kind=IF):
    """A graph that appends a digit where its condition says so."""
    graph = cuda.handle("cuGraphCreate", 0)
    _, (body,) = conditional(cuda, graph, condition(cuda, graph, value, ASSIGN_DEFAULT), kind, 1)
    add(cuda, body, append(cuda, 7))
    return graph


@pytest.mark.parametrize(("before", "after"), [(0, 1), (1, 0)])
def test_conditions_are_those_of_the_other_graph(cuda, before, after):
    """Their default values are updated, and they live as long as the executable graph."""
    executable = cuda.handle("cuGraphInstantiateWithFlags", with_condition(cuda, before), c_uint64(0))
    other = with_condition(cuda, after)
    cuda.cuGraphExecUpdate_v2(executable, other, byref(UpdateInformation()))
    cuda.cuGraphDestroy(other)
    with_condition(cuda, before)  # which takes the place of what was freed
    stream = cuda.stream()
    cuda.cuGraphLaunch(executable, stream)
    cuda.cuStreamSynchronize(stream)
    assert cuda.cell.value == 7 * after


def test_a_condition_does_not_choose_otherwise(cuda):
    code, found = updated(cuda, with_condition(cuda, 0), with_condition(cuda, 0, SWITCH))
    assert (code, found.result) == (FAILURE, PARAMETERS_CHANGED)


def test_objects_of_the_client_are_those_of_the_other_graph(cuda):
    ended, graphs = [], [line(cuda, 1)[0] for _ in range(2)]
    end = ctypes.CFUNCTYPE(None, c_void_p)(ended.append)
    executable = None
    for number, graph in enumerate(graphs, 1):
        resource = cuda.handle("cuUserObjectCreate", c_void_p(number), end, c_uint(1), c_uint(1))
        cuda.cuGraphRetainUserObject(graph, resource, c_uint(1), c_uint(1))
        executable = executable or cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0))
    cuda.cuGraphDestroy(graphs[0])
    cuda.cuGraphExecUpdate_v2(executable, graphs[1], byref(UpdateInformation()))
    cuda.cuGraphDestroy(graphs[1])
    assert ended == [1]
    cuda.cuGraphExecDestroy(executable)
    assert ended == [1, 2]


def test_another_type_is_named_by_both_forms_of_the_call(cuda):
    graph, _ = line(cuda, 1)
    other, inner = cuda.handle("cuGraphCreate", 0), line(cuda, 1)[0]
    child = cuda.handle("cuGraphAddChildGraphNode", other, None, c_size_t(0), inner)
    code, found = updated(cuda, graph, other)
    assert (code, found.result, found.node) == (FAILURE, TYPE_CHANGED, child.value)
    executable, node, result = cuda.handle("cuGraphInstantiateWithFlags", graph, c_uint64(0)), c_void_p(), c_int()
    assert cuda.library.cuGraphExecUpdate(executable, other, byref(node), byref(result)) == FAILURE
    assert (node.value, result.value) == (child.value, TYPE_CHANGED)


def test_nested_graphs_have_the_same_form_too(cuda):
    graphs = [cuda.handle("cuGraphCreate", 0) for _ in range(2)]
    for graph, count in zip(graphs, (1, 2), strict=True):
        cuda.handle("cuGraphAddChildGraphNode", graph, None, c_size_t(0), line(cuda, count)[0])
    code, found = updated(cuda, *graphs)
    assert (code, found.result) == (FAILURE, TOPOLOGY_CHANGED)


@pytest.mark.parametrize("name", ["cuGraphNodeGetDependencies_v2", "cuGraphNodeGetDependentNodes_v2"])
def test_edges_of_a_node_have_data_of_zeros(cuda, name):
    _, nodes = line(cuda, 3)
    count, found, data = c_size_t(3), (c_void_p * 3)(), (c_uint64 * 3)(*[ANY] * 3)
    getattr(cuda, name)(nodes[1], found, data, byref(count))
    assert count.value == 1
    assert list(data) == [0, ANY, ANY]


def test_edges_of_a_graph_have_data_of_zeros(cuda):
    graph, nodes = line(cuda, 3)
    count, before, after, data = c_size_t(3), (c_void_p * 3)(), (c_void_p * 3)(), (c_uint64 * 3)(*[ANY] * 3)
    cuda.cuGraphGetEdges_v2(graph, before, after, data, byref(count))
    assert list(before[:2]) == [nodes[0].value, nodes[1].value]
    assert list(data) == [0, 0, ANY]


def test_a_capture_lends_the_data_of_its_edges(cuda):
    stream = cuda.stream()
    cuda.cuStreamBeginCapture_v2(stream, c_int(0))
    cuda.launch(stream, b"put", cuda.cell, 1)
    status, number, graph, count = c_int(), c_uint64(), c_void_p(), c_size_t()
    nodes, edges = ctypes.POINTER(c_uint64)(), ctypes.POINTER(c_uint64)()
    cuda.cuStreamGetCaptureInfo_v3(stream, *map(byref, (status, number, graph, nodes, edges, count)))
    assert (count.value, edges[0]) == (1, 0)
    cuda.cuStreamEndCapture(stream, byref(graph))
