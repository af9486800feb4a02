"""The compiler of the backend: Triton's own."""

from triton.backends.nvidia import compiler as nvidia

Compiler = nvidia.CUDABackend

__all__ = ["Compiler"]
