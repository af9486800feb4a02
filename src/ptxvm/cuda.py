"""`import ptxvm.cuda` makes ptxvm the CUDA driver of this process.

Import it before the client (Numba, cuda.core, Triton ...): whatever then loads `libcuda.so.1` gets ours.  `ptxvm exec` does
the same for a program from outside, and sets up the clients that look for more than a library.
"""

from __future__ import annotations

import os

from ptxvm.libcuda.library import Libraries, install

LIBRARIES: Libraries = install()
os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([str(LIBRARIES.folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH", "")])])
os.environ.setdefault("TRITON_LIBCUDA_PATH", str(LIBRARIES.folder))

__all__ = ["LIBRARIES"]
