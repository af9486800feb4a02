"""The effects of an instruction on the machine: accesses, fences, jumps, and the threads that it needs."""

from __future__ import annotations

import enum
from typing import Unpack

from ptxvm.algebra.asynchronous import AsyncKind, MbarrierStep, Proxy
from ptxvm.algebra.memory_order import FenceKind, Order, Scope
from ptxvm.algebra.ports import AccessAttributes
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.dataclass import dataclass
from ptxvm.isa.fragments import Product
from ptxvm.isa.tensor_memory import Move


class Verb(enum.StrEnum):
    """What an access does to memory, by the word that findings have for it."""

    READ = "read"
    WRITE = "write"
    UPDATE = "atomic"


class Jump(enum.Enum):
    """What an instruction asks of the flow of control."""

    GOTO = "goto"
    SWITCH = "switch"
    CALL = "call"
    LEAVE = "leave"
    EXIT = "exit"
    TRAP = "trap"
    BREAKPOINT = "breakpoint"
    EVENT = "event"


class Collective(enum.Enum):
    """The other threads that an instruction needs."""

    LANES = "the lanes of a mask, which it waits for"
    WARPGROUP = "the warps of the warpgroup, which it waits for"
    COLUMNS = "the lanes of the warp and columns of tensor memory, which it waits for"
    ACTIVE_LANES = "the lanes of the warp that run it now"
    BARRIER = "threads of the CTA, which it waits for"
    ARRIVAL = "threads of the CTA, which may wait for it"
    CLUSTER_BARRIER = "threads of the cluster, which it waits for"
    CLUSTER_ARRIVAL = "threads of the cluster, which may wait for it"


@dataclass(frozen=True, slots=True)
class Access:
    """An access to memory: `count` elements of a type in a space.

    `scope` is None where the instruction names none.  `operation` is that of an update, where it has a name;
    `mbarrier` what is done to one that lies there; `asynchronous` accesses go on beside the thread.
    """

    verb: Verb
    space: Space
    type: Type | None = None
    count: int = 1
    order: Order = Order.WEAK
    scope: Scope | None = None
    operation: str | None = None
    proxy: Proxy | None = None
    mbarrier: MbarrierStep | None = None
    asynchronous: bool = False

    @classmethod
    def of(cls, verb: Verb, space: Space, type: Type | None, count: int = 1, **attributes: Unpack[AccessAttributes]) -> Access:
        """The access that a port is asked for."""
        order, operation = attributes.get("order") or Order.WEAK, attributes.get("operation")
        own = attributes.get("proxy"), attributes.get("mbarrier"), attributes.get("asynchronous", False)
        return cls(verb, space, type, count, order, attributes.get("scope"), operation, *own)

    @property
    def element(self) -> int:
        """The size of an element in bytes; 1 where there is no type."""
        return 1 if self.type is None else self.type.bytes

    @property
    def coherent(self) -> bool:
        """Does it see what other threads write; is it not by the texture proxy?"""
        return self.proxy is not Proxy.TEXTURE

    @property
    def window(self) -> Space:
        """The space without its sub-space."""
        return self.space.window

    @property
    def strong(self) -> bool:
        """May other threads wait for it, or it for them (PTX 8.5)?"""
        return self.verb is Verb.UPDATE or self.order.strong


@dataclass(frozen=True, slots=True)
class Fence:
    """A fence (PTX 9.7.13.4)."""

    order: FenceKind
    scope: Scope


@dataclass(frozen=True)
class Summary:
    """What an instruction does beside computing its results."""

    accesses: tuple[Access, ...] = ()
    fences: tuple[Fence, ...] = ()
    jump: Jump | None = None
    indirect: bool = False  # the function that it calls is in a register
    collective: Collective | None = None
    waits: bool = False
    grows_stack: bool = False  # it changes where the frame of the function ends
    polls: bool = False  # it looks whether a phase of an mbarrier is over
    hints: bool = False  # it only says what may be accessed soon
    reads_lane: bool = False  # its result depends on the number of the lane
    sleeps: bool = False
    copies: bool = False  # it starts, groups or awaits asynchronous copies ...
    bulk: bool = False  # ... of the bulk kind
    own_groups: bool = False  # ... or of the kind that each thread groups and awaits by itself (cp.async)
    tells_of_copies: bool = False  # it has an mbarrier told that those of the thread have ended (cp.async.mbarrier.arrive)
    awaits: AsyncKind | None = None  # the kind of asynchronous work whose groups it waits for
    uses_tensor_memory: bool = False
    reads_carry: bool = False
    writes_carry: bool = False
    converts_address: bool = False  # between a window and generic addresses
    generic_of: Space | None = None  # the space of whose addresses it makes generic ones
    maps_cluster: bool = False  # it relates addresses of the CTAs of a cluster
    cancels: bool = False  # it asks that a cluster of its grid, which has not begun, does not begin
    asks_space: bool = False  # whether a generic address is in a window
    asks_textures: bool = False  # attributes of textures, samplers and surfaces
    product: Product | None = None  # of matrices, which a warp computes
    moves: Move | None = None  # between tensor memory and registers

    @property
    def multiply_adds(self) -> int:
        """Those of the product of matrices, of elements that are stored."""
        return 0 if self.product is None else self.product.multiply_adds

    @property
    def calls(self) -> bool:
        """Does it call a function?"""
        return self.jump is Jump.CALL

    @property
    def ends_thread(self) -> bool:
        """Does it return or end the thread, or stop the grid?"""
        return self.jump in (Jump.LEAVE, Jump.EXIT, Jump.TRAP)

    def having(self, *verbs: Verb) -> list[Access]:
        """Its accesses of some verbs."""
        return [access for access in self.accesses if access.verb in verbs]

    @property
    def reads(self) -> bool:
        """Does it read memory?"""
        return bool(self.having(Verb.READ, Verb.UPDATE))

    @property
    def writes(self) -> bool:
        """Does it write to memory?"""
        return bool(self.having(Verb.WRITE, Verb.UPDATE))

    @property
    def spaces(self) -> frozenset[Space]:
        """The spaces of its accesses, without their sub-spaces."""
        return frozenset(access.window for access in self.accesses)


COMPUTES = Summary()
"""Of an instruction that computes its results, and no more."""
