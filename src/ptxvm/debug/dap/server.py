"""All requests that the adapter answers."""

from __future__ import annotations

import ptxvm.debug.dap.breaking
import ptxvm.debug.dap.looking
import ptxvm.debug.dap.running
import ptxvm.debug.dap.sources  # noqa: F401 - each declares what answers some requests
from ptxvm.debug.dap.adapter import Adapter


class CompleteAdapter(Adapter):
    """An adapter that answers all requests: those that the modules above declare."""
