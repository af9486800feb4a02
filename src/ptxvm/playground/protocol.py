"""The protocol of the page: `{"method": ..., "params": {...}}` in, `{"result": ...}` or `{"error": ...}` out, both JSON.

An error has a `kind`: `request` where the request is wrong (its message is for the user), `unsupported` for what ptxvm lacks,
`crash` for a bug.  A backend adds `limit` where it ended a request that took too long or too much memory.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import did_you_mean
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.playground.requests import RequestError, decode


@dataclass(frozen=True, slots=True)
class Method:
    """A method: the module and the function that answer it.

    The function takes one request, a dataclass that its annotation names, and gives what becomes JSON.
    """

    module: str
    function: str


METHODS = {
    "check": Method("checking", "check"),
    "explain": Method("explaining", "explain"),
    "run": Method("launching", "run"),
    "count": Method("counting", "count"),
    "step": Method("stepping", "step"),
    "litmus": Method("judging", "judged"),
    "lessons": Method("lessons", "lessons"),
    "solve": Method("lessons", "solve"),
}
"""What a page may ask; a module is imported when it is first asked, so that checking needs no NumPy."""


def answer(text: str) -> str:
    """The answer to a request, whatever the request is; both are JSON."""
    try:
        method, params = parsed(text)
        return json.dumps({"result": function_of(method)(params)}, allow_nan=False)
    except RequestError as wrong:
        return refusal("request", str(wrong))
    except Unsupported as lacking:
        return refusal("unsupported", str(lacking))
    except ModuleNotFoundError as missing:
        return refusal("unsupported", f"this needs {missing.name}, which is not installed here")
    except Exception as bug:  # noqa: BLE001 - whatever it is, the page shows it
        return refusal("crash", f"{type(bug).__name__}: {' '.join(str(bug).split())}: a bug of ptxvm, please report it")


def refusal(kind: str, message: str) -> str:
    """The answer to a request that has no result."""
    return json.dumps({"error": {"kind": kind, "message": message}})


def parsed(text: str) -> tuple[Method, Mapping[str, object]]:
    """The method of a request, and its parameters."""
    try:
        request = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise RequestError(f"the request is no JSON: {wrong}") from None
    if not isinstance(request, dict) or not isinstance(request.get("method"), str):
        raise RequestError("a request has a method")
    params = request.get("params", {})
    if not isinstance(params, dict):
        raise RequestError("params is an object")
    name = request["method"]
    if name not in METHODS:
        raise RequestError(f"there is no method '{name}'; {did_you_mean(name, METHODS) or 'there are ' + ', '.join(METHODS)}")
    return METHODS[name], params


def function_of(method: Method) -> Callable[[Mapping[str, object]], object]:
    """What answers a method, of parameters as they came."""
    module = importlib.import_module(f"ptxvm.playground.{method.module}")
    function: Callable[[Any], object] = getattr(module, method.function)  # of the request that it declares
    return lambda params: function(decode(function, params))


__all__ = ["METHODS", "answer", "refusal"]
