"""The functions of a module that are libraries: they stand the same in the modules of many kernels.

Slow paths are such functions in each tier, and in code that is made quickly all that a kernel's own function calls: the best
tier inlines it.  A function is a library with all that it calls, unless that is one too, and with the tables that they read.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from ptxvm.dataclass import dataclass
from ptxvm.engine.jit.abi.specialisation import Tier
from ptxvm.engine.jit.ir import cpu, preserving_calls
from ptxvm.engine.jit.ir.digest import Digest
from ptxvm.engine.jit.ir.libraries import LIBRARIES, PREFIX
from ptxvm.engine.jit.ir.module_text import NAMED

DEFINED = re.compile(
    r"\ndefine internal (?P<result>[^@\n]*) @(?P<name>[\w.]+)\((?P<parameters>[^\n]*)\)(?P<how>[^)\n]*)\{(?=\n)"
)
END = "\n}"
TABLE = re.compile(r"\n@([\w.]+) = internal constant [^\n]*")
DECLARED = re.compile(r"\ndeclare [^@\n]*@([\w.]+)\([^\n]*")
REFERENCE = re.compile(r"@([\w.]+)")
APART = re.compile(r"\bnoinline\b|#2\b")
OWN = "warp"  # the function that no other kernel has
NAMELESS = "itself"
SHORT, LONG = 40, 100  # lines of what is compiled as soon as linked, and of what is a library even where one other calls it


def set_apart(text: str, tier: Tier) -> str:
    """The text of a module that declares the functions that are libraries in a tier; they are entered."""
    return _Module("\n" + text, tier).without_libraries()


@dataclass(slots=True, eq=False)
class _Function:
    text: str
    declaration: str
    names: frozenset[str]  # of what it refers to
    is_called: bool  # not inlined


class _Module:
    def __init__(self, text: str, tier: Tier) -> None:
        self.functions: dict[str, _Function] = {}  # that can be in a library
        self.libraries: dict[str, str] = {}  # the names of libraries, by those of their functions
        self.tables = {found[1]: found[0] for found in TABLE.finditer(text)}
        self.declarations = {found[1]: found[0] for found in DECLARED.finditer(text)}
        others, end = [], 0
        for found in DEFINED.finditer(text):
            stop = text.index(END, found.end()) + len(END)
            if self._takes(found, text[found.start() : stop], tier):
                others.append(text[end : found.start()])
                end = stop
        self.rest = "".join([*others, text[end:]])

    def _takes(self, found: re.Match[str], text: str, tier: Tier) -> bool:
        """Can it be in a library?  A function stands behind those that it calls."""
        name, how = found["name"], found["how"]
        names = frozenset(REFERENCE.findall(text)) - {name}
        if name == OWN or not names <= self.functions.keys() | self.tables.keys() | self.declarations.keys():
            return False
        cold = " cold" if "cold" in how else ""
        declaration = f"\ndeclare {found['result']} @{name}({found['parameters']}) nounwind{cold}"
        self.functions[name] = _Function(text, declaration, names, is_called=tier < Tier.BEST or bool(APART.search(how)))
        return True

    def without_libraries(self) -> str:
        """The text with declarations of the libraries."""
        called = REFERENCE.findall(self.rest)
        users = Counter(name for function in self.functions.values() for name in function.names)
        for name, function in self.functions.items():
            alone = name not in called and users[name] == 1 and function.text.count("\n") < LONG
            if function.is_called and not alone:
                self._enter(name)
        kept = self._reached(called)
        return self._declared([*called, *self._names(kept)]) + self._moved("".join([*self._texts(kept), self.rest]))

    def _reached(self, names: Iterable[str]) -> list[str]:
        """The functions of these names and all that they call, but for those in libraries."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name in self.functions and name not in self.libraries and name not in found:
                found.add(name)
                waiting += self.functions[name].names
        return [name for name in self.functions if name in found]

    def _names(self, functions: Iterable[str]) -> set[str]:
        return set().union(*(self.functions[each].names for each in functions))

    def _texts(self, functions: Iterable[str]) -> list[str]:
        return [self.functions[each].text for each in functions]

    def _declared(self, names: Iterable[str]) -> str:
        """Declarations of the libraries among these names: of functions that are the same by other names, one."""
        each = {library: self.functions[name].declaration for name, library in self.libraries.items() if name in names}
        return self._moved("".join(each.values()))

    def _moved(self, text: str) -> str:
        """A text that calls the libraries."""
        text = preserving_calls.elsewhere(text, self.libraries)
        return REFERENCE.sub(lambda found: f"@{self.libraries.get(found[1], found[1])}", text)

    def _enter(self, name: str) -> None:
        """Make a function a library, unless it is short."""
        *parts, _ = self._reached([name])  # which ends with itself
        own = self.functions[name].text.replace("define internal ", "define ", 1).replace(f"@{name}(", f"@{NAMELESS}(", 1)
        body = "".join([*self._texts(parts), own])
        if body.count("\n") < SHORT:
            return
        names = sorted(self._names([*parts, name]))
        before = [found[each] for found in (self.declarations, self.tables) for each in names if each in found]
        text = "".join([*before, self._declared(names), self._moved(body), "\n", "\n".join(NAMED)])
        library = PREFIX + Digest().add(cpu.identity()).add(text).text
        self.libraries[name] = library
        LIBRARIES[library] = text.replace(f"@{NAMELESS}(", f"@{library}(")
