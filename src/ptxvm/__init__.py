"""ptxvm: the PTX virtual machine.

It reads PTX, says what is wrong with it, and runs it on a CPU.

    module = ptxvm.load("saxpy.ptx")
    module.kernel("saxpy").launch(grid=4096, block=256, args=[n, 2.0, x, y])
"""

from typing import TYPE_CHECKING, Any

from ptxvm.api import Kernel, Module, check, link, load
from ptxvm.diagnostics import Diagnostic
from ptxvm.diagnostics.errors import Crash, Fault, InvalidPTX, PTXVMError, Unsupported
from ptxvm.machine.streams import Event, Stream

if TYPE_CHECKING:
    from ptxvm.machine.device_array import DeviceArray
    from ptxvm.machine.result import LaunchResult
    from ptxvm.machine.texture import Sampler, Surface, Texture

__version__ = "0.1.0"
LAZY = {"DeviceArray": "ptxvm.machine.device_array", "LaunchResult": "ptxvm.machine.result"} | dict.fromkeys(
    ("Sampler", "Surface", "Texture"), "ptxvm.machine.texture"
)


def __getattr__(name: str) -> Any:  # noqa: ANN401 - of the type that the name has, which type checkers read above
    """What needs NumPy is imported when it is named."""
    if name in LAZY:
        import importlib

        return getattr(importlib.import_module(LAZY[name]), name)
    raise AttributeError(f"module 'ptxvm' has no attribute '{name}'")


def __dir__() -> list[str]:
    """All public names, also those that are not imported yet."""
    return sorted({*globals(), *__all__})


__all__ = [
    "Crash",
    "DeviceArray",
    "Diagnostic",
    "Event",
    "Fault",
    "InvalidPTX",
    "Kernel",
    "LaunchResult",
    "Module",
    "PTXVMError",
    "Sampler",
    "Stream",
    "Surface",
    "Texture",
    "Unsupported",
    "check",
    "link",
    "load",
]
