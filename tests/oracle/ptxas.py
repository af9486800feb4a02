"""What ptxas 13.5 said, from the folder of reference data: `isa/*.jsonl.gz` and the script that reads them."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import ptxvm


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    """The rows of a table; the test skips where it is missing."""
    path = folder / "isa" / f"{name}.jsonl.gz"
    if not path.is_file():
        pytest.skip(f"the answers of ptxas are missing: {path}")
    with gzip.open(path, "rt") as file:
        return [json.loads(line) for line in file]


def script(folder: Path) -> ModuleType:
    """`score.py` of the reference data, which knows how a module is made of a row."""
    path = folder / "isa" / "score.py"
    if not path.is_file():
        pytest.skip(f"the script that scores is missing: {path}")
    spec = importlib.util.spec_from_file_location("score", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def errors(source: str) -> list[ptxvm.Diagnostic]:
    """What makes a source invalid; that nothing raises is part of every test."""
    return [found for found in ptxvm.check(source.encode()) if found.severity == "error"]


def disagreement(wrong: list[str], asked: int) -> str:
    """What to print where too many rows disagree."""
    return "\n".join([f"{len(wrong)} of {asked} disagree with ptxas, such as:", *wrong[:20]])
