"""Checkers: they watch a launch, and say what is wrong with the kernel."""
