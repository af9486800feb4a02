"""The declarations of memory, control, barriers and lanes: what other readers rely on."""

from __future__ import annotations

import pytest

from ptxvm.algebra.types import Type, b32, b64, f32, f64, pred, s32, u16, u32, u64
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA, Decoded, candidates
from ptxvm.isa.operand_types import SINK, OperandType, Shape, problem

load_catalog()


def form(head: str, operands: int) -> Decoded:
    """The one form that a head takes with so many operands."""
    opcode, *words = head.split(".")
    (found,) = [d for d in candidates(opcode, tuple(words)) if d.form.counts[0] <= operands <= d.form.counts[1]]
    return found


@pytest.mark.parametrize(
    ("head", "operands", "name", "effects"),
    [
        ("ld.global.u32", 2, "ld", {"mem"}),
        ("ld.global.nc.u32", 2, "ld_global_nc", {"mem"}),
        ("ld.u32.global.relaxed.gpu", 2, "ld", {"mem"}),
        ("atom.global.cas.b32", 4, "atom_cas", {"mem"}),
        ("cvta.to.global.u64", 2, "cvta_to", {"mem"}),
        ("bra.uni", 1, "bra", {"flow"}),
        ("call", 3, "call", {"flow"}),
        ("bar.sync", 1, "bar_sync", {"cta", "waits"}),
        ("bar.arrive", 2, "bar_arrive", {"cta"}),
        ("bar.cta.red.popc.u32", 3, "bar_red", {"cta", "waits"}),
        ("bar.warp.sync", 1, "bar_warp_sync", {"warp", "waits"}),
        ("shfl.sync.up.b32", 5, "shfl_sync", {"warp", "waits"}),
        ("shfl.up.b32", 4, "shfl", {"warp"}),
        ("vote.sync.ballot.b32", 3, "vote_sync", {"warp", "waits"}),
        ("activemask.b32", 1, "activemask", {"warp"}),
        ("nanosleep.u32", 1, "nanosleep", {"clock"}),
    ],
)
def test_a_head_finds_its_declaration(head: str, operands: int, name: str, effects: set[str]) -> None:
    found = form(head, operands) if name != "call" else candidates("call", ())[3]
    assert found.of.name == name
    assert found.of.effects == effects


def test_what_ends_control_says_so() -> None:
    assert {i.name for i in ISA.instructions if i.ends} >= {"bra", "brx_idx", "ret", "exit", "trap"}


@pytest.mark.parametrize("head", ["bar.sync.cta", "bar.popc.red.u32", "cvta.global.to.u64", "brx.uni.idx"])
def test_the_words_of_an_opcode_keep_their_place(head: str) -> None:
    opcode, *words = head.split(".")
    assert not candidates(opcode, tuple(words))


ADDRESS = OperandType("u64", frozenset({"u64"}))


def register(type: Type, count: int | None = None) -> Shape:
    return Shape("register", type, detail=count)


@pytest.mark.parametrize("base", [register(b64), register(u16), register(s32), Shape("integer"), Shape("variable", u32)])
def test_what_an_address_may_be(base: Shape) -> None:
    for item in (base, Shape("offset", items=(base, Shape("integer")))):
        assert problem(Shape("address", items=(item,)), u64, ADDRESS, destination=False) == ""


@pytest.mark.parametrize("base", [register(f32), register(pred), register(b64, 2), Shape("function"), Shape("label"), SINK])
def test_what_an_address_is_not(base: Shape) -> None:
    assert problem(Shape("address", items=(base,)), u64, ADDRESS, destination=False)


WIDE = OperandType("type", frozenset({"type", "wide"}))


@pytest.mark.parametrize(
    ("type", "elements", "fine"),
    [
        (u32, (register(u32), register(s32)), True),
        (u32, (register(b64), register(u64)), True),
        (f32, (register(f32), register(b32)), True),
        (f32, (register(u32), register(s32)), True),  # only within braces
        (f32, (register(u32), register(f32)), False),
        (u32, (register(u32), register(u64)), False),
        (u32, (register(f32), register(f32)), False),
        (f64, (register(f64), register(f32)), False),
        (u32, (SINK, register(u32)), True),
    ],
)
def test_the_elements_of_a_vector(type: Type, elements: tuple[Shape, ...], *, fine: bool) -> None:
    said = problem(Shape("vector", items=elements), type, WIDE, destination=True)
    assert (said == "") == fine
