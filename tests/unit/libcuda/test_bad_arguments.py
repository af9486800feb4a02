"""Null pointers and handles: every function has a result for them (driver API, `CUDA_ERROR_INVALID_VALUE`)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SUCCESS, UNKNOWN = 0, 999
PROGRAM = """
import ctypes, logging, sys
sys.path.insert(0, {folder!r})
logging.disable()
from stream_driver import Driver
from ptxvm.libcuda.signatures import KINDS, signatures
cuda = Driver()
ZERO = {{"d": 0.0, "f": 0.0, "S": KINDS["S"]()}}
for name, kinds in signatures().items():
    if name in ("cuCtxDestroy", "cuCtxDestroy_v2", "cuCtxSetCurrent", "cuDevicePrimaryCtxReset", "cuDevicePrimaryCtxReset_v2"):
        continue  # they take the context away, with which the others are called
    print(name, flush=True)
    call = ctypes.CFUNCTYPE(ctypes.c_int, *(KINDS[kind] for kind in kinds))((name, cuda.library))
    result = call(*(ZERO.get(kind, 0) for kind in kinds))
    assert result != {unknown}, name
    cuda.cuCtxSetCurrent(cuda.handle("cuDevicePrimaryCtxRetain", 0))
"""


def test_no_function_fails_on_zeros():
    """All arguments are 0, with a context: none ends the process, or has the result for what is unexpected."""
    program = PROGRAM.format(folder=str(Path(__file__).parent), unknown=UNKNOWN)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, (done.stdout.split()[-1:], done.stderr[-2000:])
