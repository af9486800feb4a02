"""Loads and stores of the bytes of surfaces by compiled code (`abi.surface_plan`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from ptxvm.engine.jit.abi.host import Host
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.abi.surface_plan import PLANS, WORDS
from ptxvm.engine.jit.ir.runtime import runtime, words_of_plan
from ptxvm.engine.jit.node.node import NodeBuilder
from ptxvm.isa.effects import Verb
from ptxvm.isa.special_registers import WARP
from ptxvm.machine import texture_unit
from ptxvm.machine.opaque import find
from ptxvm.machine.per_lane import Array
from ptxvm.machine.texture import Surface
from ptxvm.machine.texture_sampling import DIRECTIONS


def suits(work: texture_unit.Work) -> TypeGuard[texture_unit.OnSurface]:
    """Does it load or store bytes?"""
    return isinstance(work, texture_unit.OnSurface) and work.verb is not Verb.UPDATE and not work.access.formatted


def written(at: NodeBuilder, work: texture_unit.Work, operands: Sequence[tuple[str, int]]) -> str | None:
    """Write the function for an access, given its operands by their names and counts of values.

    Returns its name, or None where it is left to the host.
    """
    if not suits(work) or at.kernel.shadow is not None or at.kernel.recorded:
        return None
    unit, access, stores = at.code.unit, work.access, work.verb is Verb.WRITE
    size, count, geometry = access.type.bytes, access.count, access.geometry
    behind = 1 + dict(operands)["coordinates"]
    name = f"ptxvm.surface.{'store' if stores else 'load'}.{geometry}.{access.clamp}.{size}.{count}.{behind}"
    if name not in unit.helpers:
        layered, directions = geometry.startswith("a"), DIRECTIONS[geometry]
        unit.declare("llvm.cttz.i32", "i32", "i32", "i1 immarg")
        for intrinsic in ("smin.i64", "smax.i64"):
            unit.declare(f"llvm.{intrinsic}", "i64", "i64", "i64")
        unit.helper(name, runtime(
            "surface", name=name, last_plan=PLANS - 1, words=len(WORDS), warp=WARP, fields=words_of_plan(WORDS, *WORDS[1:]),
            bytes=access.bytes, traps=str(access.clamp == "trap").lower(), zeros=str(access.clamp == "zero").lower(),
            stores=str(stores).lower(), position="\n".join(_position(directions, layered=layered)),
            move="\n".join(_stores(size, count, behind) if stores else _loads(size, count)),
            nothing="\n".join([] if stores else _zeros(size, count)),
        ))  # fmt: skip
    return name


def _position(directions: int, *, layered: bool) -> list[str]:
    """Load the coordinates of a lane: the byte of a row, the row and the slice."""
    lines, given = [], []
    for n in range(layered + directions):
        lines += [
            f"  %c.{n}.at.first = getelementptr i8, ptr %room, i64 {STEP * (1 + n)}",
            f"  %c.{n}.at = getelementptr i32, ptr %c.{n}.at.first, i32 %lane",
            f"  %c.{n}.given = load i32, ptr %c.{n}.at, align 4",
            f"  %c.{n} = {'zext' if layered and not n else 'sext'} i32 %c.{n}.given to i64",
        ]
        given.append(f"%c.{n}")
    layer = given.pop(0) if layered else "0"
    x, y, z = [*given, "0", layer] if directions < len("xy") else [*given, layer][:3]
    return [*lines, *(f"  %{axis} = add i64 {value}, 0" for axis, value in zip("xyz", (x, y, z), strict=True))]


def _loads(size: int, count: int) -> list[str]:
    """Load the elements of a lane, and put them where results are."""
    lines, llvm = [], f"i{8 * size}"
    for n in range(count):
        lines += [
            f"  %from.{n} = getelementptr {llvm}, ptr %there, i64 {n}",
            f"  %word.{n} = load {llvm}, ptr %from.{n}, align 1",
        ]
    return [*lines, *_given(llvm, [f"%word.{n}" for n in range(count)], "of")]


def _zeros(size: int, count: int) -> list[str]:
    """Zeros in the place of results."""
    return _given(f"i{8 * size}", ["0"] * count, "no")


def _given(llvm: str, values: Sequence[str], where: str) -> list[str]:
    lines = []
    for n, value in enumerate(values):
        lines += [
            f"  %{where}.{n}.first = getelementptr i8, ptr %room, i64 {STEP * n}",
            f"  %{where}.{n} = getelementptr {llvm}, ptr %{where}.{n}.first, i32 %own",
            f"  store {llvm} {value}, ptr %{where}.{n}, align 1",
        ]
    return lines


def _stores(size: int, count: int, first: int) -> list[str]:
    """Store the elements of a lane, the operands from a number on."""
    lines, llvm = [], f"i{8 * size}"
    for n in range(count):
        lines += [
            f"  %of.{n}.first = getelementptr i8, ptr %room, i64 {STEP * (first + n)}",
            f"  %of.{n} = getelementptr {llvm}, ptr %of.{n}.first, i32 %own",
            f"  %word.{n} = load {llvm}, ptr %of.{n}, align 1",
            f"  %to.{n} = getelementptr {llvm}, ptr %there, i64 {n}",
            f"  store {llvm} %word.{n}, ptr %to.{n}, align 1",
        ]
    return lines


# ── the host's part ─────────────────────────────────────────────────────────────────────


def remember(host: Host, operands: dict[str, list[Array]]) -> None:
    """Make a plan of a surface that all lanes access."""
    (handles,) = operands["handle"]
    surface = find(host.memory, int(handles[0]))
    if not (handles == handles[0]).all() or not isinstance(surface, Surface):
        return
    slices, height, row = surface.rows.shape
    words = int(handles[0]), surface.array.ctypes.data, row, height, slices, int(surface.array.flags.writeable)
    host.plan_tables.surface(words, surface.array)
