"""Every form of an instruction that reads and writes registers only, from the table of what ptxas takes (shared/isa)."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from . import Case, numbers, random

SHARED = Path(__file__).parents[3] / "shared" / "isa"
VERSION, TARGET = (9, 0), "sm_90a"
THREADS = 64
TOGETHER = 16  # forms in a kernel
SIZES = {
    "r": 4,
    "f": 4,
    "sr": 4,
    "ur": 4,
    "fhh": 4,
    "d": 8,
    "fd": 8,
    "ud": 8,
    "sd": 8,
    "h": 2,
    "fh": 2,
    "uh": 2,
    "sh": 2,
    "p": 1,
}
REGISTER = re.compile(r"%([a-z]+)(\d+)")
DECLARED = {"r": "b32", "f": "f32", "sr": "s32", "ur": "u32", "fhh": "f16x2", "d": "b64", "fd": "f64", "ud": "u64"}
DECLARED |= {"sd": "s64", "h": "b16", "fh": "f16", "uh": "u16", "sh": "s16", "p": "pred"}

# What has results that do not follow from registers, or waits for others.
LEFT_OUT = re.compile(
    r"activemask|alloca|bar|barrier|br|bra|brkpt|brx|call|cp|createpolicy|cvta|discard|elect|exit|fence|getctarank|"
    r"griddepcontrol|isspacep|istypep|mapa|mbarrier|membar|nanosleep|pmevent|prefetch|ret|setmaxnreg|stack\w+|suq|"
    r"tensormap|trap|txq|wgmma|wmma|clusterlaunchcontrol|shfl|vote|match|redux|applypriority|tex|tld4|mma"
)


def taken() -> Iterator[dict[str, Any]]:
    """The rows of the table that ptxas takes for the target."""
    profiles = json.loads((SHARED / "profiles.json").read_text())
    with gzip.open(SHARED / "variants.jsonl.gz", "rt") as file:
        for row in map(json.loads, file):
            lowest = profiles.get(row.get("profile") or "", {}).get(TARGET)
            if lowest and tuple(map(int, lowest.split("."))) <= VERSION:
                yield row


@cache
def forms() -> tuple[str, ...]:
    """The instructions that are functions of registers, and need nothing declared but these."""
    preambles = json.loads((SHARED / "preambles.json").read_text())
    alone = {
        name for name, parts in preambles.items() if not any(parts[part] for part in ("module", "function", "kernel_params"))
    }
    return tuple(dict.fromkeys(
        row["text"] for row in taken() if row["preamble"] in alone and is_of_registers(row["text"])
    ))  # fmt: skip


def is_of_registers(text: str) -> bool:
    """Is it a function of registers?"""
    opcode = re.sub(r"^@!?%p\d+\s+", "", text).split()[0].partition(".")[0]
    registers = REGISTER.findall(text)
    special = set(re.findall(r"%[A-Za-z_]\w*", text)) - {f"%{kind}{n}" for kind, n in registers}
    whole = all(kind in SIZES for kind, _ in registers) and registers
    named = re.search(r"[,{\s](?!_\b)[a-zA-Z]\w*\s*[,;}+]", text)
    return (
        bool(whole)
        and not LEFT_OUT.fullmatch(opcode)
        and "[" not in text
        and not special
        and not named
        and not (text[0] == "@" and ".sync" in text)
    )


def instructions() -> Iterator[Case]:
    """The forms, so many in a kernel, on mixed numbers; with a carry before, and the carry after."""
    known = forms()
    for first in range(0, len(known), TOGETHER):
        yield kernel(f"instructions {first}", known[first : first + TOGETHER])


def registers_of(text: str) -> list[tuple[str, int]]:
    """The registers of an instruction, each once."""
    return sorted({(kind, int(n)) for kind, n in REGISTER.findall(text)})


CARRIES = re.compile(r"(addc|subc|madc)\b|.*\.cc\b")


def slots(text: str) -> int:
    """The rows of an instruction: a row for each register, and one for the carry."""
    return len(registers_of(text)) + bool(CARRIES.match(text))


def module(lines: str) -> str:
    """A kernel whose threads have rows of 8 bytes from `%base` on."""
    return f"""
