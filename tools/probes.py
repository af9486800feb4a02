"""Coverage by instrumentation: a plugin of pytest that records which statements and branches of ptxvm the tests run.

`pytest -p probes --probes=FILE` writes the data file that `coverage report` reads.  coverage.py itself traces each line, which
makes the translation of a kernel two to three times slower.  Here the modules of ptxvm are compiled with probes: before each
statement, and in each branch, stands a store into a list.  Python code takes a quarter longer with them: after some hundred
tests those that were passed are taken out.  Processes that a test starts are not measured.
"""

from __future__ import annotations

import ast
import gc
import hashlib
import marshal
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from itertools import chain, compress
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

import pytest
from coverage import CoverageData
from coverage.parser import PythonParser

ROOT: Final = Path(__file__).parents[1]
SOURCE: Final = ROOT / "src" / "ptxvm"
CACHE: Final = ROOT / ".cache" / "probes"
LIST: Final = "__probes__"
"""The name by which the code of a module knows the list of its probes."""

SETTLED: Final = 400
"""So many tests run with all probes; they pass most of those that the others would."""

Arc = tuple[int, int | None]
"""As in coverage.py's data: `(8, 8)` is the statement in line 8, `(8, 9)` its branch to line 9; `(8, None)` the other one."""

passed: dict[str, list[bool]] = {}
"""The probes of each file that this process has imported: has the test run passed them?"""


# ── pytest ──────────────────────────────────────────────────────────────────────────────


def pytest_addoption(parser: pytest.Parser) -> None:
    """Instrument ptxvm: this is the first hook of all, before other plugins import it."""
    parser.addoption("--probes", metavar="FILE", type=Path, required=True, help="where to write what the tests have run")
    sys.meta_path.insert(0, Finder())


class TestsRun:
    """A plugin of the process that runs tests: takes out what the first ones have passed."""

    def __init__(self) -> None:
        self.count = 0

    def pytest_runtest_teardown(self) -> None:
        """A test is over."""
        self.count += 1
        if self.count == SETTLED:
            take_out_passed()


def pytest_configure(config: pytest.Config) -> None:
    """Count the tests."""
    config.pluginmanager.register(TestsRun())


def pytest_testnodedown(node: Any, error: object) -> None:  # noqa: ARG001  xdist has no types
    """A worker of pytest-xdist ends: what it has passed is passed."""
    add(node.workeroutput.get("probes", {}))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a worker: hand over; else write the file."""
    output = getattr(session.config, "workeroutput", None)
    if output is None:
        write(session.config.getoption("probes"))
    else:
        output["probes"] = {file: bytes(probes) for file, probes in passed.items()}


def add(others: Mapping[str, bytes]) -> None:
    """What another process has passed."""
    for file, probes in others.items():
        own = passed.setdefault(file, [False] * len(probes))
        own[:] = [mine or bool(other) for mine, other in zip(own, probes, strict=True)]


# ── instrumented modules ────────────────────────────────────────────────────────────────


class Finder(MetaPathFinder):
    """Finds the modules of ptxvm, and has them instrumented."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Where a module of ptxvm is, and what loads it."""
        if fullname.partition(".")[0] != SOURCE.name:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


