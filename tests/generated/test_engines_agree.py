"""The JIT and the interpreter give the same bits: on random kernels, and on every conformance file."""

from __future__ import annotations

import importlib.util
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ptxvm

KERNELS = int(os.environ.get("PTXVM_RANDOM_KERNELS", "12"))
CONFORMANCE = Path(__file__).parents[1] / "conformance"

# ── random kernels ──────────────────────────────────────────────────────────────────────

REGISTERS = {"r": ("b32", 8), "d": ("b64", 4), "f": ("f32", 4), "g": ("f64", 3), "h": ("b16", 3), "p": ("pred", 4)}

# What an instruction writes, and what it reads, by the letters of the registers.
INSTRUCTIONS = """
    add.u32 rrr       sub.s32 rrr        mul.lo.u32 rrr     mul.hi.s32 rrr     mul.hi.u32 rrr    mad.lo.s32 rrrr
    mad.hi.u32 rrrr   mul.wide.s32 drr   mul.wide.u32 drr   mad.wide.s32 drrd  mul24.lo.s32 rrr  add.sat.s32 rrr
    div.u32 rrr       div.s32 rrr        rem.u32 rrr        rem.s32 rrr        div.s64 ddd       rem.u64 ddd
    min.s32 rrr       max.u32 rrr        min.u64 ddd        abs.s32 rr         neg.s64 dd        sad.u32 rrrr
    and.b32 rrr       or.b32 rrr         xor.b64 ddd        not.b32 rr         cnot.b32 rr       lop3.b32 rrrr#
    shl.b32 rrr       shr.u32 rrr        shr.s32 rrr        shl.b64 ddr        shr.s64 ddr       shf.l.wrap.b32 rrrr
    shf.r.clamp.b32 rrrr   popc.b32 rr   popc.b64 rd        clz.b32 rr         brev.b32 rr       bfind.s32 rr
    bfe.s32 rrxx      bfi.b32 rrrxx      prmt.b32 rrrr      dp4a.u32.s32 rrrr  add.u64 ddd       mul.lo.s64 ddd
    mul.hi.u64 ddd    add.u16 hhh        mul.wide.u16 rhh   shr.s16 hhr        add.cc.u32 rrr    addc.u32 rrr
    add.rn.f32 fff    add.rz.f32 fff     sub.rm.f32 fff     mul.rp.f32 fff     mul.ftz.f32 fff   fma.rn.f32 ffff
    fma.rz.ftz.f32 ffff    fma.rn.sat.f32 ffff    div.rn.f32 fff    div.rp.ftz.f32 fff    sqrt.rn.f32 ff    sqrt.rm.f32 ff
    rcp.rn.f32 ff     min.f32 fff        max.NaN.f32 fff    abs.f32 ff         neg.ftz.f32 ff    ex2.approx.f32 ff
    sin.approx.f32 ff  rsqrt.approx.f32 ff  add.f64 ggg     mul.rp.f64 ggg     fma.rm.f64 gggg   div.rn.f64 ggg
    sqrt.rz.f64 gg    min.f64 ggg        neg.f64 gg         add.f16 hhh        fma.rn.f16 hhhh   mul.bf16x2 rxx
    fma.rn.f16x2 rxxx  fma.rn.bf16 hhhh  cvt.rni.s32.f32 rf  cvt.rzi.u32.f32 rf  cvt.rmi.s64.f64 dg  cvt.rn.f32.s32 fr
    cvt.rp.f32.u64 fd  cvt.rn.f64.s64 gd  cvt.rz.f32.f64 fg  cvt.f64.f32 gf    cvt.rn.f16.f32 hf  cvt.rz.f16.f32 hf
    cvt.f32.f16 fh    cvt.rn.bf16.f32 hf  cvt.s64.s32 dr    cvt.u64.u32 dr     cvt.u32.u64 rd    cvt.sat.s32.s64 rd
    cvt.s32.s8 rr     cvt.rpi.f32.f32 ff  mov.b32 rf        mov.b32 fr         mov.b64 gd
    setp.lt.s32 prr   setp.hi.u32 prr    setp.eq.f32 pff    setp.ltu.f64 pgg   setp.ge.and.u32 prrp  selp.b32 rrrp
    selp.f32 fffp     slct.s32.f32 rrrf  and.pred ppp       xor.pred ppp       not.pred pp       set.gt.u32.f32 rff
    vote.sync.ballot.b32 rp*   vote.sync.any.pred pp*   shfl.sync.bfly.b32 rrrm*   shfl.sync.idx.b32 rrrm*
    activemask.b32 r
"""


