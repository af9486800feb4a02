"""Repairs of wrong instructions: suggests valid modifiers and orders of operands that are near.

`accepts` decides whether an instruction with these modifiers and operands has no problem at all; `takes` decides only
whether a form has these modifiers and takes the operands, for this version and target.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import permutations, takewhile

from ptxvm.algebra.types import Type
from ptxvm.diagnostics import Diagnostic, closest, did_you_mean, edit_distance, habits, listed
from ptxvm.isa.catalog import load_catalog
from ptxvm.isa.model import ISA, Decoded, Problem
from ptxvm.isa.notation import Form, Match, ModifierSlot
from ptxvm.isa.operand_types import Shape

Words = tuple[str, ...]
Accepts = Callable[[Words, tuple[Shape, ...]], bool]
NEAR_NAME = re.compile(r"(?<=Parsing error )near '([A-Za-z_][\w$.:]*)'")
MOST = 4  # suggestions of one help
MOST_OPERANDS = 4  # whose orders are tried
DIRECTIVES = frozenset("reg global const shared local param entry func visible extern weak version target pragma align".split())


# ── opcodes ─────────────────────────────────────────────────────────────────────────────


def unknown_opcode(opcode: str) -> Problem:
    """PTX has no such instruction: say which was probably meant."""
    return Problem("P0301", f"unknown instruction '{opcode}'", help=opcode_help(opcode),
                   ptxas=f"Not a name of any known instruction: '{opcode}'")  # fmt: skip


def opcode_help(opcode: str) -> str:
    """The opcode or syntax that an unknown opcode probably stands for."""
    if opcode[0] in "%$":
        return f"an instruction starts with its opcode, and a guard with `@`: `@{opcode} …`"
    if opcode.lower() in DIRECTIVES:
        return f"a directive starts with a dot: `.{opcode.lower()}`"
    if said := habits.in_ptx(opcode):
        return said
    if opcode.lower() in ISA.by_opcode:
        return f"did you mean `{opcode.lower()}`? Opcodes are in lower case"
    return glued(opcode) or did_you_mean(opcode, ISA.by_opcode)


def glued(opcode: str) -> str:
    """`addu32`, `mov32` or `add_s32`, which lack the dot before the type."""
    stem = opcode.lower().rstrip("0123456789")
    size = opcode[len(stem) :]
    for cut in range(len(stem), 1, -1):
        head, kind = stem[:cut].rstrip("_"), stem[cut:]
        known = "b" if size and not kind else kind
        if head in ISA.by_opcode and f"{known}{size}" in Type.named:
            return f"a modifier follows a dot: `{head}.{known}{size}`"
    return ""


# ── modifiers ───────────────────────────────────────────────────────────────────────────


def misfit(opcode: str, words: Words, shapes: tuple[Shape, ...], accepts: Accepts, takes: Accepts) -> Problem:
    """The problem of modifiers that no form takes: one too many, or one that is missing."""
    matches = [(form, form.match(words)) for _, form in ISA.by_opcode[opcode]]
    least = min(distance(match) for _, match in matches)
    nearest = [(form, match) for form, match in matches if distance(match) == least]
    if nearest[0][1].extra:
        return too_much(opcode, words, nearest[0], shapes, accepts)
    return missing(opcode, words, nearest, shapes, accepts, takes)


def distance(match: Match) -> tuple[int, int]:
    """How far some modifiers are from those of a form."""
    return len(match.extra) + len(match.missing), len(match.missing)


def too_much(opcode: str, words: Words, near: tuple[Form, Match], shapes: tuple[Shape, ...], accepts: Accepts) -> Problem:
    """The problem of a modifier that no form has together with the others."""
    form, match = near
    at = next((n for n in match.extra if is_strange(opcode, words, n)), match.extra[0])
    word = words[at]
    help = other_word(opcode, words, at, shapes, accepts) or f"the form nearest to this is `{form.text};`"
    ptxas, *others = refused_by_ptxas(opcode, words, at)
    return Problem("P0305", f"'.{word}' does not fit here in '{opcode}'", word=word, help=help,
                   ptxas=ptxas, consequence="\n".join(others))  # fmt: skip


def opcode_words(opcode: str, words: Words) -> Words:
    """The words that belong to the opcode in some form: `wide` in `mul.wide`."""
    found = [
        sum(1 for _ in takewhile(lambda pair: pair[0] in pair[1].choices, zip(words, form.slots[: form.fixed], strict=False)))
        for _, form in ISA.by_opcode[opcode]
    ]
    return words[: max(found)]


def near_opcodes(syntax: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Errors of syntax; of a head at which one is, ptxas names the opcode: `mul.wide` of `mul.wide.u32`."""

    def opcode(match: re.Match[str]) -> str:
        load_catalog()
        name, *words = match[1].split(".")
        return f"near '{'.'.join((name, *(opcode_words(name, tuple(words)) if name in ISA.by_opcode else ())))}'"

    return [replace(each, ptxas=NEAR_NAME.sub(opcode, each.ptxas)) if NEAR_NAME.search(each.ptxas) else each for each in syntax]


