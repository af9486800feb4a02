"""The device runtime (`libcudadevrt`): functions that CUDA C++ declares and the toolkit's linker adds, here as PTX."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ptxvm import api
from ptxvm.driver.programs import loaded

SOURCE = Path(__file__).with_name("cudadevrt.ptx")


@cache
def names() -> frozenset[str]:
    """The functions of the device runtime."""
    return frozenset(loaded(SOURCE.read_bytes()).programs[0].functions)


def with_device_runtime(parts: Sequence[api.Module]) -> list[api.Module]:
    """The modules of a link, with the device runtime where they call one of its functions and define none of that name."""
    declared = {name for part in parts for program in part.programs for name in program.functions}
    if declared.isdisjoint(names()):
        return list(parts)
    defined = {name for part in parts for program in part.programs for name, each in program.functions.items() if each.defined}
    return [*parts, loaded(SOURCE.read_bytes())] if declared & names() - defined else list(parts)


__all__ = ["with_device_runtime"]
