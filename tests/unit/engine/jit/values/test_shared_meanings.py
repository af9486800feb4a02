"""Long instructions of one form share a piece of code: long numbers against Python's, the rest against the interpreter."""

from __future__ import annotations

import re

import numpy as np
import pytest

import ptxvm
from ptxvm.engine.jit.abi.specialisation import Specialisation, VersionKind
from ptxvm.engine.jit.translate.translation import Translation
from ptxvm.engine.jit.values import shared_meanings

BLOCK, WORDS, TIMES = 64, 8, 6
HEAD = ".version 8.0\n.target sm_90\n.address_size 64\n"
START = """
    ld.param.u64 %d0, [a]; ld.param.u64 %d1, [b]; ld.param.u64 %d2, [out];
    mov.u32 %t, %tid.x; mul.wide.u32 %d3, %t, {bytes}; add.u64 %d0, %d0, %d3; add.u64 %d1, %d1, %d3;
    mul.wide.u32 %d3, %t, {out}; add.u64 %d2, %d2, %d3;
"""


def products() -> str:
    """A kernel in which each thread multiplies two numbers of eight words, row by row."""
    lines = [f"ld.global.u32 %a{n}, [%d0+{4 * n}]; ld.global.u32 %b{n}, [%d1+{4 * n}];" for n in range(WORDS)]
    lines += [f"mov.u32 %c{n}, 0;" for n in range(2 * WORDS)]
    for row in range(WORDS):
        for half, at in (("lo", row), ("hi", row + 1)):
            for n in range(WORDS):
                opcode = f"mad.{half}.cc" if n == 0 else f"madc.{half}.cc"
                lines.append(f"{opcode}.u32 %c{at + n}, %a{n}, %b{row}, %c{at + n};")
            if at + WORDS < 2 * WORDS:
                lines.append(f"addc.u32 %c{at + WORDS}, %c{at + WORDS}, 0;")
    lines += [f"st.global.u32 [%d2+{4 * n}], %c{n};" for n in range(2 * WORDS)]
    registers = f".reg .b32 %t, %a<{WORDS}>, %b<{WORDS}>, %c<{2 * WORDS}>; .reg .b64 %d<4>;"
    body = START.format(bytes=4 * WORDS, out=8 * WORDS) + "\n".join(lines)
    return f"{HEAD}.visible .entry k(.param .u64 a, .param .u64 b, .param .u64 out)\n{{\n{registers}{body}\nret;\n}}\n"


def whole(words: np.ndarray) -> int:
    """The number whose words these are, the lowest first."""
    return int.from_bytes(words.astype("<u4").tobytes(), "little")


