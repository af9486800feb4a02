"""Cases of calls and branches (PTX 9.7.12)."""

from __future__ import annotations

from collections.abc import Iterator

from one_instruction import Case


def control_cases() -> Iterator[Case]:
    """Calls and branches that all threads take together."""
    get = "ld.global.u32 {d}, [cell];"
    yield Case("call.uni ({d}), twice, ({a});", "b32", "b32", lambda a: 2 * a)
    yield Case("call.uni put, ({a}); " + get, "b32", "b32", lambda a: a)
    yield Case("call.uni seven_in_cell; " + get, "b32", "b32", lambda _: 7)
    yield Case("call.uni ({d}), seven;", "b32", "b32", lambda _: 7)
    yield Case("one: .callprototype (.reg .u32 _) _ (.reg .u32 _); .reg .b64 %f1; mov.u64 %f1, twice; "
               "call.uni ({d}), %f1, ({a}), one;", "b32", "b32", lambda a: 2 * a)  # fmt: skip
    yield Case("none: .callprototype _ (); .reg .b64 %f2; mov.u64 %f2, seven_in_cell; call.uni %f2, none; " + get, "b32", "b32",
               lambda _: 7)  # fmt: skip
    yield Case(".reg .b32 %ix; and.b32 %ix, {a}, 1; ways: .branchtargets L0, L1; brx.idx.uni %ix, ways; "
               "L0: mov.u32 {d}, 5; bra.uni end; L1: mov.u32 {d}, 6; end:", "b32", "b32", lambda a: 5 + (a & 1))  # fmt: skip
