"""Runtime functions: templates of LLVM assembly in `runtime/NAME.ll`, the same for all kernels but for constants."""

from __future__ import annotations

from functools import cache
from pkgutil import get_data
from string import Template


def runtime(name: str, /, **values: str | int) -> str:
    """The text of a runtime function, with `values` for its `$names` and without comments.

    Raises KeyError where a name has no value.
    """
    return _template(name).substitute(values)


@cache
def _template(name: str) -> Template:
    data = get_data("ptxvm.engine.jit", f"runtime/{name}.ll")
    if data is None:
        raise FileNotFoundError(f"runtime/{name}.ll")
    return Template("\n".join(line for line in data.decode().splitlines() if not line.startswith(";")))
