"""The port `cc` for every engine: the carry flag, a register that the engine reads and writes."""

from __future__ import annotations

from collections.abc import Callable

from ptxvm.algebra.value import Value


class CarryFlag:
    """The condition code register, of which only CC.CF is used (PTX 9.7.2); an engine supplies `read` and `write`."""

    read: Callable[[], Value]
    write: Callable[[Value], None]

    @property
    def carry(self) -> Value:
        """The flag, a predicate."""
        return self.read()

    @carry.setter
    def carry(self, value: Value) -> None:
        self.write(value)
