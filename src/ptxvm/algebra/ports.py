"""The ports of the machine: what a meaning may ask for beside its operands.

A port is named in the signature of the meaning (`def ld(i, a, mem)`), which declares the effect to every
reader.  Masks and divergence never appear: the engine decides which lanes an instruction commits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypedDict, Unpack

from ptxvm.algebra.asynchronous import AsyncKind, MbarrierStep, Proxy
from ptxvm.algebra.memory_order import FenceKind, Order, Scope
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Value

Symbol: TypeAlias = Any
"""What the analysis has bound a name to, which the algebra does not know: a label, a table, a function, arguments."""

Request: TypeAlias = Any
"""What a meaning yields to wait; its engine made it."""


class ConditionCode(Protocol):
    """`cc`: the carry flag CC.CF, a predicate (PTX 9.7.2)."""

    carry: Value


class AccessAttributes(TypedDict, total=False):
    """What an instruction says of an access beside its space, type and address.

    `scope` is None where the instruction names none.  `operation` names an update that engines have ready-made (`add`, `cas`,
    …), or is None; `mbarrier` is the step of the mbarrier that lies there; `proxy` is `TEXTURE` for what a non-coherent cache
    may serve.  `cache` and `level` are hints.  `group` is the kind of an `asynchronous` copy; one that `repeats` moves what
    another lane of its warp moves by the same instruction, from and to the same place.
    """

    order: Order
    scope: Scope | None
    operation: str | None
    mbarrier: MbarrierStep
    proxy: Proxy
    cache: str | None
    level: str | None
    asynchronous: bool
    group: AsyncKind
    repeats: bool


class Memory(Protocol):
    """`mem`: the state spaces (PTX 5.1).

    `space` is a word of PTX (`global`, `shared`, `shared::cta`, `local`, `const`, `param`) or `generic`.
    An address is a u64 Value, relative to the window for `shared` and `local`.
    """

    def load(
        self, space: Space, type: Type, address: Value, count: int = 1, **attributes: Unpack[AccessAttributes]
    ) -> list[Value]:
        """`count` adjacent elements; faults where the address is wrong, misaligned or not readable."""

    def store(
        self, space: Space, type: Type, address: Value, values: Sequence[Value], **attributes: Unpack[AccessAttributes]
    ) -> None:
        """Write adjacent elements."""

    def atomic(
        self,
        space: Space,
        type: Type,
        address: Value,
        update: Callable[..., Value],
        operands: Sequence[Value],
        **attributes: Unpack[AccessAttributes],
    ) -> Value:
        """Replace what is there by `update(old, *operands)` in one step; returns the old value.

        The update knows the modifiers of its instruction, and no values but these: engines may share it.
        """

    def atomic_vector(
        self,
        space: Space,
        type: Type,
        address: Value,
        update: Callable[..., Value],
        operands: Sequence[Value],
        **attributes: Unpack[AccessAttributes],
    ) -> list[Value]:
        """Replace each of some adjacent elements by `update(old, its operand)`; returns the old values.

        It is one access, aligned as a whole, and in one step for each element by itself (PTX 9.7.13.5).
        """

    def replicas(self, address: Value) -> Iterator[tuple[Value, Value]]:
        """The memories of further devices that a multimem address stands for, each as `there, address` (PTX 9.7.9.14).

        Not all lanes need have one.  What is asked of the port before the next step is for those lanes alone of which `there`
        is true.
        """

    def fence(self, order: FenceKind, scope: Scope, address: Value | None = None) -> None:
        """Order the accesses before against those after (PTX 9.7.12.3).

        A fence that acquires for the tensormap proxy may be for the tensor map at an address alone (PTX 9.7.13.4).
        """

    def phase_over(
        self, space: Space, address: Value, over: Value, *, state: Value | None = None, **attributes: Unpack[AccessAttributes]
    ) -> None:
        """Threads for which `over` holds have found that a phase of the mbarrier there is over (PTX 9.7.13.15.16)."""

    def prefetch(self, space: Space, address: Value, **attributes: Unpack[AccessAttributes]) -> None:
        """A hint: nothing is read, and nothing faults."""

    def to_generic(self, space: Space, address: Value) -> Value:
        """The generic address of one in a window (`cvta`)."""

    def from_generic(self, space: Space, address: Value) -> Value:
        """The address in the window of a generic one (`cvta.to`)."""

    def within(self, space: Space, address: Value) -> Value:
        """Is the generic address in this space (`isspacep`)?"""

    def mapped(self, space: Space, address: Value, rank: Value) -> Value:
        """The address in the CTA of a rank that corresponds to one in shared memory (`mapa`).

        Both are addresses in `shared::cluster`, or `generic` ones.
        """

    def rank(self, space: Space, address: Value) -> Value:
        """The rank of the CTA in which an address of shared memory lies, u64 (`getctarank`)."""

    def allocate_stack(self, size: Value, alignment: int) -> Value:
        """`alloca`: bytes of the stack, as an address in `local`, until the function returns."""

    def stack_pointer(self, restore: Value | None = None) -> Value:
        """`stacksave`, or `stackrestore` to a value."""


class Peers(Protocol):
    """The lanes of the warp that take part in a collective, with what each gave."""

    def at(self, lane: Value, payload: int = 0, *, meant: bool = False) -> Value:
        """What the lane of that number gave; the own value of this lane where that one takes no part.

        Where the program says which lane is `meant`, it is wrong to mean one that takes no part.
        """

    def ballot(self, payload: int = 0) -> Value:
        """One bit (u32) for each participating lane whose predicate is true."""

    def multiply(
        self, product: Symbol, a: Sequence[Value], b: Sequence[Value], c: Sequence[Value], *further: Sequence[Value]
    ) -> list[Value]:
        """The registers of D = A * B + C, an `isa.fragments.Product` of what whole warps hold.

        `further` are the registers of its `further` fragments: metadata and scales.  Faults where a warp is not whole.
        """

    @property
    def members(self) -> Value:
        """One bit (u32) for each participating lane."""


class Warp(Protocol):
    """`warp`: what needs the other lanes of the warp."""

    @property
    def lane(self) -> Value:
        """The number of this lane, u32."""

    def active(self) -> Value:
        """One bit for each lane that executes this now (`activemask`)."""

    def converge(self, members: Value, *payload: Value) -> Request:
        """To be yielded: wait until every live lane of the mask is here; sends back its `Peers`."""

    def converge_warpgroup(self, members: Value) -> Request:
        """To be yielded: wait as in `converge`, and for the other warps of the warpgroup too."""

    def together(self, *payload: Value) -> Peers:
        """The lanes that execute this now, without waiting (`shfl`, `vote` of old targets)."""


class Votes(Protocol):
    """The outcome of a barrier with a reduction."""

    def count(self) -> Value:
        """How many threads had a true predicate, u32."""

    def all(self) -> Value:
        """Did all have it?"""

    def any(self) -> Value:
        """Did any have it?"""


class Cta(Protocol):
    """`cta`: what needs the other threads of the CTA."""

    def barrier(self, number: Value, threads: Value | None = None, vote: Value | None = None) -> Request:
        """To be yielded: wait until that many threads (all by default) have arrived; sends back `Votes`."""

    def arrive(self, number: Value, threads: Value) -> None:
        """Arrive without waiting (`bar.arrive`)."""


class Cluster(Protocol):
    """`cluster`: what needs the other CTAs of the cluster."""

    @property
    def size(self) -> Value:
        """The number of its CTAs, u32."""

    def arrive_at_cluster(self, order: Order) -> None:
        """Arrive at the barrier of the cluster without waiting; `order` is release or relaxed."""

    def await_cluster(self) -> Request:
        """To be yielded: wait until all threads of the cluster have arrived at its barrier."""


class Flow(Protocol):
    """`flow`: where the lanes go next.  Labels, tables and functions are what the analysis bound them to."""

    def goto(self, target: Symbol) -> None:
        """Go to a label."""

    def switch(self, index: Value, table: Symbol) -> None:
        """Go to the label that the index picks from a `.branchtargets` table; faults outside it."""

    def call(self, function: Symbol, arguments: Symbol, results: Symbol, prototype: Symbol) -> None:
        """Call a function: direct, or a Value that holds its address."""

    def leave(self) -> None:
        """Return from the function; from a kernel, end the thread."""

    def exit(self) -> None:
        """End the thread."""

    def trap(self) -> None:
        """Stop the grid with a fault."""

    def breakpoint(self) -> None:
        """Stop for a debugger; nothing where there is none."""

    def event(self, number: Value | None, mask: Value | None) -> None:
        """A performance monitor event."""


class Tasks(Protocol):
    """`tasks`: what goes on beside the threads; the machine chooses when it is done (PTX 9.7.9.25, 9.7.15.7).

    Work is grouped by kind: `copies` of 4 to 16 bytes, those in `bulk`, and the products of `wgmma`.  Loads and stores of
    tensor memory are of kinds that have no groups.
    """

    def copy(self, target: Value, source: Value, size: Value, source_size: Value | None) -> None:
        """Start to copy bytes from .global to .shared; `source_size` of them are read, the others are zeros."""

    def transfer(
        self, kind: Symbol, completed: Callable[[Value, Value], Value], **operands: Sequence[Value | None] | Value | None
    ) -> None:
        """Start an `isa.transfers.Transfer`; at its end mbarriers are updated with the number of its bytes."""

    def multiply(
        self, product: Symbol, d: Sequence[Value], a: Sequence[Value], b: Value, enabled: Value,
        further: Sequence[Sequence[Value]] = (),
    ) -> list[Value]:  # fmt: skip
        """Start the product D = A * B + D of a warp, an `isa.warpgroup.WarpgroupProduct`; D counts where it is `enabled`.

        A is registers, or one descriptor; B is a descriptor.  The registers of D, which the instruction updates, change
        when the product is done; what comes back is for them.
        """

    def fence_registers(self, kind: AsyncKind) -> None:
        """Order accesses to registers and shared memory before those of the next work of a kind."""

    def commit(self, kind: AsyncKind = AsyncKind.COPY) -> None:
        """Make a group of the copies that are in none."""

    def wait(self, groups: Value | None, kind: AsyncKind = AsyncKind.COPY, *, reading: bool = False) -> None:
        """Wait until so many groups (a constant) are not done, or none (None); or only have read their sources."""

    def arrive(
        self, space: Space, address: Value, update: Callable[[Value], Value], before: Callable[[Value], Value] | None,
        mask: Value | None = None, kind: AsyncKind = AsyncKind.COPY,
    ) -> None:  # fmt: skip
        """When all work of a kind that the thread has started is done, update the mbarrier there; `before` updates it at once.

        With a `mask` of CTAs of the cluster, it is the mbarrier at that address of each of them.
        """


class TensorMemory(Protocol):
    """`tmem`: tensor memory (PTX 9.7.16)."""

    def converge_for_columns(self, members: Value, columns: Value) -> Request:
        """To be yielded: wait as `Warp.converge` does, and until so many columns are free; they are the warp's then."""

    def tensor(self, work: Symbol, **operands: Value) -> list[Value]:
        """Do, or start, an `isa.tensor_memory.TensorWork`; returns its results.

        A work that is asynchronous is done before an arrival that the thread asks for afterwards (`tasks.arrive`).
        """