.version 9.0
.target {TARGET}
.address_size 64
.visible .entry k(.param .u64 data)
{{
.reg .b64 %base; .reg .b32 %w;
ld.param.u64 %base, [data]; mov.u32 %w, %tid.x; mad.wide.u32 %base, %w, 8, %base;
{lines}
ret;
}}
"""


def kernel(name: str, texts: Sequence[str]) -> Case:
    """All registers of each instruction are loaded, then it runs, then they are stored."""
    slot, parts = 0, []
    for text in texts:
        used = registers_of(text)
        carry = CARRIES.match(text)
        loads, stores = [], []
        for kind, n in used:
            where = f"[%base+{8 * THREADS * slot}]"
            register = f"%{kind}{n}"
            if kind == "p":
                loads.append(f"ld.global.u32 %w, {where}; and.b32 %w, %w, 1; setp.ne.u32 {register}, %w, 0;")
                stores.append(f"selp.u32 %w, 1, 0, {register}; st.global.u32 {where}, %w;")
            else:
                loads.append(f"ld.global.b{8 * SIZES[kind]} {register}, {where};")
                stores.append(f"st.global.b{8 * SIZES[kind]} {where}, {register};")
            slot += 1
        if carry:
            where = f"[%base+{8 * THREADS * slot}]"
            loads.append(f"ld.global.u32 %w, {where}; add.cc.u32 %w, %w, 0x80000000;")
            stores.insert(0, f"addc.u32 %w, 0, 0; st.global.u32 {where}, %w;")
            slot += 1
        kinds = {kind: max(n for each, n in used if each == kind) + 1 for kind, _ in used}
        declared = " ".join(f".reg .{DECLARED[kind]} %{kind}<{count}>;" for kind, count in kinds.items())
        parts.append("\n".join(["{", declared, *loads, text, *stores, "}"]))
    body = "\n".join(parts)
    data = numbers.mixed(random(name), slot * THREADS).reshape(slot, THREADS)
    return Case(name, module(body), "k", (THREADS,), (data,))  # fmt: skip


# ── products of matrices of a warp ──────────────────────────────────────────────────────

TYPE = re.compile(r"\.(f64|f32|tf32|f16|bf16|e4m3|e5m2|s32|s8|u8|s4|u4|b1)\b")


def matrices() -> Iterator[Case]:
    """Every form of mma and mma.sp, three warps with numbers of the three modes."""
    for text in dict.fromkeys(row["text"] for row in taken()):
        if text.startswith("mma.") and "_" not in text.partition(" ")[2] and "!" not in text:
            case = matrix(text)
            if case:
                yield case


def matrix(text: str) -> Case | None:
    """One instruction with fragments of random numbers."""
    mnemonic, _, rest = text.partition(" ")
    vectors = [REGISTER.findall(each) for each in re.findall(r"\{([^}]*)\}", rest)]
    types = TYPE.findall(mnemonic)
    if len(vectors) != 4 or len(types) != 4:
        return None
    rng, rows, order = random(text), [], []
    for role, (type, vector) in enumerate(zip(types, vectors, strict=True)):
        bits = numbers.BITS[type]
        per = max(1, 32 // bits)
        for register in vector:
            values = np.concatenate([numbers.elements(rng, type, mode, 32 * per) for mode in numbers.MODES])
            words = numbers.packed(values.reshape(96, per), bits)
            rows.append(words.reshape(96) if role else np.zeros(96, np.uint64))
            order.append(register)
    if mnemonic.startswith("mma.sp"):
        meta = REGISTER.findall(rest.rpartition("}")[2])
        rows.append(numbers.metadata(rng, types[1], 96))
        order += meta
    used = list(dict.fromkeys((kind, int(n)) for kind, n in order))
    if len(used) != len(order):
        return None
    loads = [f"ld.global.b{8 * SIZES[kind]} %{kind}{n}, [%base+{8 * 96 * slot}];" for slot, (kind, n) in enumerate(used)]
    stores = [
        f"st.global.b{8 * SIZES[kind]} [%base+{8 * 96 * slot}], %{kind}{n};"
        for slot, (kind, n) in enumerate(used[: len(vectors[0])])
    ]
    kinds = {kind: max(n for each, n in used if each == kind) + 1 for kind, _ in used}
    declared = " ".join(f".reg .{DECLARED[kind]} %{kind}<{count}>;" for kind, count in kinds.items())
    lines = "\n".join([declared, *loads, text, *stores])
    return Case(text, module(lines), "k", (96,), (np.stack(rows),))  # fmt: skip


WARP = [
    *[f"shfl.sync.{mode}.b32 %r1|%p1, %r2, %r3, %r4, 0xffffffff;" for mode in ("up", "down", "bfly", "idx")],
    *[f"vote.sync.{mode}.pred %p1, %p2, 0xffffffff;" for mode in ("all", "any", "uni")],
    "vote.sync.ballot.b32 %r1, %p2, 0xffffffff;",
    *[f"match.any.sync.b{n} %r1, %{r}2, 0xffffffff;" for n, r in ((32, "r"), (64, "d"))],
    *[f"match.all.sync.b{n} %r1|%p1, %{r}2, 0xffffffff;" for n, r in ((32, "r"), (64, "d"))],
    *[f"redux.sync.{op}.{type} %r1, %r2, 0xffffffff;" for op in ("add", "min", "max") for type in ("s32", "u32")],
    *[f"redux.sync.{op}.b32 %r1, %r2, 0xffffffff;" for op in ("and", "or", "xor")],
    "movmatrix.sync.aligned.m8n8.trans.b16 %r1, %r2;",
]


def warps() -> Iterator[Case]:
    """What the lanes of whole warps say to each other."""
    for n in range(8):
        yield kernel(f"warps {n}", WARP)
