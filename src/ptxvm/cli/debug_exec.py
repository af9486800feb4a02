"""`ptxvm debug --exec`: a program, run as by `ptxvm exec`, each of whose launches is debugged in its own process."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from ptxvm.cli.exec import execute


def debug_command(command: Sequence[str], commands: Sequence[str], *, batch: bool) -> int:
    """Run a program to its end; its exit status.  The debugger is in its processes, which have the same terminal."""
    os.environ["PTXVM_IMPORT"] = "ptxvm.cli.debug_client"
    os.environ["PTXVM_DEBUG"] = json.dumps({"commands": list(commands), "batch": batch})
    return execute(command)


__all__ = ["debug_command"]
