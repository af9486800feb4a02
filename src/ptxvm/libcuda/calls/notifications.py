"""Notifications of devices to clients (driver API, `cuDeviceRegisterAsyncNotification`).

The only one there is says that a process has more memory of a device than its budget.  A device has the memory of the host
here, and gives no process a budget, so none is ever sent.
"""

from __future__ import annotations

from ptxvm.dataclass import dataclass
from ptxvm.driver.device import Device
from ptxvm.driver.results import DriverError, Result
from ptxvm.libcuda.c_values import not_null, put_u64
from ptxvm.libcuda.session import function, session


@dataclass(eq=False)
class Registration:
    """A function of a client that is registered for a device."""

    device: Device
    function: int
    data: int


@function("cuDeviceRegisterAsyncNotification")
def register(device: int, callback: int, data: int, out: int) -> None:
    """Register a function of the client."""
    made = Registration(session().driver.device(device), not_null(callback), data)
    put_u64(out, session().handles.handle(made))


@function("cuDeviceUnregisterAsyncNotification", any_state=True)
def unregister(device: int, handle: int) -> None:
    """Forget a function of the client."""
    found = session().handles.objects.get(handle)
    if not isinstance(found, Registration) or found.device is not session().driver.device(device):
        raise DriverError(Result.INVALID_VALUE, f"{handle:#x} is no function that was registered for device {device}")
    session().handles.drop(handle)
