"""No function of the package calls itself over what a user wrote, unless something bounds how deep.

Each cycle of the call graph has its reason below, which says what the bound is.

The sources are read.  An edge of the call graph is a name, in the body of a function, of another function of its module, of
an enclosing function or of an import, or a method that is asked of `self`.  A call of another object's method is not seen.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ptxvm

PACKAGE = Path(ptxvm.__file__).parent
FUNCTION = ast.FunctionDef


class Graph:
    """The functions of the package by their dotted names, and what each names."""

    def __init__(self) -> None:
        files = sorted(PACKAGE.rglob("*.py"))
        names = (".".join(f.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__") for f in files)
        self.modules = {name: ast.parse(file.read_text()) for name, file in zip(names, files, strict=True)}
        self.imported = {name: dict(imports(tree)) for name, tree in self.modules.items()}
        self.classes = {(m, n.name): n for m, tree in self.modules.items() for n in tree.body if isinstance(n, ast.ClassDef)}
        self.functions = {(m, n.name) for m, tree in self.modules.items() for n in tree.body if isinstance(n, FUNCTION)}
        self.derived: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for key in self.classes:
            for base in self.bases(key):
                self.derived.setdefault(base, []).append(key)
        self.edges: dict[str, set[str]] = {}
        for module, tree in self.modules.items():
            for node in tree.body:
                if isinstance(node, FUNCTION):
                    self.function(node, module, "", f"{module}.{node.name}", {})
                elif isinstance(node, ast.ClassDef):
                    for method in (each for each in node.body if isinstance(each, FUNCTION)):
                        self.function(method, module, node.name, f"{module}.{node.name}.{method.name}", {})

    def function(self, node: FUNCTION, module: str, owner: str, name: str, around: dict[str, str]) -> None:
        """The edges of a function, and of those within it."""
        own, within = parts(node)
        bound = {each.arg for each in ast.walk(node.args) if isinstance(each, ast.arg)}
        bound |= {n.id for n in own if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - {
            each.name for each in within
        }
        around = {**around, **{each.name: f"{name}.{each.name}" for each in within}}
        found = self.edges.setdefault(name, set())
        for each in within:
            self.function(each, module, owner, f"{name}.{each.name}", around)
        for each in own:
            if isinstance(each, ast.Name) and each.id not in bound:
                found.add(around.get(each.id) or self.named(module, each.id))
            elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
                found.update(self.attribute(module, owner, each.value.id, each.attr))
        found.discard("")

    def named(self, module: str, name: str) -> str:
        """The function that a name means in a module; empty where it is none."""
        seen = set[tuple[str, str]]()
        while name in self.imported.get(module, {}) and (module, name) not in seen:
            seen.add((module, name))
            module, name = self.imported[module][name]
        return f"{module}.{name}" if (module, name) in self.functions else ""

    def bases(self, key: tuple[str, str]) -> list[tuple[str, str]]:
        """The bases of a class that are classes of the package."""
        named = [base.id for base in self.classes[key].bases if isinstance(base, ast.Name)]
        return [self.imported[key[0]].get(name, (key[0], name)) for name in named]

    def attribute(self, module: str, owner: str, of: str, name: str) -> Iterator[str]:
        """The methods that `self.name` may be, and the function that `module.name` is."""
        if of in ("self", "cls") and owner:
            yield from self.methods(module, owner, name)
        elif of in self.imported[module]:
            within, what = self.imported[module][of]
            yield self.named(f"{within}.{what}" if within else what, name)

    def methods(self, module: str, owner: str, name: str) -> Iterator[str]:
        """A method of a class or of a base of it, or of those that are derived from it."""
        related, work = set[tuple[str, str]](), [(module, owner)]
        while work:
            key = work.pop()
            if key in related or key not in self.classes:
                continue
            related.add(key)
            work += [*self.bases(key), *self.derived.get(key, [])]
        for within, which in related:
            if any(isinstance(n, FUNCTION) and n.name == name for n in self.classes[within, which].body):
                yield f"{within}.{which}.{name}"

    def cycles(self) -> list[set[str]]:
        """The functions that come back to themselves, those together that come to each other (Kosaraju)."""
        backward: dict[str, set[str]] = {}
        for name, named in self.edges.items():
            for each in named:
                backward.setdefault(each, set()).add(name)
        found, seen = [], set[str]()
        for name in reversed(finished(self.edges)):
            if name in seen:
                continue
            component = reached(backward, name, seen)
            seen |= component
            if len(component) > 1 or name in self.edges.get(name, ()):
                found.append(component)
        return found


def finished(edges: dict[str, set[str]]) -> list[str]:
    """All functions, each after those that it names, where there is no cycle."""
    order, seen = [], set[str]()
    for start, named in edges.items():
        work = [] if start in seen else [(start, iter(named))]
        seen.add(start)
        while work:
            following = next((each for each in work[-1][1] if each not in seen), None)
            if following is None:
                order.append(work.pop()[0])
            else:
                seen.add(following)
                work.append((following, iter(edges.get(following, ()))))
    return order


def reached(edges: dict[str, set[str]], start: str, without: set[str]) -> set[str]:
    """All that can be reached, but for some."""
    found, work = set[str](), [start]
    while work:
        each = work.pop()
        if each not in found and each not in without:
            found.add(each)
            work += edges.get(each, ())
    return found


def imports(tree: ast.Module) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each name that is imported from the package, with its module there and its own name."""
    for node in statements(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ptxvm"):
            within = (node.module or "").removeprefix("ptxvm").removeprefix(".")
            for each in node.names:
                yield each.asname or each.name, (within, each.name)


def statements(tree: ast.Module) -> Iterator[ast.AST]:
    """The statements of a module, at all depths."""
    work: list[ast.AST] = [tree]
    while work:
        node = work.pop()
        yield node
        for field in ("body", "orelse", "handlers", "finalbody", "cases"):
            work += getattr(node, field, ())


def parts(node: FUNCTION) -> tuple[list[ast.AST], list[FUNCTION]]:
    """What the body of a function consists of, and the functions within it."""
    own, within = [], []
    work: list[ast.AST] = [*node.body]
    while work:
        each = work.pop()
        if isinstance(each, FUNCTION):
            within.append(each)
        else:
            own.append(each)
            work += ast.iter_child_nodes(each)
    return own, within


PARSED = "the parser takes 128 levels (`syntax.cursor.DEEPEST`)"
ONCE = "it calls itself once, for the lanes that are right"
SEARCH = "it gives the steps below it to `model.search.flattened`, and calls none"
DESCRIBED = "whatever ends the reading of debugging information is told (`debug.dwarf.Dwarf.variables`)"
REASONS = {
    "analysis.bind.Binder.block": PARSED,
    "analysis.constants._call": PARSED,
    "analysis.initialisers.elements": PARSED,
    "analysis.initialisers.fields": PARSED,
    "analysis.operand_matching.OperandMatch.take": "a part of an operand has no parts",
    "analysis.recognise.mentions_unknown": PARSED,
    "analysis.shapes.constant": PARSED,
    "analysis.shapes.names_in": PARSED,
    "campaign.fuzz.coverage.Tracer._called.line": "it gives itself to `sys.settrace`, and calls nothing",
    "campaign.fuzz.seeds.spelled": "two levels, of an operand in the declarations",
    "campaign.random_kernels.control.block": "two levels, of a random kernel",
    "campaign.random_kernels.kernels.size": "two levels, of a random kernel",
    "campaign.random_kernels.kernels.some": "two levels, of a random kernel",
    "campaign.random_kernels.kernels.without": "two levels, of a random kernel",
    "checkers.tensor_order.TensorOrder.precedes": "`checkers.tensor_order.HOPS`",
    "cli.ptxas_options._add": "files of options within files (`cli.ptxas_options.DEEPEST`)",
    "cli.run_report.place": "launches by launches that are told (`diagnostics.errors.MOST_LAUNCHES`)",
    "checkers.clocks.Clocks.snapshot": "one level: the threads of each CTA",
    "debug.dwarf.Dwarf.array": DESCRIBED,
    "debug.dwarf.Dwarf.in_sight": DESCRIBED,
    "debug.dwarf.text_of": DESCRIBED,
    "debug.inspection.text_at": "`debug.inspection.DEEPEST`",
    "debug.dap.variables.Variables.contents": "a request makes one level: an array's elements are made when they are asked for",
    "driver.virtual_memory.VirtualMemory.changed": "a replica has no replicas",
    "driver.virtual_memory.VirtualMemory.map": "a replica has no replicas",
    "driver.virtual_memory.VirtualMemory.set_access": "a replica has no replicas",
    "driver.virtual_memory.VirtualMemory.unmap": "a replica has no replicas",
    "engine.interp.schedule.Schedule.arrive_cta": ONCE,
    "driver.graph_memory.tasks_of": "graphs within graphs, as a client nests them",
    "engine.interp.recording_tracer.RecordingTracer.read": "a vector by its elements",
    "engine.interp.schedule.Schedule.exit": "the barriers of a CTA, 16 at most",
    "engine.interp.watched_memory.WatchedMemory.gather": ONCE,
    "engine.interp.watched_memory.WatchedMemory.scatter": ONCE,
    "engine.interp.watched_memory.WatchedMemory.update": ONCE,
    "engine.jit.values.algebra.LlvmAlgebra.round": "of a narrow type by a wide one",
    "engine.jit.lower.terminators.Terminator.add_pending": "one level: where a call returns is no return",
    "engine.jit.memory.addressing.Addressing._store_apart": "one level: of words",
    "engine.jit.memory.addressing.Addressing.load": "one level: of words",
    "engine.jit.memory.tag_order.question_of": "one level: a question by another",
    "engine.jit.node.register_shapes.size_of": "types of LLVM, vectors of scalars",
    "engine.jit.values.rounding._to_f16": "of a type by one of another size",
    "engine.jit.values.rounding.from_integer": "of a type by one of another size",
    "engine.jit.objects.code_cache.sources": "folders of the package",
    "engine.operands.Operands.expression": PARSED,
    "engine.operands.Operands.special": "a vector by its components",
    "engine.operands.Operands.write": "a vector by its components",
    "isa.notation.OperandReader.bracket": "syntax lines of the catalog",
    "isa.origins.origin_of": "what a meaning of the catalog returns",
    "isa.summary._abstract": PARSED,
    "libcuda.calls.graph_names.drawn": "graphs within graphs, as a client nests them",
    "libcuda.session.Handles.drop": "a context and its default stream",
    "libcuda.session.Handles.handle": "a context and its default stream",
    "driver.graph_executables.graphs": "graphs within graphs, as a client nests them",
    "driver.graph_executables.paired": "graphs within graphs, as a client nests them",
    "lsp.server.Server.check": "the loop of events calls it again when it has ended",
    "machine.atomics.apply": "a packed type by its elements",
    "machine.initialise._Initialiser.encode": PARSED,
    "machine.layout._block": PARSED,
    "diagnostics.mangled._Reader._type": "64 levels (`_DEEPEST`), then the name is not read",
    "model.combinations.matching_exchanges.further": SEARCH,
    "model.enumerate.Search.coherent": SEARCH,
    "model.enumerate._out_of_thin_air": SEARCH,
    "model.enumerate.reads.choose": SEARCH,
    "model.barrier_generations._sequences": SEARCH,
    "model.solve.Question.value": "100 levels (`model.values.DEEPEST`)",
    "model.kernel_states.KernelMachine._after_call": "barriers at which threads wait, each of which is left",
    "model.values.evaluate": "100 levels (`model.values.DEEPEST`)",
    "model.values.reads_in": "100 levels (`model.values.DEEPEST`)",
    "profile.profile.Measured.__getitem__": "formulas of the metrics that are declared, of counts",
    "reference.evaluation.Evaluator.value": "examples of the reference pages",
    "reference.evaluation.bits_of": "examples of the reference pages",
    "syntax.declarations.Declarations._initial": PARSED,
    "syntax.expressions.Expressions._binary": PARSED,
    "syntax.parser.Parser._body_directive": PARSED,
}


@pytest.fixture(scope="module")
def graph():
    return Graph()


def test_each_cycle_of_calls_has_a_bound(graph):
    found = {min(cycle) for cycle in graph.cycles()}
    assert sorted(found - set(REASONS)) == [], "say what bounds these, or write them with a list of what is left to do"
    assert sorted(set(REASONS) - found) == [], "these are no more"


def test_the_graph_sees_what_it_should(graph):
    assert "analysis.shapes.names_in" in graph.edges["machine.image._names"]  # an import
    assert "syntax.cursor.Cursor.fail" in graph.edges["syntax.parser.Parser._guarded"]  # a method of a base
    assert "model.enumerate.reads.choose" in graph.edges["model.enumerate.reads.choose"]  # a function within one
