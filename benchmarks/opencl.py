"""The 14 kernels in OpenCL C on PoCL, in a process of its own: its LLVM and the JIT's do not get on in one.

It reads lines: the name of a kernel, which gets its work ready and says whether the result is right, or `run`, which runs
it once more and says the seconds on the clock and of the processor.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

KERNELS = Path(sys.argv[1])


class Device:
    """PoCL and the kernels, built."""

    def __init__(self) -> None:
        device = next(p for p in cl.get_platforms() if "Portable" in p.name).get_devices()[0]
        self.context = cl.Context([device])
        self.queue = cl.CommandQueue(self.context)
        self.program = cl.Program(self.context, (KERNELS / "kernels.cl").read_text()).build(["-cl-fast-relaxed-math"])

    def run(self, name: str, work: dict[str, Any]) -> Callable[[], None]:
        """The work, on the memory of the arrays."""
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR

        def argument(a: Any) -> Any:
            if isinstance(a, np.ndarray):
                return cl.Buffer(self.context, flags, hostbuf=a)
            return np.float32(a) if isinstance(a, float) else np.int32(a)

        kernel = cl.Kernel(self.program, name)
        self.buffers = [argument(a) for a in work["args"]]  # which the kernel does not keep alive
        kernel.set_args(*self.buffers)
        block = work["bd"][: 1 if work["bd"][1] == 1 else 2]
        grid = tuple(a * b for a, b in zip((*work["grid"], 1)[: len(block)], block, strict=True))

        def run() -> None:
            cl.enqueue_nd_range_kernel(self.queue, kernel, grid, block)
            self.queue.finish()

        return run


def main() -> None:
    """Answer line by line."""
    sys.path.insert(0, str(KERNELS))
    from workloads import work  # noqa: PLC0415 - it lies beside the kernels

    device = Device()
    print("ready", flush=True)
    for line in sys.stdin:
        if line.strip() != "run":
            name = line.strip()
            given = work(name)
            reset, once = given.get("reset", lambda: None), device.run(name, given)
            reset()
            once()
            print(int(bool((given["chk"] or (lambda: True))())), flush=True)
            continue
        reset()
        wall, cpu = time.perf_counter(), time.process_time()
        once()
        cpu = time.process_time() - cpu
        print(time.perf_counter() - wall, cpu, flush=True)


if __name__ == "__main__":
    main()
