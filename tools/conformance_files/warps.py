"""Cases of instructions of a warp, where all lanes hold the same words (PTX 9.7.13, 9.7.14.4)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from one_instruction import Case, clamp, read

from conformance_files.variables import ALIKE


def warp_cases() -> Iterator[Case]:
    """Barriers with a vote, and matches, where all lanes agree."""
    for op, aligned in itertools.product(("and", "or"), ("", ".aligned")):
        yield Case(f"barrier.red.{op}{aligned}.pred {{d}}, 1, {{a}}; // 0xffffffff\n", "pred", "pred", lambda a: a)
        yield Case(f"bar.red.{op}.pred {{d}}, 1, !{{a}};", "pred", "pred", lambda a: 1 - a)
    for aligned in ("", ".aligned"):
        yield Case(f"barrier.red.popc{aligned}.u32 {{d}}, 1, {{a}};", "b32", "pred", lambda a: 32 * a)
    for size in (32, 64):
        both = f"b{size}"
        yield Case(f"match.all.sync.{both} {{d}}|{{e}}, {{a}}, 0xffffffff;", "b32 pred", both, lambda _: (0xFFFF_FFFF, 1))
        yield Case(f"match.any.sync.{both} {{d}}, {{a}}, 0xffffffff;", "b32", both, lambda _: 0xFFFF_FFFF)


def wmma_cases() -> Iterator[Case]:
    """Products of rows and columns whose words are the same in all lanes: an element is four words times four words."""
    for p, sat in itertools.product("us", ("", ".satfinite")):

        def four_bits(a: int, b: int, c: int, p: str = p, sat: str = sat) -> int:
            total = read(c, "s32") + 4 * sum(nibble(a, n, p) * nibble(b, n, p) for n in range(8))
            return clamp(total, "s32") if sat else total

        yield Case(f"wmma.mma.sync.aligned.row.col.m8n8k32.s32.{p}4.{p}4.s32{sat} {{{{{{d}}, {{e}}}}}}, {{{{{{a}}}}}}, "
                   f"{{{{{{b}}}}}}, {{{{{{c}}, {{c}}}}}};", "b32 b32", "b32 b32 b32",
                   lambda a, b, c, f=four_bits: (f(a, b, c),) * 2)  # fmt: skip
    yield Case("wmma.mma.xor.popc.sync.aligned.row.col.m8n8k128.s32.b1.b1.s32 {{{d}, {e}}}, {{{a}}}, {{{b}}}, {{{c}, {c}}};",
               "b32 b32", "b32 b32 b32", lambda a, b, c: (c + 4 * (a ^ b).bit_count(),) * 2)  # fmt: skip
    for (matrix, layout), (shape, type) in itertools.product(
        (("a", "row"), ("b", "col")), (("m8n8k32", "s4"), ("m8n8k32", "u4"), ("m8n8k128", "b1"))
    ):
        yield Case(f"wmma.load.{matrix}.sync.aligned.{layout}.{shape}.global.{type} {{{{{{d}}}}}}, [flat];", "b32", "",
                   lambda: ALIKE)  # fmt: skip
    for shape in ("m8n8k32", "m8n8k128"):
        yield Case(f"wmma.store.d.sync.aligned.row.{shape}.global.s32 [flat], {{{{{{a}}, {{a}}}}}}; "
                   "bar.warp.sync 0xffffffff; ld.global.b32 {d}, [flat+4]; ld.global.b32 {e}, [flat+252];",
                   "b32 b32", "b32", lambda a: (a, a))  # fmt: skip
        yield Case(f"wmma.load.c.sync.aligned.row.{shape}.global.s32 {{{{{{d}}, {{e}}}}}}, [flat];", "b32 b32", "",
                   lambda: (ALIKE, ALIKE))  # fmt: skip


def nibble(word: int, n: int, sign: str) -> int:
    """Four bits, with their sign."""
    x = word >> 4 * n & 0xF
    return x - 16 if sign == "s" and x > 7 else x
