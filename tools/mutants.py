"""Mutation testing of what instructions mean: do the tests notice when a meaning is wrong?

    python tools/mutants.py                           a sample of every module
    python tools/mutants.py integer float --count 60  so many of these (`derived.floats` for algebra/derived/floats.py)
    python tools/mutants.py derived --count 9999      every mutant of the derived operations

A mutant is one change to one meaning, or to one derived operation: an operator, a comparison, a constant, a rounding, a
condition turned round, a call of `flush_subnormal` and the like left out.  Each runs in a process of its own, forked before
ptxvm is imported, in which an import hook hands out the changed module; nothing is written.  It dies at the first
expectation of `tests/conformance` that it breaks, or else at the first test of `tests/oracle`, and it survives if none
does.  The engines' own versions of derived operations (`tests/unit/engine/test_arrays.py` compares them) are out of the
way.  The sample is seeded.

Why not a tool that there is?  mutmut leaves functions with decorators alone, and every meaning has one.  cosmic-ray changes
the files themselves and starts Python and the tests anew for each of its mutants, of which there are many times as many.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
TESTS = ROOT / "tests" / "conformance"
ORACLE = ROOT / "tests" / "oracle"
LIMIT = 300  # seconds of one mutant; one that takes longer is dead: it loops

CATALOG = [
    "integer", "extended", "logic", "compare", "float", "half", "convert", "convert_pack", "video", "dot", "atomic",
    "warp",
]  # fmt: skip
DERIVED = ["derived.integers", "derived.floats", "derived.rounding", "derived.packed", "derived.formats",
           "derived.approximations"]  # fmt: skip
# The families of conformance files that are asked about a module, where they are not those of its own name.
NEAREST = {
    "dot": ["integer"], "convert_pack": ["convert"],
    "derived.integers": ["integer", "extended", "video", "logic", "convert", "float"],
    "derived.floats": ["float", "half", "compare", "convert"], "derived.rounding": ["float", "half"],
    "derived.packed": ["half", "compare", "convert", "integer", "video"], "derived.formats": ["convert"],
    "derived.approximations": ["float"],
}  # fmt: skip
# The tests of `tests/oracle` that are asked then: `integer` for test_integer_exact.py.
ORACLES = {
    "integer": ["integer"], "extended": ["integer"], "logic": ["logic"], "compare": ["compare", "logic"], "float": ["float"],
    "half": ["float"], "convert": ["convert"], "convert_pack": ["convert"], "video": ["video"],
    "dot": ["integer"], "derived.integers": ["integer", "logic", "video"], "derived.floats": ["float", "compare", "convert"],
    "derived.rounding": ["float"], "derived.packed": ["compare", "convert", "float"], "derived.formats": ["convert"],
    "derived.approximations": ["float"],
}  # fmt: skip
RECORDED = ("float", "derived.approximations")  # what hardware recorded tells about


# Mutants that compute the same, and why; they are told apart from survivors.
EQUIVALENT = {
    # (a part of the line, what the change begins with): why
    ("a < 1.0, a, 1.0", "another comparison: a < 1.0"): "1 is 1 on both sides of the limit",
    ('"rn" if (op, type) in', "another word: 'rn'"): "what these sums and products lose in f32 is far from a tie",
    ("small = a < -126.0", "another comparison"): "2**-126 is the square of 2**-63",
    ("range(2, 9)", "one less: 2"): "17 bits have none above the sixteenth",
    (".min(8)", "one "): "past 2**7 the power is infinite or 0 anyway",
    ("strict=True", "the other truth"): "the lengths are always equal",
    ("if a.type.bits == 16", "one "): "comparing halves as halves gives the same",
    ("range(0, 32, size)", "one more: 32"): "no part begins at 32",
    ("sign > 0", "another comparison"): "the sign is 1 or -1",
    ("i.order or", "and for or"): "one thread sees no order",
    ("i.scope or", "and for or"): "one thread sees no scope",
}


@dataclass(frozen=True)
class Mutant:
    """One change: of which module, in which line, what it says, its text with it, the line before."""

    module: str
    line: int
    change: str
    text: str
    said: str

    @property
    def reason(self) -> str:
        """Why it computes the same; empty where it does not."""
        return next(
            (why for (line, change), why in EQUIVALENT.items() if line in self.said and self.change.startswith(change)), ""
        )

    def __str__(self) -> str:
        return f"{self.module}:{self.line}: {self.change}"


# ── what can be changed ─────────────────────────────────────────────────────────────────

BINARY = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.FloorDiv: ast.Mod, ast.Mod: ast.FloorDiv,
}  # fmt: skip
COMPARISON = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
METHOD = {"eq": "ne", "ne": "eq", "min": "max", "max": "min", "reverse": "popc", "clz": "popc"}
WORD = {
    "rn": "rz", "rz": "rn", "rm": "rp", "rp": "rm", "odd": "rn", "rni": "rzi", "add": "sub", "sub": "add", "div": "mul",
    "and": "or", "or": "and",
}  # fmt: skip
DROPPED = {
    "flush_subnormal", "canonical_nan", "saturate", "clamp01", "relu", "absolute_value", "negate", "magnitude", "widened",
    "absolute", "clamped", "ftz", "upper_word",
}  # fmt: skip

Change = tuple[str, Callable[[], ast.AST]]


def changes(node: ast.AST) -> Iterator[Change]:
    """What may stand in a node's place."""
    if isinstance(node, ast.BinOp) and type(node.op) in BINARY:
        yield "another operator", lambda: ast.BinOp(node.left, BINARY[type(node.op)](), node.right)
    elif isinstance(node, ast.AugAssign) and type(node.op) in BINARY:
        yield "another operator", lambda: ast.AugAssign(node.target, BINARY[type(node.op)](), node.value)
    elif isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISON:
        yield "another comparison", lambda: ast.Compare(node.left, [COMPARISON[type(node.ops[0])]()], node.comparators)
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield "and for or", lambda: ast.BoolOp(other, node.values)
    elif isinstance(node, ast.UnaryOp):
        yield "no operator", lambda: node.operand
    elif isinstance(node, ast.IfExp):
        yield "branches changed over", lambda: ast.IfExp(node.test, node.orelse, node.body)
    elif isinstance(node, ast.If):
        yield "condition turned round", lambda: ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse)
    elif isinstance(node, ast.Constant):
        yield from constants(node)
    elif isinstance(node, ast.Call):
        yield from calls(node)


