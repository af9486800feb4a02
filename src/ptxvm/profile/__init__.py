"""Counters, under the names of Nsight Compute, and traces: what a launch does, instruction by instruction."""
