"""The JIT: kernels as LLVM IR, a warp of 32 lanes as vectors."""