def constants(node: ast.Constant) -> Iterator[Change]:
    """A number one more or one less; a word of the same kind."""
    value = node.value
    if isinstance(value, bool):
        yield "the other truth", lambda: ast.Constant(not value)
    elif isinstance(value, (int, float)):
        yield "one more", lambda: ast.Constant(value + 1)
        yield "one less", lambda: ast.Constant(value - 1)
    elif isinstance(value, str) and value in WORD:
        yield "another word", lambda: ast.Constant(WORD[value])


def calls(node: ast.Call) -> Iterator[Change]:
    """Another method; a call left out; the two choices of `select` changed over."""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if isinstance(node.func, ast.Attribute) and name in METHOD:
        other = ast.Attribute(node.func.value, METHOD[name], ast.Load())
        yield "another method", lambda: ast.Call(other, node.args, node.keywords)
    elif name in DROPPED and len(node.args) in (1, 2):
        yield "call left out", lambda: node.args[0]
    elif name == "select":
        yield "choices changed over", lambda: ast.Call(node.func, [node.args[0], node.args[2], node.args[1]], [])


# ── where ───────────────────────────────────────────────────────────────────────────────

Function = ast.FunctionDef


def meanings(tree: ast.Module, *, all_of_them: bool) -> list[Function]:
    """The functions that compute: what the declared meanings call, and they; no rules and requirements."""
    found = {n.name: n for n in ast.walk(tree) if isinstance(n, Function)}
    if all_of_them:
        return list(found.values())

    def is_rule(function: Function) -> bool:
        words = "\n".join(map(ast.unparse, function.decorator_list))
        return "rule(" in words or "needs_when(" in words or "Problem(" in ast.unparse(function) or is_sentence(function)

    todo = [f for f in found.values() if f.decorator_list and not is_rule(f)]
    done: list[Function] = []
    while todo:
        function = todo.pop()
        if function not in done:
            done.append(function)
            names = {n.id for n in ast.walk(function) if isinstance(n, ast.Name)}
            todo += [found[n] for n in sorted(names) if n in found and not is_rule(found[n])]
    return sorted(done, key=lambda f: f.lineno)


def is_sentence(function: Function) -> bool:
    """Does it look at how operands are written, as rules do?"""
    return bool(re.search(r"\bi\.(shape|shapes|version|value|form)\b", ast.unparse(function)))


