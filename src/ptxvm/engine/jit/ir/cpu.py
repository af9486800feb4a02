"""The processor that the code is for."""

from __future__ import annotations

import functools
import os
import platform
from itertools import takewhile
from pathlib import Path

from ptxvm.engine.jit.ir.digest import Digest

WITHOUT = "PTXVM_CPU_WITHOUT"  # in the environment: words with which the features begin that are not to be used
CPUINFO = Path("/proc/cpuinfo")
TELLING = ("vendor_id", "cpu family", "model", "stepping", "model name", "flags", "CPU implementer", "CPU part", "Features")


@functools.cache
def name() -> str:
    """Its name, as LLVM knows it."""
    import llvmlite.binding as llvm  # noqa: PLC0415 - code that is ready needs no LLVM

    return str(llvm.get_host_cpu_name())


@functools.cache
def features() -> dict[str, bool]:
    """What it can do, by LLVM's names; less, if the user says so."""
    import llvmlite.binding as llvm  # noqa: PLC0415

    able = dict(llvm.get_host_cpu_features())
    return {feature: can and not feature.startswith(without()) for feature, can in able.items()}


def without() -> tuple[str, ...]:
    """The beginnings of the features that code is to do without."""
    words = tuple(word for word in os.environ.get(WITHOUT, "").split(",") if word)
    return (*words, "avx512") if "f16c" in words else words  # which includes it, as LLVM sees it


def flags() -> str:
    """The same, as LLVM's target machine is told of it."""
    tuning = ["+fast-dpwssd"] if has("avx512vnni") else []  # one instruction, which LLVM takes apart where latency counts
    if has("avx2") and not has("avx512f"):
        tuning.append("+fast-gather")  # LLVM would test every lane of a masked gather and jump, whose cost is far greater
    return ",".join([("+" if able else "-") + feature for feature, able in sorted(features().items())] + tuning)


def has(feature: str) -> bool:
    """Can it do that?"""
    return features().get(feature, False)


@functools.cache
def identity() -> str:
    """What tells this processor from others, found without LLVM: code of one may not run on another."""
    try:
        with CPUINFO.open() as file:
            first = takewhile(str.strip, file)  # the first processor's lines, up to an empty one
            said = [line for line in first if line.partition("\t")[0] in TELLING]
    except OSError:
        said = []
    if not any(line.startswith(("flags", "Features")) for line in said):
        said = [name(), flags()]
    said += without()
    return platform.machine() + Digest().add("".join(said)).text
