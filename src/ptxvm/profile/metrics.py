"""The metrics: what is counted, in which unit, and what Nsight Compute calls it.

A counted metric is a number for each instruction; the sum over the instructions of a line or a kernel is that of the line
or the kernel.  A derived metric is a formula over such sums.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from ptxvm.algebra.state_space import Space
from ptxvm.dataclass import dataclass
from ptxvm.isa.effects import Verb

SASS = "Nsight Compute counts SASS, which ptxas makes of the PTX."
TOGETHER = "A pass serves twice as many lanes where all lanes n and n ^ 1, or n and n ^ 2, load the same 8 or 16 bytes."
ONCE = "Lanes that update one word count once; `atomic_steps` says how often hardware does them."
NOTES = {Verb.READ: TOGETHER, Verb.UPDATE: ONCE}  # on wavefronts
WIDTHS = (16, 32, 64)  # bits of floating-point operations that are counted
WORDS = {Verb.READ: "load", Verb.WRITE: "store", Verb.UPDATE: "atomic"}
OF_NCU = {Verb.READ: "ld", Verb.WRITE: "st", Verb.UPDATE: "atom"}
ACCESSED = (Space.GLOBAL, Space.SHARED, Space.LOCAL, Space.CONST, Space.PARAM)


Number = int | float | None


@dataclass(frozen=True)
class Formula:
    """A derived metric: `times * (sum of over - sum of minus) / sum of under`."""

    over: tuple[str, ...]
    under: tuple[str, ...] = ()
    minus: tuple[str, ...] = ()
    times: int = 1

    def __call__(self, value: Callable[[str], Number]) -> Number:
        """The value, from those of other metrics; None where it would be a division by zero."""

        def summed(names: tuple[str, ...]) -> int | float:
            return sum(value(name) or 0 for name in names)

        over, under = self.times * (summed(self.over) - summed(self.minus)), summed(self.under)
        if not self.under:
            return over
        return over / under if under else None

    def __str__(self) -> str:
        over, under = " + ".join(self.over), " + ".join(self.under)
        text = " - ".join([over, *self.minus])
        text = f"({text})" if self.under and (len(self.over) > 1 or self.minus) else text
        text = f"{self.times} * {text}" if self.times != 1 else text
        return f"{text} / {f'({under})' if len(self.under) > 1 else under}" if self.under else text


@dataclass(frozen=True)
class Metric:
    """A metric.  `ncu` is the name of Nsight Compute for the same, and `note` says where the two may differ."""

    name: str
    unit: str
    description: str
    ncu: str = ""
    note: str = ""
    formula: Formula | None = None


def counted() -> Iterator[Metric]:
    """The metrics that are counted, in the order of reports."""
    yield Metric("inst_executed", "inst", "Instructions of warps: one for each group of lanes of a warp that executes an "
                 "instruction together.", "smsp__inst_executed.sum", SASS)  # fmt: skip
    yield Metric("thread_inst_executed", "inst", "The same by threads: the active lanes.",
                 "smsp__thread_inst_executed.sum", SASS)  # fmt: skip
    yield Metric("thread_inst_executed_true", "inst", "Active lanes whose guard predicate holds, or that have none.",
                 "smsp__thread_inst_executed_pred_on.sum", SASS)  # fmt: skip
    yield Metric("branches", "inst", "Branches (bra, brx.idx) of warps.", "smsp__inst_executed_op_branch.sum",
                 f"{SASS} ptxas predicates short branches.")  # fmt: skip
    yield Metric("divergent_branches", "inst", "Branches after which lanes of the warp are at several places.",
                 note="Nsight Compute counts their targets: `smsp__branch_targets_threads_divergent`.")  # fmt: skip
    yield Metric("barriers", "inst", "Arrivals of warps at barriers of their CTA or cluster.")
    for space in ACCESSED:
        for verb, word in WORDS.items():
            if verb is Verb.READ or space is not Space.CONST:
                yield from accesses(space, verb, f"{space}_{word}")
    yield Metric("bulk_copy_bytes", "byte", "Bytes that bulk and tensor copies (cp.async.bulk, cp.reduce.async.bulk) move.")
    yield Metric("texture_requests", "request", "Accesses of warps to textures and surfaces.")
    yield Metric("atomic_operations", "thread", "Atomics of threads, in global and shared memory.")
    yield Metric("atomic_addresses", "address", "Addresses that the atomics of each warp go to.")
    yield Metric("atomic_steps", "step", "Atomics of each warp to its most wanted address: they are done one after the other.")
    for bits in WIDTHS:
        yield Metric(f"fp{bits}_operations", "flop", f"Sums and products of .f{bits} of threads; a fused multiply-add is two.",
                     note=f"{SASS} It counts sums, products and fused ones apart.")  # fmt: skip
    yield Metric("tensor_operations", "op", "Multiplications and additions of matrix instructions, stored elements only.",
                 note="Without those of tcgen05, whose shape is in a descriptor.")  # fmt: skip


def accesses(space: Space, verb: Verb, name: str) -> Iterator[Metric]:
    """The metrics of the accesses of one kind to one state space."""
    op, how = OF_NCU[verb], f"{'atomics' if verb is Verb.UPDATE else f'{WORDS[verb]}s'} of .{space}"
    note = f"{SASS} It counts `red` apart from `atom`." if verb is Verb.UPDATE else SASS
    yield Metric(f"{name}_requests", "request", f"Instructions of warps that are {how}.", requests_of_ncu(space, verb), note)
    yield Metric(f"{name}_bytes", "byte", f"Bytes that the lanes ask for by {how}.")
    if space is Space.GLOBAL:
        yield Metric(f"{name}_sectors", "sector", f"Sectors of 32 bytes that {how} touch.",
                     f"l1tex__t_sectors_pipe_lsu_mem_global_op_{op}.sum")  # fmt: skip
        yield Metric(f"{name}_sectors_ideal", "sector", "The fewest sectors that hold as many bytes.")
        yield Metric(f"{name}_lines", "line", f"Lines of 128 bytes that {how} touch.")
    if space is Space.SHARED:
        yield Metric(f"{name}_wavefronts", "wavefront", f"Passes over the banks that {how} take.",
                     f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{op}.sum",
                     NOTES.get(verb, ""))  # fmt: skip
        yield Metric(f"{name}_wavefronts_ideal", "wavefront", "The same without bank conflicts.")


def requests_of_ncu(space: Space, verb: Verb) -> str:
    """What Nsight Compute calls the accesses of a kind to a state space; empty where it does not count them so."""
    if space is Space.SHARED:
        return f"smsp__inst_executed_op_shared_{OF_NCU[verb]}.sum"
    if space is Space.GLOBAL or (space is Space.LOCAL and verb is not Verb.UPDATE):
        return f"l1tex__t_requests_pipe_lsu_mem_{space}_op_{OF_NCU[verb]}.sum"
    return ""


def every(space: Space, quantity: str) -> tuple[str, ...]:
    """The metrics of loads, stores and atomics of a state space."""
    return tuple(f"{space}_{word}_{quantity}" for word in WORDS.values())


COUNTED = {metric.name: metric for metric in counted()}
"""The metrics that are counted, by name."""

DERIVED = {
    metric.name: metric
    for metric in (
        Metric("thread_inst_executed_off", "inst", "Active lanes whose guard predicate does not hold.", note=SASS,
               formula=Formula(("thread_inst_executed",), minus=("thread_inst_executed_true",))),
        Metric("threads_per_inst", "thread/inst", "Active lanes of an instruction of a warp, of 32.",
               "smsp__thread_inst_executed_per_inst_executed.ratio", SASS,
               Formula(("thread_inst_executed",), ("inst_executed",))),
        Metric("threads_true_per_inst", "thread/inst", "Active lanes whose guard holds, of 32.",
               "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio", SASS,
               Formula(("thread_inst_executed_true",), ("inst_executed",))),
        Metric("branch_uniform_pct", "%", "Branches after which all lanes of the warp are at one place.", note=SASS,
               formula=Formula(("branches",), ("branches",), ("divergent_branches",), 100)),
        Metric("global_sectors", "sector", "Sectors of 32 bytes that accesses of .global touch.",
               "memory_l2_theoretical_sectors_global", formula=Formula(every(Space.GLOBAL, "sectors"))),
        Metric("global_sectors_ideal", "sector", "The fewest sectors that hold as many bytes.",
               note="Nsight Compute has `memory_l2_theoretical_sectors_global_ideal`; here the same bytes count once.",
               formula=Formula(every(Space.GLOBAL, "sectors_ideal"))),
        Metric("global_sectors_excessive", "sector", "Sectors beyond the ideal.",
               formula=Formula(("global_sectors",), minus=("global_sectors_ideal",))),
        Metric("global_sectors_per_request", "sector/request", "Sectors that an access of a warp touches.",
               formula=Formula(("global_sectors",), every(Space.GLOBAL, "requests"))),
        Metric("global_coalesced_pct", "%", "The ideal sectors, of those touched.",
               formula=Formula(("global_sectors_ideal",), ("global_sectors",), times=100)),
        Metric("global_bytes", "byte", "Bytes that the lanes ask for of .global.",
               formula=Formula(every(Space.GLOBAL, "bytes"))),
        Metric("shared_wavefronts", "wavefront", "Passes over the banks of shared memory.", "memory_l1_wavefronts_shared",
               formula=Formula(every(Space.SHARED, "wavefronts"))),
        Metric("shared_wavefronts_ideal", "wavefront", "The same without bank conflicts.", "memory_l1_wavefronts_shared_ideal",
               formula=Formula(every(Space.SHARED, "wavefronts_ideal"))),
        Metric("shared_bank_conflicts", "wavefront", "Passes beyond the ideal.",
               "derived__memory_l1_wavefronts_shared_excessive",
               formula=Formula(("shared_wavefronts",), minus=("shared_wavefronts_ideal",))),
        Metric("shared_conflict_free_pct", "%", "The ideal passes, of those taken.",
               formula=Formula(("shared_wavefronts_ideal",), ("shared_wavefronts",), times=100)),
        Metric("shared_bytes", "byte", "Bytes that the lanes ask for of .shared.",
               formula=Formula(every(Space.SHARED, "bytes"))),
        Metric("local_bytes", "byte", "Bytes that the lanes ask for of .local.",
               formula=Formula(every(Space.LOCAL, "bytes"))),
        Metric("atomic_contention", "thread/address", "Atomics of a warp to an address.",
               formula=Formula(("atomic_operations",), ("atomic_addresses",))),
        Metric("flop", "flop", "Floating-point operations of threads, without those of matrix instructions.",
               formula=Formula(tuple(f"fp{bits}_operations" for bits in WIDTHS))),
        Metric("arithmetic_intensity", "op/byte", "Operations for each byte that is asked for of .global, without caches.",
               formula=Formula(("flop", "tensor_operations"), ("global_bytes",))),
    )
}  # fmt: skip
"""The metrics that are derived from others, by name."""

METRICS: Mapping[str, Metric] = COUNTED | DERIVED
POSITION = {name: n for n, name in enumerate(COUNTED)}
"""The column of a counted metric in an array of counts."""


__all__ = ["COUNTED", "DERIVED", "METRICS", "POSITION", "Formula", "Metric", "Number"]
