"""Copies in batches, and with attributes: of bytes, and of elements in three dimensions."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

from ptxvm.driver.cuda_arrays import CudaArray
from ptxvm.driver.results import DriverError, Result, member
from ptxvm.libcuda.c_values import array_at, put_u64_if, structure_at, u64s
from ptxvm.libcuda.calls.copies import ARRAY, UNIFIED, AddressedCopy, copied, put, rectangular
from ptxvm.libcuda.session import function, session
from ptxvm.libcuda.structures import Copy3D, CopyAttributes, CopyOperand, CopyOperation
from ptxvm.named_tuple import NamedTuple

POINTER, OF_ARRAY = 1, 2  # CUmemcpy3DOperandType
NO_NUMBER = (1 << 64) - 1  # of a copy that failed, where it is one of all


class SourceAccessOrder(IntEnum):
    """When the source of a copy is read (CUmemcpySrcAccessOrder)."""

    IN_ORDER = 1
    DURING_CALL = 2
    ANY_TIME = 3


def reading(number: int) -> SourceAccessOrder:
    """When a source is read; DriverError for an unknown number."""
    return member(SourceAccessOrder, number, "order of accesses to the source")


class Ordered(NamedTuple):
    """A copy, and when its source is read."""

    work: AddressedCopy
    read: SourceAccessOrder


def put_all(stream: int, copies: Sequence[Ordered]) -> None:
    """Put copies on a stream, in order, which is one of the orders that they may have.

    A source that is read during the call may change as soon as the call returns.
    """
    for each in copies:
        put(stream, each.work)
    found = session().stream(stream)
    if found.capture is None and any(each.read is SourceAccessOrder.DURING_CALL for each in copies):
        found.sync()


def check_stream(stream: int) -> None:
    """DriverError for the legacy stream, on which there are no batches."""
    if not stream:
        raise DriverError(Result.INVALID_VALUE, "the legacy stream has no batches of copies")


# ── bytes ───────────────────────────────────────────────────────────────────────────────


@function("cuMemcpyBatchAsync_v2")
def copy_batch(
    targets: int, sources: int, sizes: int, count: int, attributes: int, first: int, numbers: int, stream: int
) -> None:
    """Several copies; each attribute is that of the copies from its number on."""
    check_stream(stream)
    reads = reads_of(attributes, u64s(first, numbers), count)
    triples = zip(*(u64s(each, count) for each in (targets, sources, sizes)), strict=True)
    copies = [copied(target, source, size, ()) for target, source, size in triples]
    put_all(stream, [Ordered(work, read) for work, read in zip(copies, reads, strict=True)])


def reads_of(attributes: int, first: list[int], count: int) -> list[SourceAccessOrder]:
    """When the source of each copy is read; DriverError for attributes that do not begin with the first copy."""
    if not first or first[0] or first != sorted(set(first)) or first[-1] >= max(count, 1):
        raise DriverError(Result.INVALID_VALUE, f"the attributes of {count} copies begin at 0, and at {first} here")
    listed = array_at(CopyAttributes, attributes, len(first))
    return [reading(listed[max(n for n, start in enumerate(first) if start <= at)].read) for at in range(count)]


@function("cuMemcpyBatchAsync")
def copy_batch_v1(
    targets: int, sources: int, sizes: int, count: int, attributes: int, first: int, numbers: int, failed: int, stream: int
) -> None:
    """Several copies; the number of one that is wrong is not told: it is one of all."""
    put_u64_if(failed, NO_NUMBER)
    copy_batch(targets, sources, sizes, count, attributes, first, numbers, stream)


@function("cuMemcpyWithAttributesAsync")
def copy_with_attributes(target: int, source: int, size: int, attributes: int, stream: int) -> None:
    """A copy with attributes."""
    d = structure_at(CopyAttributes, attributes)
    put_all(stream, [Ordered(copied(target, source, size, ()), reading(d.read))])


# ── elements in three dimensions ────────────────────────────────────────────────────────


@function("cuMemcpy3DBatchAsync_v2")
def copy_3d_batch(count: int, operations: int, flags: int, stream: int) -> None:
    """Several copies of three dimensions."""
    check_stream(stream)
    if flags:
        raise DriverError(Result.INVALID_VALUE, "the flags of a batch are 0")
    put_all(stream, [in_elements(each) for each in array_at(CopyOperation, operations, count)] if count else [])


@function("cuMemcpy3DBatchAsync")
def copy_3d_batch_v1(count: int, operations: int, failed: int, flags: int, stream: int) -> None:
    """Several copies of three dimensions; the number of one that is wrong is not told: it is one of all."""
    put_u64_if(failed, NO_NUMBER)
    copy_3d_batch(count, operations, flags, stream)


@function("cuMemcpy3DWithAttributesAsync")
def copy_3d_with_attributes(operation: int, flags: int, stream: int) -> None:
    """A copy of three dimensions, with attributes."""
    if flags:
        raise DriverError(Result.INVALID_VALUE, "the flags of a copy are 0")
    put_all(stream, [in_elements(structure_at(CopyOperation, operation))])


def in_elements(d: CopyOperation) -> Ordered:
    """The copy that a structure describes in elements; DriverError for extents of 0, or arrays of different elements."""
    if not (d.width and d.height and d.depth):
        raise DriverError(Result.INVALID_VALUE, f"{d.width} x {d.height} x {d.depth} elements are none")
    sizes = {array_of(each).elements.size for each in (d.source, d.target) if each.type == OF_ARRAY}
    if len(sizes) > 1:
        raise DriverError(Result.INVALID_VALUE, f"the elements of the two arrays have {sizes} bytes")
    size = max(sizes, default=1)
    made = Copy3D(width=d.width * size, height=d.height, depth=d.depth)
    for side, operand in (("source", d.source), ("target", d.target)):
        for name, value in fields_of(operand, d, size).items():
            setattr(made, f"{side}_{name}", value)
    return Ordered(rectangular(made), reading(d.read))


def array_of(operand: CopyOperand) -> CudaArray:
    """The array of one side of a copy."""
    return session().handles.object(operand.of.array.array, CudaArray)


def fields_of(operand: CopyOperand, d: CopyOperation, size: int) -> dict[str, int]:
    """One side of a copy, as a CUDA_MEMCPY3D has it, by the names of its fields; `size` counts the bytes of an element."""
    if operand.type == OF_ARRAY:
        a = operand.of.array
        return {"type": ARRAY, "array": a.array, "x": a.x * size, "y": a.y, "z": a.z}
    if operand.type != POINTER:
        raise DriverError(Result.INVALID_VALUE, f"there is no type {operand.type} of operands")
    m = operand.of.pointer
    length, height = m.length or d.width, m.height or d.height
    if length < d.width or height < d.height:
        said = f"rows of {length} elements in layers of {height} rows do not hold {d.width} x {d.height} elements"
        raise DriverError(Result.INVALID_VALUE, said)
    return {"type": UNIFIED, "device": m.address, "pitch": length * size, "height": height}
