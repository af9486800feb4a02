"""Traits of the instructions that access memory: rules and needs that they share (PTX 5.1, 6.4.1, 8, 9.7.9.1).

Their forms name the slots alike: `.ss` state space, `.order`, `.scope`, `.cop` cache operator, `.evict1` and `.evict2`
eviction priorities, `.hint`, `.vec`; and the address is the operand `a`.  An instruction has a trait, which is a bundle
of rules and needs:

    @has(ADDRESS, ORDER)
    @instruction("ld{.order}{.scope}{.ss}.type  d, [a]; …")
    def ld(i, a, mem): …
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.algebra.ports import AccessAttributes, Memory
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import b128
from ptxvm.algebra.value import Value
from ptxvm.dataclass import dataclass
from ptxvm.diagnostics import Severity
from ptxvm.isa.effects import Verb
from ptxvm.isa.model import Check, Condition, Decoded, Instruction, Problem
from ptxvm.isa.operand_types import Shape


@dataclass(frozen=True)
class Trait:
    """Rules and needs that several instructions share.

    `moves` says that they do nothing but load, or store; `ignored` names modifiers that have no meaning in them, and that
    ptxas passes over.
    """

    rules: Sequence[tuple[str, Check]]
    needs: Sequence[tuple[str, Condition]] = ()
    moves: Verb | None = None
    ignored: str = ""


def has(*traits: Trait) -> Callable[[Instruction], Instruction]:
    """Give an instruction the rules and needs of some traits."""

    def give(instruction: Instruction) -> Instruction:
        for trait in traits:
            instruction.moves = trait.moves or instruction.moves
            instruction.ignored = trait.ignored or instruction.ignored
            for code, check in trait.rules:
                instruction.rule(code)(check)
            for requirement, condition in trait.needs:
                instruction.needs_when(requirement)(condition)
        return instruction

    return give


ORDER_OF_A_MATRIX = Trait((), ignored="row col")
LOAD = Trait((), moves=Verb.READ)
STORE = Trait((), moves=Verb.WRITE)

NEEDS = {
    ".shared::cta": "PTX 7.8, sm_30",
    ".shared::cluster": "PTX 7.8, sm_90",
    ".param::entry .param::func": "PTX 8.3",
    ".weak .relaxed .acquire .release .acq_rel": "PTX 6.0, sm_70",
    ".volatile": "PTX 1.1",
    ".mmio": "PTX 8.2, sm_70",
    ".L1::evict_normal .L1::evict_unchanged .L1::evict_first .L1::evict_last .L1::no_allocate": "PTX 7.4, sm_70",
    ".L2::evict_normal .L2::evict_first .L2::evict_last": "PTX 8.8, sm_100",
    ".L2::cache_hint": "PTX 7.4, sm_80",
    ".L2::64B .L2::128B": "PTX 7.4, sm_75",
    ".L2::256B": "PTX 7.4, sm_80",
    ".b128": "PTX 8.3, sm_70",
}
"""What the modifiers of an access need, whatever the instruction."""

HOPPER = 90  # sm_90

GENERIC = (Space.GENERIC, Space.GLOBAL, Space.SHARED, Space.LOCAL)
"""The spaces whose variables generic addressing reaches by name."""


# ── addresses ───────────────────────────────────────────────────────────────────────────


def space_of(i: Decoded) -> Space:
    """The state space of an access, without its sub-space; `generic` where none is named."""
    return Space(i.ss).window if i.ss else Space.GENERIC


def window(i: Decoded) -> Space:
    """The space as the memory port knows it: only `shared::cluster` keeps its sub-space."""
    return Space.SHARED_CLUSTER if i.ss == Space.SHARED_CLUSTER else space_of(i)


def base_of(shape: Shape) -> Shape:
    """What an address is relative to: the shape of a register or variable, or a constant."""
    base: Shape = shape.items[0]
    return base.items[0] if base.kind == "offset" else base


def constant_address(i: Decoded) -> Problem | None:
    """Only .local takes a constant as the address."""
    if base_of(i.shape("a")).kind == "integer" and space_of(i) != Space.LOCAL:
        return Problem("P1801", f"a constant is an address in .local only, not in {named(i)}", operand="a",
                       ptxas="Immediate addresses allowed only for .local state space")  # fmt: skip
    return None


def foreign_variable(i: Decoded) -> Problem | None:
    """A variable lies in the space that the instruction names; a generic address is of .global, .shared or .local."""
    base, space = base_of(i.shape("a")), space_of(i)
    if base.kind != "variable":
        return None
    lies = base.space.window
    if lies is space or (space is Space.GENERIC and lies in GENERIC):
        return None
    return Problem("P1802", f"the variable lies in .{lies}, but the access is to {named(i)}", operand="a",
                   help=f"write `.{lies}` in the instruction" if space is not Space.GENERIC else f"name the space: `.{lies}`",
                   ptxas=f"State space mismatch between instruction and address in instruction '{i.form.opcode}'",
                  )  # fmt: skip


def named(i: Decoded) -> str:
    """The space in words."""
    return f".{i.ss}" if i.ss else "a generic address"


def generic_addressing(i: Decoded) -> bool:
    """Is no space named?"""
    return i.ss is None


ADDRESS = Trait(
    rules=[("P1801", constant_address), ("P1802", foreign_variable)],
    needs=[("PTX 2.0, sm_20", generic_addressing)],
)


def addresses(**spaces: Space | Callable[[Decoded], Space]) -> Trait:
    """Operands that are addresses in some spaces (`a=Space.SHARED`): a variable lies there, and no constant is an address."""

    def constant_or_foreign(i: Decoded) -> Problem | None:
        """An address is a register, or a variable of the state space that the instruction accesses."""
        for operand, where in spaces.items():
            shape, space = i.shape(operand), where if isinstance(where, Space) else where(i)
            base = base_of(shape) if shape is not None else None
            if base is None or base.kind not in ("variable", "integer"):
                continue
            if base.kind == "integer":
                return no_constant_address(space, operand)
            lies = base.space.window
            if lies is not space and not (space is Space.GENERIC and lies in GENERIC):
                return Problem("P1826", f"the variable lies in .{lies}, and one in .{space} is needed", operand=operand,
                               ptxas=f"State space mismatch between instruction and address in instruction '{i.opcode}'",
                              )  # fmt: skip
        return None

    return Trait(rules=[("P1826", constant_or_foreign)])


def of_a_word(*operands: str, least: int = 32, when: Condition = lambda _: True) -> Trait:
    """Operands whose address is in a register of at least so many bits, in the instructions that a condition picks."""

    def narrow_address(i: Decoded) -> Problem | None:
        """The register of an address has 32 or 64 bits; of some instructions, 64."""
        shapes = ((operand, i.shape(operand)) for operand in operands if when(i))
        for operand, base in ((operand, base_of(shape)) for operand, shape in shapes if shape is not None):
            if base.kind in ("register", "special") and base.type is not None and base.type.bits < least:
                said = f"the address is in a {base.type} register, and one of {least} bits is needed"
                return Problem("P1833", said, operand=operand, ptxas="Arguments mismatch for instruction 'mov'")
        return None

    return Trait(rules=[("P1833", narrow_address)])


def no_address(*operands: str, when: Condition = lambda _: True) -> Trait:
    """Operands that are no address of a variable or function, with an offset neither, in instructions that a condition picks.

    These are the ones that ptxas writes out as calls, whose arguments have no such addresses.
    """

    def address_as_a_number(i: Decoded) -> Problem | None:
        """The address of a variable or function is no operand here, with an offset neither."""
        for operand in operands:
            shape = i.shape(operand)
            if shape is not None and shape.kind in ("variable", "function") and when(i):
                ptxas = "Parsing error near '+': syntax error" if shape.kind == "variable" else ""
                return Problem("P1834", f"the address of a {shape.kind} is no operand here", operand=operand,
                               help="move it to a register first", ptxas=ptxas)  # fmt: skip
        return None

    return Trait(rules=[("P1834", address_as_a_number)])


def before_hopper(i: Decoded) -> bool:
    """Is the target older than sm_90, where ptxas writes instructions that wait for other lanes out as others?"""
    return i.target.number < HOPPER


def no_constant_address(space: Space, operand: str) -> Problem:
    """What is wrong with a constant as the address in that space."""
    return Problem("P1826", f"a constant is no address in .{space}", operand=operand,
                   ptxas="Immediate addresses allowed only for .local state space")  # fmt: skip


def special_added(code: str, operand: str) -> Problem:
    """What is wrong with a special register as an address to which ptxas adds the beginning of the CTA's memory."""
    return Problem(code, "a special register stands where one of the program is needed", operand=operand,
                   ptxas="Special register argument not allowed for instruction 'add'")  # fmt: skip


