"""What the real driver answers: recorded on an H200 with the driver 580 (CUDA 13.0), by the calls that stand here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
from ctypes import byref, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
sys.path.insert(0, {folder!r})
from stream_driver import Driver
cuda, number = Driver(), c_int()
call = cuda.library
TEXT = b'''.version 8.0
.target sm_80
.address_size 64
.extern .shared .align 16 .b8 dyn[];
.visible .entry a(.param .u64 p, .param .u32 n) {{
    .shared .align 8 .b8 s[1024]; .reg .b32 %r;
    ld.shared.u32 %r, [s]; st.shared.u32 [dyn], %r; ret;
}}
.visible .entry b(.param .align 8 .b8 p[24]) .maxntid 128, 1, 1 .minnctapersm 4 {{ ret; }}
'''
module = c_void_p()
def loaded(text):
    return call.cuModuleLoadData(byref(module), text + bytes(1))
assert loaded(b"nonsense") == 200
assert loaded(b".version 99.0\\n.target sm_80\\n") == 222
assert loaded(b".version 8.8\\n.target sm_120\\n.address_size 64\\n.visible .entry k() {{ ret; }}\\n") == 218
assert loaded(b".version 8.0\\n.target sm_80\\n.visible .entry k() {{ add.u32 %r1, %r2; }}\\n") == 218
assert loaded(TEXT) == 0
def kernel(name):
    found = c_void_p()
    assert call.cuModuleGetFunction(byref(found), module, name) == 0
    return found
a, b = kernel(b"a"), kernel(b"b")
assert call.cuFuncGetAttribute(byref(number), 6, a) == 0 and number.value == 90  # the architecture of the code
assert [call.cuFuncSetAttribute(a, 8, each) for each in (100000, 300000, -1)] == [0, 1, 1]
assert [call.cuFuncSetAttribute(a, 9, each) for each in (50, 101)] == [0, 1]
def resident(function, threads, dynamic):
    status = call.cuOccupancyMaxActiveBlocksPerMultiprocessor(byref(number), function, threads, c_size_t(dynamic))
    return status or -number.value
# half of the shared memory of a multiprocessor, to the next split of it; the most dynamic shared memory of a block
assert [-resident(a, 32, each) for each in (16384, 49152, 65536, 98304, 120000)] == [7, 2, 2, 1, 0]
assert [-resident(a, each, 16384) for each in (192, 256)] == [7, 7]
assert [-resident(b, 32, each) for each in (49152, 65536)] == [4, 0]
assert [-resident(b, each, 16384) for each in (192, 256, 384, 512, 768, 1024, 1025)] == [10, 8, 5, 4, 2, 2, 0]
assert resident(a, 0, 0) == 1
out = c_void_p()
assert [call.cuEventCreate(byref(out), flags) for flags in (64, 0)] == [1, 0]
assert [call.cuMemHostAlloc(byref(out), c_size_t(4096), flags) for flags in (0x100, 2)] == [1, 0]
memory = c_uint64()
cuda.cuMemAlloc_v2(byref(memory), c_size_t(4096))
assert call.cuMemsetD2D8_v2(memory, c_size_t(8), c_ubyte(0), c_size_t(16), c_size_t(2)) == 1
assert call.cuCtxSetLimit(99, c_size_t(1)) == 1
size = c_size_t()
assert call.cuCtxGetLimit(byref(size), 5) == 0 and size.value == 64  # the granularity of the L2 cache
"""


def test_the_answers_of_a_real_driver():
    program = PROGRAM.format(folder=str(Path(__file__).parent))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60,
        env=os.environ | {"PTXVM_DEVICE": "sm_90"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
