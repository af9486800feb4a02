"""Concepts: words of PTX that are no opcode, modifier, type or directive, each with its section and where to go on."""

from __future__ import annotations

import re
from typing import NamedTuple


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
alignment | 6.4.1 | .align, misaligned
    An access of n bytes needs an address that is a multiple of n; a vector counts as a whole.
bank, banks, bank conflict |  | ld, .shared
    Shared memory has 32 banks of 4 bytes: word w lies in bank w mod 32. Lanes of a warp that access different words
    of one bank are served one after another.
cluster | 2.2.2 | %cluster_ctaid, mapa, barrier.cluster, .cluster
    CTAs that run at the same time, and reach each other's shared memory (sm_90 and later).
coalescing, sector |  | ld, .global
    The lanes of a warp access global memory in sectors of 32 bytes: an access is as costly as the sectors that it
    touches, and cheapest where neighbours read neighbours.
constant, immediate, literal | 4.5 | mov, WARP_SZ
    A number in the place of a register: `5`, `0x1F`, `0F3F800000` (the bits of an f32) or `0D3FF0000000000000` (of an
    f64).
cooperative thread array, cta, block, thread block | 2.2.1 | %ctaid, %ntid, bar, .cta
    The threads that share shared memory and meet at barriers; at most 1,024. A launch is a grid of CTAs.
descriptor, matrix descriptor, shared memory descriptor | 9.7.15.5.1.2.2 | swizzle, wgmma, tcgen05.mma
    64 bits that tell where a matrix lies in shared memory: its start, two offsets, and the swizzle. `ptxvm explain
    --descriptor wgmma 0x4000004000010040` shows the fields.
divergence, convergence, reconvergence | 9.5 | guard, bar.warp.sync, bra, activemask
    Lanes of a warp that took different ways at a branch are diverged; they run one way after the other until they
    meet again.
fragment, fragments | 9.7.14 | mma, ldmatrix, wgmma, tensor memory
    The part of a matrix that one lane holds in its registers.
fault |  | out-of-bounds, misaligned, trap, deadlock
    What stops a grid while it runs; it has a kind, and names the line of PTX and the thread.
function | 11.2.2 | .func, call, ret
    Code that kernels and functions call; only kernels are launched.
generic address, generic, generic addressing | 6.4.1.1 | cvta, isspacep, state space
    An address that holds its state space in itself: windows of it are shared, local and parameter memory, and the
    rest is global. Without a state space, `ld` and `st` take one.
grid, launch | 2.2.3 | %nctaid, %ctaid, .entry
    The CTAs of one launch of a kernel, in up to three dimensions.
guard, predicated execution, predication | 9.3 | predicate, setp, bra
    `@p` or `@!p` before an instruction: only lanes whose predicate is true (or false) do it.
kernel, entry | 11.2.1 | .entry, grid, .param
    A function that the host launches on a grid of threads.
label | 6.4.4 | bra, brx.idx, .branchtargets
    A name with a colon before an instruction: where a branch goes.
lane | 3.1 | %laneid, warp, shfl
    A thread by its place in its warp, 0 to 31.
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
predicate | 5.2.1 | .pred, setp, guard, selp
    A register of one truth value, of type `.pred`; `setp` writes it, a guard reads it.
proxy, async proxy, asynchronous proxy | 8.6 | fence.proxy.async, cp.async.bulk, wgmma.fence
    A way to access memory. Accesses through another way, such as those of bulk copies and wgmma, are ordered by
    `fence.proxy`.
register | 5.1.1 | .reg, special register, .b32
    A variable of one thread that no address reaches; `.reg .b32 %r<8>;` declares %r0 to %r7.
rounding, rounding mode | 6.5.2 | .rn, .rz, .rni, cvt
    Which of two neighbours a result between them becomes: `.rn` the nearest, `.rz` towards zero, `.rm` down, `.rp`
    up; with an `i` behind, to an integer.
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
