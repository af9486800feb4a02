"""Words of CUDA C++ and the errors of its runtime, each with what stands for it in PTX.

The instructions are those that nvcc 13.0 writes for sm_90 (`tests/oracle/test_cuda_words.py` compiles each word).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ptxvm.named_tuple import NamedTuple

# What is written in PTX = the names.  A special register, a directive or a mnemonic, as far as it is the same for all of them.
BUILTINS = """
%tid                         = threadIdx
%ctaid                       = blockIdx
%ntid                        = blockDim
%nctaid                      = gridDim
WARP_SZ                      = warpSize
.entry                       = __global__
.func                        = __device__
.shared                      = __shared__
.const                       = __constant__
.maxntid                     = __launch_bounds__
.reqnctapercluster           = __cluster_dims__
bar.sync                     = __syncthreads
bar.red.popc.u32             = __syncthreads_count
bar.red.and.pred             = __syncthreads_and
bar.red.or.pred              = __syncthreads_or
bar.warp.sync                = __syncwarp
shfl.sync.idx.b32            = __shfl_sync
shfl.sync.up.b32             = __shfl_up_sync
shfl.sync.down.b32           = __shfl_down_sync
shfl.sync.bfly.b32           = __shfl_xor_sync
vote.sync.ballot.b32         = __ballot_sync
vote.sync.any.pred           = __any_sync
vote.sync.all.pred           = __all_sync
match.any.sync.b32           = __match_any_sync
match.all.sync.b32           = __match_all_sync
activemask.b32               = __activemask
redux.sync                   = __reduce_add_sync, __reduce_min_sync, __reduce_max_sync, __reduce_and_sync, __reduce_or_sync
membar.cta                   = __threadfence_block
membar.gl                    = __threadfence
membar.sys                   = __threadfence_system
atom.global.add.u32          = atomicAdd, atomicSub
atom.global.cas.b32          = atomicCAS
atom.global.exch.b32         = atomicExch
atom.global.min.s32          = atomicMin
atom.global.max.s32          = atomicMax
atom.global.and.b32          = atomicAnd
atom.global.or.b32           = atomicOr
atom.global.xor.b32          = atomicXor
atom.global.inc.u32          = atomicInc
atom.global.dec.u32          = atomicDec
ld.global.nc.u32             = __ldg
ld.global.cg.u32             = __ldcg
popc.b32                     = __popc
clz.b32                      = __clz
brev.b32                     = __brev
bfind.shiftamt.u32           = __ffs
prmt.b32                     = __byte_perm
shf.l.wrap.b32               = __funnelshift_l
shf.r.wrap.b32               = __funnelshift_r
dp4a.s32.s32                 = __dp4a
dp2a.lo.s32.s32              = __dp2a_lo
mul.hi.s32                   = __mulhi
mul.hi.u32                   = __umulhi
sad.s32                      = __sad
fma.rn.f32                   = __fmaf_rn, fmaf
div.approx.f32               = __fdividef
ex2.approx.f32               = __expf, exp2f
lg2.approx.f32               = __logf, __log2f
sin.approx.f32               = __sinf
cos.approx.f32               = __cosf
sqrt.rn.f32                  = __fsqrt_rn, sqrtf
rsqrt.approx.f32             = rsqrtf
min.f32                      = fminf
max.f32                      = fmaxf
cvt.sat.f32.f32              = __saturatef
cvt.rni.s32.f32              = __float2int_rn
cvt.rn.f32.s32               = __int2float_rn
mov.b32                      = __float_as_int
cvt.rn.f16.f32               = __float2half
cvt.f32.f16                  = __half2float
fma.rn.f16x2                 = __hfma2
nanosleep.u32                = __nanosleep
trap                         = __trap
brkpt                        = __brkpt
isspacep.global              = __isGlobal
isspacep.shared              = __isShared
cp.async.cg.shared.global    = __pipeline_memcpy_async
cp.async.commit_group        = __pipeline_commit
cp.async.wait_group          = __pipeline_wait_prior
griddepcontrol.wait          = cudaGridDependencySynchronize
griddepcontrol.launch_dependents = cudaTriggerProgrammaticLaunchCompletion
"""

# The kinds of faults with which a program of CUDA gets an error = the names of the error, its text first.
ERRORS = """
out-of-bounds, null-pointer, use-after-free, stack-overflow = illegal memory access, illegal address,
    CUDA_ERROR_ILLEGAL_ADDRESS, cudaErrorIllegalAddress, an illegal memory access was encountered
misaligned = misaligned address, CUDA_ERROR_MISALIGNED_ADDRESS, cudaErrorMisalignedAddress
assertion = device-side assert triggered, CUDA_ERROR_ASSERT, cudaErrorAssert
trap = unspecified launch failure, CUDA_ERROR_LAUNCH_FAILED, cudaErrorLaunchFailure
timeout, step-budget, deadlock = launch timed out, CUDA_ERROR_LAUNCH_TIMEOUT, cudaErrorLaunchTimeout,
    the launch timed out and was terminated
invalid-branch, invalid-call = invalid program counter, CUDA_ERROR_INVALID_PC, cudaErrorInvalidPc
wrong-space = invalid address space, CUDA_ERROR_INVALID_ADDRESS_SPACE, cudaErrorInvalidAddressSpace,
    operation not supported on global/shared address space
"""


class CudaWord(NamedTuple):
    """Names that CUDA has for one thing, and what is explained of it: an instruction of PTX, a register, kinds of faults."""

    names: tuple[str, ...]
    see: tuple[str, ...]
    is_error: bool

    @property
    def said(self) -> str:
        """The word in a sentence."""
        if not self.is_error:
            return f"In PTX it is `{self.see[0]}`."
        return f"A program of CUDA gets it after a fault of the kind {_listed(self.see)}."


def _listed(words: Sequence[str]) -> str:
    *first, last = (f"`{word}`" for word in words)
    return f"{', '.join(first)} or {last}" if first else last


def _rows() -> Iterator[CudaWord]:
    for table in (BUILTINS, ERRORS):
        for line in re.sub(r",\s+", ", ", table).strip().splitlines():
            see, names = (tuple(part.strip().split(", ")) for part in line.split("="))
            yield CudaWord(names, see, table is ERRORS)


CUDA_WORDS = {name: row for row in _rows() for name in row.names}
"""The words by each of their names."""
_LOWER = {name.lower(): row for name, row in CUDA_WORDS.items()}


def cuda_word(subject: str) -> CudaWord | None:
    """The word of that name, with a component or a call's parentheses or without: `threadIdx.x`, `__syncthreads()`.

    An error may be as a program prints it: `CUDA error: misaligned address`.
    """
    name = re.sub(r"^cuda error: *|(\.[xyzw]|\(.*\))?[;.]?$", "", subject.strip().lower())
    return _LOWER.get(name) or _LOWER.get(name.replace("-", " "))


__all__ = ["CUDA_WORDS", "CudaWord", "cuda_word"]