def other_word(opcode: str, words: Words, at: int, shapes: tuple[Shape, ...], accepts: Accepts) -> str:
    """A help that replaces or removes a modifier; empty if nothing fits."""
    word = words[at]
    known = [c for c in all_words(opcode) if c not in words]
    fitting = [c for c in known if accepts((*words[:at], c, *words[at + 1 :]), shapes)]
    for group in (alike(word, fitting), known):
        if meant := [c for c in habits.modifiers(word) if c in group]:
            return question(meant)
        if near := nearest_of(word, alike(word, group)):
            return question(near)
    if accepts((*words[:at], *words[at + 1 :]), shapes):
        return f"leave `.{word}` out"
    return question(fitting) if 0 < len(fitting) <= MOST else ""


def alike(word: str, choices: list[str]) -> list[str]:
    """The choices that are floats, or integers, as the type is; all choices if none is, or if they are no types."""
    if word not in Type.named or any(c not in Type.named for c in choices):
        return choices
    return [c for c in choices if Type.named[c].is_float == Type.named[word].is_float] or choices


def nearest_of(word: str, choices: Sequence[str]) -> list[str]:
    """The choices that are nearest by edit distance, near enough to be meant."""
    if not closest(word, choices):
        return []
    least = min(edit_distance(word, c) for c in choices)
    return [c for c in choices if edit_distance(word, c) == least][:MOST]


@cache
def known_words() -> frozenset[str]:
    """Every modifier that some instruction has."""
    return frozenset(word for opcode in ISA.by_opcode for word in all_words(opcode))


@cache
def all_words(opcode: str) -> tuple[str, ...]:
    """Every modifier that some form of an opcode has."""
    return tuple(dict.fromkeys(c for _, form in ISA.by_opcode[opcode] for slot in form.slots for c in slot.order))


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
    "Vector qualifier is not allowed for": "v2 v4 v8",
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
    "Multiple vector modifiers specified": KINDS["Vector qualifier is not allowed for"],
    "Multiple cache operation modifiers specified": "ca cg cs cv lu wb wt",
    "Multiple scope modifiers specified": "cluster cta gl gpu sys",
    "Multiple shuffle modifiers specified": "bfly down idx up",
    "Multiple .any/.all modifiers specified": "all any",
    "Multiple instruction post-operation flags set": "add and cas dec exch inc max min or xor",
}
"""What it says of a modifier beside another of its kind."""
SEVERAL_OF = {word: (said, frozenset(words.split())) for said, words in SEVERAL.items() for word in words.split()}
SEMANTICS = frozenset("acq_rel acquire relaxed release sc volatile weak".split())
"""How an access is ordered: ptxas names the later of two as a duplicate."""
SPACES = frozenset(KINDS["No state space qualifier expected for"].split())
AT_ONCE = frozenset(("sync", *SEVERAL["Multiple instruction post-operation flags set"].split()))
"""`.sync` and the operations of atomics: where an instruction has none, ptxas refuses them before it looks at the types."""
FLOATING = frozenset("equ geu gtu leu ltu nan neu num".split())
UNSIGNED = frozenset({"lo", "ls", "hi", "hs"})
"""Comparisons of floating-point and of unsigned numbers, which ptxas compares with the type of the instruction."""
UNSIGNED_TYPES = frozenset({"u16", "u32", "u64"})
OF_SIGNED = frozenset({"abs", "neg"})
"""Opcodes of which ptxas says so that they have no unsigned types."""
TWICE = frozenset({"Illegal modifier 'Clamp' for", "Illegal query modifier for"})
"""What it says twice."""
CLAMPS = frozenset({"clamp", "wrap"})
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
    name = ".".join((opcode, *own))
    others = (*words[len(own) : at], *words[at + 1 :])
    if is_strange(opcode, words, at):
        return [f"Unknown modifier '.{word}'"]
    if name in COMPOUND:
        return [f"Not a name of any known instruction: '{name}'"]
    if strange := [each for each in words if each in AT_ONCE and each not in all_words(opcode)]:
        return [f"Illegal modifier '.{strange[0]}' for instruction '{name}'"]
    same = [words[n] for n in of_its_kind(opcode, words, word)]
    if word in UNSIGNED_TYPES and opcode in OF_SIGNED:
        return [f"Instruction '{name}' applies only to signed numeric types"]
    if at < len(own) or (len(same) == 1 and not takes_types(opcode, words)):
        return [f"Unexpected instruction types specified for '{name}'"]
    if word in SPACES and takes_space(opcode) and not SPACES.isdisjoint(others):
        return [f"Unexpected number of state spaces specified in instruction '{name}'"]
    if len(same) > 1:
        return [SEVERAL_OF[each][0] if each in SEVERAL_OF else f"Duplicate .{each} modifier" for each in same[1:]]
    if needs_one_of(opcode, words):
        return [f"Rounding modifier or '.approx' modifier required for instruction '{name}'"]
    if word == "cc" and opcode in {"add", "sub"}:
        illegal = [f"Illegal modifier '.cc' for instruction '{name}'"] * any(
            Type.named[each].is_float for each in words if each in Type.named
        )
        return [*illegal, f"Modifier '.cc' applies only to {name} integer types"]
    said = KIND_OF.get(word, f"Illegal modifier '.{word}' for")
    return [f"{said} instruction '{name}'", *refused_besides(name, words, word, said)]


