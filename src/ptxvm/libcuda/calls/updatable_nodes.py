"""Kernel nodes that kernels change (driver API, `CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE`)."""

from __future__ import annotations

from functools import partial

from ptxvm.driver.graph import Node, UserObject
from ptxvm.driver.launch import Launch
from ptxvm.driver.results import DriverError, Result
from ptxvm.driver.updatable_nodes import RECORD_SIZE, NodeRecord
from ptxvm.libcuda.session import session


def set_updatable(node: Node, value: int) -> None:
    """Let kernels change the launch of a node from now on, for 1; DriverError for another value of a node that they change."""
    launch = node.task
    if not isinstance(launch, Launch) or value not in (0, 1) or (launch.record is not None and not value):
        raise DriverError(Result.INVALID_VALUE, f"a node that kernels change stays one; {value} is no other value")
    if launch.record is None and value:
        blocks = session().driver.blocks
        block = blocks.allocate(RECORD_SIZE, device=launch.context.device.ordinal)
        node.graph.retain(UserObject(partial(blocks.free, block.address)), 1)
        node.task = launch.of_node(NodeRecord(block.address))


__all__ = ["set_updatable"]
