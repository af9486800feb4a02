"""Triton's backend `nvidia`, whose tensors are the host's: `ptxvm exec` lets Triton find it in place of its own.

Triton's own asks torch for a GPU where torch is imported, and torch's wheel for CPUs has none.  Here the device is the
driver's, and tensors of the host are its memory.
"""
