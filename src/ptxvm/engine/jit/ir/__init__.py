"""LLVM assembly as text, for the processor at hand; knows no PTX."""
