"""The special registers: predefined, read-only, each thread has its own (PTX 10)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from ptxvm.algebra.types import Type, b32, pred, u16, u32, u64
from ptxvm.dataclass import dataclass
from ptxvm.isa.targets import Need, parse_need

WARP = 32
"""The lanes of a warp, `WARP_SZ` (PTX 4.3)."""

COMPONENTS = {"x": 0, "y": 1, "z": 2, "w": 3, "r": 0, "g": 1, "b": 2, "a": 3}
"""The selectors of a vector, and which element each picks."""


@dataclass(frozen=True)
class SpecialRegister:
    """A special register, or one component of one.

    `type` is that of an element; `count` is 4 for a vector read as a whole.  `legacy` are the other types under which
    16-bit and 32-bit code of old versions may read the low bits.  `volatile` ones change from read to read,
    `scheduled` ones tell where the hardware has put the thread.
    `component` is the element that was selected, `value` that of a constant of the language; `always` is what the machine
    gives in every launch, where that is one number, and `because` why.
    """

    name: str
    type: Type
    meaning: str
    section: str
    needs: str = "PTX 1.0"
    count: int = 1
    legacy: tuple[Type, ...] = ()
    volatile: bool = False
    scheduled: bool = False
    component: int | None = None
    value: int | None = None
    always: int | None = None
    because: str = ""

    @property
    def spelling(self) -> str:
        """The name as it is written: `%tid`, but `WARP_SZ`."""
        return self.name if self.value is not None else f"%{self.name}"

    @property
    def noun(self) -> str:
        """What it is."""
        return "a constant" if self.value is not None else "a special register"

    @property
    def of_cluster(self) -> bool:
        """Is it about clusters?"""
        return self.needs == CLUSTERS

    @property
    def need(self) -> Need:
        """The version and target that it needs."""
        return parse_need(self.needs)


def lookup(name: str, component: str | None = None) -> SpecialRegister | None:
    """The register called `name` (its `%` may be left out), or the component of it; None where there is none."""
    name = name.removeprefix("%")
    register = SPECIAL.get(name)
    if register is None or component is None:
        return register
    if register.count == 1 or component not in COMPONENTS:
        return None
    return _element(name, COMPONENTS[component])


@cache
def _element(name: str, component: int) -> SpecialRegister:
    return replace(SPECIAL[name], count=1, component=component)


CLUSTERS = "PTX 7.8, sm_90"
RESERVED = "PTX 7.6, sm_80"

# name, type, section, needs, meaning; `<n>` makes n registers, a * marks one that changes from read to read, a ^ one that
# tells where the hardware has put the thread.
TABLE = (
    ("laneid", u32, "10.3", "PTX 1.3", "The number of this lane in its warp."),
    ("warpid^", u32, "10.4", "PTX 1.3", "The number of this warp in its CTA; the hardware may change it."),
    ("nwarpid", u32, "10.5", "PTX 2.0, sm_20", "The greatest number of warps."),
    ("smid^", u32, "10.8", "PTX 1.3", "The multiprocessor that runs the thread; the hardware may change it."),
    ("nsmid", u32, "10.9", "PTX 2.0, sm_20", "The number of multiprocessor identifiers, which may have gaps."),
    ("is_explicit_cluster", pred, "10.11", CLUSTERS, "Did the launch ask for clusters?"),
    ("cluster_ctarank", u32, "10.16", CLUSTERS, "The place of this CTA in its cluster, counted over all dimensions."),
    ("cluster_nctarank", u32, "10.17", CLUSTERS, "How many CTAs the cluster has."),
    ("lanemask_eq", u32, "10.18", "PTX 2.0, sm_20", "A bit for this lane."),
    ("lanemask_le", u32, "10.19", "PTX 2.0, sm_20", "A bit for each lane up to this one."),
    ("lanemask_lt", u32, "10.20", "PTX 2.0, sm_20", "A bit for each lane below this one."),
    ("lanemask_ge", u32, "10.21", "PTX 2.0, sm_20", "A bit for each lane from this one on."),
    ("lanemask_gt", u32, "10.22", "PTX 2.0, sm_20", "A bit for each lane above this one."),
    ("clock*", u32, "10.23", "PTX 1.0", "A counter of cycles, its low half."),
    ("clock_hi*", u32, "10.23", "PTX 5.0, sm_20", "A counter of cycles, its high half."),
    ("clock64*", u64, "10.24", "PTX 2.0, sm_20", "A counter of cycles."),
    ("envreg<32>", b32, "10.27", "PTX 1.0", "Set by the driver before the launch."),  # the manual says 2.1
    ("globaltimer*", u64, "10.28", "PTX 3.1, sm_30", "Nanoseconds, on a clock common to the device."),
    ("globaltimer_lo*", u32, "10.28", "PTX 3.1, sm_30", "The low half of the nanoseconds."),
    ("globaltimer_hi*", u32, "10.28", "PTX 3.1, sm_30", "The high half of the nanoseconds."),
    ("reserved_smem_offset_begin", b32, "10.29", RESERVED, "Where the system's part of shared memory begins."),
    ("reserved_smem_offset_end", b32, "10.29", RESERVED, "Where the system's part of shared memory ends."),
    ("reserved_smem_offset_cap", b32, "10.29", RESERVED, "The size of the system's part of shared memory."),
    ("reserved_smem_offset_<2>", b32, "10.29", RESERVED, "An offset in the system's part of shared memory."),
    ("total_smem_size", u32, "10.30", "PTX 4.1, sm_20", "Bytes of shared memory of the CTA, in allocation units."),
    ("aggr_smem_size", u32, "10.31", "PTX 8.1, sm_90", "Bytes of shared memory of the CTA and the system."),
    ("dynamic_smem_size", u32, "10.32", "PTX 4.1, sm_20", "Bytes of shared memory that the launch asked for."),
    ("current_graph_exec", u64, "10.33", "PTX 8.0, sm_50", "The device graph that runs this kernel, or 0."),
)

VECTORS = (
    ("tid", "10.1", "PTX 1.0", "The place of the thread in its CTA."),
    ("ntid", "10.2", "PTX 1.0", "The size of the CTA in threads."),
    ("ctaid", "10.6", "PTX 1.0", "The place of the CTA in its grid."),
    ("nctaid", "10.7", "PTX 1.0", "The size of the grid in CTAs."),
    ("clusterid", "10.12", CLUSTERS, "The place of the cluster in its grid."),
    ("nclusterid", "10.13", CLUSTERS, "The size of the grid in clusters."),
    ("cluster_ctaid", "10.14", CLUSTERS, "The place of the CTA in its cluster."),
    ("cluster_nctaid", "10.15", CLUSTERS, "The size of the cluster in CTAs."),
)

RESERVED_SHARED_BYTES = 1024
"""Bytes of shared memory that CUDA's own code uses, as from sm_80 on: the scratch of cooperative groups of several warps."""
RESERVED_SHARED = "%reserved_smem_offset_"
"""The beginning of the names of the registers that say where those bytes are."""
KEPT = "a module that names such a register has the first 1,024 bytes of shared memory reserved"

