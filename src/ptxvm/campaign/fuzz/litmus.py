"""Random litmus tests: the machine never shows an outcome that the memory consistency model forbids."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from random import Random

from ptxvm.litmus import State, machines, observe
from ptxvm.model import judge, read_litmus
from ptxvm.model.deadline import OutOfTime, time_limit
from ptxvm.model.judge import NO_GUARANTEE

VARIABLES = "xyz"
ALIAS, COUNT = "w", "m"
"""A second address of the first variable, and a counter of arrivals."""
SCOPES = ("cta", "cluster", "gpu", "sys")
LOADS = ("weak", "relaxed", "acquire")
STORES = ("weak", "relaxed", "release")
UPDATES = ("relaxed", "acquire", "release", "acq_rel")
REDUCTIONS = ("relaxed", "release")
PARTS = (*[("", "")] * 6, (".b16", ""), (".b16", "+2"))
"""The types of accesses, and where they begin in a variable of four bytes."""
DEVICES = (0, 0, 0, 1)
MEETS = 0.5  # how often threads of one CTA meet at a barrier
FENCED = 0.3  # how often there is a fence between two instructions, and a branch behind a load
SELDOM = 0.2  # how often there is an alias, and a counter that is waited for
FENCES = ("acq_rel", "sc")
OPERATIONS = ("add", "exch", "and", "or", "xor", "max")
"""Atomic operations whose result is used; those without one are commutative."""
RUNS = 6
ANSWER = 5.0  # seconds of the model for a test
MODELS = ("6.4", "9.1")


def random_test(number: int) -> str:
    """The litmus test of a number: two threads with up to three instructions each, or three with up to two.

    Some read a variable by a second address, skip instructions by what they have read, or wait for arrivals.
    """
    random = Random(f"litmus {number}")  # noqa: S311 - no secret
    variables = VARIABLES[: random.randint(1, 3)]
    threads = random.randint(2, 3)
    places = [f"P{n}@cta {random.randint(0, 1)},gpu {random.choice(DEVICES)}" for n in range(threads)]
    most = 5 - threads  # more take a solver minutes
    has_alias, waits = random.random() < SELDOM, random.random() < SELDOM
    columns = [[place, *thread(variables + ALIAS * has_alias, most, random)] for place in places]
    if len({place.split("@")[1] for place in places}) == 1 and random.random() < MEETS:
        columns = met(columns, random)
    elif waits:
        columns = awaited(columns, random)
    height = max(map(len, columns))
    rows = zip(*(column + [""] * (height - len(column)) for column in columns), strict=True)
    table = "\n".join(" " + " | ".join(row) + " ;" for row in rows)
    start = " ".join(f"b32 {name} = 0;" for name in variables + COUNT * any(COUNT in line for line in columns[-1]))
    alias = f"\n{ALIAS} @ generic aliases {variables[0]};" if has_alias else ""
    return f"PTX random-{number}\n{{\n{start}{alias}\n}}\n{table}\nexists ({variables[0]} == 1)\n"


def met(columns: list[list[str]], random: Random) -> list[list[str]]:
    """The columns of threads of a CTA that meet at a barrier, where one, perhaps, only arrives."""
    early = random.randrange(2 * len(columns))
    found = []
    for n, column in enumerate(columns):
        at = random.randint(1, len(column))
        found.append([*column[:at], f"bar.cta.{'arrive' if n == early else 'sync'} 0", *column[at:]])
    return found


def awaited(columns: list[list[str]], random: Random) -> list[list[str]]:
    """Columns of which all but the last arrive at a counter, for which the last waits in a loop."""
    *arriving, (place, *last) = columns
    scope = random.choice(["", ".release.cluster", ".release.gpu", ".relaxed.cta"])
    arrive, wait = f"mbarrier.arrive{scope} {COUNT}", f"mbarrier.wait{scope.replace('release', 'acquire')} {COUNT}"
    return [*([*each, arrive] for each in arriving), [place, f"{wait}, {len(arriving)}", *last]]


def thread(variables: str, most: int, random: Random) -> list[str]:
    """The instructions of a thread, perhaps with a fence between them, or a branch by what has been read before."""
    lines: list[str] = []
    before, skips = "", False
    for n in range(random.randint(1, most)):
        if n and random.random() < FENCED:
            fence = f"fence.{random.choice(FENCES)}.{random.choice(SCOPES)}"
            aliased = ["fence.proxy.alias"] * 4 if ALIAS in variables else []
            lines.append(random.choice([fence, fence, fence, "membar.cta", "membar.gl", "membar.sys", *aliased]))
        if before and not skips and random.random() < FENCED:
            lines.append(f"{random.choice(['beq', 'bne', 'blt'])} {before}, {random.randint(0, 2)}, END")
            skips = True
        lines.append(instruction(f"r{n}", random.choice(variables), before, random))
        before = f"r{n}" if f" r{n}, " in lines[-1] else ""
    return [*lines, "END:"] if skips else lines


def instruction(register: str, variable: str, before: str, random: Random) -> str:
    """A load or store of a variable or of half of one, an atomic, or a reduction.

    What is written is a constant, or what the instruction before has loaded to the register `before`.
    """
    value = random.choice([1, 2, before or 1])
    type, part = random.choice(PARTS)
    match random.choice(["ld", "ld", "st", "st", "volatile", "red", "update", "update", "cas", "halves"]):
        case "ld":
            return f"ld.{ordered(random.choice(LOADS), random)}{type} {register}, {variable}{part}"
        case "st":
            return f"st.{ordered(random.choice(STORES), random)}{type} {variable}{part}, {value}"
        case "volatile":
            word = random.choice(["volatile", "volatile", "mmio.relaxed.sys"])
            return random.choice([f"ld.{word} {register}, {variable}", f"st.{word} {variable}, {value}"])
        case "halves":
            order = ordered(random.choice(["weak", "relaxed"]), random)
            both = f"{{{random.randint(1, 2)}, {random.randint(1, 2)}}}"
            return f"st.{order}.v2.b16 {variable}, {both}"
        case "red":
            return f"red.{ordered(random.choice(REDUCTIONS), random)}.{random.choice(['add', 'or', 'max'])} {variable}, {value}"
        case "cas":
            return f"atom.{ordered(random.choice(UPDATES), random)}.cas {register}, {variable}, 0, {value}"
        case _:
            update = ordered(random.choice(UPDATES), random)
            return f"atom.{update}.{random.choice(OPERATIONS)} {register}, {variable}, {value}"


def ordered(order: str, random: Random) -> str:
    """An order, with its scope where it has one."""
    return order if order == "weak" else f"{order}.{random.choice(SCOPES)}"


def confirm(text: str, seed: int) -> None:
    """AssertionError where the machine shows what the model forbids.

    A test for which a model has no answer in time says nothing of it.
    """
    on = machines(read_litmus(text))
    seen = {
        engine: set(observe(where, runs, seed, engine)) for engine, where, runs in (("interp", on, RUNS), ("jit", on[:1], 2))
    }
    for model in MODELS:
        with time_limit(ANSWER), suppress(OutOfTime):
            refuse_forbidden(text, model, seen)


def refuse_forbidden(text: str, model: str, seen: Mapping[str, set[State | None]]) -> None:
    """AssertionError for a final state that an engine has shown and the model does not have."""
    found = judge(read_litmus(text), model)
    if found.verdict == NO_GUARANTEE:
        return  # accesses of several sizes race: every outcome is allowed (8.6.2)
    names = {name for states in seen.values() for state in states if state is not None for name, _ in state}
    allowed = part(found.outcomes, names)
    shown = {name for state in allowed for name, _ in state}
    for engine, states in seen.items():
        for state in sorted(part(states, shown) - allowed):
            question = " /\\ ".join(f"{name} == {value}" for name, value in state)
            if found.complete or not allows(text, model, question):
                raise AssertionError(f"{engine} shows what PTX {model} forbids: {question}")


def allows(text: str, model: str, question: str) -> bool:
    """Does the model allow a final state?"""
    return judge(read_litmus(f"{text.partition('exists')[0]}exists ({question})\n"), model).verdict == "allowed"


def part(states: Iterable[State | None], names: set[str]) -> set[State]:
    """Final states, of some names."""
    return {tuple((name, value) for name, value in state if name in names) for state in states if state is not None}


__all__ = ["confirm", "part", "random_test"]
