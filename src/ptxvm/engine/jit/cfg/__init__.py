"""The control flow graph of a kernel, and analyses of it that need no LLVM."""
