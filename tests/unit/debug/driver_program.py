"""A program that calls the driver API, launches a kernel twice, and prints what it has stored."""

from __future__ import annotations

PROGRAM = """
import ctypes, os
cuda = ctypes.CDLL("libcuda.so.1")
context, module, kernel, data = (ctypes.c_void_p() for _ in range(4))
cuda.cuInit(0)
cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
print(cuda.cuModuleLoadData(ctypes.byref(module), PTX))
cuda.cuModuleGetFunction(ctypes.byref(kernel), module, b"five")
cuda.cuMemAlloc_v2(ctypes.byref(data), ctypes.c_size_t(4))
arguments = (ctypes.c_void_p * 1)(ctypes.addressof(data))
for _ in range(2):
    print(cuda.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, None, arguments, None), cuda.cuCtxSynchronize())
value = ctypes.c_uint32()
cuda.cuMemcpyDtoH_v2(ctypes.byref(value), data, ctypes.c_size_t(4))
print("stored", value.value)
raise SystemExit(3)
"""
FIVE = b"""
.version 6.4
.target sm_75
.address_size 64
.visible .entry five(.param .u64 data)
{
    .reg .b64 %rd;
    .reg .b32 %r;
    ld.param.u64 %rd, [data];
    mov.u32 %r, 5;
    st.global.u32 [%rd], %r;
    ret;
}
"""