def mask_of_ctas(i: Decoded) -> Problem | None:
    """A mask of the CTAs of a cluster that is a constant has 16 bits."""
    mask = i.value("mask")
    if mask is None or 0 <= mask < 2**16:
        return None
    return Problem("P1831", f"a mask of CTAs is 0 to 65535, not {mask}", operand="mask",
                   ptxas=f"value '{mask}' out of range, expected to be in range [0..65535]")  # fmt: skip


MULTICASTING = "sm_90a sm_100a sm_100f sm_103a sm_103f sm_107a sm_107f sm_110a sm_110f".split()
"""The targets on which a copy to several CTAs is one copy (PTX 9.7.9.25.4.1)."""


def multicast_on_another_target(i: Decoded) -> Problem | None:
    """A copy to several CTAs is quick on targets of one chip or family, from sm_90a on; elsewhere it may be slow."""
    if not i.multicast or str(i.target) in MULTICASTING:
        return None
    ptxas = (
        f"Advisory: '.{i.multicast}' modifier on instruction 'cp.async.bulk{{.tensor}}' should be used on .target "
        f"'{'/'.join(MULTICASTING)}' instead of .target '{i.target}' as this feature is expected to have substantially "
        "reduced performance on some future architectures"
    )
    said, help = f"'.{i.multicast}' may be slow on {i.target}", f"write `.target {MULTICASTING[0]}`, or another of its kind"
    return Problem("P1832", said, word=str(i.multicast), help=help, ptxas=ptxas, severity=Severity.WARNING)


