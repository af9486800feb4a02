"""The instructions of a node as LLVM assembly: ports, barriers, collectives, calls, and where control goes next."""