def mutants(module: str, *, strange: Sequence[str] = ()) -> list[Mutant]:
    """Every change of a module."""
    path = path_of(module)
    tree = ast.parse(path.read_text())
    places: list[tuple[int, int]] = []  # the number of a node among all, and of the change
    inside = {
        id(n) for f in meanings(tree, all_of_them=module.startswith("derived")) if f.name not in strange
        for statement in without_docstring(f) for n in ast.walk(statement) if not is_annotation(f, n)
    }  # fmt: skip
    for number, node in enumerate(ast.walk(tree)):
        if id(node) in inside:
            places += [(number, n) for n, _ in enumerate(changes(node))]
    return [made for number, n in places if (made := mutate(module, tree, number, n))]


def without_docstring(function: Function) -> list[ast.stmt]:
    """The statements."""
    return function.body[1:] if ast.get_docstring(function) else function.body


def is_annotation(function: Function, node: ast.AST) -> bool:
    """Is it a part of a type?"""
    return any(node in ast.walk(a) for n in ast.walk(function) if isinstance(n, ast.arg) and (a := n.annotation))


def mutate(module: str, tree: ast.Module, number: int, n: int) -> Mutant | None:
    """The module with one node replaced."""
    copy = deepcopy(tree)
    node: Any = next(x for k, x in enumerate(ast.walk(copy)) if k == number)
    kind, make = list(changes(node))[n]
    before = ast.unparse(node).split("\n")[0]
    replaced = ast.fix_missing_locations(ast.copy_location(make(), node))
    parent = next(p for p in ast.walk(copy) for c in ast.iter_child_nodes(p) if c is node)
    for name, value in ast.iter_fields(parent):
        if value is node:
            setattr(parent, name, replaced)
        elif isinstance(value, list) and node in value:
            value[value.index(node)] = replaced
    change = f"{kind}: {before} -> {ast.unparse(replaced).split(chr(10))[0]}"
    line = path_of(module).read_text().split("\n")[node.lineno - 1].strip()
    return Mutant(module, node.lineno, change, bare(module, ast.unparse(copy)), line)


def unchanged(module: str) -> Mutant:
    """The module as it is: it has to survive, or else a death says nothing."""
    text = ast.unparse(ast.parse(path_of(module).read_text()))
    return Mutant(module, 1, "nothing", bare(module, text), "")


def bare(module: str, text: str) -> str:
    """As with derived operations: what engines have ready-made would hide what an atomic means."""
    if module != "atomic":
        return text
    return text.replace("operation=known", "operation=None").replace("operation='cas'", "operation=None")


def path_of(module: str) -> Path:
    """The file of `integer` or `derived.floats`."""
    return SOURCE.joinpath(*full_name(module).split(".")).with_suffix(".py")


def full_name(module: str) -> str:
    """The name that Python imports."""
    return f"ptxvm.algebra.{module}" if module.startswith("derived") else f"ptxvm.isa.catalog.{module}"


# ── the run of one mutant ───────────────────────────────────────────────────────────────


class Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Hands out the text of a mutant in place of its module."""

    def __init__(self, mutant: Mutant) -> None:
        self.name, self.path, self.text = full_name(mutant.module), path_of(mutant.module), mutant.text

    def find_spec(self, name: str, *_: object) -> importlib.machinery.ModuleSpec | None:
        """Only for that module."""
        return importlib.util.spec_from_loader(name, self, origin=str(self.path)) if name == self.name else None

    def exec_module(self, module: ModuleType) -> None:
        """Run the changed text."""
        exec(compile(self.text, str(self.path), "exec"), module.__dict__)  # noqa: S102


def order(module: str) -> list[Path]:
    """The conformance files with runs, those nearest to a module first, and short ones before long ones."""
    families = NEAREST.get(module, [module])
    paths = [p for p in TESTS.rglob("*.ptx") if "//: run" in p.read_text()]
    return sorted(paths, key=lambda p: (p.parent.name not in families, p.stat().st_size, p))


def dies(mutant: Mutant, *, quick: bool) -> bool:
    """Run in a child: does some expectation break?"""
    sys.meta_path.insert(0, Changed(mutant))
    sys.path[:0] = [str(SOURCE), str(TESTS)]
    from ptxvm.algebra import value  # noqa: PLC0415 - the mutant is imported here

    value.derived = lambda function: function  # what engines put in place of a derived operation would hide it
    import ptxvm  # noqa: PLC0415

    # The other engine keeps what it compiled, and would not see a change.
    (ptxvm.Kernel.launch.__kwdefaults__ or {})["engine"] = "interp"
    return breaks_an_expectation(mutant) or (not quick and fails_a_test(mutant))


def breaks_an_expectation(mutant: Mutant) -> bool:
    """Ask the conformance files."""
    import test_conformance  # noqa: PLC0415

    import ptxvm  # noqa: PLC0415

    families = NEAREST.get(mutant.module, [mutant.module])
    for path in order(mutant.module):
        if path.parent.name not in families:
            return False
        text = path.read_text()
        target, runs, _ = test_conformance.parse(text)
        module = ptxvm.load(text, target)
        if any(test_conformance.outcome(module.kernel(run.kernel), run, "interp") for run in runs):
            return True
    return False


def fails_a_test(mutant: Mutant) -> bool:
    """Ask the oracles."""
    import pytest  # noqa: PLC0415

    names = [f"test_{name}_exact.py" for name in ORACLES.get(mutant.module, ())]
    names += ["test_recorded_hardware.py"] * (mutant.module in RECORDED)
    said = ["-q", "-x", "-n0", "-p", "no:cacheprovider", f"--rootdir={ROOT}", *(str(ORACLE / name) for name in names)]
    return bool(names) and pytest.main(said) != pytest.ExitCode.OK


def survives(mutant: Mutant, *, quick: bool) -> bool:
    """Fork, run, and see: a mutant that raises or does not end is dead too."""
    child = os.fork()
    if child == 0:
        signal.alarm(LIMIT)
        os.dup2(nothing := os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(nothing, 2)
        try:
            code = 1 if dies(mutant, quick=quick) else 0
        except BaseException:  # noqa: BLE001 - whatever it raises
            code = 2
        os._exit(code)
    _, status = os.waitpid(child, 0)
    alive = os.waitstatus_to_exitcode(status) == 0
    if alive and mutant.said:
        print(f"    {'the same' if mutant.reason else 'survived'} {mutant}", flush=True)
    return alive


# ── the score ───────────────────────────────────────────────────────────────────────────


def sample(modules: Sequence[str], count: int, seed: int) -> list[Mutant]:
    """So many mutants of each module, drawn by chance."""
    return [m for name in modules for m in drawn(mutants(name), count, random.Random(f"{seed} {name}"))]  # noqa: S311 - to be had again


def drawn(found: list[Mutant], count: int, chance: random.Random) -> list[Mutant]:
    """A part of them, in the order of the module."""
    chosen = set(chance.sample(range(len(found)), min(count, len(found))))
    return [m for n, m in enumerate(found) if n in chosen]


def main() -> int:
    """Print the survivors and the score of each module."""
    parser = argparse.ArgumentParser(description="mutation testing of the meanings")
    parser.add_argument("modules", nargs="*", default=["derived", "catalog"], help="or `derived` or `catalog` for all of them")
    parser.add_argument("--count", type=int, default=14, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="ask the conformance files alone")
    parser.add_argument("--at-least", type=float, default=0, help="fail where fewer of a hundred die")
    given = parser.parse_args()
    modules = [m for name in given.modules for m in {"derived": DERIVED, "catalog": CATALOG}.get(name, [name])]
    os.environ |= {"PTXVM_SEED": str(given.seed), "PTXVM_CACHE": "off"}  # the JIT must not keep what a mutant made
    import llvmlite.binding  # noqa: F401, PLC0415 - what every child needs is imported once
    import ml_dtypes  # noqa: F401, PLC0415
    import numpy  # noqa: F401, ICN001, PLC0415
    import pytest  # noqa: F401, PLC0415

    begun = time.monotonic()
    chosen = sample(modules, given.count, given.seed)
    whole = [unchanged(name) for name in modules]
    if broken := [m.module for m in whole if not survives(m, quick=given.quick)]:
        print(f"the expectations fail without a mutant: {', '.join(broken)}")
        return 2
    with ThreadPoolExecutor(given.jobs) as pool:
        alive = list(pool.map(partial(survives, quick=given.quick), chosen))
    alike = 0
    for name in modules:
        found = [(m, a) for m, a in zip(chosen, alive, strict=True) if m.module == name]
        print(f"{name:24} {sum(not a for _, a in found):4} of {len(found):4} killed")
        alike += sum(a and bool(m.reason) for m, a in found)
    killed, all_of_them = alive.count(False), max(len(alive), 1)
    score = 100 * killed / max(all_of_them - alike, 1)
    print(f"{killed} of {all_of_them} killed ({100 * killed / all_of_them:.1f} %), {alike} compute the same: "
          f"{score:.1f} % of the others, in {time.monotonic() - begun:.0f} s")  # fmt: skip
    return int(score < given.at_least)


if __name__ == "__main__":
    sys.exit(main())