TO_SEVERAL = Trait(rules=[("P1831", mask_of_ctas), ("P1832", multicast_on_another_target)])
"""The rules of a copy to several CTAs."""


# ── order and scope ─────────────────────────────────────────────────────────────────────

STRONG = ("relaxed", "acquire", "release", "acq_rel")


def scope_without_order(i: Decoded) -> str | None:
    """A scope needs .relaxed, .acquire or .release."""
    if i.scope and i.order in ("weak", "volatile"):
        return f"Modifier '.{i.order}' cannot be combined with modifier '.{i.scope}'"
    if i.scope and not i.order:
        return f"Modifier '.{i.scope}' requires memory order with '{i.form.opcode}' instruction"
    return None


def order_without_scope(i: Decoded) -> str | None:
    """.relaxed, .acquire and .release need a scope."""
    if i.order in STRONG and not i.scope:
        return f"Modifier '.{i.order}' requires scope with '{i.form.opcode}' instruction"
    return None


def order_of_private_space(i: Decoded) -> str | None:
    """A strong order is for memory that threads share: .global, .shared, generic; .volatile is for .local too."""
    shared = (
        (Space.GENERIC, Space.GLOBAL, Space.SHARED)
        if i.order in STRONG
        else (Space.GENERIC, Space.GLOBAL, Space.SHARED, Space.LOCAL)
    )
    if i.order in (*STRONG, "volatile") and space_of(i) not in shared:
        return f"Modifier '.{i.order}' cannot be applied to '.{i.ss}' space"
    return None


def cluster_scope(i: Decoded) -> bool:
    """Is the scope `.cluster`?"""
    return bool(i.scope == "cluster")


def sys_scope_of_128_bits(i: Decoded) -> bool:
    """Is it a 128-bit access of `.sys` scope?"""
    return bool(i.scope == "sys" and i.type is b128)


def volatile_in_local(i: Decoded) -> bool:
    """Is it a volatile access to `.local`?"""
    return i.order == "volatile" and space_of(i) == Space.LOCAL


SCOPE_NEEDS = [("PTX 7.8, sm_90", cluster_scope), ("PTX 8.4", sys_scope_of_128_bits)]

ORDER = Trait(
    rules=[("P1803", scope_without_order), ("P1804", order_without_scope), ("P1805", order_of_private_space)],
    needs=[*SCOPE_NEEDS, ("PTX 9.1", volatile_in_local)],
)


# ── caches ──────────────────────────────────────────────────────────────────────────────


def operator_with_order(i: Decoded) -> str | None:
    """A cache operator goes with a weak access only."""
    if i.cop and i.order not in (None, "weak"):
        return f"Modifier '.{i.order}' cannot be combined with modifier '.{i.cop}'"
    return None


def eviction_with_operator(i: Decoded) -> str | None:
    """An eviction priority of L1 replaces the cache operator."""
    if i.evict1 and i.cop:
        return f"Modifier '.{i.evict1.partition('::')[2]}' cannot be combined with modifier '.{i.cop}'"
    return None


