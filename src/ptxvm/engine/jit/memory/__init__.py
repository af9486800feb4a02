"""The port `mem`: addresses by their shape, checks of accesses, atomics, instrumentation."""
