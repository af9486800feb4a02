"""Object code: compiled by LLVM, loaded into memory, and cached on disk for later processes."""
