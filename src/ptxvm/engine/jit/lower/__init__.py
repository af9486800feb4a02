"""Lowering of instructions to LLVM assembly: ports, barriers, collectives, calls, terminators."""
