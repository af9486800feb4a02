"""`import ptxvm.cuda` makes ptxvm the CUDA driver of this process.

Import it before the client (Numba, cuda.core, Triton ...): whatever then loads `libcuda.so.1` gets ours.  `ptxvm exec` does
the same for a program from outside, and sets up the clients that look for more than a library.
"""

from __future__ import annotations

import os

from ptxvm.libcuda.library import Library, install

LIBRARY: Library = install()
os.environ["LD_LIBRARY_PATH"] = os.pathsep.join([str(LIBRARY.folder), *filter(None, [os.environ.get("LD_LIBRARY_PATH", "")])])
os.environ.setdefault("TRITON_LIBCUDA_PATH", str(LIBRARY.folder))

__all__ = ["LIBRARY"]
