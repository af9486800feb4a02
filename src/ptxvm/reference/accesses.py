"""What one access of a warp touches: sectors and lines of global memory, words and banks of shared memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type
from ptxvm.analysis import constants
from ptxvm.isa.special_registers import WARP
from ptxvm.profile.warp_accesses import BANKS, LINE, SECTOR, WORD
from ptxvm.reference.reading import Reading
from ptxvm.syntax import tree


@dataclass(frozen=True, slots=True)
class Place:
    """Where an instruction accesses memory: a register and an offset, in a space, so many bytes for each lane."""

    register: str
    type: Type
    offset: int
    space: Space
    size: int


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
    """The bytes that the lanes of a warp access, from their addresses on."""

    place: Place
    addresses: tuple[int, ...]

    @property
    def misaligned(self) -> list[int]:
        """The lanes whose address is no multiple of the size, which is a fault (PTX 6.4.1)."""
        return [lane for lane, address in enumerate(self.addresses) if address % self.place.size]

    @cached_property
    def words(self) -> dict[int, list[int]]:
        """The lanes that access each word, by its number."""
        found: dict[int, list[int]] = {}
        for lane in range(WARP):
            for word in self._words(lane):
                found.setdefault(word, []).append(lane)
        return dict(sorted(found.items()))

    @property
    def sectors(self) -> dict[int, list[int]]:
        """The lanes that access each sector, by its number."""
        found: dict[int, set[int]] = {}
        for word, lanes in self.words.items():
            found.setdefault(word * WORD // SECTOR, set()).update(lanes)
        return {sector: sorted(lanes) for sector, lanes in found.items()}

    @property
    def fewest_sectors(self) -> int:
        """How many sectors would hold as many bytes."""
        return -(-len(set(self.addresses)) * self.place.size // SECTOR)

    @property
    def lines(self) -> list[int]:
        """The addresses of the lines of the cache."""
        return sorted({sector * SECTOR // LINE * LINE for sector in self.sectors})

    @property
    def passes(self) -> list[Pass]:
        """A pass is for 128 bytes: for accesses of 8 bytes half a warp, for those of 16 a quarter."""
        together = BANKS * WORD // max(self.place.size, WORD)
        return [self._pass(range(first, first + together)) for first in range(0, WARP, together)]

    def _pass(self, lanes: range) -> Pass:
        wanted = {word for lane in lanes for word in self._words(lane)}
        banks: dict[int, list[int]] = {}
        for word in sorted(wanted):
            banks.setdefault(word % BANKS, []).append(word)
        return Pass(lanes, banks)

    def _words(self, lane: int) -> range:
        first = self.addresses[lane]
        return range(first // WORD, (first + self.place.size - 1) // WORD + 1)


def place_of(reading: Reading) -> Place | None:
    """Where an instruction accesses memory, if it makes one access for each lane, at an address in a register.

    None with a guard: which lanes access memory is not known then.
    """
    accesses = [access for access in reading.bound.summary.accesses if not access.asynchronous]
    addresses = [node for node in reading.bound.operands.values() if isinstance(node, tree.Address)]
    if len(accesses) != 1 or len(addresses) != 1 or reading.decoded.of.effects != {"mem"} or reading.bound.node.guard:
        return None
    (node,), (access,) = addresses, accesses
    base, offset = _parts(node.items[0])
    if len(node.items) > 1 or base is None or base.text not in reading.names.registers or access.type is None:
        return None
    type = reading.names.registers[base.text]
    return Place(base.text, type, offset, access.window, access.count * access.element)


def _parts(node: tree.Operand) -> tuple[tree.Name | None, int]:
    """The name and the offset of an address."""
    match node:
        case tree.Name():
            return node, 0
        case tree.Binary(left=tree.Name() as base, op="+" | "-" as op):
            value = constants.evaluate(node.right)
            return (base, value if op == "+" else -value) if isinstance(value, int) else (None, 0)
    return None, 0


def access_of(place: Place, registers: Sequence[int]) -> WarpAccess:
    """The access with the values of the register in each lane."""
    most = (1 << place.type.bits) - 1
    return WarpAccess(place, tuple(value + place.offset & most for value in registers))


def in_ranges(numbers: Sequence[int]) -> str:
    """`0-3, 8`: numbers in order, those that follow each other as ranges."""
    return ", ".join(f"{first}" if first == last else f"{first}-{last}" for first, last in _runs(numbers))


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    first = last = numbers[0]
    for number in numbers[1:]:
        if number != last + 1:
            yield first, last
            first = number
        last = number
    yield first, last
