"""LLVM assembly as text, for the host's processor; knows no PTX."""
