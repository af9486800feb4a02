"""Work on tensor memory: allocates, moves, copies and multiplies (PTX 9.7.16)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ptxvm.isa.shared_matrix import Factor
from ptxvm.isa.special_registers import WARP
from ptxvm.isa.tensor_memory import (
    Allocate,
    CopyToTensor,
    Free,
    InvalidDescriptor,
    Load,
    Multiply,
    Relinquish,
    Shift,
    Store,
    TensorWork,
    shared_descriptor,
)  # fmt: skip
from ptxvm.machine import shared_matrix, tensor_memory
from ptxvm.machine.faults import AccessFault
from ptxvm.machine.per_lane import LaneNumbers, PerLane
from ptxvm.machine.tensor_engine import Machine, ctas, pieces_of
from ptxvm.machine.tensor_memory import TensorMemory
from ptxvm.machine.tensor_products import multiply

SHIFTED = 8  # columns of 32 bytes
Operands = Mapping[str, PerLane]
"""The operands of an instruction, each with an element for every lane that does the work."""


def perform(work: TensorWork, machine: Machine, lanes: LaneNumbers, operands: Operands) -> list[PerLane]:
    """Do the work of some lanes: of whole warps, or of each lane alone."""
    if not work.collective:
        for n, lane in enumerate(lanes.tolist()):
            single(work, machine, lane, {name: int(each[n]) for name, each in operands.items()}, n)
        return []
    whole_warps(lanes)
    found = []
    for first in range(0, len(lanes), WARP):
        own = {name: each[first : first + WARP] for name, each in operands.items()}
        try:
            found.append(of_warp(work, machine, int(lanes[first]), own))
        except AccessFault as fault:
            raise fault.at_lane(first + fault.lane_index) from None
    return [np.concatenate(each) for each in zip(*found, strict=True)]


def whole_warps(lanes: LaneNumbers) -> None:
    """Work of warps needs all of their lanes."""
    if len(lanes) % WARP:
        raise AccessFault("incomplete-warp", "work on tensor memory needs all 32 lanes of the warp")


def uniform(operands: Operands) -> dict[str, int]:
    """The operands of a warp; its lanes have the same addresses and numbers of columns."""
    for name in ("a", "columns", "split"):
        if name in operands and (operands[name] != operands[name][0]).any():
            raise AccessFault(
                "tensor-memory", f"the lanes of a warp differ in operand '{name}' of an instruction on tensor memory"
            )
    return {name: int(each[0]) for name, each in operands.items()}


def of_warp(work: TensorWork, machine: Machine, lane: int, operands: Operands) -> list[PerLane]:
    """Do the work of one warp."""
    memory, warp = machine.tensor_memory(lane), machine.warp_of(lane)
    shared = uniform(operands)
    address = shared.get("a", 0) & 0xFFFF_FFFF
    if not isinstance(work, Load | Store):
        for each in ctas(work, machine, lane):
            machine.tensor_memory(each).used_by(work.ctas)
    if isinstance(work, Allocate):
        machine.store_word(lane, shared["a"], memory.allocate(warp))
    elif isinstance(work, Free):
        memory.free(address, shared["columns"])
    elif isinstance(work, Relinquish):
        memory.given_up = True
    elif isinstance(work, Load):
        return tensor_memory.load(work, memory, warp, address, shared.get("split", 0))
    elif isinstance(work, Store):
        values = [operands[f"b{n}"].astype(np.uint32) for n in range(work.registers)]
        tensor_memory.store(work, memory, warp, address, shared.get("split", 0), values)
    return []


def single(work: TensorWork, machine: Machine, lane: int, operands: Mapping[str, int], index: int = 0) -> None:
    """Do the work of one thread."""
    try:
        for each in ctas(work, machine, lane):
            machine.tensor_memory(each).used_by(work.ctas)
            if isinstance(work, CopyToTensor):
                copy(work, machine, each, operands)
            elif isinstance(work, Shift):
                shift(machine.tensor_memory(each), operands["a"] & 0xFFFF_FFFF)
        if isinstance(work, Multiply):
            multiply(work, machine, lane, operands)
            for each in ctas(work, machine, lane) if work.shifted else ():
                shift(machine.tensor_memory(each), operands["a"] & 0xFFFF_FFFF)
    except InvalidDescriptor as wrong:
        raise AccessFault("invalid-descriptor", str(wrong), lane_index=index) from None
    except AccessFault as fault:
        raise fault.at_lane(index) from None


def shift(memory: TensorMemory, address: int) -> None:
    """Move 32 bytes of each lane to the lane before it, in the lanes of each warp; the last of 32 stays (PTX 9.7.16.9.3).

    PTX says "down"; a B200 takes row `i + 1` to row `i`, in the lanes of all warps from that of the address on.
    """
    lane, first = address >> 16, address & 0xFFFF
    if lane % WARP:
        raise AccessFault(
            "tensor-memory", f"a shift begins at lane {lane} of tensor memory, which is no multiple of 32", address
        )
    memory.check(address, SHIFTED, "a shift")
    rows = memory.cells[lane:, first : first + SHIFTED].reshape(-1, WARP, SHIFTED)
    rows[:, :-1] = rows[:, 1:].copy()


# ── copies ──────────────────────────────────────────────────────────────────────────────


def copy_addresses(work: CopyToTensor, descriptor: int) -> PerLane:
    """The addresses of the pieces of the rows that are copied."""
    return shared_matrix.addresses(shared_descriptor(descriptor), Factor(0, work.rows, work.bytes, 8))


def copy(work: CopyToTensor, machine: Machine, lane: int, operands: Mapping[str, int]) -> None:
    """Copy rows to the lanes of all warps."""
    memory, address = machine.tensor_memory(lane), operands["a"] & 0xFFFF_FFFF
    memory.check(address, work.bytes // 4, "a copy")
    addresses = copy_addresses(work, operands["b"])
    rows = pieces_of(work.format, machine, lane, addresses).reshape(work.rows, -1)
    column, height = address & 0xFFFF, height_of_copy(work)
    for warp, first in enumerate(work.warps):
        top = (address >> 16) + warp * WARP
        memory.cells[top : top + height, column : column + work.bytes // 4] = rows[first : first + height]


def height_of_copy(work: CopyToTensor) -> int:
    """How many lanes of each warp get rows."""
    return min(WARP, work.rows // max(1, len(set(work.warps))))


__all__ = ["SHIFTED", "copy_addresses", "height_of_copy", "perform", "single", "uniform", "whole_warps"]
