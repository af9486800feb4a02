"""The C interface of the CUDA driver, for unmodified programs: a `libcuda.so.1` whose functions run here."""