def is_strange(opcode: str, words: Words, at: int) -> bool:
    """Is a modifier none that ptxas knows behind others?  It refuses such a one while it reads, before all else."""
    word = words[at]
    return word not in Type.named and at >= len(opcode_words(opcode, words)) and (word not in known_words() or word in WITHIN)


def refused_besides(name: str, words: Words, word: str, said: str) -> list[str]:
    """What ptxas says of a modifier after it has refused its kind."""
    type = next((Type.named[each] for each in words if each in Type.named), None)
    scope = next((each for each in words if each in SEVERAL["Multiple scope modifiers specified"].split()), "")
    if scope and word in {"weak", "volatile"}:
        return [f"Modifier '.{word}' cannot be combined with modifier '.{scope}'"]
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
        all(word in slot.choices for slot, word in zip(form.slots, words[:own], strict=False))
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


def missing(
    opcode: str,
    words: Words,
    nearest: list[tuple[Form, Match]],
    shapes: tuple[Shape, ...],
    accepts: Accepts,
    takes: Accepts,
) -> Problem:
    """The problem of a missing modifier: names all choices, and suggests those that fit the operands."""
    choices = dict.fromkeys(f".{c}" for _, match in nearest for c in match.missing[0].order)
    heads = dict.fromkeys(head for form, match in nearest for head in completed(form, match, match.missing[0]))
    fitting = sorted((head for head in heads if takes(head, shapes)), key=unlikelihood)
    if len(fitting) <= MOST:  # a longer list is not shown, so rules need not shorten it
        fitting = [head for head in fitting if accepts(head, shapes)] or fitting
    one_of = "one of " if len(choices) > 1 else ""
    form, match = nearest[0]
    help = heads_help(opcode, fitting) or f"the form is `{form.text};`"
    ptxas, *others = missed_by_ptxas(".".join((opcode, *opcode_words(opcode, words))), match.missing)
    return Problem("P0308", f"'{opcode}' lacks a modifier: {one_of}{listed(list(choices))}", help=help,
                   ptxas=ptxas, consequence="\n".join(others))  # fmt: skip


def unlikelihood(head: Words) -> int:
    """A rank for sorting: integers are more likely than floats, and floats more likely than packed types."""
    types = [Type.named[word] for word in head if word in Type.named]
    return max((2 * t.is_packed + t.is_float for t in types), default=0)


def heads_help(opcode: str, heads: Sequence[Words]) -> str:
    """A help that lists some heads; empty if there are none, or too many."""
    shown = [f"`{'.'.join((opcode, *head))}`" for head in heads]
    return f"write {listed(shown)}" if 0 < len(shown) <= MOST else ""


def completed(form: Form, match: Match, slot: ModifierSlot) -> Iterable[Words]:
    """The modifiers with one more, in the order of the form."""
    for choice in slot.order:
        bound = match.bound | {slot.name: choice}
        yield tuple(bound[s.name] for s in form.slots if s.name in bound)


COMPOUND = frozenset(
    """brx clusterlaunchcontrol cp createpolicy mbarrier multimem setmaxnreg shf suld sured sust tcgen05 tensormap wgmma
    wmma""".split()
)
"""Opcodes that ptxas knows with their first modifier alone."""
NEEDED = {
    "bar": "Barrier modifier required for", "barrier": "Barrier modifier required for",
    "membar": "Membar level required for",
    "cp.async": "'.ca or .cg' modifier required for", "match": "'.any' or '.all' modifier required for",
    "prefetch": "Cache level modifier required for", "redux": "Reduction operation is required for",
    "shfl": "Shuffle modifier required for", "vote": ".mode modifier required for",
}  # fmt: skip
"""What it says where one of the modifiers is missing that say what an instruction does."""


