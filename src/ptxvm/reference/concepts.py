"""Concepts: words of PTX that are no opcode, modifier, type or directive, each with its section and where to go on."""

from __future__ import annotations

import re

from ptxvm.named_tuple import NamedTuple


class Concept(NamedTuple):
    """A word and others for the same, its section of the manual (or none), what it is, and subjects of `explain`."""

    names: tuple[str, ...]
    section: str
    said: str
    see: tuple[str, ...]

    @property
    def name(self) -> str:
        """The first name."""
        return self.names[0]


# The names | the section | what to explain next, and below it what it is.
TABLE = """
asynchronous copy, async copy, tma, tensor memory accelerator | 9.7.9.25 | cp.async, cp.async.bulk.tensor, mbarrier
    A copy that goes on beside the thread which starts it: of a few bytes for each thread (`cp.async`), of many in one
    (`cp.async.bulk`), or of a tile of a tensor (TMA). Groups or an mbarrier tell when it has ended.
alignment | 6.4.1 | .align, misaligned
    An access of n bytes needs an address that is a multiple of n; a vector counts as a whole.
bank, banks, bank conflict |  | ld, .shared
    Shared memory has 32 banks of 4 bytes: word w lies in bank w mod 32. Lanes of a warp that access different words
    of one bank are served one after another.
carry, carry flag, condition code | 9.7.2 | add.cc, addc, sub.cc, madc.lo.cc
    One bit of a thread, `CC.CF`: instructions with `.cc` write it, and `addc`, `subc` and `madc` read it, so that numbers
    of any size are added word by word.
cluster | 2.2.2 | %cluster_ctaid, mapa, barrier.cluster, .cluster
    CTAs that run at the same time, and reach each other's shared memory (sm_90 and later).
coalescing, sector |  | ld, .global
    The lanes of a warp access global memory in sectors of 32 bytes: an access is as costly as the sectors that it
    touches, and cheapest where neighbours read neighbours.
constant memory |  | .const, ld
    Memory that the host writes and kernels read, `.const`: 64 KB, and fastest where all lanes read one address.
constant, immediate, literal | 4.5 | mov, WARP_SZ
    A number in the place of a register: `5`, `0x1F`, `0F3F800000` (the bits of an f32) or `0D3FF0000000000000` (of an
    f64).
cooperative thread array, cta, block, thread block | 2.2.1 | %ctaid, %ntid, bar, .cta
    The threads that share shared memory and meet at barriers; at most 1,024. A launch is a grid of CTAs.
descriptor, matrix descriptor, shared memory descriptor | 9.7.15.5.1.2.2 | swizzle, wgmma, tcgen05.mma
    64 bits that tell where a matrix lies in shared memory: its start, two offsets, and the swizzle. `ptxvm explain
    --descriptor wgmma 0x4000004000010040` shows the fields.
divergence, convergence, reconvergence, warp divergence, branch divergence | 9.5 | guard, bar.warp.sync, bra, activemask
    Lanes of a warp that took different ways at a branch are diverged; they run one way after the other until they
    meet again.
fragment, fragments | 9.7.14 | mma, ldmatrix, wgmma, tensor memory
    The part of a matrix that one lane holds in its registers.
fault |  | out-of-bounds, misaligned, trap, deadlock
    What stops a grid while it runs; it has a kind, and names the line of PTX and the thread.
function | 11.2.2 | .func, call, ret
    Code that kernels and functions call; only kernels are launched.
fp16, half, half precision | 5.2.1 | .f16, .f16x2, cvt.rn.f16.f32
    A floating-point number of 16 bits: 5 of the exponent, 10 of the fraction, up to 65504. Two of them fill a register of
    32 bits: `.f16x2`.
fp8, float8 | 5.2.3 | .e4m3, .e5m2, .e4m3x2, .ue8m0
    Floating-point numbers of 8 bits: `.e4m3` with more digits, `.e5m2` with more range. Instructions convert pairs and
    multiply matrices of them.
bfloat16 | 5.2.3 | .bf16, .bf16x2, cvt.rn.bf16.f32
    The upper half of an f32: its range, with 7 bits of the fraction.
generic address, generic, generic addressing | 6.4.1.1 | cvta, isspacep, state space
    An address that holds its state space in itself: windows of it are shared, local and parameter memory, and the
    rest is global. Without a state space, `ld` and `st` take one.
global memory, gmem | 5.1.4 | .global, coalescing, ld, atom
    Memory of the device that all threads of all grids share; pointers of the host's arrays point there.
grid, launch | 2.2.3 | %nctaid, %ctaid, .entry
    The CTAs of one launch of a kernel, in up to three dimensions.
guard, predicated execution, predication | 9.3 | predicate, setp, bra
    `@p` or `@!p` before an instruction: only lanes whose predicate is true (or false) do it.
int8 | 5.2.1 | .s8, .u8, dp4a.s32.s32, cvt.s32.s8
    An integer of 8 bits. No register has so few: loads fill up a wider one, `dp4a` takes four in a word, and products of
    matrices have them.
kernel, entry | 11.2.1 | .entry, grid, .param
    A function that the host launches on a grid of threads.
label | 6.4.4 | bra, brx.idx, .branchtargets
    A name with a colon before an instruction: where a branch goes.
lane | 3.1 | %laneid, warp, shfl
    A thread by its place in its warp, 0 to 31.
local memory, stack | 5.1.5 | .local, stack-overflow
    Memory of one thread: arrays that registers cannot hold, and what a function keeps over a call.
loop unrolling, unroll, nounroll | 11.4.7 | .pragma
    The compiler writes the body of a loop several times. In PTX it has been done; `.pragma "nounroll"` keeps ptxas from it.
memory fence, memory barrier | 9.7.13.4 | fence, membar, memory model
    Orders the accesses of a thread before it and behind it, for the threads of a scope.
memory model, memory consistency model, memory order | 8 | scope, .acquire, .release, fence, race
    Which writes a read may see. Accesses are weak, or strong with an order (`.relaxed`, `.acquire`, `.release`) and a
    scope.
mnemonic, opcode, modifier | 9 | add, .ftz
    An instruction is an opcode, such as `add`, modifiers with dots, such as `.f32`, and operands; all three together
    choose what it does.
nan | 9.7.3 | .NaN, testp, setp
    No number: the result of 0/0, for instance. PTX gives 0x7fffffff for f32, and max and min pass over it unless they
    have .NaN.
occupancy |  | .maxntid, .minnctapersm, .maxnreg
    How many warps of CTAs a multiprocessor holds at once, by the threads, registers and shared memory of a CTA.
operand | 6 | register, vector, constant
    What an instruction reads and writes: registers, constants, addresses in brackets, vectors in braces.
predicate, predicate register | 5.2.1 | .pred, setp, guard, selp
    A register of one truth value, of type `.pred`; `setp` writes it, a guard reads it.
programmatic dependent launch, dependent launch, pdl | 9.7.13.13 | griddepcontrol.wait, griddepcontrol.launch_dependents
    A grid starts before the one ahead of it has ended, and waits in its code for what that one writes.
proxy, async proxy, asynchronous proxy | 8.6 | fence.proxy.async, cp.async.bulk, wgmma.fence
    A way to access memory. Accesses through another way, such as those of bulk copies and wgmma, are ordered by
    `fence.proxy`.
register | 5.1.1 | .reg, special register, .b32
    A variable of one thread that no address reaches; `.reg .b32 %r<8>;` declares %r0 to %r7.
rounding, rounding mode | 6.5.2 | .rn, .rz, .rni, cvt
    Which of two neighbours a result between them becomes: `.rn` the nearest, `.rz` towards zero, `.rm` down, `.rp`
    up; with an `i` behind, to an integer.
shared memory, smem | 5.1.7 | .shared, bank, bar.sync, st
    Memory of a CTA, which its threads share: it lies beside the cores, and ends with the CTA.
scope | 8.5 | .cta, .cluster, .gpu, .sys, memory model
    The threads for which an operation is strong: those of the CTA, the cluster, the device, or all.
special register | 10 | %tid, %laneid, %clock64
    A register that the machine sets, and programs only read.
state space, space | 5.1 | .reg, .global, .shared, .local, .const, .param, generic address
    A kind of memory: which threads share it, and how long it lives.
subnormal, subnormals, denormal | 9.7.3 | .ftz, testp
    A float below the least normal number, with fewer bits of precision. `.ftz` takes it for zero.
swizzle, swizzling | 5.5.7 | tensor map, descriptor, bank
    Rows in shared memory whose pieces of 16 bytes change places by an XOR with the number of the row, so that columns
    are read without bank conflicts.
tensor core, matrix multiplication | 9.7.14 | mma, wgmma, tcgen05.mma, fragment
    What multiplies matrices: of a warp by `mma` and `wmma`, of four warps by `wgmma`, of one thread by `tcgen05.mma`.
tensor map, tensormap | 5.5.8 | cp.async.bulk.tensor, tensormap.replace, swizzle
    128 bytes that describe a tensor in global memory for copies by the tensor memory accelerator (TMA): shape, strides,
    box, swizzle. `ptxvm explain --descriptor tensormap HEX` shows the fields of a map that ptxvm has made.
tensor memory, tmem | 9.7.16.1 | tcgen05.alloc, tcgen05.ld, tcgen05.mma
    Memory of a multiprocessor of sm_100: 128 lanes by 512 columns of 32 bits, allocated by columns; warp w of four
    reaches lanes 32w to 32w + 31.
thread | 2.2 | %tid, warp, cta
    What runs the code of a kernel, with registers of its own.
uniform |  | divergence, bra
    The same in all lanes of a warp; a branch on such a value does not diverge.
vector | 5.4.2 | .v2, .v4, .v8, mov
    Two, four or eight values in braces, `{%r1, %r2}`, or a vector register; loads and stores move them at once.
warp | 3.1 | lane, %warpid, bar.warp.sync, shfl, vote
    32 threads of a CTA that execute an instruction together where they are at the same place.
warpgroup, warp group | 9.7.15.1 | wgmma, warp
    Four neighbouring warps, the first of which has a number that is a multiple of four.
"""

CONCEPTS: dict[str, Concept] = {}
"""The concepts by each of their names."""

for entry in re.split(r"\n(?=\S)", TABLE.strip()):
    head, _, said = entry.partition("\n")
    names, section, see = (part.strip() for part in head.split("|"))
    made = Concept(tuple(names.split(", ")), section, " ".join(said.split()), tuple(see.split(", ")))
    CONCEPTS |= dict.fromkeys(made.names, made)


def concept(subject: str) -> Concept | None:
    """The concept of that name, however it is spelled: `State-Space`, `@%p1`."""
    if re.fullmatch(r"@!?%?\w+", subject):
        return CONCEPTS["guard"]
    words = re.sub(r"[-_\s]+", " ", subject.strip().lower())
    return CONCEPTS.get(words) or CONCEPTS.get(words.removesuffix("s"))
