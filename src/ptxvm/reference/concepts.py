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
active mask, member mask, membermask | 9.7.9.6 | activemask, vote, shfl
    A bit for each lane of a warp: which lanes are at a place, or which an instruction waits for. -1 is all 32.
alignment | 6.4.1 | .align, misaligned
    An access of n bytes needs an address that is a multiple of n; a vector counts as a whole.
arithmetic intensity, roofline |  | fma, ld
    Operations on numbers for each byte of global memory: a kernel with few is bound by memory, one with many by arithmetic.
array, pointer | 5.4.3 | .global, generic address, ld
    A variable of several elements, `.shared .f32 tile[32];`. Its name is its address; PTX has no pointer types, only
    addresses in registers of 32 or 64 bits.
asynchronous copy, async copy, tma, tensor memory accelerator | 9.7.9.25 | cp.async, cp.async.bulk.tensor, mbarrier
    A copy that goes on beside the thread which starts it: of a few bytes for each thread (`cp.async`), of many in one
    (`cp.async.bulk`), or of a tile of a tensor (TMA). Groups or an mbarrier tell when it has ended.
atomic, atomics, atomic operation | 9.7.13.5 | atom, atom.cas, red, scope
    Reads, changes and writes a place in memory as one step, which no other atomic operation of its scope divides.
bank, banks, bank conflict |  | ld, .shared
    Shared memory has 32 banks of 4 bytes: word w lies in bank w mod 32. Lanes of a warp that access different words
    of one bank are served one after another.
bfloat16 | 5.2.3 | .bf16, .bf16x2, cvt.rn.bf16.f32
    The upper half of an f32: its range, with 7 bits of the fraction.
cache, cache line, l1, l2 | 9.7.9.1 | ld, prefetch, .ca, .cg, sector
    Global memory is read through L1 of the multiprocessor and L2 of the device. Modifiers are hints about what they keep;
    no result depends on them.
carry, carry flag, condition code | 9.7.2 | add.cc, addc, sub.cc, madc.lo.cc
    One bit of a thread, `CC.CF`: instructions with `.cc` write it, and `addc`, `subc` and `madc` read it, so that numbers
    of any size are added word by word.
causality order, happens before | 8.9.5 | memory model, .release, .acquire, fence
    A write is before a read where a chain of program order, releases with their acquires, and barriers leads from one to the
    other. What no chain orders is a race.
cluster | 2.2.2 | %cluster_ctaid, mapa, barrier.cluster, .cluster
    CTAs that run at the same time, and reach each other's shared memory (sm_90 and later).
coalescing, sector |  | ld, .global
    The lanes of a warp access global memory in sectors of 32 bytes: an access is as costly as the sectors that it
    touches, and cheapest where neighbours read neighbours.
comment | 4.1 | label, opcode
    `// to the end of the line`, or `/* between marks */`.
constant, immediate, literal | 4.5 | mov, WARP_SZ
    A number in the place of a register: `5`, `0x1F`, `0F3F800000` (the bits of an f32) or `0D3FF0000000000000` (of an
    f64).
constant memory |  | .const, ld
    Memory that the host writes and kernels read, `.const`: 64 KB, and fastest where all lanes read one address.
cooperative thread array, cta, block, thread block | 2.2.1 | %ctaid, %ntid, bar, .cta
    The threads that share shared memory and meet at barriers; at most 1,024. A launch is a grid of CTAs.
cta pair, cta group | 9.7.16.5 | .cta_group::1, .cta_group::2, tcgen05.mma, cluster
    Two CTAs of a cluster whose ranks differ in the lowest bit: together they multiply matrices in their tensor memory.
descriptor, matrix descriptor, shared memory descriptor | 9.7.15.5.1.2.2 | swizzle, wgmma, tcgen05.mma
    64 bits that tell where a matrix lies in shared memory: its start, two offsets, and the swizzle. `ptxvm explain
    --descriptor wgmma 0x4000004000010040` shows the fields.
directive | 4.3.1 | .reg, .entry, .version, .pragma
    A word with a dot in front that begins a statement: it declares something, or tells about a module or kernel.
distributed shared memory, dsmem | 5.1.7 | mapa, .shared::cluster, ld, cluster
    The shared memory of all CTAs of a cluster, each of which may access that of the others.
divergence, convergence, reconvergence, warp divergence, branch divergence | 9.5 | guard, bar.warp.sync, bra, activemask
    Lanes of a warp that took different ways at a branch are diverged; they run one way after the other until they
    meet again.
fault |  | out-of-bounds, misaligned, trap, deadlock
    What stops a grid while it runs; it has a kind, and names the line of PTX and the thread.
fp16, half, half precision | 5.2.1 | .f16, .f16x2, cvt.rn.f16.f32
    A floating-point number of 16 bits: 5 of the exponent, 10 of the fraction, up to 65504. Two of them fill a register of
    32 bits: `.f16x2`.
fp4, float4 e2m1, mxfp4, nvfp4 | 5.2.3 | .e2m1, .e2m1x2, .ue8m0, .ue4m3
    Floating-point numbers of 4 bits, of which 16 or 32 share a scale: 0, 0.5, 1, 1.5, 2, 3, 4 and 6, with a sign.
fp8, float8 | 5.2.3 | .e4m3, .e5m2, .e4m3x2, .ue8m0
    Floating-point numbers of 8 bits: `.e4m3` with more digits, `.e5m2` with more range. Instructions convert pairs and
    multiply matrices of them.
fragment, fragments | 9.7.14 | mma, ldmatrix, wgmma, tensor memory
    The part of a matrix that one lane holds in its registers.
