"""What ptxas 13.0 says of modifiers: of those that it refuses and of those that it misses, in its order.

Whether an instruction is legal is decided elsewhere; these are the words for one whose modifiers no form takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import takewhile

from ptxvm.algebra.types import Type
from ptxvm.isa.model import ISA
from ptxvm.isa.notation import ModifierSlot

Words = tuple[str, ...]

NO_VECTOR = "Vector qualifier is not allowed for"
KINDS = {
    "Illegal rounding modifier for": "rm rmi rn rna rni rp rpi rs rz rzi",
    "Comparison qualifier is not allowed for": "eq equ ge geu gt gtu hi hs le leu lo ls lt ltu nan ne neu num",
    "Illegal query modifier for": """addr_mode_0 addr_mode_1 addr_mode_2 array_size channel_data_type channel_order depth
        filter_mode force_unnormalized_coords height memory_layout normalized_coords num_mipmap_levels num_samples width""",
    "Illegal modifier '.level::eviction_priority' for": """L1::evict_first L1::evict_last L1::evict_normal L1::evict_unchanged
        L1::no_allocate L2::evict_first L2::evict_last L2::evict_normal L2::evict_unchanged""",
    "No state space qualifier expected for": """const global local param param::entry param::func shared shared::cluster
        shared::cta""",
    "Illegal modifier 'Geometry' for": "2dms a1d a2d a2dms acube cube",
    "Illegal modifier 'Permute' for": "b4e ecl ecr f4e rc16 rc8",
    "Illegal modifier 'dimension' for": "1d 2d 3d 4d 5d",
    "Illegal modifier 'Component' for": "a b g r",
    "Illegal modifier 'Clamp' for": "clamp trap wrap zero",
    NO_VECTOR: "v2 v4 v8",
    "Illegal modifier '.alayout or .blayout' for": "col row",
    "Illegal modifier 'Shift-right' for": "shr15 shr7",
}
"""What ptxas 13.0 says of modifiers that it knows by their kind."""
KIND_OF = {word: said for said, words in KINDS.items() for word in words.split()}
SEVERAL = {
    "Multiple rounding modifiers specified": KINDS["Illegal rounding modifier for"],
    "Multiple comparisons set": KINDS["Comparison qualifier is not allowed for"],
    "Multiple permute modifiers specified": KINDS["Illegal modifier 'Permute' for"],
    "Multiple dimension modifiers specified": KINDS["Illegal modifier 'dimension' for"],
    "Multiple clamp modifiers specified": KINDS["Illegal modifier 'Clamp' for"],
    "Multiple vector modifiers specified": KINDS[NO_VECTOR],
    "Multiple cache operation modifiers specified": "L1 L2 ca cg cs cv lu wb wt",
    "Multiple scope modifiers specified": "cluster cta gl gpu sys",
    "Multiple shuffle modifiers specified": "bfly down idx up",
    "Multiple .any/.all modifiers specified": "all any",
    "Multiple instruction post-operation flags set": "add and cas dec exch inc max min or xor",
    "Multiple vote modifiers specified": "ballot uni",
    "Multiple .aligned modifiers specified": "aligned",
    "Multiple .num modifiers specified": "x1 x2 x4",
    "Multiple testp operation modifiers specified": "finite infinite normal notanumber number subnormal",
    "Multiple query modifiers specified": KINDS["Illegal query modifier for"],
    "Multiple matrix shape modifiers specified": "m8n8 m16n8 m16n16 m8n8k4 m8n8k16 m8n8k32 m8n8k128 m16n8k4 m16n8k8 m16n8k16 "
    "m16n8k32 m16n8k64 m16n8k128 m16n8k256 m16n16k8 m16n16k16 m32n8k16 m8n32k16",
}
"""What it says of a modifier beside another of its kind."""
SEVERAL_OF = {word: (said, frozenset(words.split())) for said, words in SEVERAL.items() for word in words.split()}
SEMANTICS = frozenset("acq_rel acquire relaxed release sc volatile weak".split())
"""How an access is ordered: ptxas names the later of two as a duplicate."""
SPACES = frozenset(KINDS["No state space qualifier expected for"].split())
AT_ONCE = frozenset(("sync", *SEVERAL["Multiple instruction post-operation flags set"].split()))
"""`.sync` and the operations of atomics: where an instruction has none, ptxas refuses them before it looks at the types."""
REDUCTIONS = frozenset({"dec", "exch", "inc"})
"""Those of them that ptxas refuses by the types."""
FLOATING = frozenset("equ geu gtu leu ltu nan neu num".split())
UNSIGNED = frozenset({"lo", "ls", "hi", "hs"})
"""Comparisons of floating-point and of unsigned numbers, which ptxas compares with the type of the instruction."""
ORDERS = frozenset({"sc", "acq_rel", "acquire", "release"})
"""How a fence orders."""
UNSIGNED_TYPES = frozenset({"u16", "u32", "u64"})
OF_SIGNED = frozenset({"abs", "neg"})
"""Opcodes of which ptxas says so that they have no unsigned types."""
TWICE = frozenset({"Illegal modifier 'Clamp' for", "Illegal query modifier for"})
"""What it says twice."""
NOTED_TWICE = frozenset(
    ("L1", "L2", "async", "sp::ordered_metadata", "tensormap", *SEVERAL["Multiple cache operation modifiers specified"].split(),
     *SEVERAL["Multiple scope modifiers specified"].split())
)  # fmt: skip
"""Modifiers without a kind that it refuses at two places."""
COMPOUND = frozenset(
    """barrier.cluster brx clusterlaunchcontrol cp createpolicy mad24 mbarrier mul24 multimem setmaxnreg shf suld sured sust
    tcgen05 tensormap wgmma wmma""".split()
)
"""Opcodes that ptxas knows with their next modifier alone."""
WITHIN = frozenset(
    """arrive arrive_drop base bulk c check_layout commit commit_group complete_tx cp_fenceproxy cvt d exclusive expect_tx fence
    fence::after_thread_sync fence::before_thread_sync fractional full grad init inval l ld_reduce level load mask mma_async
    multimem p pack parity pending_count prefetch proxy query_cancel range red reduce relinquish_alloc_permit replace store
    sync_restrict::read tensor test_wait to try_cancel try_wait valid_addr wait::ld wait::st wait_all wait_group warp wide
    ws""".split()
)
"""Modifiers that ptxas takes for a part of the opcode, and does not know behind others."""


def refused_by_ptxas(opcode: str, words: Words, at: int) -> list[str]:
    """What ptxas says of a modifier: a type, one that some instruction has, one of a kind that there is already, or none.

    A modifier within the opcode is right, and so the type is wrong.  Where no form has the types, that is all it says.
    """
    word, own = words[at], opcode_words(opcode, words)
    name = long_opcode(opcode, words)
    others = (*words[len(own) : at], *words[at + 1 :])
    if is_strange(opcode, words, at):
        return [f"Unknown modifier '.{word}'"]
    if name in COMPOUND:
        return [f"Not a name of any known instruction: '{name}'"]
    if strange := [each for each in words if each in AT_ONCE and each not in all_words(opcode)]:
        return refused_at_once(opcode, words, strange[0])
    same = [words[n] for n in of_its_kind(opcode, words, word)]
    if word in UNSIGNED_TYPES and opcode in OF_SIGNED:
        return [f"Instruction '{name}' applies only to signed numeric types"]
    if at < len(own) or ((len(same) == 1 or word in Type.named) and not takes_types(opcode, words)):
        return [f"Unexpected instruction types specified for '{name}'"]
    if word in SPACES and takes_space(opcode) and not SPACES.isdisjoint(others):
        return said_of_spaces(opcode, name)
    if len(same) > 1:
        return [SEVERAL_OF[each][0] if each in SEVERAL_OF else f"Duplicate .{each} modifier" for each in same[1:]]
    if needs_one_of(opcode, words):
        return [f"Rounding modifier or '.approx' modifier required for instruction '{name}'"]
    if rule := refused_by_a_rule(opcode, name, words, word):
        return rule
    said = kind_of(opcode, word)
    twice = 1 + (word in NOTED_TWICE)
    return [*[f"{said} instruction '{name}'"] * twice, *refused_besides(name, words, word, said)]


def kind_of(opcode: str, word: str) -> str:
    """What ptxas says of a modifier by its kind; of a state space, where the opcode has others, that it is not one of them."""
    if word in SPACES and takes_space(opcode):
        return "State space incorrect for"
    return KIND_OF.get(word, f"Illegal modifier '.{word}' for")


def refused_at_once(opcode: str, words: Words, word: str) -> list[str]:
    """What ptxas says of `.sync` or an operation that an instruction has not: for `REDUCTIONS` it looks at the types."""
    name = long_opcode(opcode, words)
    if word not in REDUCTIONS:
        return [f"Illegal modifier '.{word}' for instruction '{name}'"]
    if opcode == "red":
        return [f"Illegal operation '.{word}' for instruction 'red'", f"Operation .{word} requires  type for instruction 'red'"]
    if not takes_types(opcode, words):
        return [f"Unexpected instruction types specified for '{name}'"]
    types = [each for each in words if each in Type.named]
    return [f"Illegal reduction operation for instruction '{'.'.join((name, *types[:2]))}'"]


def refused_by_a_rule(opcode: str, name: str, words: Words, word: str) -> list[str]:
    """What ptxas says of a modifier that it has a rule of its own for."""
    if word == "cc" and opcode in {"add", "sub"}:
        illegal = [f"Illegal modifier '.cc' for instruction '{name}'"] * any(
            Type.named[each].is_float for each in words if each in Type.named
        )
        return [*illegal, f"Modifier '.cc' applies only to {name} integer types"]
    if word == "nc" and "global" not in words and takes_space(opcode):
        return ["Modifier '.nc' requires .global space"]
    return []


def long_opcode(opcode: str, words: Words) -> str:
    """An opcode with the modifiers that belong to its name, which no state space does: `cp.async.bulk`."""
    return ".".join((opcode, *takewhile(lambda word: word not in SPACES, opcode_words(opcode, words))))


def said_of_spaces(opcode: str, name: str) -> list[str]:
    """What ptxas says of a state space too many."""
    if any(sum(slot.is_space for slot in form.slots) > 1 for _, form in ISA.by_opcode[opcode]):
        return ["Multiple state spaces specified"]
    return [f"Unexpected number of state spaces specified in instruction '{name}'"]


def opcode_words(opcode: str, words: Words) -> Words:
    """The words that belong to the opcode in some form: `wide` in `mul.wide`."""
    found = [
        sum(1 for _ in takewhile(lambda pair: pair[0] in pair[1].choices, zip(words, form.slots[: form.fixed], strict=False)))
        for _, form in ISA.by_opcode[opcode]
    ]
    return words[: max(found)]


@cache
def known_words() -> frozenset[str]:
    """Every modifier that some instruction has."""
    return frozenset(word for opcode in ISA.by_opcode for word in all_words(opcode))


@cache
def all_words(opcode: str) -> tuple[str, ...]:
    """Every modifier that some form of an opcode has."""
    return tuple(dict.fromkeys(c for _, form in ISA.by_opcode[opcode] for slot in form.slots for c in slot.order))


def is_strange(opcode: str, words: Words, at: int) -> bool:
    """Is a modifier none that ptxas knows behind others?  It refuses such a one while it reads, before all else."""
    word = words[at]
    return word not in Type.named and at >= len(opcode_words(opcode, words)) and (word not in known_words() or word in WITHIN)


def strange_words(opcode: str, words: Words) -> list[str]:
    """The modifiers of an instruction that ptxas does not know, whether it knows the opcode or not."""
    if opcode not in ISA.by_opcode:
        return unknown_words(words)
    return [word for n, word in enumerate(words) if is_strange(opcode, words, n)]


def unknown_words(words: Words) -> list[str]:
    """The modifiers that ptxas does not know behind an opcode that it does not know."""
    return [word for word in words if word not in Type.named and (word not in known_words() or word in WITHIN)]


def refused_besides(name: str, words: Words, word: str, said: str) -> list[str]:
    """What ptxas says of a modifier after it has refused its kind."""
    type = next((Type.named[each] for each in words if each in Type.named), None)
    scope = next((each for each in words if each in SEVERAL["Multiple scope modifiers specified"].split()), "")
    if scope and word in {"weak", "volatile"}:
        return [f"Modifier '.{word}' cannot be combined with modifier '.{scope}'"]
    if said == NO_VECTOR and type is not None and name != "setp":
        return ["Result vector expected", f"Argument vector size mismatch for instruction '{name}'"]
    if said in TWICE and word != "memory_layout":
        return [f"{said} instruction '{name}'"]
    if said == "Illegal modifier 'Geometry' for":
        part = "Multi-sample geometry" if word.endswith("2dms") else f".{word}"
        return [f"Illegal modifier '{part}' for instruction '{name}'"]
    if said == "Illegal modifier '.level::eviction_priority' for":
        return [f"Illegal modifier '.{word.partition('::')[2]}' for instruction '{name}'"]
    if type is not None and ((word in UNSIGNED and type.kind != "u") or (word in FLOATING and not type.is_float)):
        return ["Mismatch between instruction type and comparison qualifier"]
    return []


def of_its_kind(opcode: str, words: Words, word: str) -> list[int]:
    """The places of a modifier and of others of its kind, behind the words of the opcode."""
    kind = SEVERAL_OF[word][1] if word in SEVERAL_OF else SEMANTICS if word in SEMANTICS else {word}
    return [n for n in range(len(opcode_words(opcode, words)), len(words)) if words[n] in kind]


def read_by_ptxas(opcode: str, words: Words, word: str) -> Words:
    """The modifiers with which ptxas goes on: without one that it does not know, or with the last of a kind."""
    same = of_its_kind(opcode, words, word)
    left_out = same[:-1] if len(same) > 1 else same
    return tuple(each for n, each in enumerate(words) if n not in left_out)


def takes_space(opcode: str) -> bool:
    """Has some form of an opcode a state space?"""
    return any(slot.is_space for _, form in ISA.by_opcode[opcode] for slot in form.slots)


def takes_types(opcode: str, words: Words) -> bool:
    """Has some form of an opcode these types, whatever the other modifiers?"""
    types = [word for word in words if word in Type.named]
    own = len(opcode_words(opcode, words))
    return any(
        sum(not slot.optional for slot in form.slots[: form.fixed]) <= own
        and all(word in slot.choices for slot, word in zip(form.slots, words[:own], strict=False))
        and fills(types, [slot for slot in form.slots if slot.is_type])
        for _, form in ISA.by_opcode[opcode]
    )


def fills(types: Sequence[str], slots: Sequence[ModifierSlot]) -> bool:
    """Do types stand for the slots, in their order, and for all that are not optional?"""
    counts = {0}  # how many of the types the slots up to here may stand for
    for slot in slots:
        taken = {n + 1 for n in counts if n < len(types) and types[n] in slot.choices}
        counts = taken | counts if slot.optional else taken
    return len(types) in counts


def needs_one_of(opcode: str, words: Words) -> bool:
    """Has an instruction both a way to round and `.approx`, of which its opcode takes one for the type?"""
    rounding = KINDS["Illegal rounding modifier for"].split()
    if "approx" not in words or not set(rounding) & set(words):
        return False
    slots = [(form, {choice for slot in form.slots for choice in slot.choices}) for _, form in ISA.by_opcode[opcode]]
    types = {word for word in words if word in Type.named}
    return any("rn" in known for _, known in slots) and any({"approx", *types} <= known for _, known in slots)
