"""All requests that the adapter answers."""

from __future__ import annotations

import ptxvm.debug.dap.breaking
import ptxvm.debug.dap.looking
import ptxvm.debug.dap.running
import ptxvm.debug.dap.sources  # noqa: F401 - each declares what answers some requests
from ptxvm.debug.dap.adapter import Adapter, Arguments, Launcher, Refused

__all__ = ["Adapter", "Arguments", "Launcher", "Refused"]
