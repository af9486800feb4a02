"""The names that the question of a litmus test may use."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.model.litmus_program import Atomic, Load, Store, Thread
from ptxvm.model.litmus_test import Test


def register_names(thread: Thread) -> Iterator[str]:
    """The registers that a thread may write, as a final state names them."""
    for instruction in thread.code:
        of_load = instruction.registers if isinstance(instruction, Load) else ()
        of_other = getattr(instruction, "register", None)
        for register in (*of_load, *([of_other] if of_other else [])):
            if not register.startswith("#"):
                yield f"{thread.name}:{register}"


def variables_of(test: Test) -> list[str]:
    """The variables that a test declares or uses; an alias is none."""
    used = list(test.variables)
    for one in (one for thread in test.threads for one in thread.code):
        match one:
            case Load() | Store():
                used += [location.variable for location in one.locations]
            case Atomic():
                used.append(one.location.variable)
    return list(dict.fromkeys(test.physical(name) for name in used))
