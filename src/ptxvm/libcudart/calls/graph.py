"""Nodes of graphs, where the driver's functions have other structures."""

from __future__ import annotations

import ctypes

from ptxvm.driver.graph import Node, Task
from ptxvm.driver.launch import FunctionTask, Launch
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda import structures
from ptxvm.libcuda.c_values import i32, put_bytes, structure_at, u64s
from ptxvm.libcuda.calls import (
    graph as driver,
    graph_any_node as any_node,
    graph_changes as changes,
    graph_executables as executables,
    graph_recapture,
)
from ptxvm.libcuda.calls.copies import copied as driver_copied, rectangular, task
from ptxvm.libcuda.calls.launch import launch
from ptxvm.libcuda.session import session
from ptxvm.libcudart.calls.copies import check_kind, copied, within
from ptxvm.libcudart.calls.execution_contexts import handle_of
from ptxvm.libcudart.calls.launch import kernel
from ptxvm.libcudart.calls.volumes import parameters_of, volume
from ptxvm.libcudart.runtime_state import function, runtime
from ptxvm.libcudart.structures import Copy3D, KernelNode, ThreeSizes


def kernel_task(description: int) -> Launch:
    """The launch that a structure describes."""
    d = structure_at(KernelNode, description)
    grid, block = d.grid.extent(), d.block.extent()
    return launch(kernel(d.function, grid, block, d.shared), grid, block, d.shared, d.parameters, d.extra)


def copy_task(description: int) -> FunctionTask:
    """The copy that a structure describes."""
    return task(rectangular(volume(structure_at(Copy3D, description))))


def node(handle: int) -> Node:
    """A node by its handle."""
    return session().handles.object(handle, Node)


@function("cudaGraphAddKernelNode")
def add_kernel(out: int, handle: int, after: int, count: int, description: int) -> None:
    """A launch as a node."""
    driver.add(out, handle, after, count, kernel_task(description), driver.KERNEL)


@function("cudaGraphKernelNodeSetParams")
def set_kernel(handle: int, description: int) -> None:
    """Change the launch of a node."""
    changes.replace(node(handle), kernel_task(description), driver.KERNEL)


@function("cudaGraphKernelNodeGetParams")
def get_kernel(handle: int, description: int) -> None:
    """The launch of a node."""
    found = node(handle).task
    if not isinstance(found, Launch):
        raise DriverError(Result.INVALID_VALUE, "the node is no launch")
    describe_launch(found, description)


def describe_launch(task: Launch, description: int) -> None:
    """Fill the structure of a launch; its arguments live as long as the launch."""
    pointers, data = driver.parameter_pointers(task)
    session().keep(task, (pointers, data))
    d = structure_at(KernelNode, description, writing=True)
    d.function = function_of(task)
    d.grid, d.block, d.shared = (
        ThreeSizes(*task.configuration.grid),
        ThreeSizes(*task.configuration.block),
        task.configuration.shared,
    )
    d.parameters, d.extra = ctypes.addressof(pointers), 0


def function_of(task: Launch) -> int:
    """The address of the program's function for the kernel of a launch, else the handle of the kernel."""
    for address, symbol in runtime().functions.items():
        if symbol.name == task.kernel.kernel.name and task.kernel.module in symbol.fatbin.modules.values():
            return address
    return session().handles.handle(task.kernel)


@function("cudaGraphExecKernelNodeSetParams")
def set_executable_kernel(handle: int, which: int, description: int) -> None:
    """Change the launch of a node of an executable graph."""
    changes.replace_in(handle, which, kernel_task(description), driver.KERNEL)


@function("cudaGraphAddMemcpyNode")
def add_copy(out: int, handle: int, after: int, count: int, description: int) -> None:
    """A copy as a node."""
    driver.add(out, handle, after, count, copy_task(description), driver.MEMCPY)