class Clock(Protocol):
    """`clock`: time and what changes with it."""

    def sleep(self, nanoseconds: Value) -> None:
        """Let others run for about so long."""


class FetchOptions(TypedDict, total=False):
    """The optional operands of a look-up: None, or left out, where the instruction does not have them."""

    integers: bool
    sampler: Value | None
    lod: Value | None
    gradients: tuple[Sequence[Value], Sequence[Value]] | None
    offset: Sequence[Value] | None
    compare: Value | None
    component: int | None


class Textures(Protocol):
    """`tex`: textures, samplers and surfaces (PTX 9.7.10, 9.7.11).

    `handle` is a u64 Value: the address of an opaque variable, or what such a variable holds.  `geometry` is a word of PTX
    (`1d`, `a2d`, `cube`, …), and `coordinates` are its operand, 32-bit Values: s32 where `integers`, else f32.
    """

    def fetch(
        self, geometry: str, handle: Value, coordinates: Sequence[Value], **how: Unpack[FetchOptions]
    ) -> tuple[list[Value], Value]:
        """The four components as u32, which are integers or the bits of f32; and whether the texel is resident.

        `integers`, `sampler` (a handle), `lod`, `gradients` (two lists), `offset`, `compare` (a depth), and `component`,
        of which the four elements around the point are gathered (`tld4`), are as the instruction has them, or None.
        """

    def query(self, kind: str, attribute: str, handle: Value, level: Value | None = None) -> Value:
        """An attribute of a `texture`, `sampler` or `surface`, as `txq` and `suq` name it, u32."""

    def is_a(self, kind: str, handle: Value) -> Value:
        """Is it a pointer to a `texref`, `samplerref` or `surfref`?"""

    def load(
        self, geometry: str, type: Type, count: int, handle: Value, coordinates: Sequence[Value], *, clamp: str
    ) -> list[Value]:
        """Adjacent elements of a surface; outside of it `clamp` says `trap`, `clamp` or `zero`."""

    def store(
        self, geometry: str, type: Type, handle: Value, coordinates: Sequence[Value], values: Sequence[Value], *,
        clamp: str, formatted: bool = False,
    ) -> None:  # fmt: skip
        """Write adjacent elements, or components that are converted to the format of the surface."""

    def reduce(
        self, operation: str, geometry: str, type: Type, handle: Value, coordinates: Sequence[Value], value: Value, *,
        clamp: str, formatted: bool = False,
    ) -> None:  # fmt: skip
        """Replace what is there by the outcome of `add min max and or` with it."""
