"""What one access of a warp touches: sectors and lines of global memory, words and banks of shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis import constants
from ptxvm.dataclass import dataclass
from ptxvm.isa.catalog.matrix import shared_matrices
from ptxvm.isa.effects import Verb
from ptxvm.isa.special_registers import WARP
from ptxvm.profile.warp_accesses import BANKS, LINE, PARTNERS, SECTOR, WORD, may_pair
from ptxvm.reference.reading import Reading
from ptxvm.syntax import tree

APART = 1 << 40
"""The bytes between the beginnings of two memories in the addresses of one access."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instruction accesses memory: a register and an offset, in a space, so many bytes for each of the first lanes.

    `verb` is what each lane does there; rows of matrices are moved for the whole warp, and have none.
    """

    register: str
    type: Type
    offset: int
    space: Space
    size: int
    lanes: int = WARP
    verb: Verb | None = None

    @property
    def atomic(self) -> bool:
        """Do lanes compete for addresses?"""
        return self.verb is Verb.UPDATE


@dataclass(frozen=True)
class Pass:
    """Lanes that shared memory serves together, and the words that they ask each bank for."""

    lanes: range
    by_bank: dict[int, list[int]]

    @property
    def turns(self) -> int:
        """How many wavefronts it takes: a bank gives one word in each, to all lanes that want it."""
        return max(map(len, self.by_bank.values()))


@dataclass(frozen=True)
class WarpAccess:
    """The bytes that active lanes of a warp access: `size` from the address of each lane on.

    Several `memories` are apart by `APART`: an address in the second one is that distance beyond the same one in the first.
    `verb` is what each lane does there, if it does so for itself.
    """

    space: Space
    size: int
    addresses: Mapping[int, int]
    memories: tuple[str, ...] = ()
    verb: Verb | None = None

    @property
    def misaligned(self) -> list[int]:
        """The lanes whose address is no multiple of the size, which is a fault (PTX 6.4.1)."""
        return [lane for lane, address in self.addresses.items() if address % self.size]

    @cached_property
    def words(self) -> dict[int, list[int]]:
        """The lanes that access each word, by its number."""
        found: dict[int, list[int]] = {}
        for lane in self.addresses:
            for word in self.words_of(lane):
                found.setdefault(word, []).append(lane)
        return dict(sorted(found.items()))

    @cached_property
    def sectors(self) -> dict[int, list[int]]:
        """The lanes that access each sector, by its number."""
        found: dict[int, set[int]] = {}
        for word, lanes in self.words.items():
            found.setdefault(word * WORD // SECTOR, set()).update(lanes)
        return {sector: sorted(lanes) for sector, lanes in found.items()}

    @cached_property
    def rivals(self) -> dict[int, list[int]]:
        """The lanes at each address: those of an atomic are served one after the other."""
        found: dict[int, list[int]] = {}
        for lane, address in self.addresses.items():
            found.setdefault(address, []).append(lane)
        return found

    @property
    def fewest_sectors(self) -> int:
        """How many sectors would hold as many bytes."""
        return -(-len({*self.addresses.values()}) * self.size // SECTOR)

    @property
    def lines(self) -> list[int]:
        """The addresses of the lines of the cache."""
        return sorted({sector * SECTOR // LINE * LINE for sector in self.sectors})

    @cached_property
    def in_pairs(self) -> bool:
        """Does a pass serve twice as many lanes, as all pairs of them load from one address?"""
        if self.verb is None or not may_pair(self.space, self.verb, self.size):
            return False
        active = self.addresses.items()
        return any(all(self.addresses.get(lane ^ apart, own) == own for lane, own in active) for apart in PARTNERS)

    @cached_property
    def passes(self) -> list[Pass]:
        """A pass is for 128 bytes: for accesses of 8 bytes half a warp, for those of 16 a quarter; twice that `in_pairs`."""
        together = BANKS * WORD // max(self.size, WORD) << self.in_pairs
        found = (self._pass(range(first, first + together)) for first in range(0, WARP, together))
        return [each for each in found if each.by_bank]

    @property
    def wavefronts(self) -> int:
        """How many wavefronts all passes take."""
        return sum(each.turns for each in self.passes)

    def used_of_sector(self, sector: int) -> int:
        """How many bytes of a sector the lanes ask for."""
        first = sector * SECTOR
        found = {
            byte
            for lane in self.sectors[sector]
            for byte in range(max(self.addresses[lane], first), min(self.addresses[lane] + self.size, first + SECTOR))
        }
        return len(found)

    def address_text(self, address: int) -> str:
        """An address, in the memory that it is in: `x+0x40`."""
        memory, offset = divmod(address, APART)
        return f"{self.memories[memory]}+{offset:#x}" if self.memories else f"{address:#x}"

    def words_of(self, lane: int) -> range:
        """The words that a lane accesses, by their numbers."""
        first = self.addresses[lane]
        return range(first // WORD, (first + self.size - 1) // WORD + 1)

    def _pass(self, lanes: range) -> Pass:
        wanted = {word for lane in lanes if lane in self.addresses for word in self.words_of(lane)}
        banks: dict[int, list[int]] = {}
        for word in sorted(wanted):
            banks.setdefault(word % BANKS, []).append(word)
        return Pass(lanes, banks)


def place_of(reading: Reading) -> Place | None:
    """Where an instruction accesses memory, if it makes one access for each lane, at an address in a register.

    Of ldmatrix and stmatrix these are rows of matrices.  A guard may keep lanes from it.
    """
    addresses = [node for node in reading.bound.operands.values() if isinstance(node, tree.Address)]
    if len(addresses) != 1 or len(addresses[0].items) > 1:
        return None
    base, offset = _parts(addresses[0].items[0])
    if base is None or base.text not in reading.names.registers:
        return None
    type = reading.names.registers[base.text]
    if (moved := shared_matrices(reading.decoded)) is not None:
        return Place(base.text, type, offset, Space.SHARED, moved.size, moved.lanes)
    accesses = [access for access in reading.bound.summary.accesses if not access.asynchronous]
    if len(accesses) != 1 or reading.decoded.of.effects != {"mem"} or accesses[0].type is None:
        return None
    (access,) = accesses
    return Place(base.text, type, offset, access.window, access.count * access.element, verb=access.verb)


def _parts(node: tree.Operand) -> tuple[tree.Name | None, int]:
    """The name and the offset of an address."""
    match node:
        case tree.Name():
            return node, 0
        case tree.Binary(left=tree.Name() as base, op="+" | "-" as op):
            value = constants.evaluate(node.right)
            return (base, value if op == "+" else -value) if isinstance(value, int) else (None, 0)
    return None, 0


def access_of(place: Place, registers: Sequence[int], active: Sequence[bool] = (True,) * WARP) -> WarpAccess:
    """The access with the values of the register in each lane, of the active ones."""
    most = (1 << place.type.bits) - 1
    values = enumerate(registers[: place.lanes])
    addresses = {lane: value + place.offset & most for lane, value in values if active[lane]}
    return WarpAccess(place.space, place.size, addresses, verb=place.verb)


def in_ranges(numbers: Sequence[int]) -> str:
    """`0-3, 8`: numbers in order, those that follow each other as ranges."""
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in neighbours(numbers))


def neighbours(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The first and the last of each run of numbers that follow each other."""
    for n, number in enumerate(numbers):
        if n == 0 or number != numbers[n - 1] + 1:
            first = number
        if n == len(numbers) - 1 or number + 1 != numbers[n + 1]:
            yield first, number
