"""The compiler of the backend: Triton's own."""

from triton.backends.nvidia.compiler import CUDABackend

__all__ = ["CUDABackend"]
