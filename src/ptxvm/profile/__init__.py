"""Counters: what a launch does, instruction by instruction, as exact numbers under the names of Nsight Compute."""