@function("cudaGraphMemcpyNodeGetParams")
def get_copy(handle: int, description: int) -> None:
    """The copy of a node."""
    describe_copy(node(handle).task, description)


def describe_copy(task: Task, description: int) -> None:
    """Fill the structure of a copy."""
    if not isinstance(task, FunctionTask) or len(task.description) != ctypes.sizeof(structures.Copy3D):
        raise DriverError(Result.INVALID_VALUE, "the node is no copy")
    put_bytes(description, bytes(parameters_of(structures.Copy3D.from_buffer_copy(task.description))))


@function("cudaGraphMemcpyNodeSetParams")
def set_copy(handle: int, description: int) -> None:
    """Change the copy of a node."""
    changes.replace(node(handle), copy_task(description), driver.MEMCPY)


@function("cudaGraphExecMemcpyNodeSetParams")
def set_executable_copy(handle: int, which: int, description: int) -> None:
    """Change the copy of a node of an executable graph."""
    changes.replace_in(handle, which, copy_task(description), driver.MEMCPY)


@function("cudaGraphAddMemcpyNode1D")
def add_copy_1d(out: int, handle: int, after: int, count: int, target: int, source: int, size: int, kind: int) -> None:
    """A copy of bytes as a node."""
    driver.add(out, handle, after, count, task(copied(target, source, size, kind)), driver.MEMCPY)


@function("cudaGraphMemcpyNodeSetParams1D")
def set_copy_1d(handle: int, target: int, source: int, size: int, kind: int) -> None:
    """Change the copy of a node."""
    changes.replace(node(handle), task(copied(target, source, size, kind)), driver.MEMCPY)


@function("cudaGraphExecMemcpyNodeSetParams1D")
def set_executable_copy_1d(handle: int, which: int, target: int, source: int, size: int, kind: int) -> None:
    """Change the copy of a node of an executable graph."""
    changes.replace_in(handle, which, task(copied(target, source, size, kind)), driver.MEMCPY)


# ── copies of variables ─────────────────────────────────────────────────────────────────


def into_variable(variable: int, source: int, size: int, offset: int, kind: int) -> FunctionTask:
    """The copy into a variable."""
    check_kind(kind)
    return task(driver_copied(within(variable, size, offset), source, size, ()))


def out_of_variable(target: int, variable: int, size: int, offset: int, kind: int) -> FunctionTask:
    """The copy out of a variable."""
    check_kind(kind)
    return task(driver_copied(target, within(variable, size, offset), size, ()))


@function("cudaGraphAddMemcpyNodeToSymbol")
def add_copy_to_symbol(out: int, handle: int, after: int, count: int, *copy: int) -> None:
    """A copy into a variable as a node."""
    driver.add(out, handle, after, count, into_variable(*copy), driver.MEMCPY)


@function("cudaGraphAddMemcpyNodeFromSymbol")
def add_copy_from_symbol(out: int, handle: int, after: int, count: int, *copy: int) -> None:
    """A copy out of a variable as a node."""
    driver.add(out, handle, after, count, out_of_variable(*copy), driver.MEMCPY)


@function("cudaGraphMemcpyNodeSetParamsToSymbol")
def set_copy_to_symbol(handle: int, *copy: int) -> None:
    """Change the copy of a node: into a variable."""
    changes.replace(node(handle), into_variable(*copy), driver.MEMCPY)


@function("cudaGraphMemcpyNodeSetParamsFromSymbol")
def set_copy_from_symbol(handle: int, *copy: int) -> None:
    """Change the copy of a node: out of a variable."""
    changes.replace(node(handle), out_of_variable(*copy), driver.MEMCPY)


@function("cudaGraphExecMemcpyNodeSetParamsToSymbol")
def set_executable_copy_to_symbol(handle: int, which: int, *copy: int) -> None:
    """Change the copy of a node of an executable graph: into a variable."""
    changes.replace_in(handle, which, into_variable(*copy), driver.MEMCPY)


