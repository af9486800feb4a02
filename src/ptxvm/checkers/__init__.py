"""Checkers: they watch a launch, and report what is wrong with the kernel."""
