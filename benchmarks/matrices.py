"""How fast `mma.sync` and `wgmma` run on one core: billions of multiplications and additions a second, in both numerics.

    python benchmarks/matrices.py [--target sm_90] [--turns N] [--runs N]

A warp multiplies again and again, as the inner loop of a matrix product does: with the same A and B, adding to four
accumulators in turn.  A warpgroup does so with matrices in shared memory, and waits for every fourth product.  Times are
processor time of this process, medians; the first launch of each, which compiles, stands for itself.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

os.environ.update(PTXVM_THREADS="1", PTXVM_CACHE="off", PTXVM_TIER="best")

import numpy as np

import ptxvm

KINDS = ["m16n8k16.f16", "m16n8k16.bf16", "m16n8k8.f16", "m16n8k8.bf16", "m64n64k16.f16", "m64n128k16.f16", "m64n256k16.bf16"]
ABREAST = 4  # accumulators, or products of a group
WARPGROUP = 128  # threads
SHARED = 49152  # bytes
SWIZZLED = 1 << 62 | 1024 >> 4 << 32 | 1 << 16  # a descriptor: rows of 128 bytes, eight of which are an atom


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", default="sm_90")
    parser.add_argument("--turns", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=7)
    chosen = parser.parse_args()
    print(f"{'product':16}{'numerics':>10}{'ns':>9}{'GFLOP/s':>9}{'first ms':>10}")
    for kind in KINDS:
        for numerics in ("fast", "exact"):
            turns = max(1, chosen.turns // columns(kind)) if is_of_warpgroup(kind) else chosen.turns
            first, seconds = measured(kind, chosen.target, numerics, turns, chosen.runs)
            each = seconds / (turns * ABREAST)
            operations = 2 * rows(kind) * columns(kind) * depth(kind)
            print(f"{kind:16}{numerics:>10}{1e9 * each:9.1f}{operations / each / 1e9:9.1f}{1000 * first:10.1f}", flush=True)


def rows(kind: str) -> int:
    """The m of a shape."""
    return int(kind[1 : kind.index("n")])


def columns(kind: str) -> int:
    """The n of a shape."""
    return int(kind[kind.index("n") + 1 : kind.index("k")])


def depth(kind: str) -> int:
    """The k of a shape."""
    return int(kind.partition(".")[0].rpartition("k")[2])


def is_of_warpgroup(kind: str) -> bool:
    """Is it a product of a warpgroup, whose matrices are in shared memory?"""
    return rows(kind) == 64


def measured(kind: str, target: str, numerics: str, turns: int, runs: int) -> tuple[float, float]:
    """Seconds of the first launch, of one turn, and of all turns."""
    large = is_of_warpgroup(kind)
    kernel, words = (warpgroup_program if large else program)(kind, target), np.random.default_rng(1)
    numbers = words.uniform(-1, 1, SHARED // 2 if large else 32 * 6 * 2)
    factors = numbers.astype(np.float16).view(np.uint16)
    if "bf16" in kind:
        factors = (numbers.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
    block, registers = (WARPGROUP, columns(kind) // 2) if large else (32, 4)
    out = np.zeros(block * registers, np.float32)

    def run(count: int) -> float:
        began = time.process_time()
        kernel.launch(block=block, args=[factors, out, count], engine="jit", numerics=numerics)
        return time.process_time() - began

    first = run(1)
    return first, statistics.median(run(turns) for _ in range(runs))


def program(kind: str, target: str) -> ptxvm.Kernel:
    """The kernel."""
    shape, _, type = kind.partition(".")
    a, b = (", ".join(f"%{m}{n}" for n in range(count * depth(kind) // 8)) for m, count in (("a", 2), ("b", 1)))
    registers = [[f"%c{4 * n + part}" for part in range(4)] for n in range(ABREAST)]
    products = "\n".join(
        f"mma.sync.aligned.{shape}.row.col.f32.{type}.{type}.f32 {{{c}}}, {{{a}}}, {{{b}}}, {{{c}}};"
        for c in (", ".join(each) for each in registers)
    )
    loads = "\n".join(f"ld.global.b32 {r}, [%from+{128 * n}];" for n, r in enumerate(f"{a}, {b}".split(", ")))
    zeros = "\n".join(f"mov.f32 {r}, 0f00000000;" for each in registers for r in each)
    sums = "\n".join(
        f"add.f32 {r}, {r}, {other};" for each in registers[1:] for r, other in zip(registers[0], each, strict=True)
    )
    stores = "\n".join(f"st.global.f32 [%to+{128 * n}], {r};" for n, r in enumerate(registers[0]))
    return ptxvm.load(f"""
        .version 8.0
        .target {target}
        .address_size 64
        .visible .entry k(.param .u64 from, .param .u64 to, .param .u32 turns)
        {{
        .reg .b32 %a<4>, %b<2>; .reg .f32 %c<{4 * ABREAST}>; .reg .u32 %t, %n; .reg .u64 %from, %to; .reg .pred %p;
        ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; ld.param.u32 %n, [turns]; mov.u32 %t, %tid.x;
        mad.wide.u32 %from, %t, 4, %from; mad.wide.u32 %to, %t, 4, %to;
        {loads}
        {zeros}
        again:
        {products}
        sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra again;
        {sums}
        {stores}
        ret;
        }}""").kernel("k")


def warpgroup_program(kind: str, target: str) -> ptxvm.Kernel:
    """The kernel of a warpgroup: A and B lie in shared memory, in rows of 128 bytes."""
    shape, _, type = kind.partition(".")
    registers = [f"%d{n}" for n in range(columns(kind) // 2)]
    product = f"wgmma.mma_async.sync.aligned.{shape}.f32.{type}.{type} {{{', '.join(registers)}}}, %a, %b, 1, 1, 1, 0, 0;\n"
    zeros = "\n".join(f"mov.f32 {r}, 0f00000000;" for r in registers)
    stores = "\n".join(f"st.global.f32 [%to+{4 * WARPGROUP * n}], {r};" for n, r in enumerate(registers))
    return ptxvm.load(f"""
        .version 8.0
        .target {target.removesuffix("a")}a
        .address_size 64
        .visible .entry k(.param .u64 from, .param .u64 to, .param .u32 turns)
        {{
        .shared .align 1024 .b8 tile[{SHARED}];
        .reg .f32 %d<{len(registers)}>; .reg .u32 %t, %n, %s, %i, %v; .reg .u64 %from, %to, %a, %b; .reg .pred %p;
        ld.param.u64 %from, [from]; ld.param.u64 %to, [to]; ld.param.u32 %n, [turns]; mov.u32 %t, %tid.x;
        mad.wide.u32 %from, %t, 4, %from; mad.wide.u32 %to, %t, 4, %to;
        mov.u32 %s, tile; mad.lo.u32 %s, %t, 4, %s; mov.u32 %i, 0;
        fill:
        ld.global.b32 %v, [%from]; st.shared.b32 [%s], %v;
        add.u64 %from, %from, {4 * WARPGROUP}; add.u32 %s, %s, {4 * WARPGROUP}; add.u32 %i, %i, {4 * WARPGROUP};
        setp.lt.u32 %p, %i, {SHARED}; @%p bra fill;
        {zeros}
        fence.proxy.async; bar.sync 0;
        mov.u32 %s, tile; shr.u32 %s, %s, 4; cvt.u64.u32 %a, %s; add.u64 %a, %a, {SWIZZLED}; add.u64 %b, %a, {8192 >> 4};
        again:
        wgmma.fence.sync.aligned;
        {product * ABREAST}
        wgmma.commit_group.sync.aligned;
        wgmma.wait_group.sync.aligned 0;
        sub.u32 %n, %n, 1; setp.ne.u32 %p, %n, 0; @%p bra again;
        {stores}
        ret;
        }}""").kernel("k")


if __name__ == "__main__":
    main()