function | 11.2.2 | .func, call, ret
    Code that kernels and functions call; only kernels are launched.
generic address, generic, generic addressing | 6.4.1.1 | cvta, isspacep, state space
    An address that holds its state space in itself: windows of it are shared, local and parameter memory, and the
    rest is global. Without a state space, `ld` and `st` take one.
global memory, gmem | 5.1.4 | .global, coalescing, ld, atom
    Memory of the device that all threads of all grids share; pointers of the host's arrays point there.
grid, launch | 2.2.3 | %nctaid, %ctaid, .entry
    The CTAs of one launch of a kernel, in up to three dimensions.
guard, predicated execution, predication | 9.3 | predicate, setp, bra
    `@p` or `@!p` before an instruction: only lanes whose predicate is true (or false) do it.
infinity, inf, overflow | 9.7.3 | testp, .satfinite, .sat
    What is too large for a floating-point type becomes infinite, or with .satfinite the largest number. Sums and products
    of integers wrap around, or with .sat stay at the limit.
int8 | 5.2.1 | .s8, .u8, dp4a.s32.s32, cvt.s32.s8
    An integer of 8 bits. No register has so few: loads fill up a wider one, `dp4a` takes four in a word, and products of
    matrices have them.
kernel, entry | 11.2.1 | .entry, grid, .param
    A function that the host launches on a grid of threads.
label | 6.4.4 | bra, brx.idx, .branchtargets
    A name with a colon before an instruction: where a branch goes.
lane | 3.1 | %laneid, warp, shfl
    A thread by its place in its warp, 0 to 31.
line information, line info, dwarf | 11.5 | .loc, .file, .section
    `.loc` names the line of the source (CUDA, Triton) from which the instructions behind it were made.
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
multicast | 9.7.9.25 | .multicast::cluster, cp.async.bulk, multimem.red
    One copy that reaches the shared memory of several CTAs of a cluster, or one access to the memory of several devices.
multiprocessor, streaming multiprocessor, sm, simt | 3.1 | warp, cta, occupancy, %smid
    The processor on which a CTA stays until it ends: it executes a warp's instruction for its lanes together (SIMT).
nan | 9.7.3 | .NaN, testp, setp
    No number: the result of 0/0, for instance. PTX gives 0x7fffffff for f32, and max and min pass over it unless they
    have .NaN.
occupancy |  | .maxntid, .minnctapersm, .maxnreg
    How many warps of CTAs a multiprocessor holds at once, by the threads, registers and shared memory of a CTA.
operand | 6 | register, vector, constant
    What an instruction reads and writes: registers, constants, addresses in brackets, vectors in braces.
parameter, kernel parameter | 5.1.6 | .param, ld, .entry
    What a launch hands to a kernel, or a call to a function: `ld.param.u64 %rd1, [name];` reads it.
phase, transaction, transaction count | 9.7.13.15 | mbarrier, mbarrier.try_wait, mbarrier.expect_tx
    An mbarrier goes from phase to phase: one ends when all its arrivals have come, and all bytes that it expects.
predicate, predicate register | 5.2.1 | .pred, setp, guard, selp
    A register of one truth value, of type `.pred`; `setp` writes it, a guard reads it.
programmatic dependent launch, dependent launch, pdl | 9.7.13.13 | griddepcontrol.wait, griddepcontrol.launch_dependents
    A grid starts before the one ahead of it has ended, and waits in its code for what that one writes.
proxy, async proxy, asynchronous proxy | 8.6 | fence.proxy.async, cp.async.bulk, wgmma.fence
    A way to access memory. Accesses through another way, such as those of bulk copies and wgmma, are ordered by
    `fence.proxy`.
race condition, data race | 8.7.1 | race, memory model, bar.sync, fence
    Two threads access a place, one of them writes, and nothing orders them: what is read is not defined.
reduction | 9.7.13.12 | redux, red, shfl, vote
    Many values become one, such as their sum: by shuffles or `redux` in a warp, through shared memory in a CTA, by atomic
    operations in a grid.
register | 5.1.1 | .reg, special register, .b32
    A variable of one thread that no address reaches; `.reg .b32 %r<8>;` declares %r0 to %r7.
rounding, rounding mode | 6.5.2 | .rn, .rz, .rni, cvt
    Which of two neighbours a result between them becomes: `.rn` the nearest, `.rz` towards zero, `.rm` down, `.rp`
    up; with an `i` behind, to an integer.
scope | 8.5 | .cta, .cluster, .gpu, .sys, memory model
    The threads for which an operation is strong: those of the CTA, the cluster, the device, or all.
shared memory, smem | 5.1.7 | .shared, bank, bar.sync, st
    Memory of a CTA, which its threads share: it lies beside the cores, and ends with the CTA.
shuffle, warp shuffle | 9.7.9.6 | shfl, lane, prmt
    Lanes of a warp read registers of each other.
special register | 10 | %tid, %laneid, %clock64
    A register that the machine sets, and programs only read.
spill, register spill |  | local memory, .maxnreg
    Registers that do not fit are kept in local memory. PTX has as many registers as one declares: spills arise where ptxas
    makes machine code.
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
texture, surface, sampler | 9.7.10 | tex, tld4, suld, sust, .texref
    An array that is read by coordinates: filtered, and clamped or repeated at its borders (texture), or read and written as
    it is (surface).
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
wavefront, wavefronts |  | bank, ld, .shared
    A pass of shared memory, which serves one word of each bank (or one word to many lanes). An access of a warp without bank
    conflicts takes one for each 128 bytes.
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
