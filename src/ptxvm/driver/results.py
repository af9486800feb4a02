"""Results of the driver: CUDA's error codes (driver API, "Data types used by CUDA driver": `CUresult`)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import TypeVar

from ptxvm.diagnostics.errors import Fault, InvalidPTX, PTXVMError, Unsupported

E = TypeVar("E", bound=IntEnum)


class Result(IntEnum):
    """The result of a call."""

    SUCCESS = 0
    INVALID_VALUE = 1
    OUT_OF_MEMORY = 2
    NOT_INITIALIZED = 3
    DEINITIALIZED = 4
    PROFILER_DISABLED = 5
    PROFILER_NOT_INITIALIZED = 6
    PROFILER_ALREADY_STARTED = 7
    PROFILER_ALREADY_STOPPED = 8
    STUB_LIBRARY = 34
    CALL_REQUIRES_NEWER_DRIVER = 36
    DEVICE_UNAVAILABLE = 46
    MULTICAST_RESOURCE_FULL = 47
    NO_DEVICE = 100
    INVALID_DEVICE = 101
    DEVICE_NOT_LICENSED = 102
    INVALID_IMAGE = 200
    INVALID_CONTEXT = 201
    CONTEXT_ALREADY_CURRENT = 202
    MAP_FAILED = 205
    UNMAP_FAILED = 206
    ARRAY_IS_MAPPED = 207
    ALREADY_MAPPED = 208
    NO_BINARY_FOR_GPU = 209
    ALREADY_ACQUIRED = 210
    NOT_MAPPED = 211
    NOT_MAPPED_AS_ARRAY = 212
    NOT_MAPPED_AS_POINTER = 213
    ECC_UNCORRECTABLE = 214
    UNSUPPORTED_LIMIT = 215
    CONTEXT_ALREADY_IN_USE = 216
    PEER_ACCESS_UNSUPPORTED = 217
    INVALID_PTX = 218
    INVALID_GRAPHICS_CONTEXT = 219
    NVLINK_UNCORRECTABLE = 220
    JIT_COMPILER_NOT_FOUND = 221
    UNSUPPORTED_PTX_VERSION = 222
    JIT_COMPILATION_DISABLED = 223
    UNSUPPORTED_EXEC_AFFINITY = 224
    UNSUPPORTED_DEVSIDE_SYNC = 225
    CONTAINED = 226
    INSUFFICIENT_LOADER_VERSION = 227
    INVALID_SOURCE = 300
    FILE_NOT_FOUND = 301
    SHARED_OBJECT_SYMBOL_NOT_FOUND = 302
    SHARED_OBJECT_INIT_FAILED = 303
    OPERATING_SYSTEM = 304
    INVALID_HANDLE = 400
    ILLEGAL_STATE = 401
    LOSSY_QUERY = 402
    NOT_FOUND = 500
    NOT_READY = 600
    ILLEGAL_ADDRESS = 700
    LAUNCH_OUT_OF_RESOURCES = 701
    LAUNCH_TIMEOUT = 702
    LAUNCH_INCOMPATIBLE_TEXTURING = 703
    PEER_ACCESS_ALREADY_ENABLED = 704
    PEER_ACCESS_NOT_ENABLED = 705
    PRIMARY_CONTEXT_ACTIVE = 708
    CONTEXT_IS_DESTROYED = 709
    ASSERT = 710
    TOO_MANY_PEERS = 711
    HOST_MEMORY_ALREADY_REGISTERED = 712
    HOST_MEMORY_NOT_REGISTERED = 713
    HARDWARE_STACK_ERROR = 714
    ILLEGAL_INSTRUCTION = 715
    MISALIGNED_ADDRESS = 716
    INVALID_ADDRESS_SPACE = 717
    INVALID_PC = 718
    LAUNCH_FAILED = 719
    COOPERATIVE_LAUNCH_TOO_LARGE = 720
    TENSOR_MEMORY_LEAK = 721
    NOT_PERMITTED = 800
    NOT_SUPPORTED = 801
    SYSTEM_NOT_READY = 802
    SYSTEM_DRIVER_MISMATCH = 803
    COMPAT_NOT_SUPPORTED_ON_DEVICE = 804
    MPS_CONNECTION_FAILED = 805
    MPS_RPC_FAILURE = 806
    MPS_SERVER_NOT_READY = 807
    MPS_MAX_CLIENTS_REACHED = 808
    MPS_MAX_CONNECTIONS_REACHED = 809
    MPS_CLIENT_TERMINATED = 810
    CDP_NOT_SUPPORTED = 811
    CDP_VERSION_MISMATCH = 812
    STREAM_CAPTURE_UNSUPPORTED = 900
    STREAM_CAPTURE_INVALIDATED = 901
    STREAM_CAPTURE_MERGE = 902
    STREAM_CAPTURE_UNMATCHED = 903
    STREAM_CAPTURE_UNJOINED = 904
    STREAM_CAPTURE_ISOLATION = 905
    STREAM_CAPTURE_IMPLICIT = 906
    CAPTURED_EVENT = 907
    STREAM_CAPTURE_WRONG_THREAD = 908
    TIMEOUT = 909
    GRAPH_EXEC_UPDATE_FAILURE = 910
    EXTERNAL_DEVICE = 911
    INVALID_CLUSTER_SIZE = 912
    FUNCTION_NOT_LOADED = 913
    INVALID_RESOURCE_TYPE = 914
    INVALID_RESOURCE_CONFIGURATION = 915
    KEY_ROTATION = 916
    STREAM_DETACHED = 917
    GRAPH_RECAPTURE_FAILURE = 918
    FABRIC_NOT_READY = 919
    UNKNOWN = 999

    @property
    def symbol(self) -> str:
        """The name in C."""
        return "CUDA_SUCCESS" if self is Result.SUCCESS else f"CUDA_ERROR_{self.name}"

    @property
    def text(self) -> str:
        """A short description: CUDA's own where programs know it, else the words of the name."""
        return DESCRIPTIONS.get(self, self.name.lower().replace("_", " "))


