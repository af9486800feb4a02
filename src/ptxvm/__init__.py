"""ptxvm: the PTX virtual machine.

It reads PTX, says what is wrong with it, and runs it on a CPU.

    module = ptxvm.load("saxpy.ptx")
    module.kernel("saxpy").launch(grid=4096, block=256, args=[n, 2.0, x, y])
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ptxvm.api import Kernel, Module, check, link, load
    from ptxvm.campaign.session import campaign
    from ptxvm.campaign.spread import spread
    from ptxvm.diagnostics import Diagnostic
    from ptxvm.diagnostics.errors import Crash, Fault, InvalidPTX, PTXVMError, Unsupported
    from ptxvm.machine.device import Device, StartedLaunch, devices
    from ptxvm.machine.device_array import DeviceArray
    from ptxvm.machine.result import LaunchResult
    from ptxvm.machine.streams import Event, Stream
    from ptxvm.machine.tensor_map import Interleave, L2Promotion, OobFill, Swizzle, TensorMap, TensorType
    from ptxvm.machine.texture import Sampler, Surface, Texture
    from ptxvm.profile.trace import Trace
    from ptxvm.report.report import LaunchReport, launch_report

__version__ = "0.1.0"
LAZY = {
    name: module
    for module, names in {
        "ptxvm.api": ("Kernel", "Module", "check", "link", "load"),
        "ptxvm.campaign": ("campaign",),
        "ptxvm.campaign.spread": ("spread",),
        "ptxvm.diagnostics": ("Diagnostic",),
        "ptxvm.diagnostics.errors": ("Crash", "Fault", "InvalidPTX", "PTXVMError", "Unsupported"),
        "ptxvm.machine.device": ("Device", "StartedLaunch", "devices"),
        "ptxvm.machine.device_array": ("DeviceArray",),
        "ptxvm.machine.result": ("LaunchResult",),
        "ptxvm.machine.streams": ("Event", "Stream"),
        "ptxvm.machine.tensor_map": ("Interleave", "L2Promotion", "OobFill", "Swizzle", "TensorMap", "TensorType"),
        "ptxvm.machine.texture": ("Sampler", "Surface", "Texture"),
        "ptxvm.profile.trace": ("Trace",),
        "ptxvm.report.report": ("LaunchReport", "launch_report"),
    }.items()
    for name in names
}


def __getattr__(name: str) -> Any:  # noqa: ANN401 - of the type that the name has, which type checkers read above
    """A name is imported when it is first used."""
    if name in LAZY:
        import importlib

        from ptxvm.analysis.collector import NoCollection

        with NoCollection():
            found = globals()[name] = getattr(importlib.import_module(LAZY[name]), name)
        return found
    raise AttributeError(f"module 'ptxvm' has no attribute '{name}'")


def __dir__() -> list[str]:
    """All public names, also those that are not imported yet."""
    return sorted({*globals(), *__all__})


__all__ = [
    "Crash",
    "Device",
    "DeviceArray",
    "Diagnostic",
    "Event",
    "Fault",
    "Interleave",
    "InvalidPTX",
    "Kernel",
    "L2Promotion",
    "LaunchReport",
    "LaunchResult",
    "Module",
    "OobFill",
    "PTXVMError",
    "Sampler",
    "StartedLaunch",
    "Stream",
    "Surface",
    "Swizzle",
    "TensorMap",
    "TensorType",
    "Texture",
    "Trace",
    "Unsupported",
    "campaign",
    "check",
    "devices",
    "launch_report",
    "link",
    "load",
    "spread",
]
