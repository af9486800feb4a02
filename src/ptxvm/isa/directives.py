"""The directives as tables: which version and target has what, and where it may stand (PTX 5, 11).

The demands are those of ptxas 13.5, which differ from the manual's in places.
"""

from __future__ import annotations

from collections.abc import Mapping

from ptxvm.algebra.state_space import Space
from ptxvm.dataclass import dataclass
from ptxvm.isa.targets import Need, Version, parse_need, parse_version


@dataclass(frozen=True)
class Feature:
    """Something that not every module may use.

    `name` is how ptxas calls it; `until` is the first version that has it no more.
    """

    name: str
    need: Need
    section: str
    until: Version | None = None


def _features(table: str) -> dict[str, Feature]:
    """`key | words of ptxas | needs | gone since | section` by key."""
    found = {}
    for line in table.strip().splitlines():
        key, name, needs, until, section = (cell.strip() for cell in line.split("|"))
        found[key] = Feature(name, parse_need(needs), section, parse_version(until) if until else None)
    return found


FEATURES = _features("""
    address_size         | .address_size directive                       | PTX 2.3         |     | 11.1.3
    debug                | debug                                         | PTX 3.0         |     | 11.1.2
    texmode_independent  | texmode_independent                           | PTX 1.5         |     | 11.1.2
    .b128                | Type .b128                                    | PTX 8.3, sm_70  |     | 5.2.1
    .f16x2               | .f16x2 packed data-type                       | PTX 4.2, sm_53  |     | 5.2.5
    opaque               | opaque type                                   | PTX 1.5         |     | 5.3
    opaque initialiser   | opaque type initializers                      | PTX 1.5         |     | 5.3
    channel_data_type    | channel_data_type attribute                   | PTX 2.1         |     | 5.3.2
    channel_order        | channel_order attribute                       | PTX 2.1         |     | 5.3.2
    .tex                 | .tex                                          | PTX 1.0         | 1.5 | 5.1.8
    const[0]             | explicit constant banks                       | PTX 1.0         | 2.2 | 5.1.3
    const[n]             | banked constants                              | PTX 1.5         | 2.2 | 5.1.3
    extern const[]       | external constant arrays without a bank       | PTX 2.2         |     | 5.1.3
    address as value     | addresses as initial values                   | PTX 2.1         |     | 5.4.4
    function as value    | functions as initial values                   | PTX 2.1, sm_20  |     | 5.4.4
    generic()            | generic() operator                            | PTX 3.1         |     | 5.4.4
    mask                 | mask operator in initializer                  | PTX 7.1         |     | 5.4.4
    .weak                | .weak directive                               | PTX 3.1         |     | 11.6.3
    .common              | .common directive                             | PTX 5.0         |     | 11.6.4
    .attribute           | .attribute                                    | PTX 4.0         |     | 5.4.8
    .managed             | .managed                                      | PTX 4.0, sm_30  |     | 5.4.8
    .unified             | .unified                                      | PTX 8.0, sm_90  |     | 5.4.8
    kernel parameters    | kernel parameter list                         | PTX 1.4         |     | 11.2.1
    kernel prototype     | kernel function prototype                     | PTX 3.0         |     | 11.2.1
    .ptr                 | kernel parameter pointer attribute            | PTX 2.2         |     | 5.1.6.3
    .ptr to opaque       | kernel parameter pointers to opaque types     | PTX 4.3         |     | 5.1.6.3
    large parameters     | Kernel parameter size larger than 4352 bytes  | PTX 8.1, sm_70  |     | 5.1.6.1
    .param of functions  | Parameters of functions in .param space       | PTX 2.0, sm_20  |     | 5.1.6.4
    unsized parameter    | Unsized Array Parameter                       | PTX 6.0, sm_30  |     | 7.2
    .alias               | .alias                                        | PTX 6.3, sm_30  |     | 11.2.3
    .noreturn            | .noreturn                                     | PTX 6.4, sm_30  |     | 11.4.6
    .abi_preserve        | .abi_preserve                                 | PTX 9.0, sm_80  |     | 11.4.8
    .abi_preserve_control| .abi_preserve_control                         | PTX 9.0, sm_80  |     | 11.4.9
    .branchtargets       | .branchtargets directive                      | PTX 6.0, sm_30  |     | 11.3.1
    .calltargets         | .calltargets directive                        | PTX 2.1, sm_20  |     | 11.3.2
    .callprototype       | .callprototype directive                      | PTX 2.1, sm_20  |     | 11.3.3
    .maxnreg             | .maxnreg                                      | PTX 1.3         |     | 11.4.1
    .maxntid             | .maxntid                                      | PTX 1.3         |     | 11.4.2
    .reqntid             | .reqntid directive                            | PTX 2.1         |     | 11.4.3
    .minnctapersm        | .minnctapersm directive                       | PTX 2.0         |     | 11.4.4
    .maxnctapersm        | .maxnctapersm directive                       | PTX 1.3         | 2.1 | 11.4.5
    .reqnctapercluster   | .reqnctapercluster                            | PTX 7.8, sm_90  |     | 11.7.1
    .explicitcluster     | .explicitcluster                              | PTX 7.8, sm_90  |     | 11.7.2
    .maxclusterrank      | .maxclusterrank                               | PTX 7.8, sm_90  |     | 11.7.3
    .blocksareclusters   | .blocksareclusters                            | PTX 9.0, sm_90  |     | 11.8.1
    .pragma              | .pragma directive                             | PTX 2.0         |     | 11.4.7
    .language            | .language                                     | PTX 9.2         |     | 11.4
    used_bytes_mask      | used_bytes_mask                               | PTX 8.3, sm_50  |     | 12.2
    enable_smem_spilling | enable_smem_spilling                          | PTX 8.7, sm_75  |     | 12.3
    frequency            | frequency                                     | PTX 9.0         |     | 12.4
    file times           | timestamp and filesize in .file directive     | PTX 3.2         |     | 11.5.3
    .loc_intermediate    | .loc_intermediate                             | PTX 9.4         |     | 11.5
    .nv_intermediate_source_section | .nv_intermediate_source_section    | PTX 9.4         |     | 11.5
    .section             | .section directive                            | PTX 2.0         |     | 11.5.2
    section label        | Defining labels in .section                   | PTX 7.0         |     | 11.5.2
    section offset       | labels + imm expression in .section           | PTX 3.2         |     | 11.5.2
    section difference   | labels1 - labels2 expression in .section      | PTX 7.5         |     | 11.5.2
    section negative     | Negative numbers in dwarf section             | PTX 7.5         |     | 11.5.2
    @@DWARF              | @@DWARF directive                             | PTX 1.0         | 2.0 | 11.5.1
""")
"""What not every version and target has; what came after PTX 9.1 has no public text, but the chapter of its kind."""

