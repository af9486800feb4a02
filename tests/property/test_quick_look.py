"""The quick look of the JIT leaves nothing out that the checkers find: random kernels of accesses, branches and barriers.

The oracle is the exact checker on the interpreter, which shares no rule with the tags in compiled code.
"""

from __future__ import annotations

import logging
import os

import numpy as np

import ptxvm

KERNELS = int(os.environ.get("PTXVM_RANDOM_KERNELS", "25"))
BYTES = 2048  # of shared memory, and of each of the arrays
BLOCKS = (1, 8, 32, 33, 64, 96, 128, 256)

HEAD = f"""
.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u64 first, .param .u64 second)
{{
    .shared .align 16 .b8 s[{BYTES}];
    .reg .pred %p<100>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .b32 %x<300>;
    mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ntid.x; mad.lo.u32 %r4, %r2, %r3, %r1;
    mov.u32 %r5, s; mov.u64 %rd3, s; cvta.shared.u64 %rd3, %rd3;
    ld.param.u64 %rd1, [first]; ld.param.u64 %rd2, [second];
    mov.u32 %r6, 0; mov.u16 %h1, 5; cvt.u64.u32 %rd7, %r4;
"""
INDICES = (
    "mov.u32 {x}, {c};",
    "mov.u32 {x}, %r1;",
    "mov.u32 {x}, %r4;",
    "mov.u32 {x}, %r2;",
    "add.u32 {x}, %r1, {c};",
    "add.u32 {x}, %r1, %r6;",
    "xor.b32 {x}, %r1, {c};",
    "and.b32 {x}, %r1, {c};",
    "shr.u32 {x}, %r1, {small};",
    "mul.lo.u32 {x}, %r1, {small};",
    "mad.lo.u32 {x}, %r4, {small}, {c};",
    "mul.lo.u32 {x}, %r1, %r1;",
    "sub.u32 {x}, 255, %r1;",
    "and.b32 {x}, %r1, 15; shr.u32 %r9, %r1, 4; mad.lo.u32 {x}, %r9, {c}, {x};",
)
MEETINGS = (
    "bar.warp.sync -1;",
    "activemask.b32 %r9; bar.warp.sync %r9;",
    "shfl.sync.bfly.b32 %r9, %r1, 1, 0x1f, -1;",
    "bar.sync 0;",
    "bar.sync 1;",
    "barrier.sync 0;",
)
GUARDS = (
    "setp.eq.u32 {p}, %r1, {c};",
    "setp.lt.u32 {p}, %r1, {c};",
    "and.b32 %r9, %r1, {small}; setp.eq.u32 {p}, %r9, 0;",
    "setp.eq.u32 {p}, %r2, 1;",
    "setp.eq.u32 {p}, %r4, {c};",
    "setp.gt.u32 {p}, %r6, 0;",
)
PLAIN = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "v4.u32"}
VALUES = {1: "%h1", 2: "%h1", 4: "%r1", 8: "%rd7", 16: "{{%r1, %r1, %r2, %r4}}"}
RESULTS = {1: "%h2", 2: "%h2", 4: "%r10", 8: "%rd10", 16: "{{%r10, %r11, %r12, %r13}}"}


