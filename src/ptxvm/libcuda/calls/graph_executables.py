"""Executable graphs: instantiation, launch, and changes of what they do."""

from __future__ import annotations

from ptxvm.driver.device_graphs import UnsupportedNodeError
from ptxvm.driver.graph import Graph, Node, StructureError
from ptxvm.driver.graph_executables import Executable, ExecutableLaunch, UpdateError, UpdateResult, is_changed_by_kernels
from ptxvm.driver.graph_memory import begin_launch
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import put_i32, put_u64, put_u64_if, structure_at, u64
from ptxvm.libcuda.calls.graph import (
    GRAPH,
    HOST,
    KERNEL,
    MEMCPY,
    MEMSET,
    OF_MEMORY,
    copy_task,
    fill_task,
    host_task,
    kernel_task,
    separate,
)
from ptxvm.libcuda.calls.graph_changes import refused, replace_in
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.structures import InstantiateParameters, UpdateInformation

INSTANTIATED, INSTANTIATION_ERROR, INVALID_STRUCTURE, UNSUPPORTED_NODE, SEVERAL_CONTEXTS = range(5)  # CUgraphInstantiateResult
UPLOAD = 2  # CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD


@function("cuGraphInstantiate", "cuGraphInstantiate_v2")
def instantiate_with_log(out: int, handle: int, node: int, log: int, size: int) -> None:
    """A graph that can be launched; nothing is logged."""
    instantiate(out, handle, 0)


@function("cuGraphInstantiateWithFlags")
def instantiate(out: int, handle: int, flags: int) -> None:
    """A graph that can be launched."""
    put_u64(out, 0)
    must_be_instantiable(separate(handle))
    made = Executable(separate(handle), flags)
    put_u64(out, session().handles.handle(made, session().driver.device_graphs.enter(made, session().context)))


def must_be_instantiable(graph: Graph) -> None:
    """DriverError for a second executable graph where memory is allocated or freed, or kernels change nodes: there is one."""
    if any(node.type in OF_MEMORY for node in graph.all_nodes()) or is_changed_by_kernels(graph):
        known = session().handles.objects.values()
        if any(isinstance(each, Executable) and each.original is graph for each in list(known)):
            raise DriverError(Result.INVALID_VALUE, "the graph has an executable graph, and may have one at a time")


@function("cuGraphInstantiateWithParams")
def instantiate_with_parameters(out: int, handle: int, parameters: int) -> None:
    """A graph that can be launched; the structure tells that it was made, or of the node because of which it cannot be."""
    d = structure_at(InstantiateParameters, parameters, writing=True)
    d.failed, d.result = 0, INSTANTIATION_ERROR
    try:
        instantiate(out, handle, d.flags)
    except StructureError as failure:
        d.failed, d.result = handle_of(failure.node), INVALID_STRUCTURE
        raise
    except UnsupportedNodeError as failure:
        d.failed, d.result = handle_of(failure.node), SEVERAL_CONTEXTS if failure.of_several_contexts else UNSUPPORTED_NODE
        raise
    if d.flags & UPLOAD:
        upload(u64(out), d.stream)
    d.result = INSTANTIATED


@function("cuGraphExecDestroy", any_state=True)
def destroy_executable(handle: int) -> None:
    """Forget an executable graph; launches that are under way keep it."""
    executable = session().handles.object(handle, Executable)
    session().handles.drop(handle)
    session().driver.device_graphs.forget(executable)


@function("cuGraphUpload")
def upload(handle: int, stream: int) -> None:
    """Prepare a launch: kernels launch what was uploaded."""
    session().driver.device_graphs.upload(session().handles.object(handle, Executable))


@function("cuGraphLaunch")
def launch_graph(handle: int, stream: int) -> None:
    """Put a graph on a stream."""
    executable = session().handles.object(handle, Executable)
    begin_launch(executable)
    found = session().stream(stream)
    found.put(session().driver.device_graphs.launch(executable, found.context) or ExecutableLaunch(executable), GRAPH)


@function("cuGraphExecKernelNodeSetParams", "cuGraphExecKernelNodeSetParams_v2")
def set_executable_kernel(handle: int, node: int, description: int) -> None:
    """Change the launch of a node."""
    replace_in(handle, node, kernel_task(description), KERNEL)


@function("cuGraphExecMemcpyNodeSetParams")
def set_executable_copy(handle: int, node: int, description: int, context: int) -> None:
    """Change the copy of a node."""
    replace_in(handle, node, copy_task(description), MEMCPY)


@function("cuGraphExecMemsetNodeSetParams")
def set_executable_fill(handle: int, node: int, description: int, context: int) -> None:
    """Change the fill of a node."""
    replace_in(handle, node, fill_task(description), MEMSET)


@function("cuGraphExecHostNodeSetParams")
def set_executable_host(handle: int, node: int, description: int) -> None:
    """Change the call of a node."""
    replace_in(handle, node, host_task(description), HOST)


@function("cuGraphExecUpdate")
def update(handle: int, graph: int, node: int, result: int) -> None:
    """Take the work of a graph of the same form."""
    put_u64_if(node, 0)
    try:
        take_over(handle, graph, result)
    except UpdateError as failure:
        put_u64_if(node, handle_of(failure.node))
        raise


@function("cuGraphExecUpdate_v2")
def update_v2(handle: int, graph: int, information: int) -> None:
    """The same; the information has the reason, the node and its dependency where the forms differ."""
    found = structure_at(UpdateInformation, information, writing=True)
    found.node, found.before = 0, 0
    try:
        take_over(handle, graph, information)
    except UpdateError as failure:
        found.node, found.before = handle_of(failure.node), handle_of(failure.before)
        raise


def take_over(handle: int, graph: int, result: int) -> None:
    """Update an executable graph, and put the reason of a failure."""
    put_i32(result, UpdateResult.ERROR)
    try:
        session().handles.object(handle, Executable).update(separate(graph), refused)
    except UpdateError as failure:
        put_i32(result, failure.reason)
        raise
    put_i32(result, UpdateResult.SUCCESS)


def handle_of(node: Node | None) -> int:
    """The handle of a node, null for none."""
    return 0 if node is None else session().handles.handle(node)
