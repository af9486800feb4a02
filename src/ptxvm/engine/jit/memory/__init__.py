"""The port `mem`: addressing by shape, bounds checks, atomics, non-temporal stores, instrumentation."""
