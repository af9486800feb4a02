"""Cases of loads, stores and moves (PTX 9.7.9)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from one_instruction import Case, read

from conformance_files.variables import BYTES


def loaded(type: str, at: int) -> int:
    """What the table holds there."""
    n = int(type[1:]) // 8
    return read(int.from_bytes(bytes(BYTES[at : at + n]), "little"), type.replace("f", "b"))


def memory_cases() -> Iterator[Case]:
    """Loads and stores of every type, cache operator, scope and order."""
    types = [f"{kind}{size}" for kind in "bus" for size in (8, 16, 32, 64)] + ["f32", "f64"]
    for type, head in itertools.product(types, ("ld.global.nc", "ldu.global", "ld.global.ca", "ld.global.ca.nc")):
        held = f"b{max(int(type[1:]), 16)}"
        yield Case(f"{head}.{type} {{d}}, [table+8];", held, "", lambda t=type: loaded(t, 8))
    for head, count in itertools.product(("ld.global.nc", "ldu.global"), (2, 4)):
        rest = ", _" * (count - 2)
        yield Case(f"{head}.v{count}.b32 {{{{{{d}}, {{e}}{rest}}}}}, [table];", "b32 b32", "",
                   lambda: (loaded("b32", 0), loaded("b32", 4)))  # fmt: skip
    for cop in ("cg", "cs", "ca"):
        yield Case(f"ld.global.{cop}.nc.u32 {{d}}, [table+4];", "b32", "", lambda: loaded("b32", 4))
    pairs = ("st.global.cg ld.global.ca", "st.global.cs ld.global.lu", "st.global.wb ld.global.cv",
             "st.relaxed.sys.global ld.acquire.sys.global", "st.release.cta.global ld.relaxed.cta.global",
             "st.volatile.global ld.volatile.global")  # fmt: skip
    for put, get in map(str.split, pairs):
        yield Case(f"{put}.u32 [cell], {{a}}; {get}.u32 {{d}}, [cell];", "b32", "b32", lambda a: a)
    yield Case("ld.cs.u32 {d}, [table+4];", "b32", "", lambda: loaded("b32", 4))
    yield Case("st.global.s16 [cell], {a}; ld.global.s16 {d}, [cell];", "b16", "b16", lambda a: a)
    yield from vectors_of_eight()
    yield Case("mov.v2.b32 {{{d}, {e}}}, {{{a}, {b}}};", "b32 b32", "b32 b32", lambda a, b: (a, b))
    yield Case("mov.v4.f32 {{{d}, _, _, {e}}}, {{{a}, {b}, {a}, {b}}};", "b32 b32", "b32 b32", lambda a, b: (a, b))
    for type in ("s16", "s32"):
        yield Case(f"mov.{type} {{d}}, {{a}};", f"b{type[1:]}", f"b{type[1:]}", lambda a: a)
    yield Case(".reg .b64 %g, %h; mov.u64 %g, cell; cvta.global.u64 %h, %g; st.u32 [%h], {a}; cvta.to.global.u64 %g, %h; "
               "ld.global.u32 {d}, [%g];", "b32", "b32", lambda a: a)  # fmt: skip
    yield Case(".local .b32 mine; st.local.u32 [mine], {a}; prefetch.local.L1 [mine]; ld.local.u32 {d}, [mine];", "b32", "b32",
               lambda a: a)  # fmt: skip


def vectors_of_eight() -> Iterator[Case]:
    """Loads of eight elements, of which one near the begin and the last are looked at, and a store."""
    for name, head, type in (("u", "ld.global", "u16"), ("v", "ld.global.nc", "s8")):
        size = int(type[1:]) // 8
        yield Case(f".reg .b16 %{name}<8>; {head}.v8.{type} {{{{{', '.join(f'%{name}{n}' for n in range(8))}}}}}, [table]; "
                   f"mov.b16 {{d}}, %{name}1; mov.b16 {{e}}, %{name}7;", "b16 b16", "",
                   lambda t=type, size=size: (loaded(t, size), loaded(t, 7 * size)))  # fmt: skip
    yield Case("st.global.v8.b16 [cell], {{{a}, {b}, {b}, {b}, {b}, {a}, {a}, {a}}}; ld.global.b32 {d}, [cell]; "
               "ld.global.b32 {e}, [cell+8];", "b32 b32", "b16 b16",
               lambda a, b: (b << 16 | a & 0xFFFF, a << 16 | b & 0xFFFF))  # fmt: skip
