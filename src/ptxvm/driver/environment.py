"""The environment variables that programs on the driver obey, read and checked together.

`PTXVM_DEVICE` names the model of the devices (`sm_90`), `PTXVM_DEVICES` counts them.  `PTXVM_CHECK` names the checks of all
kernels (`memory,race`), `PTXVM_ALLOW` the codes of findings that are not reported, `PTXVM_SUPPRESS` a file of findings that
are meant.  `PTXVM_ASYNC` and `PTXVM_SEED` tell when asynchronous work ends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar

from ptxvm.diagnostics import did_you_mean
from ptxvm.diagnostics.suppressions import Suppressions
from ptxvm.driver.models import DEFAULT, MODELS, Model
from ptxvm.machine import options, settings
from ptxvm.named_tuple import NamedTuple

MOST_DEVICES = 64
T = TypeVar("T")


class Environment(NamedTuple):
    """What the variables ask for."""

    model: Model  # of all devices
    devices: int
    checks: frozenset[options.Check] | None
    allowed: frozenset[str]
    suppressions: Suppressions  # whose patterns are of kernels: the modules of a program have no names
    completion: tuple[str, int]  # and the seed of its times


class WrongVariable(ValueError):  # noqa: N818 - it says what happened
    """A variable has an invalid value; the message names the variable."""


@cache
def environment() -> Environment:
    """What the variables of this process ask for, as they were when it was first called; WrongVariable."""
    return read(os.environ)


def read(variables: Mapping[str, str]) -> Environment:
    """What these variables ask for; WrongVariable, whether or not a program needs the variable."""

    def value(name: str, of: Callable[[str], T], default: str = "") -> T:
        try:
            return of(variables.get(name, default))
        except OSError as wrong:
            raise WrongVariable(f"{name}: cannot read '{wrong.filename}': {wrong.strerror}") from None
        except ValueError as wrong:
            said = str(wrong)
            raise WrongVariable(said if said.startswith(name) else f"{name}: {said}") from None

    value("", lambda _: settings.check())  # those of launches, of this process
    asynchronous = value("PTXVM_ASYNC", lambda text: options.completion(text or None))
    seed = value("PTXVM_SEED", lambda _: settings.seed(variables))
    return Environment(
        model=value("PTXVM_DEVICE", _model, DEFAULT),
        devices=value("PTXVM_DEVICES", _count, "1"),
        checks=value("PTXVM_CHECK", options.checks_in),
        allowed=value("PTXVM_ALLOW", options.allowed_in),
        suppressions=value("PTXVM_SUPPRESS", _suppressions),
        completion=(asynchronous, seed if asynchronous == "random" else 0),
    )


def _model(name: str) -> Model:
    if name not in MODELS:
        raise ValueError(f"there is no device '{name}'; {did_you_mean(name, MODELS) or 'there are ' + ', '.join(MODELS)}")
    return MODELS[name]


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) > MOST_DEVICES:
        raise ValueError(f"there are 0 to {MOST_DEVICES} devices, not {text!r}")
    return int(text)


def _suppressions(path: str) -> Suppressions:
    if not path:
        return Suppressions()
    from ptxvm.analysis.known_codes import is_code  # noqa: PLC0415 - all instructions, which a program may not need

    return Suppressions.parse(Path(path).read_text(encoding="utf-8"), is_code)


__all__ = ["Environment", "WrongVariable", "environment", "read"]
