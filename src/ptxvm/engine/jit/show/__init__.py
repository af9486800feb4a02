"""Reports for users: the shapes, LLVM IR and assembly of a kernel."""
