"""Mbarrier objects, barriers in shared memory (PTX 9.7.13.15).  `isa.mbarrier` has their contents."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ptxvm.algebra.asynchronous import MbarrierStep
from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.ports import Memory
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import b64, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.isa.access import ADDRESS, ORDER, WEAK, Trait, base_of, generic_addressing, has, window
from ptxvm.isa.mbarrier import (
    COUNT,
    completed,
    dropped,
    expect_and_arrive,
    expect_and_drop,
    expecting,
    fresh,
    pending,
    phase,
    signalled,
)
from ptxvm.isa.model import Decoded, Problem, checked, instruction


def updated(i: Decoded, a: Value, how: MbarrierStep, update: Callable[..., Value], operands: list[Value], mem: Memory) -> Value:
    """One step of an mbarrier; `how` names it for the checkers."""
    unsaid = Order.RELEASE if how in (MbarrierStep.ARRIVE, MbarrierStep.DROP) else Order.RELAXED
    order, scope = Order(i.order or unsaid), Scope(i.scope or "cta")
    return mem.atomic(window(i), b64, a, update, operands, order=order, scope=scope, mbarrier=how)


def outside_of_shared_memory(i: Decoded) -> Problem | None:
    """A variable that is an mbarrier lies in .shared, at a generic address too; no special register is its address."""
    base = base_of(i.shape("a"))
    if base.kind == "special":
        ptxas = f"Illegal state space for address operand '%{base.detail}' with instruction '{i.opcode}'"
        return Problem("P2908", f"'%{base.detail}' is no address of an mbarrier", operand="a", ptxas=ptxas)
    if not generic_addressing(i) or base.kind != "variable" or base.space.window is Space.SHARED:
        return None
    return Problem("P2908", f"the variable lies in .{base.space.window}, and an mbarrier in .shared", operand="a",
                   ptxas=f"Illegal state space for address operand with instruction '{i.opcode}'")  # fmt: skip


IN_SHARED = Trait(rules=[*ADDRESS.rules, ("P2908", outside_of_shared_memory)], needs=ADDRESS.needs)


# ── init, inval ─────────────────────────────────────────────────────────────────────────

NEEDS = {"": "PTX 7.0, sm_80", ".shared::cta": "PTX 7.8"}


@has(IN_SHARED)
@instruction(
    """
    mbarrier.init{.ss}.b64  [a], count;
    .ss = { .shared, .shared::cta };
    """,
    section="9.7.13.15.9",
    types="a: u64, count: u32 plain",
    needs=NEEDS,
    fixed="init",
)
def mbarrier_init(i, a, count, mem):
    """Make an mbarrier for `count` arrivals in each phase, in phase 0."""
    mem.store(window(i), b64, a, [fresh(count)], mbarrier=MbarrierStep.INIT, **WEAK)


LAYOUT_NEEDS = {"": "PTX 9.3, sm_90"}
LAYOUTS = ".layout = { .layout::v0, .layout::v1 }; .ss = { .shared, .shared::cta };"


@has(IN_SHARED)
@checked(
    f"mbarrier.init.layout{{.ss}}.b64  [a], count; {LAYOUTS}",
    section="9.7.13.15.9",
    types="a: u64, count: u32 plain",
    needs=LAYOUT_NEEDS,
    fixed="init",
)
def mbarrier_init_layout(i, a, count):
    """Make an mbarrier whose contents lie in a layout that is named."""


@has(IN_SHARED)
@checked(
    f"mbarrier.check_layout.layout{{.scope}}{{.ss}}.b64  d, [a]; {LAYOUTS} .scope = {{ .cta, .cluster, .gpu, .sys }};",
    section="9.7.13.15.9",
    types="d: pred plain, a: u64",
    needs=LAYOUT_NEEDS,
    fixed="check_layout",
)
def mbarrier_check_layout(i, a):
    """Is an mbarrier of that layout?"""


@mbarrier_init.rule("P2501")
@mbarrier_init_layout.rule("P2501")
def number_of_arrivals(i):
    """An mbarrier is for 1 to 1,048,575 arrivals."""
    count = i.value("count")
    if count is None or 1 <= wrapped(count) <= COUNT:
        return None
    said = f"Argument 1 of instruction 'mbarrier.init': value '{wrapped(count)}' out of range"
    return Problem("P2501", f"an mbarrier is for 1 to {COUNT:,} arrivals, not {count}", operand="count",
                   ptxas=f"{said}, expected to be in range [1..{COUNT}]")  # fmt: skip


def wrapped(value: int) -> int:
    """A constant as the signed 32 bits of it."""
    return (value + (1 << 31)) % (1 << 32) - (1 << 31)


@has(IN_SHARED)
@instruction(
    """
    mbarrier.inval{.ss}.b64  [a];
    .ss = { .shared, .shared::cta };
    """,
    section="9.7.13.15.10",
    types="a: u64",
    needs=NEEDS,
    fixed="inval",
)
def mbarrier_inval(i, a, mem):
    """Unmake an mbarrier: its memory may be used for something else."""
    mem.store(window(i), b64, a, [a.lift(0).view(b64)], mbarrier=MbarrierStep.INVAL, **WEAK)


# ── arrive, arrive_drop ─────────────────────────────────────────────────────────────────

SLOTS = """
    .order = { .release, .relaxed };
    .scope = { .cta, .cluster };
    .ss    = { .shared, .shared::cta, .shared::cluster };
    """
ARRIVAL_NEEDS = {
    "": "PTX 7.0, sm_80",
    ".shared::cta": "PTX 7.8",
    ".shared::cluster": "PTX 8.0, sm_90",
    ".expect_tx": "PTX 8.0, sm_90",
    ".release": "PTX 8.0",
    ".relaxed": "PTX 8.6, sm_90",
    ".cluster": "PTX 8.0, sm_90",
}
arriving = partial(instruction, types="d: u64 plain sink, a: u64, count transactions: u32 plain", needs=ARRIVAL_NEEDS)


@has(IN_SHARED, ORDER)
@arriving(
    """
    mbarrier.arrive{.order}{.scope}{.ss}.b64             d, [a]{, count};
    mbarrier.arrive.noComplete{.order}{.scope}{.ss}.b64  d, [a], count;
    """
    + SLOTS,
    section="9.7.13.15.13",
    fixed="arrive",
)
def mbarrier_arrive(i, a, count, mem):
    """Arrive at an mbarrier, once or `count` times, and give its state before that; the last arrival ends the phase.

    With `.noComplete` this must not be the last one.
    """
    return updated(i, a, MbarrierStep.ARRIVE, signalled, [arrivals(a, count)], mem)


@has(IN_SHARED, ORDER)
@arriving(
    """
    mbarrier.arrive_drop{.order}{.scope}{.ss}.b64             d, [a]{, count};
    mbarrier.arrive_drop.noComplete{.order}{.scope}{.ss}.b64  d, [a], count;
    """
    + SLOTS,
    section="9.7.13.15.14",
    fixed="arrive_drop",
)
def mbarrier_arrive_drop(i, a, count, mem):
    """Arrive at an mbarrier, and expect so many arrivals less in the phases that follow."""
    return updated(i, a, MbarrierStep.DROP, dropped, [arrivals(a, count)], mem)


def arrivals(a: Value, count: Value | None) -> Value:
    """How often a thread arrives: once, unless it says."""
    return a.lift(1) if count is None else count.to(u64)


@has(IN_SHARED, ORDER)
@arriving(
    f"""
    mbarrier.arrive.expect_tx{{.order}}{{.scope}}{{.ss}}.b64  d, [a], transactions;
    {SLOTS}
    """,
    section="9.7.13.15.13",
    fixed="arrive expect_tx",
)
def mbarrier_arrive_expect_tx(i, a, transactions, mem):
    """Await so many more transactions in this phase, then arrive."""
    return updated(i, a, MbarrierStep.ARRIVE, expect_and_arrive, [transactions.to(u64)], mem)


@has(IN_SHARED, ORDER)
@arriving(
    f"""
    mbarrier.arrive_drop.expect_tx{{.order}}{{.scope}}{{.ss}}.b64  d, [a], transactions;
    {SLOTS}
    """,
    section="9.7.13.15.14",
    fixed="arrive_drop expect_tx",
)
def mbarrier_arrive_drop_expect_tx(i, a, transactions, mem):
    """Await so many more transactions in this phase, then arrive, and expect an arrival less in those that follow."""
    return updated(i, a, MbarrierStep.DROP, expect_and_drop, [transactions.to(u64)], mem)


def state_of_a_cluster(i: Decoded) -> str | None:
    """An arrival at an mbarrier in .shared::cluster gives no state: its destination is `_`."""
    if i.ss == Space.SHARED_CLUSTER and i.shape("d").kind != "sink":
        return f"Sink '_' is expected as a destination operand for instruction '{i.form.opcode}' with '.shared::cluster'"
    return None


def no_arrivals(i: Decoded) -> str | None:
    """A thread arrives at least once."""
    count = i.value("count")
    if count is not None and count <= 0:
        return f"Argument 2 of instruction '{i.form.opcode}' : value '{count}' expected to be a non-zero positive"
    return None


def incomplete_arrival(i: Decoded) -> str | None:
    """.noComplete is for an arrival of .release.cta in the own CTA."""
    if not i.noComplete:
        return None
    word = next((w for w in (Space.SHARED_CLUSTER, "relaxed", "cluster") if w in i.bound.values()), None)
    return f"Modifier '.{word}' cannot be combined with modifier '.noComplete'" if word else None


def count_without_no_complete(i: Decoded) -> bool:
    """Are several arrivals allowed to end the phase?"""
    return i.shape("count") is not None and not i.noComplete


for arrival in (mbarrier_arrive, mbarrier_arrive_drop, mbarrier_arrive_expect_tx, mbarrier_arrive_drop_expect_tx):
    arrival.rule("P2502")(state_of_a_cluster)
for arrival in (mbarrier_arrive, mbarrier_arrive_drop):
    arrival.rule("P2503")(no_arrivals)
    arrival.rule("P2504")(incomplete_arrival)
    arrival.needs_when("PTX 7.8, sm_90")(count_without_no_complete)


@mbarrier_arrive.needs_when("PTX 7.1")
def discarded_state(i):
    return i.shape("d") is not None and i.shape("d").kind == "sink"


# ── transactions ────────────────────────────────────────────────────────────────────────

TRANSACTION_SLOTS = SLOTS.replace(".release, ", "")
transacting = partial(instruction, types="a: u64, transactions: u32 plain", needs={"": "PTX 8.0, sm_90"})


@has(IN_SHARED, ORDER)
@transacting(
    f"""
    mbarrier.expect_tx{{.order}}{{.scope}}{{.ss}}.b64  [a], transactions;
    {TRANSACTION_SLOTS}
    """,
    section="9.7.13.15.11",
    fixed="expect_tx",
)
def mbarrier_expect_tx(i, a, transactions, mem):
    """Await so many more transactions in this phase."""
    updated(i, a, MbarrierStep.EXPECT, expecting, [transactions.to(u64)], mem)


@has(IN_SHARED, ORDER)
@transacting(
    f"""
    mbarrier.complete_tx{{.order}}{{.scope}}{{.ss}}.b64  [a], transactions;
    {TRANSACTION_SLOTS}
    """,
    section="9.7.13.15.12",
    fixed="complete_tx",
)
def mbarrier_complete_tx(i, a, transactions, mem):
    """Tell an mbarrier that so many transactions are done, as an asynchronous copy does at its end."""
    updated(i, a, MbarrierStep.COMPLETE, completed, [transactions.to(u64)], mem)


# ── test_wait, try_wait ─────────────────────────────────────────────────────────────────

WAIT_SLOTS = """
    .order = { .acquire, .relaxed };
    .scope = { .cta, .cluster };
    .ss    = { .shared, .shared::cta };
    """
WAIT_NEEDS = {
    "": "PTX 7.0, sm_80",
    ".parity": "PTX 7.1",
    ".shared::cta": "PTX 7.8",
    ".acquire": "PTX 8.0",
    ".relaxed": "PTX 8.6, sm_90",
    ".cluster": "PTX 8.0, sm_90",
}
WAIT_TYPES = "d: pred plain, a: u64, state: u64 plain numeric, parity hint: u32 plain"
testing = partial(instruction, section="9.7.13.15.16", types=WAIT_TYPES, needs=WAIT_NEEDS)
trying = partial(testing, needs={**WAIT_NEEDS, "": "PTX 7.8, sm_90"})


def is_over(i: Decoded, a: Value, seen: Value, mem: Memory, state: Value | None = None) -> Value:
    """Is the phase of that parity, perhaps that of a state, over: is the mbarrier in the other one?"""
    order, scope = Order(i.order or "acquire"), Scope(i.scope or "cta")
    (word,) = mem.load(window(i), b64, a, order=Order.RELAXED, scope=scope, mbarrier=MbarrierStep.TEST)
    over: Value = phase(word).ne(seen)
    mem.phase_over(window(i), a, over, state=state, order=order, scope=scope)
    return over


@has(IN_SHARED, ORDER)
@testing(
    f"mbarrier.test_wait{{.order}}{{.scope}}{{.ss}}.b64  d, [a], state; {WAIT_SLOTS}",
    fixed="test_wait",
)
def mbarrier_test_wait(i, a, state, mem):
    """Is the phase over in which an arrival gave the state?"""
    return is_over(i, a, phase(state), mem, state)


@has(IN_SHARED, ORDER)
@testing(
    f"mbarrier.test_wait.parity{{.order}}{{.scope}}{{.ss}}.b64  d, [a], parity; {WAIT_SLOTS}",
    fixed="test_wait parity",
)
def mbarrier_test_wait_parity(i, a, parity, mem):
    """Is the phase of that parity over, which is the current one or the one before?"""
    return is_over(i, a, parity.to(u64) & 1, mem)


@has(IN_SHARED, ORDER)
@trying(
    f"mbarrier.try_wait{{.order}}{{.scope}}{{.ss}}.b64  d, [a], state{{, hint}}; {WAIT_SLOTS}",
    fixed="try_wait",
)
def mbarrier_try_wait(i, a, state, hint, mem):
    """Wait some time for the end of the phase in which an arrival gave the state: has it come?

    How long the thread may wait, at most about `hint` nanoseconds, is up to the machine; this one does not wait.
    """
    return is_over(i, a, phase(state), mem, state)


@has(IN_SHARED, ORDER)
@trying(
    f"mbarrier.try_wait.parity{{.order}}{{.scope}}{{.ss}}.b64  d, [a], parity{{, hint}}; {WAIT_SLOTS}",
    fixed="try_wait parity",
)
def mbarrier_try_wait_parity(i, a, parity, hint, mem):
    """Wait some time for the end of the phase of that parity: has it come?"""
    return is_over(i, a, parity.to(u64) & 1, mem)


# ── phases of several types, and reports ────────────────────────────────────────────────

PHASES = f"{WAIT_SLOTS} .phase = {{ .phase_type::primary, .phase_type::conditional }};"
PHASE_TYPES = (
    "d: pred plain, second: pred plain sink, report: b8 plain reg, a: u64, state: u64 plain numeric, parity hint: u32 plain"
)
FIRST_TEST = {".phase_type::primary .phase_type::conditional": "PTX 9.3, sm_90", **WAIT_NEEDS}
phase_testing = partial(checked, section="9.7.13.15.16", types=PHASE_TYPES)


def with_phases(head: str, operand: str) -> str:
    """The syntax lines of a wait that names a type of phases, gives a second predicate, or a report."""
    tail = "{.order}{.scope}{.ss}.b64"
    return f"""
    {head}.phase{tail}    d, [a], {operand};
    {head}{{.phase}}{tail}  d|second, [a], {operand};
    {head}.phase{tail}    d{{|second}}, report, [a], {operand};
    {PHASES}
    """


@has(IN_SHARED, ORDER)
@phase_testing(with_phases("mbarrier.test_wait", "state"), fixed="test_wait", needs={**FIRST_TEST, "": "PTX 7.0, sm_80"})
def mbarrier_test_wait_phase(i, a, state):
    """Is the phase of that type over in which an arrival gave the state, and what was reported in it?"""


@has(IN_SHARED, ORDER)
@phase_testing(
    with_phases("mbarrier.test_wait.parity", "parity"),
    fixed="test_wait parity",
    needs={**FIRST_TEST, "": "PTX 7.1, sm_80"},
)
def mbarrier_test_wait_parity_phase(i, a, parity):
    """Is the phase of that type and parity over, and what was reported in it?"""


@has(IN_SHARED, ORDER)
@phase_testing(with_phases("mbarrier.try_wait", "state{, hint}"), fixed="try_wait", needs={**FIRST_TEST, "": "PTX 7.8, sm_90"})
def mbarrier_try_wait_phase(i, a, state, hint):
    """Wait some time for the end of the phase of that type in which an arrival gave the state: has it come?"""


@has(IN_SHARED, ORDER)
@phase_testing(
    with_phases("mbarrier.try_wait.parity", "parity{, hint}"),
    fixed="try_wait parity",
    needs={**FIRST_TEST, "": "PTX 7.8, sm_90"},
)
def mbarrier_try_wait_parity_phase(i, a, parity, hint):
    """Wait some time for the end of the phase of that type and parity: has it come?"""


def phase_with_a_report(i: Decoded) -> str | None:
    """A second predicate and a report are those of .phase_type::primary; .phase_type::conditional needs .parity."""
    second = i.shape("second")
    reported = i.shape("report") is not None or (second is not None and second.kind != "sink")
    if reported and i.phase != "phase_type::primary":
        return f"Arguments mismatch for instruction '{i.opcode}'"
    if i.phase == "phase_type::conditional" and i.shape("state") is not None:
        return f".parity modifier required for instruction '{i.opcode}'"
    return None


def parity_without_a_report(i: Decoded) -> str | None:
    """The parity of a phase is 0 or 1."""
    return None if i.shape("report") is not None else neither_even_nor_odd(i)


for wait in (
    mbarrier_test_wait_phase,
    mbarrier_test_wait_parity_phase,
    mbarrier_try_wait_phase,
    mbarrier_try_wait_parity_phase,
):
    wait.rule("P2506")(phase_with_a_report)
for wait in (mbarrier_test_wait_parity_phase, mbarrier_try_wait_parity_phase):
    wait.rule("P2505")(parity_without_a_report)


def neither_even_nor_odd(i: Decoded) -> str | None:
    """The parity of a phase is 0 or 1."""
    parity = i.value("parity")
    if parity in (None, 0, 1):
        return None
    return f"Argument 2 of instruction '{i.form.opcode}': unexpected value '{parity}', expected to be 0 or 1"


for wait in (mbarrier_test_wait_parity, mbarrier_try_wait_parity):
    wait.rule("P2505")(neither_even_nor_odd)


@instruction(
    "mbarrier.pending_count.b64  d, state;",
    section="9.7.13.15.17",
    types="d: u32 plain, state: u64 plain numeric",
    needs={"": "PTX 7.0, sm_80"},
    fixed="pending_count",
)
def mbarrier_pending_count(i, state):
    """How many arrivals were pending in a state that an arrival gave."""
    return pending(state).to(u32)
