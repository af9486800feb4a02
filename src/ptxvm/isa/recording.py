"""Recording ports: ports of the machine (`algebra.ports`) that note what a meaning asks of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any, Unpack

from ptxvm.algebra.asynchronous import AsyncKind
from ptxvm.algebra.memory_order import FenceKind, Order, Scope
from ptxvm.algebra.ports import AccessAttributes, Symbol
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred, u32, u64
from ptxvm.algebra.value import Value
from ptxvm.dataclass import dataclass
from ptxvm.isa.effects import Access, Collective, Fence, Jump, Verb
from ptxvm.isa.fragments import Product
from ptxvm.isa.origins import ORIGINS, Origin, unknown
from ptxvm.isa.tensor_memory import Allocate, Move, TensorWork
from ptxvm.isa.transfers import Pattern, Transfer
from ptxvm.isa.warpgroup import WarpgroupProduct


@dataclass
class Record:
    """All ports at once (`algebra.ports`): each method notes what it is asked, and gives values that come from nowhere."""

    accesses: list[Access] = field(default_factory=list)
    fences: list[Fence] = field(default_factory=list)
    found: dict[str, Any] = field(default_factory=dict)  # fields of a Summary, each of its type

    def _access(self, verb: Verb, space: Space, type: Type | None, count: int = 1, **attributes: Symbol) -> None:
        self.accesses.append(Access.of(verb, space, type, count, **attributes))

    # `cc`

    @property
    def carry(self) -> Value:
        """The carry flag."""
        self.found["reads_carry"] = True
        return unknown(pred)

    @carry.setter
    def carry(self, value: Value) -> None:
        self.found["writes_carry"] = True

    # `mem`, and `load` and `store` of surfaces

    def load(self, space: Space, type: Type, *operands: Symbol, **attributes: Symbol) -> list[Value]:
        """Of memory: (address, count); of a surface: (count, handle, coordinates)."""
        if "clamp" in attributes:
            count, space = operands[0], Space.SURFACE
        else:
            count = operands[1] if len(operands) > 1 else attributes.pop("count", 1)
        self._access(Verb.READ, space, type, count, **attributes)
        return [unknown(type) for _ in range(count)]

    def store(self, space: Space, type: Type, *operands: Symbol, **attributes: Symbol) -> None:
        """Of memory: (address, values); of a surface: (handle, coordinates, values)."""
        space = Space.SURFACE if "clamp" in attributes else space
        self._access(Verb.WRITE, space, type, len(operands[-1]), **attributes)

    def atomic(
        self,
        space: Space,
        type: Type,
        address: Value,
        update: Callable[..., Value],
        operands: Sequence[Value],
        **attributes: Unpack[AccessAttributes],
    ) -> Value:
        """An update."""
        self._access(Verb.UPDATE, space, type, **attributes)
        return unknown(type)

    def atomic_vector(
        self,
        space: Space,
        type: Type,
        address: Value,
        update: Callable[..., Value],
        operands: Sequence[Value],
        **attributes: Unpack[AccessAttributes],
    ) -> list[Value]:
        """An update of several elements."""
        self._access(Verb.UPDATE, space, type, len(operands), **attributes)
        return [unknown(type) for _ in operands]

    def replicas(self, address: Value) -> Iterator[tuple[Value, Value]]:
        """None: what is done to them is what is done to the first memory."""
        return iter(())

    def fence(self, order: FenceKind, scope: Scope, _address: Value | None = None) -> None:
        """A fence."""
        self.fences.append(Fence(order, scope))

    def phase_over(
        self, space: Space, address: Value, over: Value, *, state: Value | None = None, **attributes: Unpack[AccessAttributes]
    ) -> None:
        """A look at an mbarrier."""
        self.found["polls"] = True

    def prefetch(self, space: Space, address: Value, **attributes: Unpack[AccessAttributes]) -> None:
        """A hint."""
        self.found["hints"] = True

    def to_generic(self, space: Space, address: Value) -> Value:
        """The same place by another address."""
        self.found["generic_of"] = space.window
        return self._same_place(address)

    def from_generic(self, space: Space, address: Value) -> Value:
        """The same place by another address."""
        return self._same_place(address)

    def _same_place(self, address: Value) -> Value:
        self.found["converts_address"] = True
        return Value(ORIGINS, u64, Origin(address.raw.operands))

    def within(self, space: Space, address: Value) -> Value:
        """A question about an address."""
        self.found.update(converts_address=True, asks_space=True)
        return unknown(pred)

    def mapped(self, space: Space, address: Value, rank: Value) -> Value:
        """A place in another CTA of the cluster."""
        self.found["maps_cluster"] = True
        return unknown(u64)

    def rank(self, space: Space, address: Value) -> Value:
        """A question about an address."""
        self.found["maps_cluster"] = True
        return unknown(u64)

    def allocate_stack(self, size: Value, alignment: int) -> Value:
        """The frame grows."""
        self.found["grows_stack"] = True
        return unknown(u64)

    def stack_pointer(self, restore: Value | None = None) -> Value:
        """The end of the frame, asked for or set."""
        self.found["grows_stack"] = True
        return unknown(u64)

    # `warp`, and what it sends back

    @property
    def lane(self) -> Value:
        """The number of the lane."""
        self.found["reads_lane"] = True
        return unknown(u32)

    def active(self) -> Value:
        """The lanes that run it now."""
        self.found["collective"] = Collective.ACTIVE_LANES
        return unknown(u32)

    def converge(self, members: Value, *payload: Value) -> Peers:
        """Wait for lanes."""
        self.found["collective"] = Collective.LANES
        return Peers(payload, self.found)

    def converge_warpgroup(self, members: Value) -> Peers:
        """Wait for the lanes of a warpgroup."""
        self.found["collective"] = Collective.WARPGROUP
        return Peers((), self.found)

    def together(self, *payload: Value) -> Peers:
        """The lanes that are here."""
        self.found["collective"] = Collective.ACTIVE_LANES
        return Peers(payload, self.found)

    # `cta`, `cluster`, `flow` and `clock`; `arrive` of `tasks` has a space first

    def barrier(self, number: Value, threads: Value | None = None, vote: Value | None = None) -> Votes:
        """Wait for threads."""
        self.found["collective"] = Collective.BARRIER
        return Votes()

    def arrive(self, first: Space | Value, *more: object, kind: AsyncKind = AsyncKind.COPY) -> None:
        """Arrive at a barrier, or let asynchronous copies arrive at an mbarrier."""
        if isinstance(first, Space):
            self.found["copies"], self.found["tells_of_copies"] = True, kind is AsyncKind.COPY
            self._access(Verb.UPDATE, first, None, asynchronous=True)
        else:
            self.found["collective"] = Collective.ARRIVAL

    @property
    def size(self) -> Value:
        """The number of CTAs of the cluster."""
        self.found["maps_cluster"] = True
        return unknown(u32)

    def arrive_at_cluster(self, order: Order) -> None:
        """Arrive at the barrier of the cluster."""
        self.found["collective"] = Collective.CLUSTER_ARRIVAL

    def await_cluster(self) -> Votes:
        """Wait for the threads of the cluster."""
        self.found["collective"] = Collective.CLUSTER_BARRIER
        return Votes()

    def call(self, function: Symbol, arguments: Symbol = None, results: Symbol = None, prototype: Symbol = None) -> None:
        """Call a function."""
        self.found["jump"], self.found["indirect"] = Jump.CALL, isinstance(function, Value)

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name in JUMPS:
            return lambda *_: self.found.update(jump=JUMPS[name])
        raise AttributeError(name)

    def sleep(self, nanoseconds: Value) -> None:
        """Let others run."""
        self.found["sleeps"] = True

    # `tasks`

    def copy(self, *_: object) -> None:
        """Start to copy from .global to .shared."""
        self.found["own_groups"] = True
        self._copies(Space.GLOBAL, Space.SHARED)

    def transfer(self, kind: Transfer, completed: Callable[..., Value], **operands: Symbol) -> None:
        """Start a transfer; mbarriers may count the bytes."""
        self.found.update(copies=True, bulk=True, cancels=kind.pattern is Pattern.CANCELLATION)
        if kind.origin is not Space.REG:
            self._access(Verb.READ, kind.origin, None, asynchronous=True)
        late = kind.pattern is not Pattern.ZEROS
        self._access(Verb.UPDATE if kind.operation else Verb.WRITE, kind.to, None, asynchronous=late)
        if kind.mbarrier:
            self._access(Verb.UPDATE, kind.shared, None, asynchronous=True)

    def multiply(self, work: WarpgroupProduct, d: Sequence[Value], *_: object) -> list[Value]:
        """Start a product of matrices in shared memory."""
        self.found.update(copies=True, product=work.product)
        self._access(Verb.READ, Space.SHARED, None, asynchronous=True)
        return [unknown(each.type) for each in d]

    def _copies(self, source: Space, target: Space) -> None:
        self.found["copies"] = True
        self._access(Verb.READ, source, None, asynchronous=True)
        self._access(Verb.WRITE, target, None, asynchronous=True)

    def fence_registers(self, kind: AsyncKind) -> None:
        """Order accesses to registers before products."""
        self.found["copies"] = True

    def commit(self, kind: AsyncKind = AsyncKind.COPY) -> None:
        """Make a group of copies."""
        self.found.update(copies=True, bulk=kind is AsyncKind.BULK, own_groups=kind is AsyncKind.COPY)

    def wait(self, groups: Value | None, kind: AsyncKind = AsyncKind.COPY, *, reading: bool = False) -> None:
        """Wait for copies."""
        self.found.update(copies=True, awaits=kind, bulk=kind is AsyncKind.BULK, own_groups=kind is AsyncKind.COPY)

    # `tmem`

    def converge_for_columns(self, members: Value, columns: Value) -> Peers:
        """Wait for lanes, and for tensor memory."""
        self.found["collective"] = Collective.COLUMNS
        return Peers((), self.found)

    def tensor(self, work: TensorWork, **operands: Value) -> list[Value]:
        """Work on tensor memory."""
        self.found["uses_tensor_memory"] = True
        if work.pairs:
            self.found["maps_cluster"] = True
        if isinstance(work, Move):
            self.found["moves"] = work
        if isinstance(work, Allocate):
            self._access(Verb.WRITE, Space.SHARED, u32)
        if work.reads_shared:
            self.found["copies"] = True
            self._access(Verb.READ, Space.SHARED, None, asynchronous=True)
        return [unknown(type) for type in work.results]

    # `tex`

    def fetch(self, geometry: str, *_: object, **__: object) -> tuple[list[Value], Value]:
        """Read a texture."""
        self._access(Verb.READ, Space.TEXTURE, None)
        return [unknown(u32) for _ in range(4)], unknown(pred)

    def query(self, *_: object) -> Value:
        """An attribute."""
        self.found["asks_textures"] = True
        return unknown(u32)

    def is_a(self, kind: str, handle: Value) -> Value:
        """A question about a pointer."""
        self.found["asks_textures"] = True
        return unknown(pred)

    def reduce(self, operation: str, geometry: str, type: Type, *_: object, **__: object) -> None:
        """Update a surface."""
        self._access(Verb.UPDATE, Space.SURFACE, type, operation=operation)


JUMPS = {jump.value: jump for jump in Jump if jump is not Jump.CALL}


@dataclass
class Peers:
    """The lanes of a collective, which give nothing that is known."""

    payload: tuple[Value, ...]
    found: dict[str, Any]  # that of the record

    def at(self, lane: Value, payload: int = 0, *, meant: bool = False) -> Value:
        """What a lane gave."""
        return unknown(self.payload[payload].type)

    def ballot(self, payload: int = 0) -> Value:
        """One bit for each lane."""
        return unknown(u32)

    def multiply(self, product: Product, *fragments: Iterable[Value]) -> list[Value]:
        """A product of matrices."""
        self.found["product"] = product
        return [unknown(Type.named[f"b{product.d.register}"]) for _ in range(product.d.registers)]

    @property
    def members(self) -> Value:
        """One bit for each lane."""
        return unknown(u32)


class Votes:
    """The outcome of a barrier."""

    def count(self) -> Value:
        """How many were for."""
        return unknown(u32)

    def all(self) -> Value:
        """Were all?"""
        return unknown(pred)

    def any(self) -> Value:
        """Was any?"""
        return unknown(pred)