UPDATES = ["add.u32", "min.s32", "xor.b32", "or.b32", "max.u32"]


class Writer:
    """Writes one random kernel."""

    def __init__(self, rng: np.random.Generator, threads: int) -> None:
        self.rng, self.threads = rng, threads
        self.lines: list[str] = []
        self.labels = 0
        words = INSTRUCTIONS.split()
        self.choices = list(zip(words[::2], words[1::2], strict=True))
        self.plain = [c for c in self.choices if "*" not in c[1] and not c[0].startswith("activemask")]
        self.integers = [c for c in self.plain if set(c[1].rstrip("#")) <= {"r"}]
        self.functions = [self.function(n) for n in range(2)]
        self.calls, self.locks = rng.random() < 0.4, rng.random() < 0.2
        if self.locks:  # where lanes spin it is open who is together with whom
            self.choices = [c for c in self.choices if not c[0].startswith("activemask")]

    def pick(self, letter: str) -> str:
        """A register, or a constant now and then."""
        if letter == "m":
            return "0x1f"
        if letter == "x":
            return self.register("r")
        if letter == "r" and self.rng.random() < 0.2:
            return str(int(self.rng.choice([0, 1, 31, 32, 33, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 5, 64])))
        if letter == "f" and self.rng.random() < 0.1:
            return str(self.rng.choice(["0f7FC00001", "0fFF800000", "0f00000001", "0f3F800000", "0f80000000", "0f7F7FFFFF"]))
        return f"%{letter}{self.rng.integers(REGISTERS[letter][1])}"

    def register(self, letter: str) -> str:
        """A register to write."""
        return f"%{letter}{self.rng.integers(REGISTERS[letter][1])}"

    def instruction(self, together: bool) -> None:
        """One instruction, perhaps under a guard."""
        name, shape = self.choices[self.rng.integers(len(self.choices))] if together else self.plain[
            self.rng.integers(len(self.plain))
        ]  # fmt: skip
        letters = shape.rstrip("*#")
        operands = [self.register(letters[0]), *[self.pick(x) for x in letters[1:]]]
        if shape.endswith("#"):
            operands.append(f"0x{self.rng.integers(256):x}")
        if shape.endswith("*"):
            operands.append("0xffffffff")
        guard = "" if shape.endswith("*") or self.rng.random() < 0.8 else f"@{self.rng.choice(['', '!'])}{self.pick('p')} "
        self.lines.append(f"    {guard}{name} {', '.join(operands)};")

    def memory(self) -> None:
        """A load, a store or an atomic, at a place of the thread's or at a random one."""
        r, where = self.register("r"), self.rng.integers(6)
        match where:
            case 0:
                self.lines += [
                    f"    and.b32 %t0, {self.pick('r')}, 127;",
                    "    shl.b32 %t0, %t0, 2;",
                    "    add.u32 %t0, %t0, %buffer;",
                    f"    ld.shared.u32 {r}, [%t0+4096];",
                ]
            case 1:
                self.lines += [f"    st.shared.u32 [%own], {r};", f"    ld.shared.f32 {self.register('f')}, [%own];"]
            case 2:
                self.lines += [
                    f"    and.b32 %t0, {self.pick('r')}, 63;",
                    "    mul.wide.u32 %t1, %t0, 4;",
                    "    add.u64 %t1, %t1, %in;",
                    f"    ld.global.s16 {r}, [%t1];",
                    f"    ld.global.nc.f32 {self.register('f')}, [%t1];",
                ]
            case 3:
                at = self.rng.integers(len(UPDATES))  # each in words of its own: the order of the lanes does not show
                self.lines += [f"    and.b32 %t0, {self.pick('r')}, 12;", "    add.u32 %t0, %t0, %counts;",
                               f"    red.shared.{UPDATES[at]} [%t0+{16 * at}], {self.register('r')};"]  # fmt: skip
            case 4:
                self.lines += [
                    f"    st.local.b64 [%stack+8], {self.register('d')};",
                    f"    ld.local.u8 {r}, [%stack+{self.rng.integers(8, 16)}];",
                ]
            case _:
                self.lines += [
                    "    ld.global.v2.u32 {%r1, %r2}, [%mine];",
                    f"    ld.global.b64 {self.register('d')}, [%mine+8];",
                ]

    def function(self, number: int) -> str:
        """A function of two words; it may call itself, or the one before it, a few times."""
        kept, self.lines = self.lines, []
        for _ in range(self.rng.integers(1, 5)):
            name, shape = self.integers[self.rng.integers(len(self.integers))]
            operands = [self.register("r"), *[self.pick("r") for _ in shape.rstrip("#")[1:]]]
            operands += [f"0x{self.rng.integers(256):x}"] if shape.endswith("#") else []
            self.lines.append(f"    {name} {', '.join(operands)};")
        body, self.lines = "\n".join(self.lines), kept
        callee = f"f{self.rng.integers(number + 1)}"
        return FUNCTION.format(number=number, body=body, callee=callee)

    def call(self) -> None:
        """A call, direct or through a pointer that may differ from lane to lane."""
        arguments = f"({self.register('r')}, {self.register('r')})"
        guard = "" if self.rng.random() < 0.7 else f"@{self.pick('p')} "
        if self.rng.random() < 0.6:
            self.lines.append(f"    {guard}call ({self.register('r')}), f{self.rng.integers(2)}, {arguments};")
            return
        self.labels += 1
        self.lines += ["    mov.u64 %t1, f0;", f"    @{self.pick('p')} mov.u64 %t1, f1;",
                       f"    list{self.labels}: .calltargets f0, f1;",
                       f"    {guard}call ({self.register('r')}), %t1, {arguments}, list{self.labels};"]  # fmt: skip

    def meeting(self) -> None:
        """Lanes of both sides of a branch meet in a shuffle; or warps at a barrier where some only arrive."""
        self.labels += 1
        n, threads = self.labels, -(-self.threads // 32) * 32
        if self.rng.random() < 0.6:
            guard, sides = f"@{self.pick('p')}", []
            for _ in range(2):
                self.instruction(together=False)
                sides.append(self.lines.pop())
            met = [
                f"    shfl.sync.bfly.b32 {self.register('r')}, {self.register('r')}, {m}, 0x1f, 0xffffffff;" for m in (1, 16)
            ]
        else:
            self.lines += ["    and.b32 %t0, %thread, 32;", "    setp.ne.u32 %q1, %t0, 0;"]
            guard, sides = "@%q1", ["", ""]
            met = [f"    bar.sync 3, {threads};", f"    bar.arrive 3, {threads};"]
        self.lines += [
            f"    {guard} bra ELSE{n};",
            sides[0],
            met[0],
            f"    bra END{n};",
            f"ELSE{n}:",
            sides[1],
            met[1],
            f"END{n}:",
        ]
        if guard == "@%q1":  # who only arrived may not arrive again before the others have met
            self.lines.append("    bar.sync 0;")

    def lock(self) -> None:
        """A sum under a lock, for which lanes spin."""
        self.labels += 1
        self.lines += [f"LOCK{self.labels}:", *LOCK.format(number=self.labels, register=self.register("r")).splitlines()]

    def block(self, depth: int, together: bool) -> None:
        """Some statements; `together` where all lanes of the warp are sure to be here."""
        for _ in range(self.rng.integers(2, 7)):
            kind = self.rng.random()
            if kind < 0.6 or depth == 0:
                self.instruction(together)
            elif kind < 0.75:
                self.memory()
            elif kind < 0.8 and self.calls:
                self.call()
            elif kind < 0.82 and self.locks:
                self.lock()
            elif kind < 0.86 and together and self.calls:
                self.meeting()
            elif kind < 0.9:
                self.branch(depth, together)
            else:
                self.loop(depth, together)

    def branch(self, depth: int, together: bool) -> None:
        """An if with or without an else."""
        self.labels += 1
        n, both = self.labels, self.rng.random() < 0.5
        self.lines.append(f"    @{self.pick('p')} bra ELSE{n};")
        self.block(depth - 1, together=False)
        if both:
            self.lines.append(f"    bra END{n};")
        self.lines.append(f"ELSE{n}:")
        if both:
            self.block(depth - 1, together=False)
            self.lines.append(f"END{n}:")
        del together

    def loop(self, depth: int, together: bool) -> None:
        """A loop that every lane leaves when it likes, or all at once."""
        self.labels += 1
        n, uniform = self.labels, self.rng.random() < 0.4
        count = f"%c{n % 8}"
        self.lines.append(
            f"    mov.u32 {count}, {self.rng.integers(1, 5)};" if uniform else f"    and.b32 {count}, {self.register('r')}, 3;"
        )
        self.lines.append(f"LOOP{n}:")
        self.block(depth - 1, together=together and uniform)
        self.lines += [
            f"    sub.u32 {count}, {count}, 1;",
            f"    setp.gt.s32 %q0, {count}, 0;",
            f"    @%q0 bra LOOP{n};",
        ]

    def kernel(self) -> str:
        """The module."""
        for _ in range(3):
            self.block(2, together=True)
            if self.rng.random() < 0.7:
                self.lines += ["    bar.sync 0;", "    st.shared.u32 [%own+4096], %r0;", "    bar.sync 0;"]
        registers = "\n".join(f"    .reg .{type} %{letter}<{count}>;" for letter, (type, count) in REGISTERS.items())
        fill = [f"    ld.global.u32 %r{n}, [%mine+{4 * n}];" for n in range(8)]
        fill += [f"    ld.global.b64 %d{n}, [%mine+{8 * n}];" for n in range(4)]
        fill += [f"    ld.global.f32 %f{n}, [%mine+{4 * n + 8}];" for n in range(4)]
        fill += [f"    ld.global.f64 %g{n}, [%mine+{8 * n + 8}];" for n in range(3)]
        fill += [f"    ld.global.b16 %h{n}, [%mine+{2 * n}];" for n in range(3)]
        fill += [f"    setp.lt.s32 %p{n}, %r{n}, %r{n + 1};" for n in range(4)]
        save, at = [], 0
        for letter, (type, count) in REGISTERS.items():
            for n in range(count):
                if type == "pred":
                    at = -(-at // 4) * 4
                    save += [f"    selp.u32 %t0, 1, 0, %p{n};", f"    st.global.u32 [%result+{at}], %t0;"]
                    at += 4
                    continue
                size = {"b32": 4, "f32": 4, "b64": 8, "f64": 8, "b16": 2}[type]
                at = -(-at // size) * size
                save.append(f"    st.global.{type} [%result+{at}], %{letter}{n};")
                at += size
        save += ["    bar.sync 0;", "    rem.u32 %t0, %thread, 21;", "    mad.lo.u32 %t0, %t0, 4, %counts;",
                 "    ld.shared.u32 %t0, [%t0];", "    st.global.u32 [%result+252], %t0;"]  # fmt: skip
        body = "\n".join([*fill, *self.lines, *save])
        return TEMPLATE.format(registers=registers, body=body, functions="\n".join(self.functions))


LOCK = """    atom.shared.cas.b32 %t0, [%counts+84], 0, 1;
    setp.ne.u32 %q1, %t0, 0;
    @%q1 bra LOCK{number};
    ld.volatile.shared.u32 %t0, [%counts+80];
    add.u32 %t0, %t0, {register};
    st.volatile.shared.u32 [%counts+80], %t0;
    membar.cta;
    atom.shared.exch.b32 %t0, [%counts+84], 0;
"""
FUNCTION = """
.func (.reg .b32 %result) f{number}(.reg .b32 %x, .reg .b32 %y)
{{
    .reg .b32 %r<8>, %n;
    .reg .pred %q;
    mov.u32 %r0, %x; mov.u32 %r1, %y; mov.u32 %r2, 3; mov.u32 %r3, %x;
    mov.u32 %r4, 77; mov.u32 %r5, %y; mov.u32 %r6, 0; mov.u32 %r7, 9;
{body}
    and.b32 %n, %x, 7;
    setp.gt.u32 %q, %n, 1;
    shr.u32 %n, %n, 1;
    mov.u32 %result, %r1;
    @%q call (%result), {callee}, (%n, %r0);
    xor.b32 %result, %result, %r3;
    ret;
}}
"""
ADDRESS = re.compile(r"0x[0-9a-f]{9,}")  # of memory that each engine takes for itself
SIZE = 256  # bytes of a thread's results
TEMPLATE = """.version 8.6
.target sm_100
.address_size 64
{functions}
.visible .entry random(.param .u64 in, .param .u64 out)
{{
{registers}
    .reg .b32 %c<8>;
    .reg .pred %q<2>;
    .reg .b32 %t0, %own, %buffer, %counts, %thread, %n<6>;
    .reg .b64 %t1, %in, %out, %mine, %result, %stack;
    .shared .align 8 .b8 buffer[8192];
    .shared .align 8 .b8 counts[88];
    .local .align 8 .b8 stack[32];
    ld.param.u64 %in, [in];
    ld.param.u64 %out, [out];
    mov.u32 %n0, %tid.x;
    mov.u32 %n1, %tid.y;
    mov.u32 %n2, %tid.z;
    mov.u32 %n3, %ntid.x;
    mov.u32 %n4, %ntid.y;
    mad.lo.u32 %thread, %n2, %n4, %n1;
    mad.lo.u32 %thread, %thread, %n3, %n0;
    mov.u32 %buffer, buffer;
    mov.u32 %counts, counts;
    mov.u64 %stack, stack;
    shl.b32 %own, %thread, 2;
    add.u32 %own, %own, %buffer;
    mov.u32 %n5, %ctaid.x;
    mul.lo.u32 %n4, %n4, %n3;
    mov.u32 %n3, %ntid.z;
    mul.lo.u32 %n4, %n4, %n3;
    mad.lo.u32 %n5, %n5, %n4, %thread;
    mul.wide.u32 %t1, %n5, 64;
    add.u64 %mine, %in, %t1;
    mul.wide.u32 %t1, %n5, 256;
    add.u64 %result, %out, %t1;
{body}
    ret;
}}
"""
SHAPES = [(32,), (64,), (48,), (16, 4), (5, 3, 2), (128,), (1,), (8, 8), (33,)]
STRANGE = np.array(
    [0, 1, 0x80000000, 0x7F800000, 0x7FC00000, 0xFFFFFFFF, 0x7FFFFFFF, 0x00000001, 0x80000001, 0x3F800000, 0x7F7FFFFF],
    np.uint32,
)


def one_nan(results: np.ndarray) -> np.ndarray:
    """The results with one NaN of f64 in `%g`: which payload comes out of an operation on two NaNs is open."""
    doubles = np.ascontiguousarray(results[:, 80:104]).view(np.float64)
    doubles[np.isnan(doubles)] = np.nan
    results[:, 80:104] = doubles.view(np.uint8)
    return results


@pytest.mark.parametrize("number", range(KERNELS))
def test_random_kernel(number: int, rng: np.random.Generator) -> None:
    block = SHAPES[rng.integers(len(SHAPES))]
    threads, grid = int(np.prod(block)), int(rng.integers(1, 4))
    writer = Writer(rng, threads)
    text = writer.kernel()
    data = rng.integers(0, 2**32, grid * threads * 16 + 64, np.uint32)
    odd = rng.random(len(data)) < 0.3
    data[odd] = rng.choice(STRANGE, int(odd.sum()))
    small = rng.random(len(data)) < 0.3
    data[small] &= 0x7F
    kernel = ptxvm.load(text).kernel()
    found, counted = [], []
    for engine in ("interp", "jit"):
        out = np.zeros(grid * threads * SIZE, np.uint8)
        result = kernel.launch(grid=grid, block=block, args=[data, out], engine=engine)
        found.append(one_nan(out.reshape(-1, SIZE)))
        counted.append(result.thread_instructions)
    wrong = np.argwhere(found[0] != found[1])
    if len(wrong):
        thread, byte = wrong[0]
        pytest.fail(f"thread {thread} of {block} differs at byte {byte}, and {len(wrong)} bytes in all\n{text}")
    assert writer.locks or counted[0] == counted[1]


# ── faults of the conformance files ─────────────────────────────────────────────────────


def conformance() -> Any:
    """The module that runs them."""
    spec = importlib.util.spec_from_file_location("conformance_runner", CONFORMANCE / "test_conformance.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["conformance_runner"] = module
    spec.loader.exec_module(module)
    return module


def files() -> Iterator[Any]:
    """Every conformance file in which something goes wrong."""
    for path in sorted(CONFORMANCE.rglob("*.ptx")):
        if re.search(r"//: run .* faults ", path.read_text()):
            yield pytest.param(path, id=str(path.relative_to(CONFORMANCE).with_suffix("")))


@pytest.mark.parametrize("path", list(files()))
def test_faults_are_told_alike(path: Path) -> None:
    """With the same words, of the same instruction and thread."""
    runner = conformance()
    text = path.read_text()
    target, runs, _ = runner.parse(text)
    module = ptxvm.load(text, target)
    runner.bind(module, text)
    out = np.zeros(runner.BYTES, np.uint8)
    for run in (run for run in runs if run.fault):
        kernel, said = module.kernel(run.kernel), []
        for engine in ("interp", "jit"):
            with pytest.raises(ptxvm.Fault) as caught:
                kernel.launch(grid=run.grid, block=run.block, args=[out, *runner.arguments(kernel, run.args)], engine=engine)
            said.append((caught.value.kind, ADDRESS.sub("0x…", str(caught.value)), caught.value.place))
        assert said[0] == said[1], run.text
