"""ptxvm: the PTX virtual machine.

Reads PTX, says what is wrong with it, and runs it on a CPU.  `check` lists the diagnostics of a source, `load` makes
a `Module` of it whose kernels launch on NumPy arrays.
"""

from ptxvm.api import check

__all__ = ["check"]
