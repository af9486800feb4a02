"""Python functions by name, which another process can load: `FILE.py:NAME` or `MODULE:NAME`."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from ptxvm.dataclass import dataclass

Function = Callable[..., Any]
"""A user's function: of which arguments, the campaign says."""


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """The name of a function; the path of its file is relative to a folder."""

    name: str
    folder: str = "."

    @property
    def path(self) -> Path | None:
        """Its file; None for a module that Python finds itself."""
        file, _, _ = self.name.rpartition(":")
        return Path(self.folder, file) if file.endswith(".py") else None

    def load(self) -> Function:
        """The function; ValueError where it is none."""
        module, _, name = self.name.rpartition(":")
        if not module:
            raise ValueError(f"a function is named FILE.py:NAME or MODULE:NAME, not '{self.name}'")
        found = getattr(from_file(self.path.resolve()) if self.path else importlib.import_module(module), name, None)
        if not callable(found):
            raise ValueError(f"'{module}' has no function '{name}'")  # noqa: TRY004 - of a file
        return found  # type: ignore[no-any-return]


@cache
def from_file(path: Path) -> ModuleType:
    """The module of a file, loaded once; its folder is searched for what it imports."""
    if str(path.parent) not in sys.path:
        sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise ValueError(f"'{path}' is no Python module")
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


def named(function: Function) -> str:
    """The name of a function that stands at the top of a file; ValueError for any other."""
    name = getattr(function, "__qualname__", repr(function))
    path = inspect.getsourcefile(function) if inspect.isfunction(function) else None
    if not name.isidentifier() or path is None or not Path(path).is_file():
        raise ValueError(
            f"a function of a campaign stands at the top of a file, where other processes find it; '{name}' does not"
        )
    return f"{Path(path).resolve()}:{name}"


__all__ = ["Function", "PythonFunction", "named"]
