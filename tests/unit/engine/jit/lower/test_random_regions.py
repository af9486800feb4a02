"""Random nests of branches and loops of lanes that part by their numbers, against an interpreter of the nests in Python."""

from __future__ import annotations

import os
from random import Random

import numpy as np
import pytest
from engines import same

import ptxvm

SEEDS = range(int(os.environ.get("PTXVM_RANDOM_REGIONS", "6")))
REGISTERS, LOADED, WORDS, MASK = 8, 6, 256, 0xFFFF_FFFF
OPERATIONS = {
    "add.u32": lambda a, b: a + b, "sub.u32": lambda a, b: a - b, "xor.b32": lambda a, b: a ^ b,
    "mul.lo.u32": lambda a, b: a * b, "and.b32": lambda a, b: a & b, "min.u32": min,
}  # fmt: skip
HEAD = """.version 8.3\n.target sm_90\n.address_size 64
.visible .entry k(.param .u64 data, .param .u64 out, .param .u32 n)
{
    .reg .b32 %r<9>; .reg .b32 %c<99>; .reg .b32 %t<9>; .reg .b32 %q<2>; .reg .b32 %l<2>; .reg .b64 %d<9>; .reg .pred %p;
    .shared .align 8 .b8 s[1024];
    ld.param.u64 %d0, [data];
    ld.param.u64 %d1, [out];
    ld.param.u32 %r4, [n];
    mov.u32 %r0, %tid.x;
    mov.u32 %t5, %ntid.x;
    mov.u32 %t4, s;
    mov.u32 %t0, %r0;
FILL:
    mul.wide.u32 %d2, %t0, 4;
    add.u64 %d2, %d2, %d0;
    ld.global.u32 %t1, [%d2];
    shl.b32 %t2, %t0, 2;
    add.u32 %t2, %t2, %t4;
    st.shared.u32 [%t2], %t1;
    add.u32 %t0, %t0, %t5;
    setp.lt.u32 %p, %t0, 256;
    @%p bra FILL;
    bar.sync 0;
    and.b32 %r1, %r0, 7;
    shr.u32 %r2, %r0, 4;
    mad.lo.u32 %r3, %r0, 3, 7;
    add.u32 %r5, %r4, %r0;
    mov.u32 %r6, 77;
    mov.u32 %r7, %ctaid.x;
"""


class Nest:
    """A random nest: its PTX, and what it does to the registers of a thread."""

    def __init__(self, random: Random) -> None:
        self.random, self.lines, self.labels, self.counters = random, [], 0, 0

    def block(self, depth: int) -> list:
        """Write some statements; returns them for `run`."""
        kinds = ["operation", "operation", "load", "if", "loop"] if depth < 4 else ["operation", "load"]
        return [getattr(self, self.random.choice(kinds))(depth) for _ in range(self.random.randint(1, 4))]

    def register(self) -> int:
        """A register to read: what memory holds comes to another one, since lanes that part by it go on apart."""
        return self.random.choice([n for n in range(REGISTERS) if n != LOADED])

    def label(self) -> str:
        self.labels += 1
        return f"L{self.labels}"

    def operation(self, _: int) -> tuple:
        name, to, a = self.random.choice([*OPERATIONS]), self.random.choice([1, 2, 3, 4, 5, 7]), self.register()
        b = self.register() if self.random.random() < 0.5 else None
        n = self.random.randrange(1, 60)
        self.lines.append(f"{name} %r{to}, %r{a}, {n if b is None else f'%r{b}'};")
        return "operation", name, to, a, b, n

    def load(self, _: int) -> tuple:
        at = self.register()
        self.lines += [f"and.b32 %l0, %r{at}, 255;", "shl.b32 %l0, %l0, 2;", "add.u32 %l0, %l0, %t4;"]
        self.lines.append(f"ld.shared.u32 %l1, [%l0];\n    xor.b32 %r{LOADED}, %r{LOADED}, %l1;")
        return "load", at

    def condition(self) -> tuple:
        """Write `%p`."""
        a, bit = self.register(), self.random.randrange(5)
        if self.random.random() < 0.3:
            limit = self.random.choice([1, 5, 32, 40, 64, 100])
            self.lines.append(f"setp.lt.u32 %p, %r{a}, {limit};")
            return "less", a, limit
        self.lines += [f"shr.u32 %q0, %r{a}, {bit};", "and.b32 %q0, %q0, 1;", "setp.ne.u32 %p, %q0, 0;"]
        return "bit", a, bit

    def if_(self, depth: int) -> tuple:
        condition, other, end = self.condition(), self.label(), self.label()
        self.lines.append(f"@!%p bra {other};")
        yes = self.block(depth + 1)
        self.lines += [f"bra {end};", f"{other}:"]
        no = self.block(depth + 1) if self.random.random() < 0.5 else []
        self.lines.append(f"{end}:")
        return "if", condition, yes, no

    def loop(self, depth: int) -> tuple:
        count, again, end = self.register(), self.label(), self.label()
        mine, self.counters = self.counters, self.counters + 1
        self.lines += [f"and.b32 %c{mine}, %r{count}, 3;", f"{again}:"]
        body = self.block(depth + 1)
        leaves = self.condition() if self.random.random() < 0.4 else None
        self.lines += [f"@%p bra {end};"] if leaves else []
        rest = self.block(depth + 2) if leaves else []
        self.lines += [f"setp.ne.u32 %p, %c{mine}, 0;", f"sub.u32 %c{mine}, %c{mine}, 1;", f"@%p bra {again};", f"{end}:"]
        return "loop", count, body, leaves, rest