DESCRIPTIONS: Mapping[int, str] = MappingProxyType({
    0: "no error", 1: "invalid argument", 2: "out of memory", 3: "initialization error", 4: "driver shutting down",
    100: "no CUDA-capable device is detected", 101: "invalid device ordinal",
    200: "device kernel image is invalid", 201: "invalid device context",
    209: "no kernel image is available for execution on the device",
    215: "limit is not supported on this architecture", 217: "peer access is not supported between these two devices",
    218: "a PTX JIT compilation failed", 301: "file not found",
    400: "invalid resource handle", 500: "named symbol not found", 600: "device not ready",
    700: "an illegal memory access was encountered", 701: "too many resources requested for launch",
    702: "the launch timed out and was terminated", 704: "peer access is already enabled",
    705: "peer access has not been enabled", 708: "cannot set while device is active in this process",
    709: "context is destroyed", 710: "device-side assert triggered",
    712: "part or all of the requested memory range is already mapped",
    713: "pointer does not correspond to a registered memory region", 714: "hardware stack error",
    715: "an illegal instruction was encountered", 716: "misaligned address",
    717: "operation not supported on global/shared address space", 718: "invalid program counter",
    719: "unspecified launch failure", 720: "too many blocks in cooperative launch",
    800: "operation not permitted", 801: "operation not supported",
    900: "operation not permitted when stream is capturing",
    907: "operation not permitted on an event last recorded in a capturing stream", 999: "unknown error",
})  # fmt: skip
"""What the driver and the runtime library say of an error, by its number: both have the same."""


class DriverError(PTXVMError):
    """A call failed; `result` is the code, and the message says why."""

    def __init__(self, result: Result, message: str = "") -> None:
        super().__init__(f"{result.symbol}: {message or result.text}")
        self.result = result


class BuildError(DriverError):
    """An image of the client cannot run here.  The message says why, or how to build it, and is told to the user once."""


def member(kind: type[E], number: int, noun: str) -> E:
    """The member of an enum by the number that a program passed; DriverError, which calls it no `noun`, where there is none."""
    try:
        return kind(number)
    except ValueError:
        raise DriverError(Result.INVALID_VALUE, f"{number} is no {noun}") from None


OF_FAULTS = {
    "misaligned": Result.MISALIGNED_ADDRESS,
    "assertion": Result.ASSERT,
    "trap": Result.LAUNCH_FAILED,
    "timeout": Result.LAUNCH_TIMEOUT,
    "step-budget": Result.LAUNCH_TIMEOUT,
    "deadlock": Result.LAUNCH_TIMEOUT,
    "stack-overflow": Result.ILLEGAL_ADDRESS,
    "out-of-memory": Result.OUT_OF_MEMORY,
    "wrong-space": Result.INVALID_ADDRESS_SPACE,
    "invalid-branch": Result.INVALID_PC,
    "invalid-call": Result.INVALID_PC,
}
"""The code of a kernel's fault by its kind; of any other wrong access ILLEGAL_ADDRESS, of the rest LAUNCH_FAILED."""


def result_of(error: BaseException) -> Result:
    """The code for an exception; UNKNOWN for one that no wrong call and no kernel causes: it is a defect of ptxvm."""
    match error:
        case DriverError():
            return error.result
        case Fault():
            return OF_FAULTS.get(error.kind, Result.LAUNCH_FAILED if error.address is None else Result.ILLEGAL_ADDRESS)
        case InvalidPTX():
            return Result.INVALID_PTX
        case Unsupported():
            return Result.NOT_SUPPORTED
        case MemoryError():
            return Result.OUT_OF_MEMORY
    return Result.UNKNOWN


__all__ = ["DESCRIPTIONS", "DriverError", "Result", "result_of"]
