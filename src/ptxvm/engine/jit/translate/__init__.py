"""Translation of a kernel to LLVM assembly: the fixed point over shapes, and the choice of versions."""
