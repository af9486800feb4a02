"""Runtime functions: templates of LLVM assembly in `runtime/NAME.ll`, the same for all kernels but for constants."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pkgutil import get_data
from string import Template


def runtime(name: str, /, **values: str | int) -> str:
    """The text of a runtime function, with `values` for its `$names` and without comments.

    Raises KeyError where a name has no value.
    """
    return _template(name).substitute(values)


def words_of_plan(order: Sequence[str], *names: str, table: str = "plan") -> str:
    """Lines for a template that load words of 64 bits, each as `%` and its name: a table has them in this order."""
    lines = []
    for name in names:
        lines.append(f"  %{name}.at = getelementptr i64, ptr %{table}, i64 {order.index(name)}")
        lines.append(f"  %{name} = load i64, ptr %{name}.at, align 8")
    return "\n".join(lines)


@cache
def _template(name: str) -> Template:
    data = get_data("ptxvm.engine.jit", f"runtime/{name}.ll")
    if data is None:
        raise FileNotFoundError(f"runtime/{name}.ll")
    return Template("\n".join(line for line in data.decode().splitlines() if not line.startswith(";")))