INITIALISABLE = frozenset((Space.GLOBAL, Space.CONST))
"""The state spaces whose variables may have an initial value (PTX 5.4.4)."""

OPAQUE = frozenset(("texref", "samplerref", "surfref"))
"""The opaque types: what a texture, sampler or surface is cannot be seen (PTX 5.3)."""

WIDEST_VECTOR = 128
"""The most bits of a vector (PTX 5.4.2)."""

WIDEST_PARAMETER_ALIGNMENT = 128
"""The strictest alignment, in bytes, of a parameter in memory of a function (PTX 5.1.6.4)."""

CONSTANT_BANK = 65_536
"""Bytes of constant memory for the variables of a module (PTX 5.1.3)."""

LAST_BANK = 10
"""The last of the old constant banks (PTX 5.1.3)."""

SYSTEM_FUNCTIONS = frozenset("malloc free vprintf __assertfail".split())
"""What every device has: ptxas asks for neither `.extern` nor a definition."""

DEVICE_RUNTIME = ("cuda", "__cudaCDP2")
"""How the names of the device runtime's functions begin, which is linked to every module; before CUDA 12, and since."""

# ── parameters of kernels (PTX 5.1.6.1) ─────────────────────────────────────────────────

PARAMETER_BYTES = (((1, 5), 256), ((8, 1), 4352))
"""How many bytes the parameters of a kernel take at most, before each version; then `MOST_PARAMETER_BYTES`."""

MOST_PARAMETER_BYTES = 32_764

# ── shared memory (PTX 5.1.7) ───────────────────────────────────────────────────────────

STATIC_SHARED_BYTES = 48 << 10
"""How many bytes of variables a kernel may declare: what every chip gives it unasked."""

CHIP_SHARED_BYTES = 227 << 10
"""How many bytes a CTA can have on the chips that have most: 9.0 and 10.x."""

# ── performance directives of kernels (PTX 11.4, 11.7) ──────────────────────────────────

POSITIVE = frozenset(("maxntid", "reqntid", "maxnreg", "minnctapersm", "maxnctapersm"))
"""Those whose numbers are at least 1."""

MOST: Mapping[str, int] = {"abi_preserve_control": 11}
"""Those whose number has a limit: that of ptxas, which refuses the 14 of the manual's example."""

LAST_LANGUAGE = 10
"""The last number of a `.language`; ptxas does not say what they stand for."""

TILES = 7
"""The `.language` of kernels that tileiras makes: programs of tiles (CUDA Programming Guide 2.4)."""

EXCLUSIVE = (("maxntid", "reqntid"), ("reqnctapercluster", "maxclusterrank"))
"""Those that cannot stand together."""

DEMANDED: Mapping[str, tuple[str, ...]] = {"blocksareclusters": ("reqntid", "reqnctapercluster")}
"""Those that say nothing without others."""

USELESS_ALONE: Mapping[str, tuple[str, ...]] = {
    "minnctapersm": ("maxntid", "reqntid"),
    "maxnctapersm": ("maxntid", "reqntid"),
}
"""Those that are ignored without one of the others."""

# ── pragmas that ptxas knows (PTX 12) ───────────────────────────────────────────────────

PRAGMAS = frozenset(("used_bytes_mask", "enable_smem_spilling", "frequency"))
"""Those that stand within a function only; there all other strings are taken, and mostly ignored."""
OF_MODULES = "nounroll"
"""The one that a module may have."""

# ── opaque variables (PTX 5.3) ──────────────────────────────────────────────────────────

_SHAPE = frozenset("width height depth array_size channel_data_type channel_order".split())
_SAMPLING = frozenset("filter_mode addr_mode_0 addr_mode_1 addr_mode_2".split())

OPAQUE_FIELDS: Mapping[str, frozenset[str]] = {
    "texref": _SHAPE | _SAMPLING | {"normalized_coords", "num_mipmap_levels", "num_samples"},
    "samplerref": _SAMPLING | {"force_unnormalized_coords"},
    "surfref": _SHAPE | {"memory_layout"},
}
"""The fields that an initialiser may set."""

OPAQUE_VALUES = frozenset("nearest linear wrap mirror clamp_ogl clamp_to_edge clamp_to_border".split())
"""The names that stand for values of fields."""
