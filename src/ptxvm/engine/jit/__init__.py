"""The JIT compiler: kernels become LLVM IR, in which a warp of 32 lanes is a vector."""
