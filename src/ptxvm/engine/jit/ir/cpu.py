"""The target processor: its name, features and identity."""

from __future__ import annotations

import functools
import os
import platform
from itertools import takewhile
from pathlib import Path

from ptxvm.engine.jit.ir.digest import Digest

WITHOUT = "PTXVM_CPU_WITHOUT"  # in the environment: prefixes of the features that code must not use
CPUINFO = Path("/proc/cpuinfo")
FIRST_CACHE = Path("/sys/devices/system/cpu/cpu0/cache/index0/size")
SMALLEST = 32 << 10  # bytes of the first cache of a core, where the system does not tell
TELLING = ("vendor_id", "cpu family", "model", "stepping", "model name", "flags", "CPU implementer", "CPU part", "Features")


@functools.cache
def name() -> str:
    """LLVM's name of the processor."""
    import llvmlite.binding as llvm  # noqa: PLC0415 - code that is ready needs no LLVM

    return str(llvm.get_host_cpu_name())


@functools.cache
def features() -> dict[str, bool]:
    """Its features by LLVM's names, without those that the user forbids."""
    import llvmlite.binding as llvm  # noqa: PLC0415

    able = dict(llvm.get_host_cpu_features())
    return {feature: can and not feature.startswith(without()) for feature, can in able.items()}


def without() -> tuple[str, ...]:
    """The prefixes of the features that code must not use."""
    words = tuple(word for word in os.environ.get(WITHOUT, "").split(",") if word)
    return (*words, "avx512") if "f16c" in words else words  # to LLVM, AVX-512 includes F16C


def flags() -> str:
    """The features as LLVM's target machine takes them."""
    tuning = ["+fast-dpwssd"] if has("avx512vnni") else []  # keeps one instruction, which LLVM would split for latency
    if has("avx2") and not has("avx512f"):
        tuning.append("+fast-gather")  # LLVM would test every lane of a masked gather and jump, whose cost is far greater
    return ",".join([("+" if able else "-") + feature for feature, able in sorted(features().items())] + tuning)


def has(feature: str) -> bool:
    """Has it a feature?"""
    return features().get(feature, False)


@functools.cache
def gathers_slowly() -> bool:
    """Does a gather take longer than loads one by one?  AMD's processors make it of three times as many operations."""
    return name().startswith("znver")


@functools.cache
def first_cache() -> int:
    """The bytes of the first cache of a core."""
    try:
        return int(FIRST_CACHE.read_text().strip().removesuffix("K")) << 10
    except (OSError, ValueError):
        return SMALLEST


@functools.cache
def identity() -> str:
    """A text that differs between processors that cannot run each other's code; found without LLVM."""
    try:
        with CPUINFO.open() as file:
            first = takewhile(str.strip, file)  # the lines of the first core, up to an empty one
            said = [line for line in first if line.partition("\t")[0] in TELLING]
    except OSError:
        said = []
    if not any(line.startswith(("flags", "Features")) for line in said):
        said = [name(), flags()]
    said += without()
    return platform.machine() + Digest().add("".join(said)).text