# What the machine gives in every launch, and why; `<n>` as above.
ALWAYS = (
    ("smid", 0, "the machine is one multiprocessor"),
    ("nsmid", 1, "the machine is one multiprocessor"),
    ("envreg<32>", 0, "no driver sets it"),
    ("pm<8>", 0, "the machine has no performance counters"),
    ("pm<8>_64", 0, "the machine has no performance counters"),
    ("reserved_smem_offset_begin", 0, KEPT),
    ("reserved_smem_offset_end", RESERVED_SHARED_BYTES, KEPT),
    ("reserved_smem_offset_cap", RESERVED_SHARED_BYTES, KEPT),
    ("reserved_smem_offset_0", 0, KEPT),
    ("reserved_smem_offset_1", RESERVED_SHARED_BYTES // 2, KEPT),
)
OF_LAUNCHES = ("envreg1", "envreg2", "envreg3", "envreg4")
"""Pairs (high, low) of addresses: the workspace of `grid.sync()`, as CUDA's runtime leaves it; the record of the graph."""

LAUNCH = {"tid", "ntid", "ctaid", "nctaid"}  # `.v4.u16` before PTX 2.0


def _names(pattern: str) -> list[str]:
    """The names that a pattern stands for."""
    stem, _, rest = pattern.partition("<")
    count, _, end = rest.partition(">")
    return [f"{stem}{n}{end}" for n in range(int(count))] if count else [stem]


def _registers() -> Iterator[SpecialRegister]:
    for pattern, type, section, needs, meaning in TABLE:
        for name in _names(pattern.rstrip("*^")):
            volatile, scheduled = pattern.endswith("*"), pattern.endswith("^")
            yield SpecialRegister(name, type, meaning, section, needs, volatile=volatile, scheduled=scheduled)
    for name, section, needs, meaning in VECTORS:
        yield SpecialRegister(name, u32, meaning, section, needs, count=4, legacy=(u16,) if name in LAUNCH else ())
    # 16 bits until PTX 1.3, 32 until 3.0
    yield SpecialRegister("gridid", u64, "A number for this launch.", "10.10", legacy=(u16, u32))
    for n in range(8):
        needs = "PTX 1.3" if n < 4 else "PTX 3.0, sm_20"
        yield SpecialRegister(f"pm{n}", u32, "A performance counter.", "10.25", needs, volatile=True)
        needs = "PTX 4.0, sm_50"
        yield SpecialRegister(f"pm{n}_64", u64, "A performance counter.", "10.26", needs, volatile=True)
    yield SpecialRegister("WARP_SZ", u32, "The number of lanes of a warp, a constant.", "4.3", value=WARP)


KNOWN = {name: (value, why) for pattern, value, why in ALWAYS for name in _names(pattern) if name not in OF_LAUNCHES}
SPECIAL: dict[str, SpecialRegister] = {
    r.name: replace(r, always=KNOWN[r.name][0], because=KNOWN[r.name][1]) if r.name in KNOWN else r for r in _registers()
}
"""All special registers, by name without the `%`."""
