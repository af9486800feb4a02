"""The CUDA driver over this machine: devices, contexts, streams, memory, modules, graphs.

`ptxvm.libcuda` gives it the C interface that unmodified programs call.
"""
