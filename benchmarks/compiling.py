"""How long kernels take to compile: quick code, for which the first launch waits, and the best, which is made beside it.

Each is given in milliseconds an instruction of the kernel, with where they go: Python translates to LLVM IR; LLVM reads
that, checks it, runs its passes, and writes code, which is linked.  Kernels are not kept on disk; what they share with
others is compiled before, as it is once on each machine.  The clock is the processor's, so that what else the machine
does counts little.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial

import ptxvm
from ptxvm.engine.jit.abi.specialisation import Specialisation, Tier, VersionKind
from ptxvm.engine.jit.ir import libraries
from ptxvm.engine.jit.objects import codegen
from ptxvm.engine.jit.objects.code_cache import link
from ptxvm.engine.jit.objects.shared_functions import set_apart
from ptxvm.engine.jit.translate.translation import Translation

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry kernel(.param .u64 at, .param .u32 n) {
  .reg .b32 %r<10>; .reg .b64 %rd<3>; .reg .pred %p;
  ld.param.u64 %rd1, [at]; ld.param.u32 %r9, [n]; mov.u32 %r0, %tid.x; mul.wide.u32 %rd2, %r0, 4; add.s64 %rd1, %rd1, %rd2;
  ld.global.u32 %r1, [%rd1]; xor.b32 %r2, %r1, %r0; add.s32 %r3, %r1, %r0; mov.b32 %r4, %r2; mov.b32 %r5, %r3;
"""
STEP = """  add.s32 %r1, %r1, %r2; xor.b32 %r2, %r2, %r3; mul.lo.s32 %r3, %r3, %r1; shf.l.wrap.b32 %r4, %r4, %r1, 7;
  add.s32 %r5, %r5, %r4; sub.s32 %r2, %r2, %r5;
"""
BRANCH = "  and.b32 %r8, %{register}, {mask}; setp.ne.s32 %p, %r8, 0; @%p bra L{n};\n{step}L{n}: add.s32 %r1, %r1, %r5;\n"
LOOP = "  mov.b32 %r6, %r9;\nL{n}:\n{step}  add.s32 %r6, %r6, -1; setp.ne.s32 %p, %r6, 0; @%p bra L{n};\n"
EXCHANGE = """  and.b32 %r8, %r1, 252; mov.u32 %r7, s; add.s32 %r8, %r7, %r8; st.shared.b32 [%r8], %r2; bar.sync 0;
  ld.shared.b32 %r4, [%r8];
"""
FUNCTION = """.func (.param .b32 o) f{n}(.param .b32 a, .param .b32 b) {{
  .reg .b32 %a, %b; ld.param.b32 %a, [a]; ld.param.b32 %b, [b];
  mul.lo.s32 %b, %a, %b; xor.b32 %b, %b, %a; st.param.b32 [o], %b; ret;
}}
"""
CALL = """  {{ .param .b32 a; .param .b32 b; .param .b32 o; st.param.b32 [a], %r1; st.param.b32 [b], %r2;
  call (o), f{n}, (a, b); ld.param.b32 %r1, [o]; }}
  add.s32 %r2, %r2, %r1; xor.b32 %r3, %r3, %r2;
"""
DEPTH, CASES, OPERATIONS, FUNCTIONS = 4, 4, 8, 8
TAIL = "  st.global.u32 [%rd1], %r2; ret;\n}\n"


