"""Link-time optimisation through cuda.core: NVRTC's LTO-IR, linked by the toolkit's nvJitLink, runs as PTX."""

from __future__ import annotations

import numpy as np
import pytest
from cuda.core import LaunchConfig, LegacyPinnedMemoryResource, Linker, LinkerOptions, Program, ProgramOptions, launch

KERNEL = 'extern __device__ int f(int); extern "C" __global__ void k(int* p) { *p = f(21); }'
FUNCTION = "__device__ int f(int x) { return 2 * x; }"


@pytest.mark.parametrize("kinds", [("ltoir", "ltoir"), ("ltoir", "ptx")], ids="+".join)
def test_modules_are_linked_and_run(device, stream, kinds):
    """A module of PTX may define what one of LTO-IR calls."""
    made = []
    for code, kind in zip((KERNEL, FUNCTION), kinds, strict=True):
        options = ProgramOptions(
            arch=f"sm_{device.arch}", relocatable_device_code=True, link_time_optimization=kind == "ltoir" or None
        )
        made.append(Program(code, "c++", options).compile(kind))
    options = LinkerOptions(arch=f"sm_{device.arch}", link_time_optimization=True)
    kernel = Linker(*made, options=options).link("cubin").get_kernel("k")
    cell = LegacyPinnedMemoryResource().allocate(4)
    launch(stream, LaunchConfig(grid=1, block=1), kernel, cell)
    stream.sync()
    assert np.from_dlpack(cell).view(np.int32)[0] == 42
