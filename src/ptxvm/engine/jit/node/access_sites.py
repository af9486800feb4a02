"""Access sites: the accesses of a kernel to memory, as compiled code and the host number them."""

from __future__ import annotations

from ptxvm.diagnostics.errors import Crash
from ptxvm.engine.jit.abi.metadata import Site

SPANS = 4  # sites of an instruction, by the span of its lanes
MORE = 16  # instructions for which there are sites besides


class AccessSites:
    """The access sites of a kernel of so many instructions; all of its versions share them."""

    def __init__(self, kernel: str, instructions: int) -> None:
        self.kernel = kernel
        self.most_spans = SPANS * (instructions + MORE)
        self.most = self.most_spans + 4 * (instructions + MORE)
        self._numbers: dict[Site, int] = {}
        self.all: list[Site] = []

    def number(self, site: Site) -> int:
        """The number of a site; where an instruction has too many, that of one which serves any span."""
        if site not in self._numbers and len(self.all) >= self.most_spans:
            site = site._replace(span=0)
        if site not in self._numbers:
            if len(self.all) == self.most:
                raise Crash(f"'{self.kernel}' has more than {self.most} access sites; please report this")
            self._numbers[site] = len(self.all)
            self.all.append(site)
        return self._numbers[site]
