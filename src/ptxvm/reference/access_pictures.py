"""Pictures of one access of a warp: a line from each lane to the banks, or to the sectors, that it asks for."""

from __future__ import annotations

from collections.abc import Iterator

from ptxvm.algebra.state_space import Space
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.faults import plural
from ptxvm.profile.warp_accesses import BANKS, LINE, SECTOR
from ptxvm.reference.accesses import Pass, WarpAccess, in_ranges
from ptxvm.reference.pictures import box, color, label, line, picture, titled

CELL, HIGH, LEFT, TOP, BETWEEN = 24.0, 22.0, 62.0, 8.0, 84.0
PASS = TOP + 2 * HIGH + BETWEEN + 26
GAP = 8.0  # between the lines of the cache
FAINT, STRONG = 0.12, 0.75
"""How much colour a conflict has: little for two words of a bank, much for as many as there are lanes."""


def lanes_of_access(access: WarpAccess) -> str:
    """Where the lanes go: to banks in shared memory, elsewhere to sectors."""
    return lanes_to_banks(access) if access.space is Space.SHARED else lanes_to_sectors(access)


def lanes_to_banks(access: WarpAccess) -> str:
    """The lanes of each pass, and the banks with the number of different words that they are asked for."""
    parts = [part for n, each in enumerate(access.passes) for part in _pass(access, each, n * PASS)]
    title = f"Lanes and the banks that they ask: {plural(access.wavefronts, 'wavefront')}, ideal {len(access.passes)}"
    return picture(LEFT + BANKS * CELL + 8, len(access.passes) * PASS, title, parts)


def _pass(access: WarpAccess, each: Pass, top: float) -> Iterator[str]:
    above, below = top + TOP, top + TOP + HIGH + BETWEEN
    yield from _lanes(access, each.lanes, above)
    yield label(LEFT - 8, below + HIGH / 2, "bank", "end", size=11)
    for lane in each.lanes:
        for word in access.words_of(lane) if lane in access.addresses else ():
            bank = LEFT + (word % BANKS + 0.5) * CELL
            yield line(_middle(lane), above + HIGH, bank, below, color=color(lane / WARP, 0.8))
    for bank in range(BANKS):
        asked = len(each.by_bank.get(bank, ()))
        words = plural(asked, "word")
        strength = FAINT + (STRONG - FAINT) * asked / BANKS
        fill = f"rgba(217, 45, 32, {strength:.2g})" if asked > 1 else color(0.4, 0.2) if asked else "none"
        yield titled(f"bank {bank}: {words}", [box(LEFT + bank * CELL, below, CELL, HIGH, fill)])
        yield label(LEFT + (bank + 0.5) * CELL, below + HIGH / 2, bank, size=10, opacity=0.8)
        if asked > 1:
            yield label(LEFT + (bank + 0.5) * CELL, below + HIGH + 9, f"×{asked}", size=11)


def lanes_to_sectors(access: WarpAccess) -> str:
    """The lanes, and the sectors of 32 bytes that they touch: each is filled as far as its bytes are asked for."""
    left, place = LEFT, dict[int, float]()
    before: int | None = None
    for sector in access.sectors:
        row = sector * SECTOR // LINE
        left += GAP if before not in (None, row) else 0
        place[sector], left, before = left, left + CELL, row
    above, below = TOP, TOP + HIGH + BETWEEN
    parts = [*_lanes(access, range(WARP), above), label(LEFT - 8, below + HIGH / 2, "sector", "end", size=11)]
    for sector, lanes in access.sectors.items():
        parts += [
            line(_middle(lane), above + HIGH, place[sector] + CELL / 2, below, color=color(lane / WARP, 0.8)) for lane in lanes
        ]
    for sector, x in place.items():
        parts += _sector(access, sector, x, below)
    title = f"Lanes and the sectors that they touch: {len(place)}, ideal {access.fewest_sectors}"
    return picture(max(left, LEFT + WARP * CELL) + 8, below + HIGH + 42, title, parts)


def _sector(access: WarpAccess, sector: int, x: float, y: float) -> Iterator[str]:
    """A sector, filled as far as it is used; the first of a line of the cache has its address below it."""
    used, address = access.used_of_sector(sector), sector * SECTOR
    part = used / SECTOR
    filled = box(x, y + HIGH * (1 - part), CELL, HIGH * part, color(0.4, 0.35))
    lanes = in_ranges(access.sectors[sector])
    said = f"{access.address_text(address)}: {used} of {SECTOR} bytes, lanes {lanes}"
    yield titled(said, [filled, box(x, y, CELL, HIGH, "rgba(217, 45, 32, 0.12)" if used < SECTOR else "none")])
    yield label(x + CELL / 2, y + HIGH / 2, used, size=10, opacity=0.8)
    if sector == min(access.sectors) or sector == max(access.sectors):
        first = sector == min(access.sectors)
        at, below, anchor = (x, 10, "start") if first else (x + CELL, 26, "end")
        yield label(at, y + HIGH + below, access.address_text(address), anchor, size=10)


def _lanes(access: WarpAccess, lanes: range, y: float) -> Iterator[str]:
    yield label(LEFT - 8, y + HIGH / 2, "lane", "end", size=11)
    for lane in lanes:
        active = lane in access.addresses
        said = access.address_text(access.addresses[lane]) if active else "not active"
        fill = color(lane / WARP) if active else "none"
        yield titled(f"lane {lane}: {said}", [box(LEFT + lane * CELL, y, CELL, HIGH, fill)])
        yield label(LEFT + (lane + 0.5) * CELL, y + HIGH / 2, lane, size=10, opacity=0.8 if active else 0.3)


def _middle(lane: int) -> float:
    return LEFT + (lane + 0.5) * CELL


__all__ = ["lanes_of_access", "lanes_to_banks", "lanes_to_sectors"]