def line(instructions: int) -> str:
    """Code that goes straight on."""
    return HEAD + STEP * (instructions // 6) + TAIL


def branches(instructions: int, register: str) -> str:
    """Code that jumps over every second piece, by a register."""
    pieces = [BRANCH.format(register=register, mask=1 << n % 5, n=n, step=STEP) for n in range(instructions // 10)]
    return HEAD + "".join(pieces) + TAIL


def loops(instructions: int) -> str:
    """Loops one after the other, with the same count in all lanes."""
    return HEAD + "".join(LOOP.format(n=n, step=STEP) for n in range(instructions // 10)) + TAIL


def nests(instructions: int) -> str:
    """Loops within loops, one nest after the other."""
    pieces = []
    for n in range(instructions // 40):
        pieces += [f"  mov.b32 %q{d}, %r9;\nN{n}_{d}:\n{STEP}" for d in range(DEPTH)]
        pieces += [f"  add.s32 %q{d}, %q{d}, -1; setp.ne.s32 %p, %q{d}, 0; @%p bra N{n}_{d};\n" for d in reversed(range(DEPTH))]
    return declaring(f".reg .b32 %q<{DEPTH}>;") + "".join(pieces) + TAIL


def nested(instructions: int) -> str:
    """Branches within branches, by lane."""
    pieces = []
    for n in range(instructions // 40):
        pieces += [
            f"  and.b32 %r8, %r{1 + d}, {1 << d}; setp.ne.s32 %p, %r8, 0; @%p bra B{n}_{d};\n{STEP}" for d in range(DEPTH)
        ]
        pieces += [f"B{n}_{d}: add.s32 %r1, %r1, %r5;\n" for d in reversed(range(DEPTH))]
    return HEAD + "".join(pieces) + TAIL


def switches(instructions: int) -> str:
    """Jumps through tables, by lane."""
    pieces = []
    for n in range(instructions // 30):
        labels = [f"C{n}_{case}" for case in range(CASES)]
        pieces.append(f"T{n}: .branchtargets {', '.join(labels)};\n  and.b32 %r8, %r1, {CASES - 1}; brx.idx %r8, T{n};\n")
        pieces += [f"{label}:\n{STEP}  bra E{n};\n" for label in labels] + [f"E{n}:\n"]
    return HEAD + "".join(pieces) + TAIL


def interpreters(instructions: int) -> str:
    """Loops around a jump through a table, by lane, whose values live through all cases."""
    pieces = []
    for n in range(instructions // 60):
        labels = [f"C{n}_{case}" for case in range(OPERATIONS)]
        pieces.append(f"T{n}: .branchtargets {', '.join(labels)};\n  mov.b32 %r6, %r9;\n")
        pieces.append(f"I{n}: and.b32 %r8, %r1, {OPERATIONS - 1}; brx.idx %r8, T{n};\n")
        pieces += [f"{label}:\n{STEP}  bra E{n};\n" for label in labels]
        pieces.append(f"E{n}: add.s32 %r6, %r6, -1; setp.ne.s32 %p, %r6, 0; @%p bra I{n};\n")
    return HEAD + "".join(pieces) + TAIL


def calls(instructions: int) -> str:
    """Calls of a few small functions, with arguments and results as the ABI passes them."""
    head, body = HEAD.split(".visible")
    functions = "".join(FUNCTION.format(n=n) for n in range(FUNCTIONS))
    called = "".join(CALL.format(n=n % FUNCTIONS) for n in range(instructions // 6))
    return f"{head}{functions}.visible{body}{called}{TAIL}"


def barriers(instructions: int) -> str:
    """A barrier every twelve instructions, between a store and a load of shared memory."""
    return declaring(".shared .b32 s[64];") + (EXCHANGE + STEP) * (instructions // 12) + TAIL


def declaring(variable: str) -> str:
    """The head of the kernel with one more declaration."""
    return HEAD.replace("{\n", f"{{\n  {variable}\n", 1)


SIZES = (100, 1_000, 10_000, 100_000)
LARGE = 100_000
"""From so many instructions on a kernel is compiled only where it is asked for: that takes minutes."""
ONCE = 1_000
"""Of more than so many one run is enough, and the best code is left out but where large kernels are asked for."""
FAMILIES: tuple[tuple[str, Callable[[int], str]], ...] = (
    ("straight on", line),
    ("branches, alike in a warp", partial(branches, register="r9")),
    ("branches, by lane", partial(branches, register="r1")),
    ("loops in a row", loops),
    ("nests of loops", nests),
    ("nested branches, by lane", nested),
    ("switches, by lane", switches),
    ("loops around switches, by lane", interpreters),
    ("calls", calls),
    ("barriers", barriers),
)
SHARED = "shared functions"  # which the first link of them in this process compiles: no stage


@dataclass
class Compilation:
    """What a kernel took in a tier: its instructions, and the seconds of each stage, run by run."""

    instructions: int
    stages: dict[str, list[float]] = field(default_factory=dict)

    @property
    def milliseconds(self) -> list[float]:
        """An instruction, in each run."""
        return [1000 * sum(run) / self.instructions for run in zip(*self.stages.values(), strict=True)]

    @property
    def parts(self) -> str:
        """The medians of the stages, in words."""
        return ", ".join(f"{name} {1000 * statistics.median(seconds):.0f}" for name, seconds in self.stages.items())


def compiled(source: str, name: str, block: tuple[int, int, int], shared: int, tier: Tier, runs: int) -> Compilation:
    """Compile the version of a kernel that runs first, several times from the start."""
    found = Compilation(0)
    for _ in range(runs):
        module = ptxvm.load(source)
        function = module.image.resolve(module.kernel(name).function)
        found.instructions = len(function.instructions)
        wanted = Specialisation(function, block, shared, narrow=tier < Tier.BEST)
        for stage, seconds in _stages(Translation(module.image, wanted), tier):
            found.stages.setdefault(stage, []).append(seconds)
    return found


def _stages(translation: Translation, tier: Tier) -> Iterator[tuple[str, float]]:
    last = time.process_time()
    marks: list[tuple[str, float]] = []

    def done(name: str) -> None:
        marks.append((name, time.process_time()))

    text, facts = translation.text(VersionKind.FIRST)
    text = set_apart(text, tier)
    done("translation")
    data = codegen.object_code(text, tier, done)
    given = data, VersionKind.FIRST.entry, facts.name, libraries.needed(text), tier
    link(*given)
    done(SHARED)
    link(*given)
    done("link")
    for name, at in marks:
        if name != SHARED:
            yield name, at - last
        last = at
