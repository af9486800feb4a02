"""The check `init` on random kernels: no effect of an undefined value is missed, and both engines find the same.

The oracle shares nothing with the check: a kernel runs with several values in the registers that it leaves unset.  Where
what it leaves in device memory depends on them, it has observed an undefined value, and the check must say so.
"""

from __future__ import annotations

import random

import numpy as np
import pytest

import ptxvm

WORDS, PREDICATES, THREADS = 8, 4, 64

HEAD = """
.version 8.3
.target sm_80
.address_size 64
.visible .entry k(.param .u64 data)
{
    .shared .align 4 .b8 s[256];
    .local .align 4 .b8 x[32];
    .reg .pred p<5>; .reg .b16 h<4>; .reg .b32 r<9>, t, a; .reg .b64 d, w;
    ld.param.u64 d, [data];
    mov.u32 t, %tid.x;
    mad.wide.u32 d, t, 32, d;
    mad.lo.u32 a, t, 4, 0;
    mov.u32 r8, s;
    add.u32 a, a, r8;
    st.shared.u32 [a], t;
    st.local.v4.u32 [x], {t, t, t, t};
"""
"""Of the registers, random ones get no value before the body."""

FORMS = [
    "add.u32 D, A, B", "sub.u32 D, A, B", "mul.lo.u32 D, A, B", "and.b32 D, A, B", "or.b32 D, A, B", "xor.b32 D, A, B",
    "shl.b32 D, A, K", "shr.s32 D, A, K", "not.b32 D, A", "min.s32 D, A, B", "prmt.b32 D, A, B, 0x5140",
    "selp.b32 D, A, B, P", "setp.lt.u32 Q, A, B", "setp.eq.u32 Q, A, B", "setp.lt.s32 Q, A, 0", "mov.b32 D, A",
    "and.pred Q, P, R", "or.pred Q, P, R", "xor.pred Q, P, R", "not.pred Q, P", "mad.lo.u32 D, A, B, C", "popc.b32 D, A",
    "mov.b32 {h0, h1}, A; mov.b32 D, {h1, h0}", "cvt.s32.s8 D, A", "bfi.b32 D, A, B, 4, 9", "slct.u32.s32 D, A, B, C",
    "mov.b64 w, {A, B}; shr.b64 w, w, 12; cvt.u32.u64 D, w", "add.cc.u32 D, A, B; addc.u32 D, D, C",
    "lop3.b32 D, A, B, C, 0xca", "st.shared.u32 [a], A", "ld.shared.u32 D, [a]", "st.local.u32 [x+Y], A",
    "ld.local.u32 D, [x+Y]", "st.shared.u8 [a+1], A", "ld.shared.u8 D, [a+2]",
]  # fmt: skip
COLLECTIVE = ["shfl.sync.bfly.b32 D, A, K, 31, -1", "shfl.sync.up.b32 D|Q, A, K, 0, -1", "bar.sync 0"]


def generated(seed):
    """A kernel, and the registers that it leaves unset."""
    draw = random.Random(seed)
    words, predicates = [f"r{n}" for n in range(WORDS)], [f"p{n}" for n in range(PREDICATES)]
    unset = draw.sample(words, draw.randint(1, 3)) + draw.sample(predicates, draw.randint(0, 1))
    body = [f"mov.u32 {r}, {draw.choice(['t', draw.getrandbits(draw.choice([4, 32]))])};" for r in words if r not in unset]
    body += [f"setp.{draw.choice(['lt', 'gt'])}.u32 {p}, t, {draw.randint(1, 63)};" for p in predicates if p not in unset]

    def statement(forms):
        text = draw.choice(forms)
        for slot in "ABC":
            text = text.replace(f"{slot},", f"{draw.choice(words)},").replace(f" {slot}", f" {draw.choice(words)}")
        for slot in "PR":
            text = text.replace(f" {slot}", f" {draw.choice(predicates)}")
        text = text.replace("{A", "{" + draw.choice(words)).replace("K", str(draw.choice([1, 2, 8, 16])))
        slots = {"D": draw.choice(words), "Q": draw.choice(predicates), "Y": str(4 * draw.randint(0, 3))}
        return "".join(slots.get(letter, letter) for letter in text)

    defined = [p for p in predicates if p not in unset]
    end = None
    for n in range(draw.randint(4, 16)):
        if end is None and draw.random() < 0.15:
            end = n
            body.append(f"@{draw.choice(defined)} bra L{n};")
        line = statement(FORMS if end is not None or draw.random() < 0.8 else COLLECTIVE)
        if draw.random() < 0.3 and ";" not in line and "sync" not in line:
            line = f"@{draw.choice(['', '!'])}{draw.choice(predicates)} {line}"
        body.append(line + ";")
        if end is not None and draw.random() < 0.4:
            body.append(f"L{end}:")
            end = None
    if end is not None:
        body.append(f"L{end}:")
    guard = f"@{draw.choice(predicates)} " if draw.random() < 0.5 else ""
    body += [f"{guard}st.global.u32 [d+{4 * n}], {draw.choice(words)};" for n in range(draw.randint(1, 2))]
    return "\n    ".join(body), unset


def left(body, engine="jit", check=()):
    """What a kernel leaves in device memory, and its findings."""
    data = np.zeros((THREADS, 8), np.uint32)
    result = (
        ptxvm.load(HEAD + "    " + body + "\n    ret;\n}\n").kernel().launch(1, THREADS, [data], engine=engine, check=check)
    )
    return data, [str(each) for each in result.findings] if check else []


def values_for(registers, draw):
    """Instructions that set registers to random values, different ones in each thread."""
    lines = []
    for register in registers:
        if register[0] == "p":
            lines.append(f"setp.{draw.choice(['lt', 'ge'])}.u32 {register}, t, {draw.choice([0, 20, 64])};")
        else:
            lines.append(f"mad.lo.u32 {register}, t, {draw.choice([0, 1, 77])}, {draw.choice([0, 1, draw.getrandbits(32)])};")
    return "\n    ".join(lines) + "\n    "


def check(seed):
    """Compare the findings of a kernel with what undefined values do to its results, and the engines with each other."""
    body, unset = generated(seed)
    draw = random.Random(~seed)
    results = [left(values_for(unset, draw) + body, "interp")[0] for _ in range(5)]
    depends = any((each != results[0]).any() for each in results)
    _, findings = left(body, "interp", ("init",))
    assert findings or not depends, f"seed {seed}: the results depend on {unset}\n{body}"
    assert left(body, "jit", ("init",))[1] == findings, f"seed {seed}\n{body}"
    return bool(findings), depends


@pytest.mark.parametrize("seed", range(12))
def test_the_effect_of_an_undefined_value_is_found_by_both_engines(seed):
    check(1000 + seed)


def test_the_kernels_show_both():
    """Among the kernels are some whose results depend on undefined values, and some for which nothing is found."""
    assert {check(seed) for seed in (1001, 1002)} == {(False, False), (True, True)}