BARRIERS = frozenset({"bar", "barrier"})
"""Opcodes whose `.sync` says what they do."""


def missed_by_ptxas(opcode: str, slots: Sequence[ModifierSlot]) -> list[str]:
    """What ptxas says where modifiers are missing: of the type before all others."""
    if opcode in COMPOUND:
        return [f"Not a name of any known instruction: '{opcode}'"]
    if any(slot.is_space for slot in slots):
        return [f"State space {said} for instruction '{opcode}'" for said in ("modifier required", "incorrect")]
    others = [slot for slot in slots if slot.is_type or (slot.name == "sync" and opcode not in BARRIERS)]
    if opcode in {"atom", "red"} and any(slot.name == "op" for slot in slots):
        said = ("Illegal operation ''", "Operation  requires  type", "Reduction operation is required")
        return [f"{each} for instruction '{opcode}'" for each in said]
    if opcode in NEEDED and not others:
        return [f"{NEEDED[opcode]} instruction '{opcode}'"]
    return [missed_slot(opcode, slots)]


def missed_slot(opcode: str, slots: Sequence[ModifierSlot]) -> str:
    """What ptxas says of one missing modifier."""
    slot = next((slot for slot in slots if slot.is_type), slots[0])
    if slot.literal and not slot.is_type:
        return f".{slot.name} modifier required for instruction '{opcode}'"
    if slot.name == "rnd":
        return f"Rounding modifier required for instruction '{opcode}'"
    if slot.name == "CmpOp":
        return f"Comparison modifier required for instruction '{opcode}'"
    if slot.choices == CLAMPS:
        return f"Clamp modifier required for instruction '{opcode}'"
    return f"Unexpected instruction types specified for '{opcode}'"


def question(words: Sequence[str]) -> str:
    """Did you mean one of these?"""
    return f"did you mean {listed([f'`.{word}`' for word in words[:MOST]])}?"


# ── operands ────────────────────────────────────────────────────────────────────────────


def written(decoded: Decoded) -> str:
    """The syntax line with the modifiers chosen: `ld.global.u32 d, [a];`."""
    return f"{decoded.mnemonic} {decoded.form.text.partition(' ')[2]};"


def reordered(decoded: Decoded, words: Words, shapes: tuple[Shape, ...], accepts: Accepts) -> Problem | None:
    """The problem of operands that fit in another order; None if none does."""
    count = len(shapes)
    if not 2 <= count <= MOST_OPERANDS or not any(accepts(words, order) for order in permutations(shapes) if order != shapes):
        return None
    opcode = decoded.form.opcode
    return Problem("P0303", f"the operands of '{opcode}' stand in another order", help=f"the form is `{written(decoded)}`",
                   ptxas=f"Arguments mismatch for instruction '{opcode}'")  # fmt: skip


def other_type(decoded: Decoded, words: Words, shapes: tuple[Shape, ...], accepts: Accepts) -> Problem | None:
    """The problem of a type that fits no operand, if another type fits all of them."""
    opcode = decoded.form.opcode
    for at, word in enumerate(words):
        if word in Type.named:
            fitting = [c for c in all_words(opcode) if c in Type.named and accepts((*words[:at], c, *words[at + 1 :]), shapes)]
            fitting = alike(word, fitting)
            if fitting:
                types = dict.fromkeys(str(s.type) for s in shapes if s.kind == "register")
                said = f"'.{word}' does not fit the operands, which are {listed(list(types), 'and')} registers"
                return Problem("P0304", said, word=word, help=question(fitting),
                               ptxas=f"Arguments mismatch for instruction '{opcode}'")  # fmt: skip
    return None


def rule_help(found: Problem, decoded: Decoded, words: Words, shapes: tuple[Shape, ...], accepts: Accepts) -> str:
    """A help for a broken rule: modifiers with which there is no problem."""
    opcode = decoded.form.opcode
    word = found.word.lstrip(".")
    if word in words:
        return other_word(opcode, words, words.index(word), shapes, accepts)
    fitting = [head for head in with_one_more(opcode, words) if accepts(head, shapes)]
    return heads_help(opcode, fitting)


def with_one_more(opcode: str, words: Words) -> Iterable[Words]:
    """The heads with one more modifier, each once."""
    found: dict[Words, None] = {}
    for _, form in ISA.by_opcode[opcode]:
        match = form.match(words)
        if not match.extra and len(match.missing) <= 1:
            free = match.missing or tuple(s for s in form.slots if s.name not in match.bound)
            found |= dict.fromkeys(head for slot in free for head in completed(form, match, slot))
    return found
