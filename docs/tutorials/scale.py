"""Multiply an array by a number, by Numba; writes scale.ptx.  Needs numba-cuda, and no GPU."""

from pathlib import Path

from numba import cuda, float32


def scale(factor, values):
    i = cuda.grid(1)
    if i < values.size:
        values[i] *= factor


ptx, _ = cuda.compile_ptx(scale, (float32, float32[::1]), cc=(8, 0))
Path("scale.ptx").write_text(ptx)
