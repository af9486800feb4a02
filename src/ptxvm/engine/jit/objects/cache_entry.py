"""Serialisation of compiled code and its metadata: the contents of an entry of the disk cache.

The first line counts the bytes of text; the text follows, and then the code.  Each line of the text is a number, a word or
a truth, in the order of the codecs below; a sequence begins with its length.  A reader only makes values of the types that
it expects: nothing in an entry names what is imported or called, except functions of the C library (`loader`) and the
host calls that are listed here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from itertools import chain
from typing import Any, TypeAlias

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import named_type
from ptxvm.engine.jit.abi.metadata import Batch, Facts, HostCallSite, Site, SuspendedLayout, Weight
from ptxvm.engine.jit.objects.loader import FlatCode
from ptxvm.isa.effects import Verb
from ptxvm.isa.fragments import Core
from ptxvm.isa.tensor_memory import Tile
from ptxvm.isa.transfers import Pattern
from ptxvm.named_tuple import NamedTuple

WORD = 8  # bytes of an address
TRUTHS = {"0": False, "1": True}


class NotSerialisable(Exception):  # noqa: N818 - it says what is wrong
    """A value without a codec."""


Entered: TypeAlias = Any
"""A value of an entry, of the type that its codec is for; `choice` checks the type at run time."""


class Codec(NamedTuple):
    """How a value of some type is written as lines, and read back."""

    write: Callable[[Entered], Iterable[str]]
    read: Callable[[Iterator[str]], Entered]


Kinds: TypeAlias = dict[str, Sequence[Codec] | None]
"""Classes with the codecs of their fields, and functions (None), all as `room.module:name`."""


def packed(facts: Facts, code: FlatCode, tier: int) -> bytes:
    """The contents of an entry; host calls without a codec are left out."""
    calls = [work if is_serialisable(work) else work._replace(host_call=None) for work in facts.host_calls]
    return _packed(ENTRY, (facts._replace(host_calls=calls), code, tier), code)


def unpacked(data: bytes) -> tuple[Facts, FlatCode, int] | None:
    """The values that the contents of an entry hold; None for contents of another kind."""
    found = _unpacked(ENTRY, data)
    if found is None:
        return None
    (facts, code, tier), body = found
    whole = code._replace(code=body)
    return (facts, whole, tier) if fits(whole) else None


def packed_code(code: FlatCode) -> bytes:
    """The contents of an entry that is code alone."""
    return _packed(CODE, code, code)


def unpacked_code(data: bytes) -> FlatCode | None:
    """The code that the contents of an entry hold; None for contents of another kind."""
    found = _unpacked(CODE, data)
    whole = None if found is None else found[0]._replace(code=found[1])
    return whole if whole is not None and fits(whole) else None


def _packed(codec: Codec, value: object, code: FlatCode) -> bytes:
    text = "\n".join(codec.write(value)).encode()
    return b"%d\n" % len(text) + text + code.code


def _unpacked(codec: Codec, data: bytes) -> tuple[Entered, bytes] | None:
    """The value as the codec reads it, and the code behind the text; None for contents of another kind."""
    first, _, rest = data.partition(b"\n")
    try:
        size = int(first)
        lines = iter(rest[:size].decode().split("\n"))
        value = codec.read(lines)
    except (ValueError, KeyError, StopIteration, AttributeError, ImportError, TypeError):
        return None
    return (value, rest[size:]) if next(lines, None) is None else None


def fits(code: FlatCode) -> bool:
    """Do all offsets lie within the code?"""
    size = len(code.code)
    inside = [*code.functions.values(), *code.inner.values()]
    return all(0 <= at < size for at in inside) and all(0 <= at <= size - WORD for at in (*code.inner, *code.outer))


def is_serialisable(work: HostCallSite) -> bool:
    """Can the host call be cached?"""
    try:
        list(HOST_CALL_SITE.write(work))
    except NotSerialisable:
        return False
    return True


# ── codecs ──────────────────────────────────────────────────────────────────────────────


def line(value: object) -> tuple[str]:
    """A value on one line."""
    written = str(value)
    if "\n" in written:
        raise NotSerialisable(f"{written!r} has several lines")
    return (written,)


number = Codec(lambda value: line(int(value)), lambda lines: int(next(lines)))
word = Codec(line, next)
truth = Codec(lambda value: line(int(value)), lambda lines: TRUTHS[next(lines)])
type_ = Codec(lambda value: line(value.name), lambda lines: named_type(next(lines)))


def several(item: Codec, make: Callable[[list[Entered]], Entered] = tuple) -> Codec:
    """The codec of a sequence; `make` makes it of a list."""

    def write(values: Sequence[Entered]) -> Iterable[str]:
        return chain(line(len(values)), *map(item.write, values))

    return Codec(write, lambda lines: make([item.read(lines) for _ in range(int(next(lines)))]))


def record(make: Callable[..., Entered], *parts: Codec) -> Codec:
    """The codec of an object, by its fields."""

    def write(value: object) -> Iterable[str]:
        return chain.from_iterable(part.write(each) for part, each in zip(parts, fields(value), strict=True))

    return Codec(write, lambda lines: make(*[part.read(lines) for part in parts]))


def fields(value: object) -> Sequence[object]:
    """The fields of a tuple, an enumeration or a data class."""
    if isinstance(value, tuple):
        return value
    return [int(value)] if isinstance(value, int) else [getattr(value, name) for name in type(value).__match_args__]  # type: ignore[attr-defined]


def group(*parts: Codec) -> Codec:
    """The codec of a tuple."""
    return record(lambda *values: values, *parts)


def mapping(key: Codec, value: Codec) -> Codec:
    """The codec of a dictionary."""
    items = several(group(key, value), dict)
    return Codec(lambda held: items.write(list(held.items())), items.read)


def choice(kinds: Kinds) -> Codec:
    """The codec of an object of some classes, or of some functions.

    A module is imported when one of its objects is read.
    """
    known = {path.partition(":")[2]: (path.partition(":")[0], parts) for path, parts in kinds.items()}

    def write(value: object) -> Iterable[str]:
        name = getattr(value, "__qualname__", type(value).__qualname__)
        if name not in known:
            raise NotSerialisable(f"there is no codec for {value!r}")
        parts = known[name][1]
        return chain(line(name), () if parts is None else record(type(value), *parts).write(value))

    def read(lines: Iterator[str]) -> object:
        name = next(lines)
        module, parts = known[name]
        found = getattr(import_module(f"ptxvm.{module}"), name)
        return found if parts is None else record(found, *parts).read(lines)

    return Codec(write, read)


def optional(codec: Codec) -> Codec:
    """The codec of a value that may be None."""

    def write(value: object) -> Iterable[str]:
        return line(0) if value is None else chain(line(1), codec.write(value))

    return Codec(write, lambda lines: codec.read(lines) if truth.read(lines) else None)


SPACE = Codec(lambda space: line(space.value), lambda lines: Space(next(lines)))
VERB = Codec(lambda verb: line(verb.value), lambda lines: Verb(next(lines)))

# ── host calls ─────────────────────────────────────────────────────────────────────────

LAYOUT = choice(
    {
        "isa.fragments:Tiles": (number, several(group(number, number)), truth),
        "isa.fragments:along_k": None,
        "isa.fragments:across_k": None,
        "isa.fragments:float_quads": None,
        "isa.fragments:Metadata": (number, truth),
        "isa.fragments:scale_of_row": None,
        "isa.fragments:scale_of_column": None,
    }
)
FRAGMENT = choice({"isa.fragments:Fragment": (type_, group(number, number), LAYOUT, number, number, number, truth)})
SPARSITY = choice({"isa.fragments:Sparsity": (number, FRAGMENT)})
SCALING = choice({"isa.fragments:Scaling": (FRAGMENT, FRAGMENT)})
CORE = Codec(lambda core: line(core.value), lambda lines: Core(next(lines)))
PRODUCT = choice(
    {
        "isa.fragments:Product": (
            FRAGMENT, FRAGMENT, FRAGMENT, FRAGMENT, word, truth, word, optional(SPARSITY), optional(SCALING), CORE
        )
    }
)  # fmt: skip
WARPGROUP_PRODUCT = choice({"isa.warpgroup:WarpgroupProduct": (PRODUCT, truth, group(truth, truth), group(truth, truth))})
ARCHITECTURE = choice({"machine.tensor_core:Architecture": (number,)})
FETCH = choice({"machine.texture_sampling:Fetch": (word, truth, optional(number))})
LOOK_UP = choice({"machine.texture_unit:LookUp": (FETCH,)})
PATTERN = Codec(lambda pattern: line(pattern.name), lambda lines: Pattern[next(lines)])
TRANSFER = choice(
    {"isa.transfers:Transfer": (PATTERN, SPACE, SPACE, truth, truth, truth, truth, word, optional(type_), truth, word)}
)
TILE = Codec(lambda tile: line(tile.value), lambda lines: Tile(next(lines)))
TENSOR_WORK = word, truth, several(type_)  # of all work on tensor memory
MOVE = *TENSOR_WORK, TILE, number, truth
TENSOR = choice(
    {
        "isa.tensor_memory:Allocate": TENSOR_WORK,
        "isa.tensor_memory:Free": TENSOR_WORK,
        "isa.tensor_memory:Relinquish": TENSOR_WORK,
        "isa.tensor_memory:Commit": TENSOR_WORK,
        "isa.tensor_memory:Shift": TENSOR_WORK,
        "isa.tensor_memory:Load": (*MOVE, word, type_, truth, truth),
        "isa.tensor_memory:Store": MOVE,
        "isa.tensor_memory:CopyToTensor": (*TENSOR_WORK, number, number, several(number), word),
        "isa.tensor_memory:Multiply": (*TENSOR_WORK, word, truth, truth, number, truth, truth),
    }
)
TRANSFER_CALL: Kinds = {"engine.jit.lower.async_copies:TransferCall": (TRANSFER, several(group(word, number)))}
TENSOR_CALL: Kinds = {"engine.jit.lower.tensor_memory:TensorCall": (TENSOR, several(word), truth)}
WARPGROUP_CALL: Kinds = {
    "engine.jit.lower.warpgroup_on_host:WarpgroupMultiplication": (WARPGROUP_PRODUCT, ARCHITECTURE, several(number), truth)
}
KIND = Codec(lambda kind: line(kind.value), lambda lines: AsyncKind(next(lines)))
DEFERRED = "engine.jit.lower.deferred_work:"
HOST_CALLS: Kinds = {
    "engine.jit.node.host_queries:NoTarget": (word, number),
    "engine.jit.node.host_queries:SpecialRegisterQuery": (word,),
    "engine.jit.node.host_queries:IsInSpace": (SPACE,),
    "engine.jit.node.host_queries:ReplicaDistance": (number,),
    "engine.jit.lower.barriers:NoSuchBarrier": (),
    "engine.jit.lower.barriers:ColumnRequest": (),
    "engine.jit.memory.cluster_addresses:OutsideCluster": (number,),
    "engine.jit.lower.async_copies:PartialCopy": (number,),
    "engine.jit.node.counters:StepLimitExceeded": (several(number),),
    "engine.jit.lower.calls:LaunchCall": (word,),
    "engine.jit.lower.calls:LibraryCall": (word,),
    "engine.jit.lower.calls:MissingBody": (word,),
    "engine.jit.lower.calls:NoFunction": (),
    "engine.jit.lower.textures:TextureQuestion": (LOOK_UP, several(group(word, number))),
    "engine.jit.node.stack:Overflow": (word, number),
    "engine.jit.lower.mma_on_host:Multiplication": (PRODUCT, ARCHITECTURE, several(number)),
}
HOST_CALLS |= TRANSFER_CALL | TENSOR_CALL | WARPGROUP_CALL
HOST_CALLS |= {
    "engine.jit.node.host_queries:PhaseGoesOn": (),
    f"{DEFERRED}StartCopy": (number,),
    f"{DEFERRED}StartTransfer": (choice(TRANSFER_CALL),),
    f"{DEFERRED}PostArrival": (SPACE, KIND),
    f"{DEFERRED}StartTensorWork": (choice(TENSOR_CALL),),
    f"{DEFERRED}StartProduct": (choice(WARPGROUP_CALL), several(number)),
    f"{DEFERRED}CommitGroup": (KIND,),
    f"{DEFERRED}AwaitGroups": (KIND, number, several(number)),
}
HOST_CALL = choice(HOST_CALLS)

# ── an entry ────────────────────────────────────────────────────────────────────────────

HOST_CALL_SITE = record(HostCallSite, number, optional(HOST_CALL), several(type_), several(type_))
SITE = record(Site, number, SPACE, number, number, truth)
WEIGHT = record(Weight, number, number, word, number)
BATCH = record(Batch, number, number, number, SPACE, VERB, number)
SUSPENDED = record(SuspendedLayout, *[number] * 7, mapping(number, group(number, truth)))
FACTS = record(
    Facts, word, number, group(number, number, number), number, number, number, number, several(word, frozenset),
    mapping(word, number), several(group(number, number)), number, several(number), several(number), several(SITE),
    several(HOST_CALL_SITE), SUSPENDED, truth, truth, several(WEIGHT), number, several(BATCH), truth,
)  # fmt: skip
NO_CODE = Codec(lambda _: (), lambda _: b"")  # the code stands behind the text
CODE = record(FlatCode, NO_CODE, mapping(word, number), mapping(number, number), mapping(number, word))
ENTRY = group(FACTS, CODE, number)
