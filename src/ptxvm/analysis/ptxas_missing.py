"""What ptxas 13.0 says of modifiers that an instruction lacks, and the order in which it looks at modifiers.

It goes through a list of checks: a modifier that it refuses is named between what it misses before and behind that check.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum

from ptxvm.algebra.types import Type
from ptxvm.analysis.ptxas_modifiers import COMPOUND, ORDERS, Words
from ptxvm.isa.model import Problem
from ptxvm.isa.notation import ModifierSlot


class Check(IntEnum):
    """The checks of modifiers, in their order."""

    READING = 0
    DIMENSION = 1
    FIRST = 2
    NEEDED = 3
    ROWS = 4
    NEEDED_AGAIN = 5
    NOTED = 6
    COMPARISON = 7
    COMPARED = 8
    OPERATION = 9
    NOTED_AGAIN = 10
    ROUNDING = 11
    LAST = 12
    END = 13
    AFTER = 14


CHECKS = {
    "Unknown modifier": Check.READING,
    "Illegal vector size": Check.READING,
    "Illegal modifier 'dimension'": Check.DIMENSION,
    "Vector qualifier": Check.DIMENSION,
    "Comparison modifier required": Check.COMPARISON,
    "Boolean operation is required": Check.COMPARISON,
    "Comparison qualifier": Check.COMPARED,
    "Mismatch between instruction type and comparison": Check.COMPARED,
    "Illegal operation": Check.OPERATION,
    "Operation  requires": Check.OPERATION,
    "Reduction operation is required": Check.OPERATION,
    "Membar level required": Check.OPERATION,
    "Scope modifier required": Check.OPERATION,
    "Modifier '.acq_rel' requires scope": Check.OPERATION,
    "Modifier '.sc' requires scope": Check.OPERATION,
    "Illegal rounding modifier": Check.ROUNDING,
    "Modifier '.cc' applies": Check.NOTED_AGAIN,
    "Illegal modifier": Check.NOTED_AGAIN,
    "Illegal query modifier": Check.END,
    "Rounding modifier required": Check.LAST,
    "Clamp modifier required": Check.LAST,
    "Cache level modifier required": Check.LAST,
    "'.ca or .cg' modifier required": Check.LAST,
    "Query modifier required": Check.LAST,
    "Instruction 'tex": Check.LAST,
    "Instruction 'tld4": Check.LAST,
}
"""How a line begins, and the check that it is of; all others are about what is needed."""
REPEATED = {
    "Illegal modifier": Check.NOTED,
    ".approx modifier required for instruction 'tanh'": Check.AFTER,
    ".approx": Check.NEEDED_AGAIN,
}
"""Lines that stand twice: another check for one of the two."""

ILLEGAL = {
    Check.FIRST: """.L1 .L1::32B .L1::evict_first .L1::evict_last .L1::evict_normal .L1::evict_unchanged .L1::no_allocate .L2
        .L2::evict_first .L2::evict_last .L2::evict_normal .L2::evict_unchanged .level::eviction_priority .aligned .all
        .any .approx .async::generic .b1024 .ballot .bfly .bulk_group .counted::bytes .down .evict_first .evict_last
        .evict_normal .evict_unchanged .ftz .generic::fabric .idx .ignore_oob .launch_dependents .layout::v0 .layout::v1
        .mbarrier::arrive::one .mbarrier::complete_tx::16B .mbarrier::complete_tx::bytes .mbarrier::report::fabric
        .mbarrier_init .multicast::cluster::16b .no_allocate .noComplete .noinc .oob .op_restrict::fetching
        .phase_type::conditional .phase_type::primary .proxy::readonly .sat .scaled::n2::ue8m0 .sp .sp::ordered_metadata
        .submit .sync_restrict::reads .sync_restrict::shared::cluster .sync_restrict::shared::cluster::read
        .sync_restrict::shared::cta .tensormap .tensormap::generic .try_get .try_pullred .try_put .try_red .uni .up
        .wait""",
    Check.ROWS: ".alayout .noftz",
    Check.END: """.NaN .a1d .a2d .acube .alias .async .ca .cg .cs .cube .cv .lu .po .read .trans .wb .wt .x1 .x2 .x4 .x8
        .x16 .x32 .x64 .x128 Clamp Component Geometry Multi-sample Permute Shift-right""",
}
"""What it refuses at a check of its own."""
CHECK_OF = {word: one for one, words in ILLEGAL.items() for word in words.split()}
SHAPE = re.compile(r"\.m\d+n\d+")
REFUSED = re.compile(r"Illegal modifier '([^ ']*)")

MISSED = {
    "mnk": "Shape", "m8n8": "Shape", "num": ".num", "geom": "Geometry", "clamp": "Clamp", "query": "Query", "comp": "Component",
    "CmpOp": "Comparison", "cmp": "Comparison", "rnd": "Rounding", "frnd": "Rounding", "rn": "Rounding", "cop": "'.ca or .cg'",
    "layout": "layout", "L1": "Cache level", "L2": ".L2", "completion": ".completion_mechanism",
    "bulk_group": ".completion_mechanism", "mbarrier_complete_tx_bytes": ".completion_mechanism",
    "action": "'.launch_dependents' or '.wait'",
}  # fmt: skip
"""What ptxas calls the modifiers of a slot."""
MODES = {
    "bar": "Barrier modifier required", "barrier": "Barrier modifier required", "match": "'.any' or '.all' modifier required",
    "membar": "Membar level required", "prefetch": "Cache level modifier required",
    "prefetchu": "Cache level modifier required", "redux": "Reduction operation is required",
    "shfl": "Shuffle modifier required", "vote": ".mode modifier required",
}  # fmt: skip
"""What it says where the modifier is missing that says what an instruction does."""
BARRIERS = frozenset({"bar", "barrier"})
"""Opcodes whose `.sync` says what they do."""
POLICIES = frozenset({"primary", "L2_evict_normal"})
"""Slots of cache policies."""
LAYOUTS = ("alayout", "blayout")
ROWS = frozenset({*LAYOUTS, "row", "col"})
"""Slots of the orders of matrices."""
SYNCHRONIZED_TWICE = frozenset({"ldmatrix", "stmatrix"})
"""Opcodes whose missing `.sync` is told twice."""
ATOMICS = frozenset({"atom", "red"})
"""Opcodes of which it says what an operation that is missing would have to be."""
APPROXIMATED_TWICE = frozenset({"ex2", "tanh"})
"""Opcodes whose missing `.approx` is told twice."""
CLAMPS = frozenset({"clamp", "wrap"})
"""How the modifiers of shifts and masks are called."""
OPERATIONS = {"shfl": "sync", "vote": "sync", "set": "and", "setp": "and"}
"""Modifiers that bring another operand: without them ptxas misses them, where the operand is there."""
TEXTURES = frozenset({"tex", "tld4"})
"""Opcodes whose results are vectors."""
FIRST = ("sync", "mnk", "m8n8", "num")
"""Slots that it looks at before the others."""


def missed_by_ptxas(opcode: str, slots: Sequence[ModifierSlot], words: Words) -> list[str]:
    """What ptxas says where modifiers are missing: of the type before all others, and alone."""
    if opcode in COMPOUND:
        return [f"Not a name of any known instruction: '{opcode}'"]
    if any(slot.is_type for slot in slots):
        return [f"Unexpected instruction types specified for '{opcode}'"]
    if any(slot.is_space for slot in slots):
        return [f"{said} instruction '{opcode}'" for said in missing_space(opcode)]
    first = [slot for slot in slots if slot.name in FIRST]
    ordered = [*first, *(slot for slot in slots if slot not in first and slot.name != "aligned")]
    ordered += [slot for slot in slots if slot.name == "aligned"]
    said = dict.fromkeys(line for slot in ordered for line in missing_slot(opcode, slot, slots, words))
    lines = list(said) or [f"Unexpected instruction types specified for '{opcode}'"]
    if opcode in SYNCHRONIZED_TWICE and lines[0].startswith(".sync"):
        lines.append(lines[0])
    if opcode in APPROXIMATED_TWICE or "." in opcode:
        lines += [line for line in lines if line.startswith((".approx", "Reduction"))]
    return lines


def missed_for_operands(opcode: str, message: str) -> list[str]:
    """What ptxas says where operands are those of the opcode with a modifier that is missing; `message` is a rule of it."""
    if OPERATIONS[opcode] == "sync":
        return [f".sync modifier required for instruction '{opcode}'", *([message] if message else [])]
    return [f"Boolean operation is required for instruction '{opcode}'"]


def missing_space(opcode: str) -> tuple[str, ...]:
    """What it says where a state space is missing; copies have two."""
    number = "Unexpected number of state spaces specified in"
    if opcode == "cp.async":
        return (number,)
    incorrect = "State space incorrect for"
    return (incorrect, number) if opcode.startswith("cp.") else ("State space modifier required for", incorrect)


def missing_slot(opcode: str, slot: ModifierSlot, slots: Sequence[ModifierSlot], words: Words) -> Iterator[str]:
    """What it says of one missing modifier; nothing where it tells it by another."""
    of = f"for instruction '{opcode}'"
    if opcode in MODES and (slot.name not in {"sync", "aligned"} or opcode in BARRIERS):
        yield f"{MODES[opcode]} {of}"
    elif slot.name == "op":
        yield from (f"{said} {of}" for said in ("Illegal operation ''", "Operation  requires  type") if opcode in ATOMICS)
        yield f"Reduction operation is required {of}"
    elif slot.name in ROWS:
        yield from missing_rows(opcode, slots)
    elif slot.name in POLICIES:
        yield from (f"{said} modifier required {of}" for said in ("cache eviction priority", ".L2"))
    elif opcode == "fence" and slot.name == "scope":
        order = next((word for word in words if word in ORDERS), "acq_rel")
        yield from (f"Scope modifier required {of}", f"Modifier '.{order}' requires scope with 'fence' instruction")
    elif slot.name == "vec" and opcode in TEXTURES:
        yield f"Instruction '{opcode}.{next((word for word in words if word in Type.named), '')}' requires .v4 type"
    elif slot.choices == CLAMPS:
        yield f"Clamp modifier required {of}"
    elif slot.name in MISSED:
        yield f"{MISSED[slot.name]} modifier required {of}"
    elif slot.literal:
        yield f".{slot.name} modifier required {of}"


def missing_rows(opcode: str, slots: Sequence[ModifierSlot]) -> Iterator[str]:
    """What it says of the orders of matrices: of both together, and of each unless the shape is missing, too."""
    both = sum(slot.name in ROWS for slot in slots) > 1
    yield f"'.{'alayout.' if both else ''}blayout' modifier required for instruction '{opcode}'"
    if opcode == "mma" and all(slot.name != "mnk" for slot in slots):
        yield from (f"{name} modifier required for instruction '{opcode}'" for name in LAYOUTS[not both :])


def in_its_order(lines: Iterable[str]) -> list[str]:
    """Lines about modifiers of one instruction, in the order of ptxas's checks."""
    left = list(lines)
    ranked = [(check(line, first=line not in left[:n], again=left.count(line) > 1), line) for n, line in enumerate(left)]
    return [line for _, line in sorted(ranked, key=lambda pair: pair[0])]


def check(line: str, *, first: bool, again: bool) -> Check:
    """The check that says a line; of two that are alike, one is of another check."""
    if (refused := REFUSED.match(line)) and (own := check_of(refused[1])) is not None:
        return own
    if again:
        for begins, one in REPEATED.items():
            if line.startswith(begins) and first is (one is Check.NOTED):
                return one
    return next((one for begins, one in CHECKS.items() if line.startswith(begins)), Check.NEEDED)


def check_of(word: str) -> Check | None:
    """The check of its own that refuses a modifier."""
    return Check.ROWS if SHAPE.match(word) else CHECK_OF.get(word)


def lines_of(problem: Problem) -> list[str]:
    """The lines that ptxas prints of a problem."""
    return [problem.ptxas or problem.message, *problem.consequence.splitlines()]
