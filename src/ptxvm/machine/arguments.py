"""The arguments of a launch: from Python values to the bytes of the parameter bank (PTX 5.1.6.1)."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from math import prod
from typing import TypeAlias

import numpy as np

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis.symbols import Register, Variable, short, spelling
from ptxvm.diagnostics.errors import Fault
from ptxvm.machine.allocation import Allocation
from ptxvm.machine.backing import Bytes, address_of, bytes_at
from ptxvm.machine.device_array import DeviceArray, is_usable
from ptxvm.machine.initialise import number_bits
from ptxvm.machine.layout import parameter_bank
from ptxvm.machine.memory import Adopted, Memory
from ptxvm.machine.opaque import Opaque
from ptxvm.machine.per_lane import Array
from ptxvm.syntax import tree

Number: TypeAlias = int | float

RAW = (
    bytes,
    bytearray,
    ctypes.Structure,
    ctypes.Union,
    ctypes.Array,
    ctypes._SimpleCData,  # noqa: SLF001 - documented as the base of c_int and the like
)
SWAPPED = ">" if sys.byteorder == "little" else "<"  # the mark of the other byte order in the format of a buffer
POINTED = (Space.GLOBAL, Space.CONST, Space.SHARED, Space.LOCAL)  # what `.ptr` may name beside opaque types
MANY_DIGITS = 10**40
WIDE = 64  # bits of addresses that are those of the host


class Arguments:
    """The bytes of the parameter bank, and the host arrays that the kernel uses until `release`."""

    def __init__(self, memory: Memory, data: bytearray) -> None:
        self.memory, self.data = memory, data
        self.adopted: list[Adopted] = []
        self.allocations: list[Allocation] = []  # the memory that the kernel was given

    @property
    def buffer(self) -> Bytes:
        """The bytes as an array."""
        return np.frombuffer(self.data, np.uint8)

    def release(self) -> None:
        """Release the host arrays, after the kernel has ended."""
        while self.adopted:
            self.memory.release(self.adopted.pop().allocation)


class Bank:
    """The parameter bank of a kernel: its parameters, and their offsets."""

    def __init__(self, parameters: Sequence[Register | Variable], kernel: str = "the kernel") -> None:
        declared = [each for each in parameters if isinstance(each, Variable)]
        layout = parameter_bank(declared)
        self.kernel, self.size = kernel, layout.size
        self.slots = [ParameterSlot(number, each, layout.offsets[each]) for number, each in enumerate(declared)]

    def pack(self, args: Sequence[object], memory: Memory) -> Arguments:
        """The bytes for these arguments; see `pack_arguments`."""
        if len(args) != len(self.slots):
            parameters = [(each.parameter.name, spelling(each.parameter)) for each in self.slots]
            from ptxvm.machine.argument_count import wrong_count  # noqa: PLC0415 - few launches are wrong

            raise TypeError(wrong_count(self.kernel, parameters, len(args)))
        packed = Arguments(memory, bytearray(self.size))
        try:
            for slot, value in zip(self.slots, args, strict=True):
                raw = slot.encode(value, packed)
                packed.data[slot.offset : slot.offset + len(raw)] = raw
        except BaseException:
            packed.release()
            raise
        return packed


def pack_arguments(
    parameters: Sequence[Register | Variable], args: Sequence[object], memory: Memory, kernel: str = "the kernel"
) -> Arguments:
    """The parameter bank for these arguments.

    NumPy arrays, and what shares its memory with one (`__array_interface__`, DLPack, buffers such as `array.array`), are
    pointers to memory that the kernel uses in place; NumPy scalars, `bytes` and ctypes are passed as their bytes, and a
    `memoryview` where no pointer can be; the NumPy array of a `TensorMap` is memory that the kernel uses in place, too; Python
    numbers are converted to the type of the parameter; a tuple or list fills an array or vector; None is a null pointer.  All
    have the byte order of the host.  TypeError and ValueError name the parameter; a `DeviceArray` that has been freed is a
    Fault.
    """
    return Bank(parameters, kernel).pack(args, memory)


class ParameterSlot:
    """A parameter and its offset in the bank; `pointer_bits` is its size if it is one integer, which may hold an address."""

    def __init__(self, number: int, parameter: Variable, offset: int) -> None:
        self.number, self.parameter = number, parameter
        self.offset, self.size = offset, parameter.size
        self.count = parameter.vector * prod(d or 0 for d in parameter.dimensions)
        self.pointer_bits = parameter.type.bits if self.count == 1 and not parameter.type.is_float else 0
        pointer = parameter.pointer
        self.space = Space(pointer.space) if pointer is not None and pointer.space in POINTED else Space.GLOBAL
        alignment = pointer.alignment if pointer is not None else None
        self.alignment = alignment.value if isinstance(alignment, tree.Integer) else None
        self.name, self.detail = f"`{short(parameter.name)}`", f"argument {number}"  # names its memory in messages

    def encode(self, value: object, packed: Arguments) -> bytes:
        """The bytes of an argument."""
        if isinstance(value, Opaque):
            return self._handle(value)
        if self.parameter.opaque:
            raise TypeError(f"{self} is a .{self.parameter.opaque}; pass a Texture, Sampler or Surface")
        match value:
            case None:
                return self._pointer(0, packed.memory)
            case DeviceArray():
                return self._device_array(value, packed)
            case np.ndarray():
                return self._array(value, packed)
            case np.generic():
                return self._scalar(value)
            case bool() | int() | float():
                return self._number(value, self.parameter.type, self.count)
            case tuple() | list():
                return self._sequence(value)
        if isinstance(value, RAW) or (isinstance(value, memoryview) and not self._is_pointer(packed.memory)):
            return self._raw(value, packed)
        return self._array(self._array_like(value), packed)

    def _array_like(self, value: object) -> Array:
        """What shares its memory with a NumPy array: a tensor of a CPU, a buffer."""
        reason = ""
        if not isinstance(value, type):
            try:
                if hasattr(value, "__array_interface__"):
                    return np.asarray(value)
                if hasattr(value, "__dlpack__"):
                    return np.from_dlpack(value)
                return np.asarray(memoryview(value))  # type: ignore[arg-type]
            except (TypeError, ValueError, BufferError, RuntimeError) as wrong:
                reason = f"NumPy cannot share its memory ({wrong}); " if hasattr(value, "__dlpack__") else ""
        raise TypeError(f"{self} cannot be of type {_named(value)}: {reason}{_way_out(value)}")

    def __str__(self) -> str:
        return f"argument {self.number} (`{short(self.parameter.name)}`, {spelling(self.parameter)})"

    def _handle(self, value: Opaque) -> bytes:
        """The handle of a texture or surface: of an opaque parameter, or as 64 bits."""
        parameter = self.parameter
        if parameter.opaque not in ("", value.kind):
            raise TypeError(f"{self} is a .{parameter.opaque} and takes no {type(value).__name__}")
        if parameter.type.is_float or parameter.type.bits != 64 or self.count != 1:
            raise TypeError(f"{self} cannot hold the handle of a {type(value).__name__}, which has 64 bits")
        return value.handle.to_bytes(8, "little")

    # ── pointers ────────────────────────────────────────────────────────────────────────

    def _array(self, array: Array, packed: Arguments) -> bytes:
        if not is_usable(array.dtype):
            raise TypeError(f"{self} {_unusable(array)}")
        if not (array.flags.c_contiguous or array.flags.f_contiguous):
            raise TypeError(f"{self} is not contiguous in memory; pass np.ascontiguousarray(x), or the array it is a view of")
        self._must_be_pointer("an array", packed.memory)
        if self.space in (Space.SHARED, Space.LOCAL):
            raise TypeError(f"{self} points to .{self.space} memory, which no host array is in; pass an offset as an integer")
        adopted = packed.memory.adopt(array, self.name, space=self.space, detail=self.detail)
        packed.adopted.append(adopted)
        packed.allocations.append(adopted.allocation)
        return self._pointer(adopted.address, packed.memory)

    def _device_array(self, array: DeviceArray, packed: Arguments) -> bytes:
        if not array.live:
            raise Fault("use-after-free", f"{self} is {array.allocation}, which has been freed", address=array.address)
        if array.memory is not packed.memory:  # host memory like any other
            return self._array(array.array, packed)
        packed.allocations.append(array.allocation)
        return self._pointer(array.address, packed.memory)

    def _pointer(self, address: int, memory: Memory) -> bytes:
        self._must_be_pointer("a pointer", memory)
        if self.alignment is not None and address % self.alignment:
            raise ValueError(
                f"{self} must lie at a multiple of {self.alignment}, as .ptr .align {self.alignment} says, and is at "
                f"{address:#x}; a DeviceArray lies at a multiple of 256"
            )
        return address.to_bytes(self.size, "little")

    def _tensor(self, array: Array, packed: Arguments) -> None:
        """Let the kernel use the array of a `TensorMap`: its bytes from the first to the last, where a view leaves some out."""
        if packed.memory.address_bits == WIDE:  # a smaller memory would have a copy of it, at another address
            steps = sum((size - 1) * stride for size, stride in zip(array.shape, array.strides, strict=True))
            whole = bytes_at(address_of(array), steps + array.itemsize, array.flags.writeable)
            adopted = packed.memory.adopt(whole, self.name, detail=f"the tensor of {self.detail}")
            packed.adopted.append(adopted)
            packed.allocations.append(adopted.allocation)

    def _must_be_pointer(self, subject: str, memory: Memory) -> None:
        if not self._is_pointer(memory):
            if self.pointer_bits == WIDE:
                narrow = f"addresses have {memory.address_bits} bits in a module without `.address_size {WIDE}` (PTX 11.1.3)"
                raise TypeError(f"{self} cannot take {subject}: {narrow}; write it below .target")
            hint = "bytes or a structured NumPy scalar" if self.count > 1 else "a NumPy scalar or a Python number"
            raise TypeError(f"{self} is passed by value and cannot take {subject}; pass {hint}")

    def _is_pointer(self, memory: Memory) -> bool:
        return self.pointer_bits == memory.address_bits

    # ── values ──────────────────────────────────────────────────────────────────────────

    def _scalar(self, value: np.generic) -> bytes:
        if isinstance(value, np.str_):
            raise TypeError(f"{self} cannot be of type str: {_way_out(value)}")
        if not is_usable(value.dtype):
            raise TypeError(f"{self} {_unusable(value)}")
        return self._exactly(value.tobytes(), value)

    def _raw(self, value: object, packed: Arguments) -> bytes:
        if isinstance(tensor := getattr(value, "tensor", None), np.ndarray):
            self._tensor(tensor, packed)
        held = memoryview(value)  # type: ignore[arg-type]
        if SWAPPED in held.format:
            raise TypeError(
                f"{self} is a {_named(value)} ({held.format}), which has not the byte order of the host; pass a native one"
            )
        return self._exactly(held.tobytes(), value)

    def _exactly(self, raw: bytes, value: object) -> bytes:
        if len(raw) != self.size:
            raise TypeError(f"{self} has {self.size} bytes, and {_named(value)} has {len(raw)}")
        return raw

    def _sequence(self, values: Sequence[int | float]) -> bytes:
        if len(values) != self.count or self.count == 1:
            raise TypeError(f"{self} takes {self.count} values, and {len(values)} were given")
        return b"".join(self._number(value, self.parameter.type, 1) for value in values)

    def _number(self, value: Number, element: Type, count: int) -> bytes:
        """A Python number as the type; `.b32` and `.b64` take floats too, since compilers pass those in them."""
        if count != 1 or element.is_packed:
            raise TypeError(
                f"{self} takes {self.parameter.size} bytes, not one number; pass bytes or a structured NumPy scalar"
            )
        if element.is_float or (isinstance(value, float) and element.name in ("b32", "b64")):
            return number_bits(self._float(value), element).to_bytes(element.bytes, "little")
        if isinstance(value, float):
            raise TypeError(f"{self} is no floating-point number: {value!r} does not fit; pass an integer or a NumPy scalar")
        least, most = -(1 << element.bits - 1), (1 << element.bits) - 1
        if not least <= value <= most:
            raise ValueError(f"{self} has {element.bits} bits, and {_number_named(value)} does not fit: {least} to {most} do")
        return (int(value) & most).to_bytes(element.bytes, "little")

    def _float(self, value: float) -> float:
        try:
            return float(value)
        except OverflowError:
            raise ValueError(f"{self} is a floating-point number, and {_number_named(value)} is too large for one") from None


def _number_named(value: float) -> str:
    """A number, short enough for a message."""
    return str(value) if abs(value) < MANY_DIGITS else f"an integer of {int(value).bit_length()} bits"


def _unusable(values: Array | np.generic) -> str:
    """The message about values that no kernel can read, with the way out."""
    subject = "an array" if isinstance(values, np.ndarray) else "a scalar"
    if values.dtype.hasobject:
        return f"is {subject} of Python objects, which no kernel can read; convert it to a numeric dtype"
    return (
        f"is {subject} of {values.dtype}, which has not the byte order of the host; pass x.astype(x.dtype.newbyteorder('=')), "
        "and take the results from there"
    )


def _named(value: object) -> str:
    """The type of a value."""
    return f"np.{value.dtype.name}" if isinstance(value, np.generic) else type(value).__name__


def _way_out(value: object) -> str:
    """The way out of a value that cannot be passed: another one."""
    if hasattr(value, "__cuda_array_interface__"):
        return "it is memory of a GPU (`__cuda_array_interface__`); copy it to the host, and pass the NumPy array"
    if hasattr(value, "__array__") and not isinstance(value, type | np.generic):
        return "`__array__` may make a copy; pass np.asarray(x), in which the kernel leaves its results"
    return "pass a NumPy array or scalar, a Python number, bytes, a ctypes structure, a DeviceArray, or None"