@pytest.mark.parametrize("tier", ["quick", "best"])
def test_products_of_long_numbers(tier: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXVM_TIER", tier)
    a, b = rng.integers(0, 1 << 32, (2, BLOCK, WORDS), np.uint32)
    a[0], b[0] = 0xFFFF_FFFF, 0xFFFF_FFFF
    out = np.zeros((BLOCK, 2 * WORDS), np.uint32)
    ptxvm.load(products()).kernel().launch(1, BLOCK, [a, b, out], engine="jit")
    assert [whole(row) for row in out] == [whole(x) * whole(y) for x, y in zip(a, b, strict=True)]


FORMS = {
    "a selector in a register": "prmt.b32 %r{to}, %r{x}, %r{y}, %r{z};",
    "a mode": "prmt.b32.f4e %r{to}, %r{x}, %r{y}, %r{z};",
    "an operand that all lanes share": "prmt.b32 %r{to}, %r{x}, %u, %r{z};",
    "the number of the lane": "prmt.b32 %r{to}, %r{x}, %t, %r{z};",
    "a constant": "mul.hi.s32 %r{to}, %r{x}, -1840700269;",
    "two results": "setp.lt.and.f32 %p{to}|%q{to}, %r{x}, %r{y}, %p{x}; selp.b32 %r{to}, %r{z}, %r{y}, %q{to};",
    "a predicate": "add.rz.f32 %r{to}, %r{x}, %r{y}; @%p{x} add.rm.f32 %r{to}, %r{x}, %r{z};",
    "floats of 16 bits": "fma.rn.bf16x2 %r{to}, %r{x}, %r{y}, %r{z};",
    "floats whose NaNs are any": "div.full.f32 %r{to}, %r{x}, %r{y}; add.ftz.f32 %r{to}, %r{to}, %r{z};",
    "approximations": "sin.approx.f32 %r{to}, %r{x}; lg2.approx.ftz.f32 %r{z}, %r{to};",
    "video": "vadd4.s32.u32.s32.sat %r{to}, %r{x}, %r{y}, %r{z};",
    "a bit that is found": "fns.b32 %r{to}, %r{x}, 3, 2; xor.b32 %r{to}, %r{to}, %r{y};",
    "a lane that is read": "shfl.sync.bfly.b32 %r{to}|%p{to}, %r{x}, 5, 0x1f, -1; @!%p{to} xor.b32 %r{to}, %r{to}, %r{z};",
    "lanes in registers": "shfl.sync.idx.b32 %r{to}|%p{to}, %r{x}, %r{y}, %r{z}, -1; @%p{to} xor.b32 %r{z}, %r{to}, %u;",
    "lanes that give the same": "and.b32 %r{x}, %r{x}, 3; match.any.sync.b32 %r{to}, %r{x}, -1;",
    "two words that are the same":
        "mov.b64 %d4, {{%r{x}, %t}}; and.b64 %d4, %d4, 7; match.any.sync.b64 %r{to}, %d4, -1; xor.b32 %r{to}, %r{to}, %t;",
    "all the same": "and.b32 %r{x}, %r{x}, 64; match.all.sync.b32 %r{to}|%p{to}, %r{x}, -1; selp.b32 %r{z}, %t, %r{y}, %p{to};",
    "members that lanes choose":
        "vote.sync.ballot.b32 %r{y}, %p{x}, -1; @%p{x} match.any.sync.b32 %r{to}, %r{z}, %r{y}; xor.b32 %r{z}, %r{z}, %r{to};",
    "a sum of all lanes": "redux.sync.add.u32 %r{to}, %r{x}, -1; add.u32 %r{to}, %r{to}, %t;",
    "the least of some lanes":
        "vote.sync.ballot.b32 %r{y}, %p{x}, -1; @%p{x} redux.sync.min.s32 %r{to}, %r{z}, %r{y}; xor.b32 %r{z}, %r{z}, %t;",
    "a verdict": "vote.sync.any.pred %p{to}, %p{x}, -1; @%p{to} add.u32 %r{to}, %r{x}, %t;",
    "a leader": "vote.sync.ballot.b32 %r{y}, %p{x}, -1; @%p{x} elect.sync %r{to}|%p{z}, %r{y}; xor.b32 %r{z}, %r{z}, %r{to};",
    "a matrix that is transposed": "movmatrix.sync.aligned.m8n8.trans.b16 %r{to}, %r{x}; xor.b32 %r{to}, %r{to}, %r{z};",
    "bits": "bfe.s32 %r{to}, %r{x}, %r{y}, %r{z}; bfi.b32 %r{z}, %r{x}, %r{to}, %r{y}, %r{z};",
}  # fmt: skip


def repeated(form: str) -> str:
    """A kernel with an instruction so many times, of other registers each time; all of them are stored."""
    names = range(4)
    lines = ["ld.param.u32 %u, [u];"]
    lines += [f"ld.global.b32 %r{n}, [%d{n % 2}+{BLOCK * n // 2 * 8}]; setp.lt.s32 %p{n}, %r{n}, 0;" for n in names]
    for n in range(TIMES):
        places = dict(zip(("to", "x", "y", "z"), ((n + k) % 4 for k in names), strict=True))
        lines.append(form.format(**places))
    lines += [f"st.global.b32 [%d2+{4 * n}], %r{n};" for n in names]
    registers = ".reg .b32 %t, %u, %r<4>; .reg .pred %p<4>, %q<4>; .reg .b64 %d<5>;"
    parameters = ".param .u64 a, .param .u64 b, .param .u64 out, .param .u32 u"
    body = START.format(bytes=4, out=16) + "\n".join(lines)
    return f"{HEAD}.visible .entry k({parameters})\n{{\n{registers}{body}\nret;\n}}\n"


@pytest.mark.sampled(2)
@pytest.mark.parametrize("tier", ["quick", "best"])
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_as_in_the_interpreter(form: str, tier: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXVM_TIER", tier)
    monkeypatch.setenv("PTXVM_CACHE", "off")
    monkeypatch.setattr(shared_meanings, "LINES", 1)
    monkeypatch.setattr(shared_meanings, "SEVERAL", 1)
    kernel = ptxvm.load(repeated(form)).kernel()
    given = rng.integers(0, 1 << 32, (2, BLOCK * 16), np.uint32)
    given[:, :: BLOCK // 4] = 0x7FC1_2345  # a NaN that is not canonical
    found = []
    for engine in ("jit", "interp"):
        out = np.zeros((BLOCK, 4), np.uint32)
        kernel.launch(1, BLOCK, [*given.copy(), out, np.uint32(0x89AB_CDEF)], engine=engine)
        found.append(out)
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize(("form", "in_place"), [
    ("a selector in a register", 1), ("lanes that give the same", 1), ("a sum of all lanes", 1), ("a constant", 3),
])  # fmt: skip
def test_one_function_for_many(form: str, in_place: int) -> None:
    """Without it the module grew with each of them, and LLVM took seconds; a few that are not long stand in their places."""
    module = ptxvm.load(repeated(FORMS[form]))
    function = module.image.resolve(module.kernel().function)
    text, _ = Translation(module.image, Specialisation(function, (BLOCK, 1, 1), 0)).text(VersionKind.FIRST)
    (name,) = re.findall(r"^define internal .* @(ptxvm\.meaning\.\d+)\(", text, re.MULTILINE)
    assert text.count(f"@{name}(") == TIMES - in_place + 1  # and one is the definition
