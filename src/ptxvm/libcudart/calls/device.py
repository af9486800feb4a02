"""Devices: the current one of each thread, properties and attributes, limits, peers."""

from __future__ import annotations

from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import i32, not_null, put_bytes, put_i32
from ptxvm.libcuda.calls import context, device as driver
from ptxvm.libcuda.session import session
from ptxvm.libcudart.properties import properties
from ptxvm.libcudart.runtime_state import function, runtime

WAYS_TO_WAIT, MAP_HOST, FLAGS = 0b111, 0x8, 0x9F  # cudaDeviceScheduleMask, cudaDeviceMapHost, and all flags
DEVICE_FLAGS_ARE_VALID = 1  # cudaInitDeviceFlagsAreValid


@function("cudaGetDeviceCount", stateless=True)
def count(out: int) -> None:
    """The number of devices; DriverError where there is none, or in a child of a process that has used them.

    It initialises the driver, as every function of the runtime does: a program may call the driver next.
    """
    put_i32(out, len(session().driver.devices))
    if not session().initialised:
        session().initialise()


@function("cudaGetDevice", any_state=True)
def current(out: int) -> None:
    """The device of the thread."""
    put_i32(out, session().context.device.ordinal)


@function("cudaSetDevice", any_state=True)
def choose(ordinal: int) -> None:
    """Make a device current in the thread."""
    runtime().choose(ordinal)


@function("cudaInitDevice", any_state=True)
def initialise(ordinal: int, device_flags: int, flags: int) -> None:
    """Make the primary context of a device, which does not become current; one flag says that those of the device count."""
    found = runtime().active(ordinal)
    if flags & ~DEVICE_FLAGS_ARE_VALID:
        raise DriverError(Result.INVALID_VALUE, f"{flags:#x} are no flags of cudaInitDevice")
    if flags:
        found.flags = checked_flags(device_flags)


@function("cudaSetValidDevices", stateless=True)
def set_devices(first: int, count: int) -> None:
    """Set the devices among which the runtime chooses: the first is that of threads that choose none."""
    devices = session().driver.devices
    if not 0 <= count <= len(devices):
        raise DriverError(Result.INVALID_VALUE, f"there are {len(devices)} devices, not {count}")
    given = [devices.index(session().driver.device(i32(not_null(first) + 4 * n))) for n in range(count)]
    runtime().first_device = given[0] if given else 0


@function("cudaSetDeviceFlags")
def set_flags(flags: int) -> None:
    """Set how the host waits, which has no effect; DriverError for unknown flags, or for two ways to wait."""
    session().context.flags = checked_flags(flags)


def checked_flags(flags: int) -> int:
    """The flags of a device; DriverError for unknown ones, or for two ways to wait."""
    if flags & ~FLAGS or flags & WAYS_TO_WAIT not in (0, 1, 2, 4):
        raise DriverError(Result.INVALID_VALUE, f"{flags:#x} are no flags of a device")
    return flags


@function("cudaGetDeviceFlags")
def get_flags(out: int) -> None:
    """How the host waits; that memory of the host is mapped is implicit in the runtime."""
    put_i32(out, session().context.flags | MAP_HOST)


@function("cudaChooseDevice")
def matching(out: int, wanted: int) -> None:
    """The device with the closest properties: all are alike."""
    put_i32(out, 0)


@function("cudaDeviceReset", "cudaThreadExit", any_state=True)
def reset() -> None:
    """Reset the device of the thread: device code is loaded again when it is used."""
    here = session().context
    here.reset()
    for each in runtime().fatbins.values():
        each.forget(here.device)


@function("cudaDeviceSynchronize", "cudaThreadSynchronize")
def synchronize() -> None:
    """Wait for all work of the device."""
    context.synchronize()


@function("cudaGetDeviceProperties@12", "cudaGetDeviceProperties_v2", any_state=True)
def properties_12(out: int, ordinal: int) -> None:
    """All that is known of a device."""
    put(out, ordinal, "12")


@function("cudaGetDeviceProperties@13", any_state=True)
def properties_13(out: int, ordinal: int) -> None:
    """All that is known of a device."""
    put(out, ordinal, "13")


def put(out: int, ordinal: int, major: str) -> None:
    """Write the structure of a version."""
    made = properties(session().driver.device(ordinal), major)
    put_bytes(out, bytes(made))


@function("cudaDeviceGetAttribute", any_state=True)
def attribute(out: int, number: int, ordinal: int) -> None:
    """An attribute of a device; the numbers are the driver's."""
    driver.attribute(out, number, ordinal)


@function("cudaDeviceEnablePeerAccess")
def enable_peer(ordinal: int, flags: int) -> None:
    """Let kernels of the thread's device use memory of another."""
    if session().driver.device(ordinal) is session().context.device:
        raise DriverError(Result.INVALID_DEVICE, "a device is no peer of itself")
    peer = session().handles.handle(session().driver.primary_context(ordinal))
    context.enable_peer(peer, flags)


@function("cudaDeviceDisablePeerAccess")
def disable_peer(ordinal: int) -> None:
    """End the access; kernels can still use the memory."""
    context.disable_peer(session().handles.handle(session().driver.primary_context(ordinal)))


@function("cudaDeviceGetStreamPriorityRange")
def priorities(least: int, greatest: int) -> None:
    """The lowest and the highest priority of a stream."""
    context.priorities(least, greatest)


@function("cudaSetDoubleForDevice", "cudaSetDoubleForHost")
def convert_double(value: int) -> None:
    """Convert a double between the host and devices that have none: all devices have them, so it stays as it is."""
    not_null(value)
