"""What ptxas finds of the threads, CTAs and registers of kernels, when it compiles them for a target.

The limits of a multiprocessor are those of the CUDA C++ Programming Guide ("Compute Capabilities") and of ptxas 13.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from math import prod

from ptxvm.analysis.program import Function, Program
from ptxvm.cli.ptxas_options import PtxasCall, number
from ptxvm.cli.ptxas_warnings import DIMENSIONS, FEWEST, MOST
from ptxvm.isa.targets import parse_target
from ptxvm.syntax.tree import Integer

RESIDENT = {
    75: (1024, 16),
    86: (1536, 16), 87: (1536, 16), 88: (1536, 16),
    89: (1536, 24), 110: (1536, 24), 120: (1536, 24), 121: (1536, 24),
}  # fmt: skip
"""Threads and CTAs on a multiprocessor, by the number of a target ..."""
USUAL = 2048, 32
"""... and of all others."""
IGNORED = "will be ignored"
LEADING = re.compile(r"\s*[-+]?\d+")


def of_kernels(call: PtxasCall, programs: Sequence[Program]) -> Iterator[str]:
    """Warnings about limits of kernels that no multiprocessor of the target has; the last kernel comes first."""
    for program in reversed(programs):
        for kernel in reversed(program.kernels):
            yield from threads(call, kernel)
            yield from registers(kernel)


def threads(call: PtxasCall, kernel: Function) -> Iterator[str]:
    """Too many threads of a CTA, or of the CTAs that are to be resident."""
    most, most_ctas = RESIDENT.get(parse_target(call.target).number, USUAL)
    of_cta, ctas = threads_of_cta(call, kernel), least_ctas(call, kernel)
    where = f"for entry {kernel.name} is out of range."
    if not of_cta:
        return
    if ctas > most_ctas:
        yield f"Value of minnctapersm {where} minnctapersm {IGNORED}"
        ctas = 0
    if of_cta > most:
        yield f"Value of {'maxntid,' if ctas else 'threads per SM'} {where} .minnctapersm and .maxntid {IGNORED}"
    elif of_cta * ctas > most:
        yield f"Value of threads per SM {where} .minnctapersm {IGNORED}"


def threads_of_cta(call: PtxasCall, kernel: Function) -> int:
    """The most threads of a CTA, by a directive or an option; 0 where nothing says it."""
    asked = call.all("maxntid") if not call.has("maxrregcount") else []
    by_option = prod(map(leading, asked)) if 0 < len(asked) <= DIMENSIONS else 0
    return chosen(call, by_option, value(kernel, "maxntid") or value(kernel, "reqntid"))


def least_ctas(call: PtxasCall, kernel: Function) -> int:
    """The CTAs that are to be resident at least, by a directive or an option; 0 where nothing says it."""
    asked = call.last("minnctapersm", "0") if not call.has("maxrregcount") else "0"
    return chosen(call, number(asked), value(kernel, "minnctapersm"))


def chosen(call: PtxasCall, by_option: int, by_directive: int) -> int:
    """A limit: that of the directive, unless `--override-directive-values` prefers the option, which has no sign."""
    option_counts = not by_directive or call.has("override-directive-values")
    return by_option % (1 << 32) or by_directive if option_counts else by_directive


def leading(text: str) -> int:
    """The number that a text begins with, as C++ reads it; 0 where it begins with none."""
    found = LEADING.match(text)
    return int(found[0]) if found else 0


def registers(kernel: Function) -> Iterator[str]:
    """A limit of registers that is less than a function needs, or more than there are."""
    count = value(kernel, "maxnreg")
    if count > MOST:
        yield f"Too many maxnreg specified for entry {kernel.name}, {IGNORED}"
    elif 0 < count < FEWEST:
        yield f"For entry {kernel.name} adjusting per thread register count of {count} to lower bound of {FEWEST}"


def value(kernel: Function, name: str) -> int:
    """The product of the numbers of a directive; 0 where the kernel has none."""
    found = kernel.directives.get(name)
    return 0 if found is None else prod(each.value for each in found.arguments if isinstance(each, Integer))


__all__ = ["of_kernels"]