class Writer:
    """Writes a kernel of one space or several, of few sizes, so that many kernels have no race."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng, self.count = rng, 0
        self.sizes = rng.choice([1, 2, 4, 4, 4, 8, 16], size=int(rng.integers(1, 3))).tolist()
        self.spaces = rng.choice(["shared", "shared", "global", "generic"], size=int(rng.integers(1, 3))).tolist()
        self.strong = rng.random() < 0.3
        self.tame = rng.random() < 0.6  # every thread mostly keeps to its own
        self.lines = [HEAD]

    def one_of(self, choices):
        return choices[int(self.rng.integers(len(choices)))]

    def filled(self, template):
        self.count += 1
        names = {"x": f"%x{self.count}", "p": f"%p{self.count % 100}", "c": int(self.rng.integers(0, 64))}
        return template.format(**names, small=int(self.rng.integers(1, 5))), names

    def access(self, guard=""):
        size, space = self.one_of(self.sizes), self.one_of(self.spaces)
        text, names = self.filled("mov.u32 {x}, %r4;" if self.tame and self.rng.random() < 0.7 else self.one_of(INDICES))
        base = {"shared": "%rd3", "global": self.one_of(["%rd1", "%rd2"]), "generic": self.one_of(["%rd1", "%rd3"])}[space]
        text += f" and.b32 {names['x']}, {names['x']}, {BYTES // size - 1}; mul.wide.u32 %rd8, {names['x']}, {size}; "
        if space == "shared":
            text += "mov.u64 %rd9, s; add.u64 %rd8, %rd8, %rd9; "
        else:
            text += f"add.u64 %rd8, %rd8, {base}; "
        self.lines.append(f"    {text}\n    {guard}{self.instruction(size, '' if space == 'generic' else '.' + space)}")

    def instruction(self, size, space):
        value, result = VALUES[size].format(), RESULTS[size].format()
        if self.strong and size in (4, 8) and self.rng.random() < 0.6:
            kind = f"u{8 * size}"
            return self.one_of([
                f"red{space}.add.{kind} [%rd8], {value};",
                f"atom{space}.add.{kind} {result}, [%rd8], {value};",
                f"atom.cta{space}.max.{kind} {result}, [%rd8], {value};",
                f"st.volatile{space}.{kind} [%rd8], {value};",
                f"ld.volatile{space}.{kind} {result}, [%rd8];",
                f"ld.relaxed.gpu{space}.{kind} {result}, [%rd8];",
            ])  # fmt: skip
        if self.rng.random() < 0.5:
            return f"ld{space}.{PLAIN[size]} {result}, [%rd8];"
        return f"st{space}.{PLAIN[size]} [%rd8], {value};"

    def statement(self, depth=0):
        kind = self.rng.random()
        if kind < 0.3 and depth == 0:
            self.lines.append("    bar.sync 0;")
        elif kind < 0.35 and self.rng.random() < 0.5:
            self.lines.append(f"    {self.one_of(MEETINGS)}")
        elif kind < 0.45:
            text, names = self.filled(self.one_of(GUARDS))
            self.lines.append(f"    {text}")
            self.access(f"@{names['p']} ")
        elif kind < 0.55 and depth < 2:
            text, names = self.filled(self.one_of(GUARDS))
            label = f"L{self.count}"
            self.lines.append(f"    {text} @{names['p']} bra {label};")
            for _ in range(int(self.rng.integers(1, 4))):
                self.statement(depth + 1)
            self.lines.append(f"{label}:")
        elif kind < 0.6 and depth == 0:
            self.loop()
        else:
            self.access()

    def loop(self):
        self.count += 1
        label, turn = f"L{self.count}", f"%p{self.count % 100}"
        self.lines.append(f"    mov.u32 %r6, 0;\n{label}:")
        for _ in range(int(self.rng.integers(1, 4))):
            self.access()
            if self.rng.random() < 0.5:
                self.lines.append("    bar.sync 0;")
        self.lines.append(f"    add.u32 %r6, %r6, 1; setp.lt.u32 {turn}, %r6, 3; @{turn} bra {label};")

    def text(self):
        for _ in range(int(self.rng.integers(2, 12))):
            self.statement()
        return "\n".join([*self.lines, "    ret;\n}\n"])


def outcome(text, engine, checks, shape):
    arrays = [np.full(BYTES, 7, np.uint8), np.zeros(BYTES, np.uint8)]
    arrays = [each.view(np.uint64) for each in arrays]
    result = ptxvm.load(text).kernel().launch(*shape, arrays, engine=engine, check=checks)
    return [str(each) for each in result.findings], [each.tolist() for each in arrays]


def test_the_quick_look_leaves_nothing_out(rng, caplog):
    caplog.set_level(logging.INFO, "ptxvm.jit")
    cleared, found = 0, 0
    for _ in range(KERNELS):
        text = Writer(rng).text()
        shape = int(rng.integers(1, 4)), int(rng.choice(BLOCKS))
        checks = ("race", "init", "sync") if rng.random() < 0.3 else ("race",)
        expected = outcome(text, "interp", checks, shape)
        caplog.clear()
        assert outcome(text, "jit", checks, shape) == expected, f"{shape} {checks}\n{text}"
        found += bool(expected[0])
        cleared += not caplog.records
    assert cleared > KERNELS // 20  # the test tells something: it is not all left to the exact checker,
    assert found > KERNELS // 20  # and there is something to find
    print(f"{cleared} of {KERNELS} cleared, {found} with findings")  # noqa: T201 - shown by pytest -s
