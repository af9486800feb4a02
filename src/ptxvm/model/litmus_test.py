"""A litmus test: a program and a question about how it may end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Literal

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.dataclass import dataclass
from ptxvm.model.conditions import Condition
from ptxvm.model.ending import Ending
from ptxvm.model.litmus_program import Alias, Elements, Thread
from ptxvm.model.paths import Path


@dataclass(frozen=True)
class Test:
    """A program and its question."""

    name: str
    threads: tuple[Thread, ...]
    variables: Mapping[str, int]
    """The initial values."""
    aliases: Mapping[str, Alias]
    quantifier: Literal["exists", "not_exists", "forall"]
    condition: Condition
    filter: Condition | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    """The size of each variable in bytes; 8 by default."""
    elements: Mapping[str, Elements] = field(default_factory=dict)
    """How the final values of variables are shown; one number by default."""
    ways: Callable[[int], Iterator[tuple[Path, ...]]] | None = field(default=None, compare=False)
    """Of a kernel: the combinations of a path for each thread, for a bound of backward jumps."""
    ending: Callable[[], Ending] | None = field(default=None, compare=False)
    """Of a kernel: does it terminate?"""
    loops: bool = False
    """Of a kernel: can a thread loop for ever, or wait for a value that no thread gives?"""
    cta_threads: int = 0
    """Of a kernel: the threads of a CTA; 0 for other tests, whose barriers wait for the threads that name them."""

    __test__ = False  # pytest: this is no test of ours

    def shown(self, values: Mapping[str, int]) -> dict[str, int]:
        """The final values of variables, as the question names them."""
        shown: dict[str, int] = {}
        for name, value in values.items():
            shown.update(self.elements[name].named(name, value) if name in self.elements else {name: value})
        return shown

    def physical(self, variable: str) -> str:
        """The variable whose memory an address reaches."""
        while variable in self.aliases:
            variable = self.aliases[variable].of
        return variable

    def virtual(self, variable: str) -> str:
        """The generic address by which a name reaches memory: another proxy uses the address of what it names."""
        while variable in self.aliases and self.aliases[variable].proxy is not Proxy.GENERIC:
            variable = self.aliases[variable].of
        return variable
