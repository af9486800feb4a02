"""Words of CUDA, against what nvcc makes of them, and errors of CUDA, against what the driver returns."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from ptxvm.diagnostics import KINDS
from ptxvm.diagnostics.errors import Fault
from ptxvm.driver.results import result_of
from ptxvm.reference.cuda_words import CUDA_WORDS, cuda_word

# A kernel has int i, j, r; float f, g; __half h; __half2 h2; int *p, q[0..2]; shared int s[64].
STATEMENTS = {
    **{name: f"r = {name}.x" for name in ("threadIdx", "blockIdx", "blockDim", "gridDim")},
    **{f"__syncthreads{name}": f"r = __syncthreads{name}(i)" for name in ("_count", "_and", "_or")},
    **{name: f"{name}()" for name in (
        "__syncthreads", "__syncwarp", "__threadfence", "__threadfence_block", "__threadfence_system", "__trap", "__brkpt",
        "__pipeline_commit", "cudaGridDependencySynchronize", "cudaTriggerProgrammaticLaunchCompletion")},
    **{f"__shfl{name}_sync": f"r = __shfl{name}_sync(-1, i, j)" for name in ("", "_up", "_down", "_xor")},
    **{f"__{name}_sync": f"r = __{name}_sync(-1, i)" for name in (
        "ballot", "any", "all", "match_any", "reduce_add", "reduce_min", "reduce_max", "reduce_and", "reduce_or")},
    "__match_all_sync": "r = __match_all_sync(-1, i, &j)",
    "__activemask": "r = __activemask()",
    **{f"atomic{name}": f"r = atomic{name}(p, i)" for name in ("Add", "Sub", "Exch", "Min", "Max", "And", "Or", "Xor")},
    **{f"atomic{name}": f"r = atomic{name}((unsigned *)p, i)" for name in ("Inc", "Dec")},
    "atomicCAS": "r = atomicCAS(p, i, j)",
    **{name: f"r = {name}((unsigned *)p)" for name in ("__ldg", "__ldcg")},
    **{name: f"r = {name}(i)" for name in ("__popc", "__clz", "__brev", "__ffs")},
    **{name: f"r = {name}(i, j)" for name in ("__mulhi", "__umulhi")},
    **{name: f"r = {name}(i, j, i ^ j)" for name in ("__byte_perm", "__funnelshift_l", "__funnelshift_r", "__dp4a", "__sad")},
    "__dp2a_lo": "r = __dp2a_lo(make_short2(i, j), make_char4(i, j, i, j), i)",
    **{name: f"f = {name}(f, g, f)" for name in ("__fmaf_rn", "fmaf")},
    **{name: f"f = {name}(f, g)" for name in ("__fdividef", "fminf", "fmaxf")},
    **{name: f"f = {name}(f)" for name in (
        "__expf", "exp2f", "__logf", "__log2f", "__sinf", "__cosf", "__fsqrt_rn", "sqrtf", "rsqrtf", "__saturatef")},
    "__float2int_rn": "r = __float2int_rn(f)", "__int2float_rn": "f = __int2float_rn(i)",
    "__float_as_int": "r = __float_as_int(f) ^ i",
    "__float2half": "h = __float2half(f)", "__half2float": "f = __half2float(h)", "__hfma2": "h2 = __hfma2(h2, h2, h2)",
    "__nanosleep": "__nanosleep(i)",
    "__isGlobal": "r = __isGlobal(*(int **)p)", "__isShared": "r = __isShared(*(int **)p)",
    "__pipeline_memcpy_async": "__pipeline_memcpy_async(s, p, 16)", "__pipeline_wait_prior": "__pipeline_wait_prior(0)",
    "warpSize": "r = warpSize",
}  # fmt: skip
DECLARED = {
    "__global__", "__device__", "__shared__", "__constant__", "__launch_bounds__", "__cluster_dims__",
}  # fmt: skip
HEAD = """#include <cuda_fp16.h>
#include <cuda_pipeline.h>
__constant__ int constants[4];
__device__ __noinline__ int function(int i) { return i * constants[i & 3]; }
"""
KERNEL = """extern "C" __global__ void BOUNDS
k_NAME(int *p, int i, int j, float f, float g, __half h, __half2 h2, int *q, __half *hs)
{
    __shared__ __align__(16) int s[64];
    int r = 0;
    STATEMENT;
    q[0] = r; q[1] = j; q[2] = f; q[3] = s[j]; hs[0] = h; hs[1] = h2.x; q[4] = function(i);
}
"""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    """The PTX of a kernel for each word, by its name."""
    folder = tmp_path_factory.mktemp("cuda")
    bounds = {"launch_bounds": "__launch_bounds__(64)", "cluster_dims": "__cluster_dims__(2)"}
    texts = [KERNEL.replace("NAME", name).replace("STATEMENT", STATEMENTS[name]).replace("BOUNDS", "") for name in STATEMENTS]
    texts += [KERNEL.replace("NAME", name).replace("STATEMENT", "").replace("BOUNDS", each) for name, each in bounds.items()]
    (folder / "words.cu").write_text(HEAD + "".join(texts), encoding="utf-8")
    command = ["nvcc", "-arch=sm_90", "-ptx", "words.cu", "-o", "words.ptx"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    head, *parts = (folder / "words.ptx").read_text(encoding="utf-8").split(".entry k_")
    kernels = {part.partition("(")[0]: f".entry {part}" for part in parts}
    return {**kernels, **{f"__{name}__": kernels[name] for name in bounds}, "": head + "".join(kernels.values())}


def test_each_word_is_tried():
    errors = {name for name, word in CUDA_WORDS.items() if word.is_error}
    assert CUDA_WORDS.keys() - errors == STATEMENTS.keys() | DECLARED


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="no nvcc on the PATH")
def test_nvcc_writes_so(compiled):
    """WARP_SZ is a constant, for which nvcc writes 32."""
    for name, word in CUDA_WORDS.items():
        if not word.is_error and name != "warpSize":
            text = compiled.get(name, compiled[""] if name in DECLARED else "")
            assert word.see[0] in text, (name, text)


@pytest.mark.parametrize("name", [name for name, word in CUDA_WORDS.items() if name.startswith("CUDA_ERROR")])
def test_the_driver_returns_the_error_for_these_kinds(name):
    word = CUDA_WORDS[name]
    for kind in word.see:
        assert kind in KINDS
        assert result_of(Fault(kind, "", address=0)).symbol == name


def test_spellings():
    assert cuda_word("ThreadIdx.X") is cuda_word("threadIdx") is not None
    assert cuda_word("atomicAdd(p, 1);") is cuda_word("atomicSub")
    assert cuda_word("illegal-memory-access") is cuda_word("cudaErrorIllegalAddress")
    assert cuda_word("popc") is None
