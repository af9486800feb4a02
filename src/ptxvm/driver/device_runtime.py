"""The device runtime (`libcudadevrt`): functions that CUDA C++ declares and the toolkit's linker adds, here as PTX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from ptxvm import api
from ptxvm.driver.device_questions import questions
from ptxvm.driver.environment import environment
from ptxvm.driver.models import Model
from ptxvm.driver.programs import loaded
from ptxvm.isa.directives import DEVICE_RUNTIME

COOPERATIVE = Path(__file__).with_name("cudadevrt.ptx")
MEMORY = Path(__file__).with_name("cudadevrt_memory.ptx")
NODES = Path(__file__).with_name("cudadevrt_nodes.ptx")
LAUNCH_OF_GRAPHS = "cudaGraphLaunch"
PREFIX, OLD_PREFIX = b"__cudaCDP2", b"cuda"  # of the functions of dynamic parallelism since CUDA 12, and before
OF_STREAMS = re.compile(PREFIX + rb"(\w+Async|Malloc|Free)\b")


@cache
def sources(model: Model, devices: int) -> tuple[bytes, ...]:
    """The texts of the device runtime on so many devices of a model.

    That for memory is there by three sorts of names: old ones, and those where stream 0 is the default one of the thread too.
    """
    memory, asked = MEMORY.read_bytes(), questions(model, devices)
    return (
        COOPERATIVE.read_bytes(),
        NODES.read_bytes(),
        memory,
        memory.replace(PREFIX, OLD_PREFIX),
        OF_STREAMS.sub(lambda name: name[0] + b"_ptsz", memory),
        asked,
        asked.replace(PREFIX, OLD_PREFIX),
    )


@cache
def names(source: bytes) -> frozenset[str]:
    """The functions that a text defines for others."""
    functions = loaded(source).programs[0].functions
    return frozenset(name for name, each in functions.items() if each.defined and each.linkage == "visible")


def with_device_runtime(parts: Sequence[api.Module], model: Model) -> list[api.Module]:
    """The modules of a link, with those of the device runtime of which they call a function and define none of that name."""
    functions = [each for part in parts for program in part.programs for each in program.functions.values()]
    called = {each.name for each in functions if each.name.startswith(DEVICE_RUNTIME)}
    missing = called - {each.name for each in functions if each.defined}
    if not missing:
        return list(parts)
    return [*parts, *(loaded(source) for source in sources(model, environment().devices) if defines(source, missing))]


def defines(source: bytes, some: set[str]) -> bool:
    """Does a text define one of some functions?  It is read only if it has the name of one."""
    return any(each.encode() in source for each in some) and not some.isdisjoint(names(source))


__all__ = ["LAUNCH_OF_GRAPHS", "with_device_runtime"]
