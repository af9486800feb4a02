"""`import ptxvm.cuda` makes ptxvm the CUDA driver of this process.

Import it before the client (Numba, cuda.core, Triton ...): whatever then loads `libcuda.so.1` gets ours, and so do the
processes that this one starts.  `ptxvm exec` does the same for a program from outside.
"""

from __future__ import annotations

from ptxvm.libcuda.library import Libraries
from ptxvm.libcudart.process import enter

LIBRARIES: Libraries = enter()

__all__ = ["LIBRARIES"]
