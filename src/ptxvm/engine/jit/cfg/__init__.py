"""The control flow graph of a kernel as nodes, and what is known of it before a line is written; no LLVM."""
