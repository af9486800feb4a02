"""The CUDA runtime library, for programs that nvcc linked with `-cudart shared`: a `libcudart.so` whose functions run here."""