@function("cudaGraphExecMemcpyNodeSetParamsFromSymbol")
def set_executable_copy_from_symbol(handle: int, which: int, *copy: int) -> None:
    """Change the copy of a node of an executable graph: out of a variable."""
    changes.replace_in(handle, which, out_of_variable(*copy), driver.MEMCPY)


# ── fills ───────────────────────────────────────────────────────────────────────────────


@function("cudaGraphAddMemsetNode")
def add_fill(out: int, handle: int, after: int, count: int, description: int) -> None:
    """A fill as a node."""
    driver.add_fill(out, handle, after, count, description, 0)


@function("cudaGraphExecMemsetNodeSetParams")
def set_executable_fill(handle: int, which: int, description: int) -> None:
    """Change the fill of a node of an executable graph."""
    executables.set_executable_fill(handle, which, description, 0)


@function("cudaGraphExecUpdate")
def update(handle: int, graph: int, information: int) -> None:
    """Take the work of a graph of the same form."""
    executables.update_v2(handle, graph, information)


# ── nodes of any kind ───────────────────────────────────────────────────────────────────

MAKERS: dict[int, any_node.Maker] = any_node.MAKERS | {
    driver.KERNEL: kernel_task,
    driver.MEMCPY: lambda at: copy_task(at + any_node.COPY),
}


@function("cudaGraphAddNode@12")
def add_node(out: int, handle: int, after: int, count: int, description: int) -> None:
    """A node of any kind."""
    any_node.add_any(out, handle, after, count, description, MAKERS)


@function("cudaGraphAddNode@13", "cudaGraphAddNode_v2")
def add_node_v2(out: int, handle: int, after: int, data: int, count: int, description: int) -> None:
    """A node of any kind, with data of the edges to it."""
    any_node.add_any(out, handle, after, count, description, MAKERS, data=data)


@function("cudaGraphNodeSetParams")
def set_node(handle: int, description: int) -> None:
    """Change the task of a node."""
    kind, made = any_node.task_of(description, MAKERS)
    changes.replace(node(handle), made, kind)


@function("cudaGraphExecNodeSetParams")
def set_executable_node(handle: int, which: int, description: int) -> None:
    """Change the task of a node of an executable graph."""
    if i32(description) == driver.GRAPH:
        any_node.set_executable_node(handle, which, description)
        return
    kind, made = any_node.task_of(description, MAKERS)
    changes.replace_in(handle, which, made, kind)


@function("cudaGraphNodeGetParams")
def describe_node(handle: int, out: int) -> None:
    """The structure that describes a node of any kind."""
    found = node(handle)
    describe(found.type, found.task, out)


def describe(type: int, task: Task, out: int) -> None:
    """Fill the structure of a node of a type."""
    at = out + any_node.PARAMETERS
    any_node.describe(type, task, out)
    if isinstance(task, Launch):
        describe_launch(task, at)
    elif type == driver.MEMCPY:
        describe_copy(task, at + any_node.COPY)


@function("cudaStreamBeginRecaptureToGraph")
def begin_recapture(stream: int, mode: int, handle: int, callback: int) -> None:
    """Let work take the place of that of a graph; a structure has the client's function and its argument, if there is one."""
    called, data = u64s(callback, 2) if callback else (0, 0)
    graph_recapture.begin_recapture(stream, mode, handle, called, data, describe)


@function("cudaGraphConditionalHandleCreate")
def create_condition(out: int, handle: int, value: int, flags: int) -> None:
    """A condition, which kernels set."""
    any_node.create_condition(out, handle, 0, value, flags)


@function("cudaGraphConditionalHandleCreate_v2")
def create_condition_of_context(out: int, handle: int, context: int, value: int, flags: int) -> None:
    """A condition of an execution context, which kernels set."""
    any_node.create_condition(out, handle, handle_of(context) if context else 0, value, flags)
