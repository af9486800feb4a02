"""The results of a campaign in a Parquet file: what SQLite holds, with a column of its own type for each parameter."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxvm.campaign.session import Campaign

parquet = pytest.importorskip("pyarrow.parquet", reason="the extra `parquet` is not installed")
Run = Callable[..., Campaign]


def test_each_parameter_has_a_column_of_its_type(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "found.parquet"
    parameters = {
        "n": {"range": [0, 9, 4]}, "number": ["a"], "x": [1, 2.5], "mixed": [1, "b", None], "block": [[32, 1], [64, 2]],
        "big": [2**70],
    }  # fmt: skip
    found = run("fails_for_4", parameters, parquet=file)
    table = parquet.read_table(file)
    assert table.num_rows == found.cases == 3 * 2 * 3 * 2
    assert {field.name: str(field.type) for field in table.schema} == {
        "number": "int64", "n": "int64", "parameter_number": "string", "x": "double", "mixed": "string",
        "block": "list<element: int64>", "big": "string", "verdict": "string", "kind": "string", "place": "string",
        "message": "string", "seconds": "double", "attempts": "int32",
    }  # fmt: skip
    rows = table.to_pylist()
    assert [each["number"] for each in rows] == list(range(36))
    last = rows[-1]
    assert [last[name] for name in ("n", "parameter_number", "x", "mixed", "block", "big")] == [
        8, "a", 2.5, "null", [64, 2], str(2**70),
    ]  # fmt: skip
    failed = [each for each in rows if each["verdict"] == "error"]
    assert {each["n"] for each in failed} == {4}
    assert len(failed) == found.failed == 12
    assert (failed[0]["kind"], failed[0]["message"]) == ("AssertionError", "AssertionError: 4 is 4")
    assert math.isfinite(sum(each["seconds"] for each in rows))


def test_the_extra_is_asked_for_before_a_case_runs(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"need the extra `parquet`: pip install 'ptxvm\[parquet\]'"):
        run("passes", {"n": [1]}, parquet=tmp_path / "x.parquet")
    assert not (tmp_path / "found").exists()


def test_a_file_is_replaced_when_the_new_one_is_complete(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "found.parquet"
    for count in (2, 3):
        run("passes", {"n": {"range": [count]}}, parquet=file, folder=tmp_path / str(count))
        assert parquet.read_table(file)["n"].to_pylist() == list(range(count))
    assert [each.name for each in tmp_path.iterdir() if each.is_file()] == ["found.parquet"]
