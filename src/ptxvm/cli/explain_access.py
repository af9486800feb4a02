"""`ptxvm explain 'ld.global.v4.f32 {...}, [%rd1];'`: the bytes, sectors or banks that the lanes of a warp access."""

from __future__ import annotations

from collections.abc import Mapping

from ptxvm.algebra.state_space import Space
from ptxvm.cli.explain_instruction import Rows, chosen, print_reading
from ptxvm.cli.terminal import GAP, LABEL, console, labelled, tinted, width
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.faults import plural
from ptxvm.profile.warp_accesses import LINE, SECTOR, WORD
from ptxvm.reference.accesses import Pass, Place, WarpAccess, access_of, in_ranges
from ptxvm.reference.reading import Reading
from ptxvm.reference.warp import LANE, lane_values

MOST_WORDS = 4
"""Words of one bank that are named."""

WHOLE, PARTLY, UNTOUCHED, CONFLICT = "green", "yellow", "dim", "red"
"""Colours: sectors that are wanted whole, others, what nothing asks for, and bank conflicts."""


def accessed(place: Place, named: Mapping[str, str]) -> WarpAccess:
    """The access with the addresses that are given; otherwise lanes are neighbours."""
    values = named or {place.register: neighbours_at(place)}
    inputs = chosen(values, {place.register: place.type}, "for its address the instruction does", lane_values)
    return access_of(place, inputs[place.register])


def explain_access(reading: Reading, place: Place, named: Mapping[str, str]) -> WarpAccess:
    """Print what an instruction is, and what it touches."""
    access = accessed(place, named)
    print_reading(reading)
    console().print()
    print_access(place, access, place.register if named else neighbours_at(place))
    return access


def neighbours_at(place: Place) -> str:
    """Addresses where each lane accesses what lies behind that of the lane before."""
    return f"{LANE}*{place.size}"


def print_access(place: Place, access: WarpAccess, base: str) -> None:
    """Print what lanes touch, at a register or another base."""
    out = console()
    if not access.addresses:
        out.print(labelled("memory", [("is not accessed: the guard is false in every lane",)]))
        return
    offset = f"{place.offset:+}" if place.offset else ""
    active = list(access.addresses)
    one, several = f"lane {active[0]}", f"each of lanes {in_ranges(active)}"
    lanes = "each lane" if len(active) == WARP else several if active[1:] else one
    together = f"{plural(place.size, 'byte')} for {lanes}"
    out.print(labelled("memory", [(f"{together} at {base}{offset}, from {min(access.addresses.values()):#x} on",)]))
    if access.misaligned:
        lanes = in_ranges(access.misaligned)
        out.print(labelled("fault", [(f"misaligned: an address is a multiple of {place.size}; not that of lanes {lanes}",)]))
    elif place.space is Space.SHARED:
        rows = wavefronts(access)
        out.print(tinted("wavefronts", rows, [(CONFLICT if len(rows) > 1 else WHOLE,)] * len(rows)))
    else:
        out.print(labelled("sectors", sectors(access)))
    if place.atomic and not access.misaligned:
        rows = contention(access)
        out.print(tinted("contention", rows, [(CONFLICT if len(rows) > 1 else WHOLE,)] * len(rows)))
    if place.space is not Space.SHARED and not access.misaligned:
        out.print()
        rows, styles = lines(access), tints(access)
        if sum(max(map(len, column)) + len(GAP) for column in zip(*rows, strict=True)) > width() - LABEL:
            rows, styles = by_sector(access)
        out.print(tinted("lanes", rows, styles))


def contention(access: WarpAccess) -> Rows:
    """How many lanes of an atomic want the most wanted address: so many steps it takes."""
    steps = max(map(len, access.rivals.values()))
    if steps == 1:
        return [("1 step: each lane has an address of its own",)]
    worst = [(address, lanes) for address, lanes in access.rivals.items() if len(lanes) == steps]
    address, lanes = worst[0]
    others = len(worst) - 1
    elsewhere = f", and {steps} at {'each of ' * (others > 1)}{others} more" if others else ""
    addresses = f"{len(access.rivals)} address" + "es" * (len(access.rivals) > 1)
    return [
        (f"{steps} steps, one after the other, for {addresses}",),
        (f"lanes {in_ranges(lanes)}: {steps} at {access.address_text(address)}{elsewhere}",),
    ]


def sectors(access: WarpAccess) -> Rows:
    """How many sectors and lines are touched, and how many would do."""
    found = len(access.sectors)
    said = f"{plural(found, 'sector')} of {SECTOR} bytes in {plural(len(access.lines), 'line')} of {LINE}"
    fewest = access.fewest_sectors
    return [(said if found == fewest else f"{said}; {fewest} would hold as many bytes",)]


def lines(access: WarpAccess) -> Rows:
    """The lanes that access each sector, a row for each line."""
    found = access.sectors
    numbers = [[line // SECTOR + n for n in range(LINE // SECTOR)] for line in access.lines]
    cells = [[in_ranges(found[n]) if n in found else "-" for n in row] for row in numbers]
    head: tuple[str, ...] = ("line", *(f"+{n * SECTOR}" for n in range(LINE // SECTOR)))
    return [head, *((f"{line:#x}", *row) for line, row in zip(access.lines, cells, strict=True))]


def by_sector(access: WarpAccess) -> tuple[Rows, Rows]:
    """The lanes that access each sector, a row for each sector, with its colours."""
    found = access.sectors.items()
    rows: Rows = [("sector", "lanes"), *((access.address_text(number * SECTOR), in_ranges(lanes)) for number, lanes in found)]
    return rows, [("bold", "bold"), *(("", tint(access, number)) for number, _ in found)]


def tints(access: WarpAccess) -> Rows:
    """A colour for each cell of `lines`: sectors that are wanted whole, those that are not, and those that nothing asks for."""
    numbers = [[line // SECTOR + n for n in range(LINE // SECTOR)] for line in access.lines]
    head = ("bold",) * (1 + LINE // SECTOR)
    return [head, *(("", *(tint(access, number) for number in row)) for row in numbers)]


def tint(access: WarpAccess, sector: int) -> str:
    """The colour of a sector."""
    if sector not in access.sectors:
        return UNTOUCHED
    return WHOLE if access.used_of_sector(sector) == SECTOR else PARTLY


def wavefronts(access: WarpAccess) -> Rows:
    """How many wavefronts shared memory takes, and what makes them more than needed."""
    passes = access.passes
    needed, taken = len(passes), access.wavefronts
    rows: Rows = [(f"{taken}; {needed} would do" if taken > needed else f"{taken}: no bank is asked for two words at once",)]
    if access.in_pairs:
        rows.append(("pairs of lanes load from one address: a pass serves twice as many lanes",))
    return rows + [(conflict(each),) for each in passes if each.turns > 1]


def conflict(each: Pass) -> str:
    """The banks that are asked for most words, and the words of the first of them."""
    worst = [bank for bank, asked in each.by_bank.items() if len(asked) == each.turns]
    words = each.by_bank[worst[0]]
    named = ", ".join(f"{word * WORD:#x}" for word in words[:MOST_WORDS]) + (", ..." if len(words) > MOST_WORDS else "")
    lanes = f"lanes {each.lanes.start}-{each.lanes.stop - 1}"
    banks = f"bank{'s' * (len(worst) > 1)} {in_ranges(sorted(worst))}"
    which = f"at {named}" if len(worst) == 1 else f"those of bank {worst[0]} at {named}"
    return f"{lanes}: {each.turns} words of {banks}, {which}"