setattr(Nest, "if", Nest.if_)


def holds(condition: tuple, r: list[int]) -> bool:
    kind, a, n = condition
    return r[a] < n if kind == "less" else bool(r[a] >> n & 1)


def run(block: list, r: list[int], data: list[int]) -> None:
    for kind, *rest in block:
        match kind:
            case "operation":
                name, to, a, b, n = rest
                r[to] = OPERATIONS[name](r[a], n if b is None else r[b]) & MASK
            case "load":
                r[LOADED] ^= data[r[rest[0]] & 255]
            case "if":
                condition, yes, no = rest
                run(yes if holds(condition, r) else no, r, data)
            case "loop":
                count, body, leaves, after = rest
                for _ in range((r[count] & 3) + 1):
                    run(body, r, data)
                    if leaves is not None and holds(leaves, r):
                        break
                    run(after, r, data)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", SEEDS)
def test_random_nests(seed: int) -> None:
    random = Random(seed)
    nest, ctas, threads = Nest(random), 2, random.choice([32, 64, 128, 256, 80])
    parts = []
    for _ in range(2):
        parts.append(nest.block(0))
        nest.lines.append("bar.sync 0;")
    text = "    " + "\n    ".join(nest.lines)
    kept = random.sample(range(REGISTERS), random.randint(1, REGISTERS))  # the others are dead where lanes meet
    stores = "".join(f"    st.global.u32 [%d3+{4 * n}], %r{n};\n" for n in kept)
    end = "mov.u32 %t6, %ctaid.x; mov.u32 %t7, %tid.x; mad.lo.u32 %t8, %t6, %t5, %t7; mul.wide.u32 %d3, %t8, 32;"
    kernel = ptxvm.load(f"{HEAD}{text}\n    {end} add.u64 %d3, %d3, %d1;\n{stores}    ret;\n}}\n").kernel()
    data = np.random.default_rng(seed).integers(0, 2**32, WORDS, np.uint32)
    n = random.randrange(50)
    out = np.zeros((ctas * threads, REGISTERS), np.uint32)
    _, found = same(kernel, [data, out, np.uint32(n)], grid=ctas, block=threads)
    words = data.tolist()
    for cta in range(ctas):
        for t in range(threads):
            r = [t, t & 7, t >> 4, 3 * t + 7, n, n + t, 77, cta]
            for part in parts:
                run(part, r, words)
            assert [found[cta * threads + t, k] for k in kept] == [r[k] for k in kept], (cta, t)