def eviction_outside_global(i: Decoded) -> str | None:
    """An eviction priority of L1 is for .global and generic addresses."""
    if i.evict1 and space_of(i) not in (Space.GENERIC, Space.GLOBAL):
        word = i.evict1.partition("::")[2]
        return f"Modifier '.{word}' cannot be applied to '.{i.ss}' space for instruction '{i.form.opcode}'"
    return None


def eviction_of_narrow_access(i: Decoded) -> str | None:
    """An eviction priority of L2 is for accesses of 256 bits."""
    if i.evict2 and not wide_access(i):
        return f"Instruction '{i.form.opcode}' requires '.v8.b32/.v4.b64' type with '.{i.evict2}' modifier."
    return None


def hint_outside_global(i: Decoded) -> str | None:
    """A cache policy is for .global and generic addresses."""
    if i.hint and space_of(i) not in (Space.GENERIC, Space.GLOBAL):
        return f"Modifier '.{i.hint}' cannot be applied to '.{i.ss}' space for instruction '{i.form.opcode}'"
    return None


def advice_with_volatile(i: Decoded) -> str | None:
    """A volatile access has no eviction priority in L1 and no cache policy."""
    advice = i.evict1 or i.hint
    if advice and i.order == "volatile":
        return f"Modifier '.{advice}' cannot be combined with modifier '.volatile'"
    return None


def policy_without_hint(i: Decoded) -> Problem | None:
    """The operand with the cache policy and .L2::cache_hint go together."""
    if bool(i.hint) == (i.shape("policy") is not None):
        return None
    if i.hint:
        return Problem("P1811", "'.L2::cache_hint' needs an operand with the cache policy", word=i.hint,
                       ptxas=f"Arguments mismatch for instruction '{i.form.opcode}'")  # fmt: skip
    return Problem("P1811", "a cache policy needs '.L2::cache_hint'", operand="policy",
                   help="write `.L2::cache_hint` in the instruction",
                   ptxas=f".L2::cache_hint modifier required for instruction '{i.form.opcode}' with {len(i.shapes)} arguments",
                   consequence=f"Arguments mismatch for instruction '{i.form.opcode}'")  # fmt: skip


def cache_operator(i: Decoded) -> bool:
    """Has it a cache operator?"""
    return i.cop is not None


CACHE = Trait(
    rules=[
        ("P1807", eviction_with_operator),
        ("P1808", eviction_outside_global),
        ("P1809", eviction_of_narrow_access),
    ],
    needs=[("PTX 2.0, sm_20", cache_operator)],
)
ORDERED_CACHE = Trait(rules=[("P1806", operator_with_order), ("P1812", advice_with_volatile)])
HINT = Trait(rules=[("P1810", hint_outside_global), ("P1811", policy_without_hint)])


# ── vectors ─────────────────────────────────────────────────────────────────────────────


def count(i: Decoded) -> int:
    """How many elements an access has."""
    return int(i.vec[1:]) if i.vec else 1


def wide_access(i: Decoded) -> bool:
    """Has the access 256 bits: `.v8` of 32, or `.v4` of 64?"""
    return bool(count(i) * i.type.bits == 256 and i.type.bits in (32, 64))


wide_access.__name__ = "256 bit wide load/store"


def wide_outside_global(i: Decoded) -> str | None:
    """An access of 256 bits is to .global or a generic address."""
    if wide_access(i) and space_of(i) not in (Space.GENERIC, Space.GLOBAL):
        return "global state space expected for feature '256 bit wide load/store'"
    return None


def vector_too_large(i: Decoded) -> str | None:
    """A vector has 128 bits at most, or 256 as .v8 of 32 bits or .v4 of 64."""
    if count(i) * i.type.bits > 128 and not wide_access(i):
        return "Vector type too large, exceeds 128 bit limit"
    return None


def elements(shape: Shape) -> int:
    """How many elements an operand has: those in braces, or those of a vector register."""
    if shape.kind == "vector":
        return len(shape.items)
    return shape.detail if shape.kind == "register" and shape.detail else 1


def vector_size(operand: str) -> Check:
    """The rule on the number of elements of an operand."""

    def size(i: Decoded) -> Problem | None:
        """An operand has as many elements as .vec says."""
        shape = i.shape(operand)
        if shape.kind == "sink" or elements(shape) == count(i):
            return None
        said = f"{count(i)} element{'s' if i.vec else ''} expected, not {elements(shape)}"
        ptxas, *others = size_mismatch(i, operand)
        return Problem("P1815", said, operand=operand, ptxas=ptxas, consequence="\n".join(others))

    return size


