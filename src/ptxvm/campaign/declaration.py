"""The declaration of a campaign: the tables and keys of its TOML file.

A key is a field below, with its meaning: the reader, its messages and the page of the reference are made from them.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import Field, field, fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from ptxvm.api import Kernel
from ptxvm.campaign.expressions import BRACES
from ptxvm.campaign.parameter_space import ParameterSpace, axes
from ptxvm.campaign.python_function import PythonFunction
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import did_you_mean

T = TypeVar("T")
Table = Mapping[str, object]
ATTEMPTS = 3


def key(default: object, meaning: str, least: float = 0) -> Any:  # noqa: ANN401 - of the type of its default, as `dataclasses.field`
    """A key of a table: its value where it does not stand there, what it means, and the least that a number may be."""
    how: dict[str, Any] = {"default_factory": lambda: default} if isinstance(default, dict) else {"default": default}
    return field(metadata={"meaning": meaning, "kind": type(default), "least": least}, **how)


@dataclass(frozen=True, slots=True)
class Subject:
    """What is run, and how many of the cases."""

    name: str = key("", "The name of the campaign; by default that of the file.")
    kernel: str = key("", "The file of the PTX module with the kernel that is launched.")
    entry: str = key("", "The kernel, where the module has several.")
    function: str = key(
        "", "In place of a kernel: a Python function `FILE.py:NAME` or `MODULE:NAME`, called with the parameters."
    )
    sample: int = key(0, "So many cases, drawn at random; 0 runs all combinations of the parameters.")
    seed: int = key(0, "What the sample is drawn by.")


@dataclass(frozen=True, slots=True)
class Expectation:
    """What must hold of each case; no fault and no error is always expected."""

    reference: str = key("", "A Python function `FILE.py:NAME` that writes to the arguments what the kernel should.")
    kernel: str = key("", "The file of another module, whose kernel must leave the same in all arrays.")
    entry: str = key("", "That kernel, where the module has several.")
    agree: dict[str, list[object]] = key(
        {}, "Values of a parameter under all of which the arrays must be the same: `{ engine = ['interp', 'jit'] }`."
    )
    relative: float = key(0.0, "The relative error that numbers may have; without errors all bits are compared.")
    absolute: float = key(0.0, "The absolute error that numbers may have.")
    warnings: bool = key(False, "Whether a case fails for findings that are only warnings, too.")  # noqa: FBT003 - a default


@dataclass(frozen=True, slots=True)
class CaseLimits:
    """What a case may take; more is a failure."""

    seconds: float = key(60.0, "The time of a case; `inf` is no limit.", least=0.001)
    memory: int = key(0, "MiB that a case may allocate besides what its process has; 0 is no limit.")
    attempts: int = key(ATTEMPTS, "How often a case may end its process before that is its failure.", least=1)


TABLES = {"campaign": Subject, "expect": Expectation, "limits": CaseLimits}
"""The tables whose keys are fixed."""
PARAMETERS = (
    "Each key is the name of a parameter, with a list of its values, the simplest first, or `{ range = [START, STOP, STEP] }`, "
    "which ends before STOP as Python's does."
)
LAUNCH = (
    "The options of `Kernel.launch` and `target`, with `args` as on the command line of `ptxvm run`. A text in braces is an "
    "expression of the parameters. A parameter with the name of an option is that option."
)


@cache
def launch_options() -> tuple[str, ...]:
    """The keys of the table `launch`."""
    ours = {"self", "stream", "profile", "trace"}  # nothing in a file can say them
    return (*(name for name in inspect.signature(Kernel.launch).parameters if name not in ours), "target")


@dataclass(frozen=True, slots=True)
class Declaration:
    """A campaign, as it is declared; paths in it are relative to `folder`."""

    subject: Subject
    parameters: Table
    launch: Table
    expect: Expectation
    limits: CaseLimits
    folder: str
    tables: Table  # as they were written

    @property
    def space(self) -> ParameterSpace:
        """The parameters and their values."""
        return ParameterSpace(axes(self.parameters), self.subject.sample, self.subject.seed)

    @property
    def files(self) -> list[Path]:
        """The files that it names."""
        named = [self.subject.kernel, self.expect.kernel]
        functions = [PythonFunction(each, self.folder).path for each in (self.subject.function, self.expect.reference) if each]
        return [*(Path(self.folder, name) for name in named if name), *(path for path in functions if path is not None)]

    @property
    def fingerprint(self) -> str:
        """What tells this campaign from others: its tables, and what its files hold."""
        digest = hashlib.sha256(json.dumps(self.tables, sort_keys=True, default=str).encode())
        for path in self.files:
            digest.update(path.read_bytes())
        return digest.hexdigest()


def read_declaration(path: str | Path) -> Declaration:
    """The campaign in a TOML file; ValueError names the key that is wrong."""
    path = Path(path)
    try:
        return declared(tomllib.loads(path.read_text(encoding="utf-8")), path.parent, path.stem)
    except ValueError as wrong:  # of the text, of TOML, and of what it declares
        raise ValueError(f"{path}: {wrong}") from None


def declared(tables: Table, folder: str | Path = ".", name: str = "campaign") -> Declaration:
    """The campaign that tables declare; ValueError names the key that is wrong."""
    known = [*TABLES, "parameters", "launch"]
    for each, value in tables.items():
        refuse_unknown(each, known, "table")
        if not isinstance(value, Mapping):
            raise ValueError(f"'{each}' is a table, [{each}], not {value!r}")  # noqa: TRY004 - of a file, not of a call
    subject = fixed(Subject, "campaign", tables)
    if not subject.name:
        subject = fixed(Subject, "campaign", {"campaign": {**_table(tables, "campaign"), "name": name}})
    if bool(subject.kernel) is bool(subject.function):
        raise ValueError("[campaign] names what is run: a kernel or a function, and not both")
    launch = _table(tables, "launch")
    for each in launch:
        refuse_unknown(each, launch_options(), "key", " in [launch]")
    expect, limits = fixed(Expectation, "expect", tables), fixed(CaseLimits, "limits", tables)
    found = Declaration(subject, _table(tables, "parameters"), launch, expect, limits, str(Path(folder).resolve()), tables)
    refuse_missing(found)
    refuse_idle(found)
    return found


def fixed(kind: type[T], name: str, tables: Table) -> T:
    """A table whose keys are fixed."""
    known: dict[str, Field[object]] = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    values = {}
    for each, value in _table(tables, name).items():
        refuse_unknown(each, known, "key", f" in [{name}]")
        values[each] = of_kind(f"[{name}] {each}", value, known[each])
    return kind(**values)


def of_kind(where: str, value: object, known: Field[object]) -> object:
    """A value of the type of its key; an integer may stand for a float."""
    kind, least = known.metadata["kind"], known.metadata["least"]
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind:
        said = {str: "a text", int: "an integer", float: "a number", bool: "true or false", dict: "a table"}[kind]
        raise ValueError(f"{where} is {said}, not {value!r}")
    if kind in (int, float) and not value >= least:  # a NaN is not
        raise ValueError(f"{where} is {least} or more, not {value!r}")
    return value


def refuse_unknown(name: str, known: Any, what: str, where: str = "") -> None:  # noqa: ANN401 - any collection of words
    """ValueError for a word that is not known."""
    if name not in known:
        raise ValueError(f"no {what} is called '{name}'{where}; {did_you_mean(name, known) or 'there are ' + ', '.join(known)}")


def refuse_missing(declaration: Declaration) -> None:
    """ValueError for a file that is not there, a name that says no function, and a parameter that has no values."""
    subject, expect = declaration.subject, declaration.expect
    if not subject.name or "/" in subject.name:
        raise ValueError(f"[campaign] name is that of a folder, without '/', not {subject.name!r}")
    for name in filter(None, (subject.function, expect.reference)):
        if not all(name.rpartition(":")):
            raise ValueError(f"a function is named FILE.py:NAME or MODULE:NAME, not '{name}'")
    for path in declaration.files:
        if not path.is_file():
            raise ValueError(f"there is no file '{path}'")
    _ = declaration.space


def refuse_idle(declaration: Declaration) -> None:
    """ValueError for what would say nothing: what passes whatever happens must not look as if something had held."""
    subject, expect = declaration.subject, declaration.expect
    if expect.entry and not expect.kernel:
        raise ValueError("[expect] entry is a kernel of the module [expect] kernel, which is not there")
    if math.isinf(expect.relative) or math.isinf(expect.absolute):
        raise ValueError("[expect] an error that numbers may have is finite")
    agree: Table = expect.agree  # a file may hold anything
    for name, values in agree.items():
        if not isinstance(values, list) or len(values) < 2:
            raise ValueError(f"[expect] agree: {name} is a list of two values or more, not {values!r}")
    if subject.function:
        refuse_for_function(declaration)
    else:
        refuse_unused(declaration)


def refuse_for_function(declaration: Declaration) -> None:
    """ValueError for keys that a function does not look at."""
    idle = [
        *(f"[launch] {name}" for name in declaration.launch),
        *(f"[expect] {name}" for name in _table(declaration.tables, "expect") if name != "warnings"),
        *(["[campaign] entry"] if declaration.subject.entry else []),
    ]
    if idle:
        raise ValueError(f"{idle[0]} is for a kernel: a function launches and compares itself")


def refuse_unused(declaration: Declaration) -> None:
    """ValueError for a parameter that is no option of a launch, and that no expression has: its cases would be alike."""
    launch = declaration.launch
    if not isinstance(launch.get("args", []), list):
        raise ValueError(f"[launch] args is a list, not {launch['args']!r}")  # noqa: TRY004 - of a file, not of a call
    used = {*launch_options(), "seed", *names_in(launch)}
    for table, names in (("[parameters]", declaration.parameters), ("[expect] agree:", declaration.expect.agree)):
        if unused := [name for name in names if name not in used]:
            said = f"{table} {unused[0]} changes nothing: it is no option of a launch, and in no expression in [launch]"
            raise ValueError("; ".join(filter(None, (said, did_you_mean(unused[0], launch_options())))))


def names_in(launch: Table) -> set[str]:
    """The names in the expressions of a table, or what stands there for one."""
    texts = [text for value in launch.values() for text in (value if isinstance(value, list) else [value])]
    expressions = [found for text in texts if isinstance(text, str) for found in BRACES.findall(text)]
    return {name for expression in expressions for name in re.findall(r"[^\W\d]\w*", expression)}


def _table(tables: Table, name: str) -> Table:
    found = tables.get(name, {})
    return found if isinstance(found, Mapping) else {}


__all__ = [
    "LAUNCH",
    "PARAMETERS",
    "TABLES",
    "CaseLimits",
    "Declaration",
    "Expectation",
    "Subject",
    "declared",
    "read_declaration",
]
