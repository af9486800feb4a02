"""Cases of extended precision (PTX 9.7.2)."""

from __future__ import annotations

from collections.abc import Iterator

from one_instruction import Case, clamp


def chain_cases() -> Iterator[Case]:
    """What `test_integer_exact` lacks: carries into 16 bits, and saturation."""
    for t in ("u16", "s16"):
        yield Case(f"sub.cc.u32 {{d}}, {{a}}, {{b}}; subc.{t} {{e}}, {{c}}, {{f}};", f"u32 {t}", f"u32 u32 {t} {t}",
                   lambda a, b, c, f: (a - b, c - f - (a < b)))  # fmt: skip
        yield Case(f"add.cc.u32 {{d}}, {{a}}, {{b}}; addc.{t} {{e}}, {{c}}, {{f}};", f"u32 {t}", f"u32 u32 {t} {t}",
                   lambda a, b, c, f: (a + b, c + f + (a + b >> 32)))  # fmt: skip
        for half, shift in (("lo", 0), ("hi", 16)):
            yield Case(f"add.cc.u32 {{d}}, {{a}}, {{b}}; madc.{half}.{t} {{e}}, {{c}}, {{f}}, {{c}};", f"u32 {t}",
                       f"u32 u32 {t} {t}",
                       lambda a, b, c, f, shift=shift: (a + b, (c * f >> shift) + c + (a + b >> 32)))  # fmt: skip
    yield Case("add.cc.u32 {d}, {a}, {b}; madc.hi.sat.s32 {e}, {c}, {f}, {c};", "u32 s32", "u32 u32 s32 s32",
               lambda a, b, c, f: (a + b, clamp((c * f >> 32) + c + (a + b >> 32), "s32")))  # fmt: skip
