"""The results of a campaign as one Parquet file, with a column for each parameter.

They are in SQLite while the campaign runs: a Parquet file can be read when it is complete, and no sooner.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ptxvm.campaign.parameter_space import JSON, ParameterSpace
from ptxvm.campaign.results import Case, Results

ROWS = 100_000  # that are in memory at once
COLUMNS = ("number", "verdict", "kind", "place", "message", "seconds", "attempts")
"""Those that all campaigns have; a parameter of such a name has another one in the file."""


def write_parquet(path: Path, space: ParameterSpace, results: Results) -> None:
    """Write the cases that have ended; the file at the path is replaced when the new one is complete.

    The values of a parameter that have no common type in Parquet are texts, of JSON.
    """
    arrow, parquet = libraries()
    types = {name: column_type(arrow, values) for name, values in space.axes.items()}
    text = arrow.string()
    schema = arrow.schema([
        ("number", arrow.int64()), *((column_name(name), type or text) for name, type in types.items()),
        *((name, text) for name in ("verdict", "kind", "place", "message")),
        ("seconds", arrow.float64()), ("attempts", arrow.int32()),
    ])  # fmt: skip
    unfinished = path.with_name(f"{path.name}.unfinished")
    with parquet.ParquetWriter(unfinished, schema, compression="zstd") as writer:
        cases = results.cases()
        while some := [row(case, types) for case in islice(cases, ROWS)]:
            writer.write_table(arrow.Table.from_pylist(some, schema))
    unfinished.replace(path)


def libraries() -> tuple[Any, Any]:
    """The modules `pyarrow` and `pyarrow.parquet`; ImportError names the extra."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - an extra
        from pyarrow import parquet  # noqa: PLC0415
    except ImportError:
        raise ImportError("Parquet files need the extra `parquet`: pip install 'ptxvm[parquet]'") from None
    return pa, parquet


def column_name(parameter: str) -> str:
    """The name of the column of a parameter."""
    return f"parameter_{parameter}" if parameter in COLUMNS else parameter


def column_type(arrow: Any, values: Sequence[object]) -> Any:  # noqa: ANN401 - pyarrow has no types
    """The type of the values of a parameter, as they are in the results; None where they have none in common."""
    ends = [values[0], values[-1]] if isinstance(values, range) else values
    try:
        return arrow.array(json.loads(JSON.encode(list(ends)))).type
    except (arrow.ArrowException, OverflowError, TypeError, ValueError):
        return None


def row(case: Case, types: Mapping[str, object]) -> dict[str, object]:
    """The columns of a case."""
    number, parameters, outcome, attempts = case
    values = {column_name(name): JSON.encode(value) if types[name] is None else value for name, value in parameters.items()}
    told = (number, outcome.verdict, outcome.kind, outcome.place, outcome.message, outcome.seconds, attempts)
    return {**dict(zip(COLUMNS, told, strict=True)), **values}


__all__ = ["libraries", "write_parquet"]