SIZES = frozenset({1, 2, 4, 8})
"""The numbers of elements in braces that ptxas takes for those of a vector."""


def size_mismatch(i: Decoded, operand: str) -> list[str]:
    """What ptxas says of an operand with another number of elements than `.vec`: of a result that should be a vector, twice."""
    shape, opcode = i.shape(operand), i.form.opcode
    is_result = operand in i.destinations() and bool(i.vec)
    said = []
    if elements(shape) not in SIZES:
        said.append(f"Illegal vector size: {elements(shape)}")
    if is_result and shape.kind == "register" and not shape.detail:
        said.append("Result vector expected")
    if i.vec and opcode in {"atom", "red"}:
        number = list(i.shapes).index(operand)
        said.append(f"Argument {number} of instruction '{opcode} instruction with vector types': Argument vector size mismatch")
    return [*said, *[f"Argument vector size mismatch for instruction '{opcode}'"] * (1 + is_result)]


def vector_of_sinks(i: Decoded, operand: str) -> str | None:
    """Of the elements of a vector at least one is a register."""
    shape = i.shape(operand)
    if shape.kind == "vector" and all(item.kind == "sink" for item in shape.items):
        return "Unable to infer type of vector elements (assuming .b8)"
    return None


def result_vector(operand: str, *, sink: bool = False) -> Trait:
    """A result is a vector where the instruction has `.vec`; `sink` allows that it is dropped."""

    def discarded(i: Decoded) -> str | None:
        """What is loaded needs a register, at least for one element."""
        if i.shape(operand).kind == "sink" and not sink:
            return f"Result discard mode is not allowed for instruction '{i.form.opcode}'"
        return vector_of_sinks(i, operand)

    return Trait(rules=[("P1815", vector_size(operand)), ("P1816", discarded)])


def source_vector(operand: str) -> Trait:
    """What goes to memory is a vector where the instruction has `.vec`."""

    def symbol(i: Decoded) -> Problem | str | None:
        """What goes to memory is in registers, or constant: no special register, no address of a variable.

        In a store of 256 bits `_` leaves an element of the memory as it is.
        """
        shape = i.shape(operand)
        if any(item.kind == "sink" for item in (shape, *shape.items)) and not (shape.items and wide_access(i)):
            return "Sink '_' not allowed as a source operand"
        if shape.kind == "special":
            return f"Special register argument not allowed for instruction '{i.form.opcode}'"
        if shape.kind == "variable" and shape.detail != "offset":
            at = next(n for n, each in enumerate(i.form.operands) if operand in each.names)
            said = f"Argument {at} of instruction '{i.form.opcode}': must be register"
            said = said if shape.type is not None else f"Arguments mismatch for instruction '{i.form.opcode}'"
            return Problem("P1817", "the address of a variable stands where a register is needed", operand=operand, ptxas=said)
        return None

    return Trait(rules=[("P1815", vector_size(operand)), ("P1817", symbol)])


VECTOR = Trait(
    rules=[("P1813", wide_outside_global), ("P1814", vector_too_large)],
    needs=[("PTX 8.8, sm_100", wide_access)],
)


def as_list(value: Value | Sequence[Value]) -> list[Value]:
    """A vector operand as it is, a single one as a list of it."""
    return [value] if isinstance(value, Value) else list(value)


WEAK: AccessAttributes = {"order": Order.WEAK, "scope": None}
"""The attributes of an access that orders nothing."""


def attributes(i: Decoded) -> AccessAttributes:
    """Order and scope of an access, for the memory port."""
    if i.order == "volatile":
        return {"order": Order.VOLATILE, "scope": Scope.SYS}
    return {"order": Order(i.order or "weak"), "scope": Scope(i.scope) if i.scope else None}


def combined(
    i: Decoded,
    a: Value,
    b: Value | Sequence[Value],
    update: Callable[[Value, Value], Value],
    mem: Memory,
    how: AccessAttributes,
) -> list[Value]:
    """Combine the element at an address, or each of a vector there, with its operand; returns what was there."""
    if isinstance(b, Value):
        return [mem.atomic(window(i), i.type, a, update, [b], **how)]
    return mem.atomic_vector(window(i), i.type, a, update, b, **how)
