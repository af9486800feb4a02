"""Options of nvJitLink: statuses and texts as NVIDIA's libnvJitLink 13.5 gave them."""

from __future__ import annotations

import ctypes
from ctypes import byref, c_char_p, c_size_t, c_void_p

import pytest

from ptxvm.libcuda.library import install
from ptxvm.libcuda.link_options import LinkError, check_options

ARCH = "-arch=sm_90"
TAKEN = (
    f"{ARCH}", f"{ARCH} -lto -ptx", f"{ARCH} -O0 -g -lineinfo -time -verbose -no-cache -r", f"{ARCH} -O3 -maxrregcount=32",
    f"{ARCH} -ftz=1 -prec-div=true -prec-sqrt=false -fma=true", f"{ARCH} -kernels-used=A -variables-used=B",
    f"{ARCH} -Xptxas=-v -Xnvvm=-x -split-compile=0 -split-compile-extended=1", "-arch=lto_90 -lto", "-arch=sm_100f",
    "-arch=compute_90 -lto -ptx", f"{ARCH} -optimize-unused-variables", f"{ARCH} -arch=sm_80",
)  # fmt: skip
REFUSED = {
    "": (2, ""),
    "-foo": (1, "unrecognized option: -foo"),
    f"{ARCH} foo": (1, "unrecognized option: foo"),
    f"{ARCH} -ftz": (1, "unrecognized option: -ftz"),
    f"{ARCH} -kernels-used": (1, "unrecognized option: -kernels-used"),
    f"{ARCH} --time": (1, "unrecognized option: --time"),
    f"{ARCH} -O2": (1, "unsupported value of -O: 2. Only 0 and 3 are supported."),
    "-arch=99": (1, "ERROR NVJITLINK_ERROR_UNRECOGNIZED_OPTION: missing option value (-arch=99)"),
    "-arch=SM_90": (1, "ERROR NVJITLINK_ERROR_UNRECOGNIZED_OPTION: missing option value (-arch=SM_90)"),
    "-arch=sm_99": (16, "ERROR NVJITLINK_ERROR_UNRECOGNIZED_ARCH: unrecognized architecture (compute_99)"),
    f"{ARCH} -ptx": (11, "ERROR: -ptx requires -lto"),
    "-arch=compute_90": (11, "ERROR: virtual arch requires -ptx"),
}


@pytest.mark.parametrize("options", TAKEN)
def test_options_are_taken(options):
    check_options(options.split())


@pytest.mark.parametrize("options", REFUSED)
def test_options_are_refused(options):
    with pytest.raises(LinkError) as wrong:
        check_options(options.split())
    assert (wrong.value.status, str(wrong.value)) == REFUSED[options]


def test_a_link_with_a_wrong_option_has_the_log():
    install()
    linker = ctypes.CDLL("libnvJitLink.so.13")
    handle, size = c_void_p(), c_size_t()
    assert linker.nvJitLinkCreate(byref(handle), 1, (c_char_p * 1)(b"-arch=sm_99")) == 16
    assert linker.nvJitLinkGetErrorLogSize(handle, byref(size)) == 0
    log = ctypes.create_string_buffer(size.value)
    assert linker.nvJitLinkGetErrorLog(handle, log) == 0
    assert b"unrecognized architecture" in log.value
    assert linker.nvJitLinkDestroy(byref(handle)) == 0