class Loader(SourceFileLoader):
    """Loads a module with probes."""

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002
        """The code with probes, for a list that is as long."""
        code, count = instrumented(Path(self.path))
        passed.setdefault(self.path, [False] * count)
        return code

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, which finds the list of its probes among its globals."""
        code = self.get_code(module.__name__)
        module.__dict__[LIST] = passed[self.path]
        exec(code, module.__dict__)  # noqa: S102  the module itself


def instrumented(path: Path) -> tuple[CodeType, int]:
    """The code of a file with probes, and how many; kept on disk, for the next process."""
    source = path.read_bytes()
    kept = CACHE / hashlib.sha256(b"\0".join((sys.version.encode(), Path(__file__).read_bytes(), source))).hexdigest()
    if not kept.exists():
        tree, arcs = with_probes(source)
        code = compile(tree, path, "exec", dont_inherit=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=kept.parent, delete=False) as written:  # other processes find all of it, or nothing
            written.write(marshal.dumps((code, len(arcs))))
        Path(written.name).replace(kept)
    code, count = marshal.loads(kept.read_bytes())  # noqa: S302  written above, or by a process like this one
    return code, count


def take_out_passed() -> None:
    """Give every function of an instrumented module code without the probes that were passed."""
    functions = defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename in passed:
            functions[each.__code__.co_filename].append(each)
    for file, found in functions.items():
        tree, _ = with_probes(Path(file).read_bytes(), passed[file])
        made = {(code.co_qualname, code.co_firstlineno): code for code in codes(compile(tree, file, "exec", dont_inherit=True))}
        for function in found:
            if function.__name__ != "<lambda>":  # these hold no statement, and several may stand in a line
                function.__code__ = made.get(
                    (function.__code__.co_qualname, function.__code__.co_firstlineno), function.__code__
                )


def codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and those within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def with_probes(source: bytes, without: Sequence[bool] = ()) -> tuple[ast.Module, list[list[Arc]]]:
    """A module with probes, and the arcs that each probe stands for; the probes that `without` marks are left out."""
    tree = ast.parse(source)
    probes = Probes(without)
    tree.body = probes.block(tree.body)
    return tree, probes.arcs


class Probes:
    """Puts probes into the blocks of a module; `arcs` has the arcs that each stands for, of those `without` too."""

    def __init__(self, without: Sequence[bool] = ()) -> None:
        self.arcs: list[list[Arc]] = []
        self.without = without

    def block(self, body: list[ast.stmt], before: Iterable[Arc] = (), entry: int | None = None) -> list[ast.stmt]:
        """A block with a probe before each statement; the first also stands for `before` and the branch from line `entry`."""
        arcs = list(before)
        if entry is not None:
            arcs.append((entry, lines(body[0])[0]))
        made: list[ast.stmt] = []
        for statement in body:
            arcs += [(line, line) for line in lines(statement)]
            if not must_come_first(statement):
                made.append(self.probe(statement, arcs))
                arcs = []
            self.inside(statement)
            made.append(statement)
        return [*made, self.probe(body[-1], arcs)] if arcs else made

    def probe(self, at: ast.stmt, arcs: Iterable[Arc]) -> ast.stmt:
        """The statement `__probes__[n] = True`."""
        where = location(at)
        value, slot = ast.Constant(value=True, **where), ast.Constant(len(self.arcs), **where)
        element = ast.Subscript(ast.Name(LIST, ast.Load(), **where), slot, ast.Store(), **where)
        number = len(self.arcs)
        self.arcs.append(list(arcs))
        if number < len(self.without) and self.without[number]:
            return ast.Pass(**where)
        return ast.Assign([element], value, **where)

    def inside(self, statement: ast.stmt) -> None:
        """Put probes into the blocks of a statement."""
        match statement:
            case ast.If() | ast.For() | ast.AsyncFor() | ast.While():
                self.branch(statement)
            case ast.Try() | ast.TryStar():
                self.handlers(statement)
            case ast.Match():
                self.cases(statement)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.With() | ast.AsyncWith():
                statement.body = self.block(statement.body)

    def branch(self, statement: ast.If | ast.For | ast.AsyncFor | ast.While) -> None:
        """The block of a condition or loop, and what is run when the condition is false or the loop ends."""
        statement.body = self.block(statement.body, entry=statement.lineno)
        if statement.orelse:
            statement.orelse = self.block(statement.orelse, entry=statement.lineno)
        else:
            statement.orelse = [self.probe(statement, [(statement.lineno, None)])]

    def handlers(self, statement: ast.Try | ast.TryStar) -> None:
        """The blocks of a try statement; a handler counts as reached when its exception is the one."""
        statement.body = self.block(statement.body)
        for handler in statement.handlers:
            handler.body = self.block(handler.body, [(handler.lineno, handler.lineno)])
        statement.orelse = self.block(statement.orelse)
        statement.finalbody = self.block(statement.finalbody)

    def cases(self, statement: ast.Match) -> None:
        """The blocks of a match statement: the cases before the one that matches did not match."""
        before: list[Arc] = []
        for case in statement.cases:
            line = case.pattern.lineno
            before += [(before[-1][0], line)] if before else []
            before.append((line, line))
            case.body = self.block(case.body, before, entry=line)
        if not matches_all(statement.cases[-1]):
            body = [self.probe(statement, [*before, (line, None)])]
            statement.cases.append(ast.match_case(ast.MatchAs(**location(statement)), body=body))


def location(node: ast.stmt) -> dict[str, Any]:
    """Where a node stands, for one that is put there."""
    return {name: getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")}


def lines(statement: ast.stmt) -> list[int]:
    """The lines of a statement that coverage.py counts: the decorators' and its first."""
    return [*(decorator.lineno for decorator in getattr(statement, "decorator_list", ())), statement.lineno]


def must_come_first(statement: ast.stmt) -> bool:
    """Is it a docstring, or an import from __future__?  Nothing may stand before these."""
    match statement:
        case ast.Expr(ast.Constant(str())) | ast.ImportFrom(module="__future__"):
            return True
    return False


def matches_all(case: ast.match_case) -> bool:
    """Does a case match whatever is left?  Python allows no case after it."""
    pattern: ast.pattern | None = case.pattern
    while isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        pattern = pattern.pattern
    while isinstance(pattern, ast.MatchOr):
        pattern = pattern.patterns[-1]
    return case.guard is None and isinstance(pattern, ast.MatchAs)


# ── the file of coverage.py ─────────────────────────────────────────────────────────────


def write(file: Path) -> None:
    """Write what was passed as coverage.py does."""
    file.parent.mkdir(parents=True, exist_ok=True)
    data = CoverageData(str(file))
    data.erase()
    with ProcessPoolExecutor() as pool:  # the tests are over, and parsing takes a while
        data.add_arcs(dict(zip(passed, pool.map(arcs_run, map(Path, passed), passed.values(), chunksize=8), strict=True)))
    data.touch_files([str(path) for path in sorted(SOURCE.rglob("*.py")) if str(path) not in passed])
    data.write()


def arcs_run(path: Path, probes: Sequence[bool]) -> set[tuple[int, int]]:
    """The arcs of a file that were run; coverage.py's parser knows where a branch goes that enters no block."""
    source = path.read_bytes()
    _, arcs = with_probes(source)
    parser = PythonParser(text=source.decode())
    parser.parse_source()
    other: dict[int, set[int]] = defaultdict(set)
    for start, end in parser.arcs():
        other[start].add(end)
    for start, entered in chain.from_iterable(arcs):
        if entered is not None:
            other[parser.first_line(start)].discard(parser.first_line(entered))
    run: set[tuple[int, int]] = set()
    for start, entered in chain.from_iterable(compress(arcs, probes)):
        run |= {(start, end) for end in ([entered] if entered is not None else other[parser.first_line(start)])}
    return run
