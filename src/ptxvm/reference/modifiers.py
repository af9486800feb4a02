"""What each modifier says, in words (PTX 5.2, 8, 9.7).

The syntax lines know that `.rz` is a choice of `.rnd`; here stands what it means.  A word that means one thing
everywhere stands alone, one whose meaning depends on its place stands behind the name of its slot.
"""

from __future__ import annotations

from ptxvm.algebra.types import Type
from ptxvm.isa.notation import ModifierSlot

WORDS = {
    # rounding
    "rn": "round to nearest, ties to even",
    "rna": "round to nearest, ties away from zero",
    "rz": "round toward zero",
    "rm": "round toward minus infinity",
    "rp": "round toward plus infinity",
    "rs": "round up or down at random, by the random bits in an operand",
    "rni": "round to the nearest integer, ties to even",
    "rzi": "round to an integer, toward zero",
    "rmi": "round to an integer, toward minus infinity",
    "rpi": "round to an integer, toward plus infinity",
    # conversions, precision and range
    "pack": "several numbers into one register", "scaled::n2::ue8m0": "scaled by powers of two",
    "approx": "a fast approximation: the ISA bounds its error",
    "full": "an approximation over the full range: the ISA bounds its error",
    "ftz": "flush subnormal operands and results to zero of the same sign",
    "sat": "saturate: integers to the range of the type, floats to [0, 1] with NaN as 0",
    "satfinite": "saturate to the largest finite number instead of infinity",
    "relu": "zero where the result is negative",
    "NaN": "the result is NaN where an operand is",
    "xorsign": "the sign is the exclusive OR of the signs of the operands",
    "abs": "compare the magnitudes",
    "oob": "+0 where a factor is the out-of-bounds NaN",
    # integers
    "cc": "write the carry or borrow to CC.CF",
    "wide": "keep the whole product, which is twice as wide",
    "mode.lo": "keep the lower half of the product",
    "mode.hi": "keep the upper half of the product",
    "clamp": "limit the amount to the width",
    "wrap": "take the amount modulo the width",
    "shiftamt": "how far the bit is from the top, instead of its position",
    "dir.l": "shift left",
    "dir.r": "shift right",
    # comparisons
    "eq": "equal", "ne": "not equal", "lt": "less", "le": "less or equal", "gt": "greater", "ge": "greater or equal",
    "CmpOp.lo": "lower: less, of unsigned values", "CmpOp.ls": "lower or same: less or equal, of unsigned values",
    "CmpOp.hi": "higher: greater, of unsigned values",
    "CmpOp.hs": "higher or same: greater or equal, of unsigned values",
    "equ": "equal, or one is NaN", "neu": "not equal, or one is NaN", "ltu": "less, or one is NaN",
    "leu": "less or equal, or one is NaN", "gtu": "greater, or one is NaN", "geu": "greater or equal, or one is NaN",
    "num": "neither is NaN", "nan": "one of them is NaN",
    "BoolOp.and": "and the predicate operand", "BoolOp.or": "or the predicate operand",
    "BoolOp.xor": "exclusive or with the predicate operand",
    # testp
    "finite": "neither infinite nor NaN", "infinite": "an infinity", "number": "no NaN", "notanumber": "a NaN",
    "normal": "neither infinite, NaN nor subnormal", "subnormal": "a subnormal number",
    # prmt
    "f4e": "four adjacent bytes, forward from byte c[1:0]",
    "b4e": "four adjacent bytes, backward from byte c[1:0]",
    "rc8": "byte c[1:0] of `a`, four times",
    "ecl": "the bytes of `a`; those below c[1:0] become it",
    "ecr": "the bytes of `a`; those above c[1:0] become it",
    "rc16": "half c[0] of `a`, twice",
    # state spaces
    "const": "constant memory", "global": "global memory", "local": "local memory, of one thread",
    "param": "the parameters of the kernel or function", "param::entry": "the parameters of the kernel",
    "param::func": "the parameters of the function", "shared": "shared memory of the CTA",
    "shared::cta": "shared memory of the CTA", "shared::cluster": "shared memory of any CTA of the cluster",
    "to": "from a generic address to one in the space",
    # order and scope
    "weak": "an ordinary access: no synchronisation through it", "relaxed": "strong, but orders nothing else",
    "acquire": "what follows is ordered after it", "release": "what precedes is ordered before it",
    "acq_rel": "both acquire and release", "sc": "sequentially consistent",
    "volatile": "performed as written, as relaxed with .sys",
    "mmio": "memory-mapped I/O: performed exactly as often as written",
    "cta": "among the threads of the CTA", "cluster": "among the threads of the cluster",
    "gpu": "among the threads of the device", "gl": "among the threads of the device",
    "sys": "among the threads of the host and all devices",
    # caches
    "ca": "cache at all levels", "cg": "cache in L2 only", "cs": "streaming: likely used once", "lu": "last use",
    "cv": "do not cache: fetch again", "wb": "write back, at all levels", "wt": "write through",
    "nc": "read-only data, by a cache that need not be coherent",
    "L1": "into the L1 cache", "L2": "into the L2 cache", "tensormap": "a tensor map",
    "L1::evict_normal": "usual eviction priority in L1", "L1::evict_unchanged": "keep the eviction priority in L1",
    "L1::evict_first": "evict first from L1", "L1::evict_last": "evict last from L1", "L1::no_allocate": "not into L1",
    "L2::evict_normal": "usual eviction priority in L2", "L2::evict_first": "evict first from L2",
    "L2::evict_last": "evict last from L2", "L2::cache_hint": "with a cache policy as the last operand",
    "L2::64B": "prefetch 64 bytes into L2", "L2::128B": "prefetch 128 bytes into L2",
    "L2::256B": "prefetch 256 bytes into L2",
    # vectors and parts
    "v2": "a vector of 2 elements", "v4": "a vector of 4 elements", "v8": "a vector of 8 elements",
    "-": "the operand is negated",
    # video
    "scale.shr7": "shift the result right by 7", "scale.shr15": "shift the result right by 15",
    "po": "plus one", "op2.add": "then add `c`", "op2.min": "then the lesser of it and `c`",
    "op2.max": "then the greater of it and `c`",
    "add": "add the parts of the result to `c`",
    # atomic operations
    "op.and": "bitwise AND", "op.or": "bitwise OR", "op.xor": "bitwise exclusive OR", "op.add": "addition",
    "op.min": "the lesser", "op.max": "the greater", "op.exch": "exchange", "op.cas": "compare and swap",
    "op.inc": "one more, or 0 from `b` on", "op.dec": "one less, or `b` from 0 and above `b` on",
    "noftz": "subnormals are kept",
    # control, barriers, warps
    "uni": "all active lanes of the warp do the same", "idx": "by an index",
    "sync": "wait for the lanes or threads named", "arrive": "arrive without waiting", "red": "with a reduction",
    "aligned": "all lanes of the warp execute it together", "popc": "count the true predicates",
    "up": "from the lane so far below", "down": "from the lane so far above",
    "bfly": "from the lane whose number differs by XOR",
    "mode.idx": "from the lane of that number",
    "warp": "of the lanes of the warp", "mask": "several, by a mask",
    "action.wait": "wait for the grids before this one", "launch_dependents": "let the grids after this one start",
    # fences and proxies
    "mbarrier_init": "of the initialisation of mbarriers", "proxy": "between ways to access memory",
    "alias": "the same memory at other addresses", "async": "asynchronous copies",
    "tensormap::generic": "tensor maps, against generic accesses",
    "async::generic": "asynchronous copies, against generic accesses",
    "sync_restrict::shared::cta": "of objects in shared memory of the CTA",
    "sync_restrict::shared::cluster": "of objects in shared memory of the cluster",
    # asynchronous copies and mbarriers
    "commit_group": "make a group of the copies that are in none", "wait_group": "wait for groups of copies",
    "wait_all": "wait for all copies", "mbarrier": "of an mbarrier", "noinc": "counted by the mbarrier from the start",
    "init": "make an mbarrier", "inval": "unmake an mbarrier", "arrive_drop": "arrive, and in later phases no more",
    "noComplete": "not the last arrival of the phase", "expect_tx": "await so many transactions",
    "complete_tx": "so many transactions are done", "test_wait": "is the phase over", "try_wait": "wait for the end of a phase",
    "parity": "the phase is told by its parity", "pending_count": "how many arrivals are pending",
    # cache policies
    "range": "for a range of addresses", "fractional": "for a fraction of the accesses",
    "cvt": "converted from a property",
    "L2::evict_unchanged": "keep the eviction priority in L2",
    "any": "true of any lane", "all": "true of all lanes", "ballot": "a bit for each lane",
}  # fmt: skip

KINDS = {"u": "unsigned", "s": "signed", "b": "untyped", "f": "floating-point"}
FORMATS = {
    "pred": "a predicate: true or false",
    "bf16": "bfloat16: the upper half of an f32",
    "tf32": "TensorFloat-32: an f32 with 10 bits of fraction",
    "e4m3": "8-bit floating-point number, 4 exponent and 3 fraction bits",
    "e5m2": "8-bit floating-point number, 5 exponent and 2 fraction bits",
    "ue8m0": "8-bit power of two",
}


def meaning(slot: ModifierSlot, word: str) -> str:
    """What a word at this place of a mnemonic says; the other choices where nothing better is known."""
    for key in (f"{slot.name}.{word}", word):
        if key in WORDS:
            return WORDS[key]
    if word in Type.named:
        role = {"type": "", "dtype": "of the destination: ", "atype": "of the source: ", "stype": "of the sources: "}
        return role.get(slot.name, "") + type_in_words(Type.named[word])
    parts = selector_in_words(word)
    if parts:
        return parts
    others = [f".{choice}" for choice in slot.order if choice != word]
    return f"one of .{', .'.join(slot.order)}" if others else ""


def selector_in_words(word: str) -> str:
    """`b0` or `h10`: the bytes or halves of a word that are meant; empty for other words."""
    kind, digits = word[:1], word[1:]
    if kind not in ("b", "h") or not digits.isdigit() or set(digits) - set("0123"):
        return ""
    noun = "byte" if kind == "b" else "half"
    return f"{noun} {digits}" if len(digits) == 1 else f"{'bytes' if kind == 'b' else 'halves'} {', '.join(reversed(digits))}"


def type_in_words(type: Type) -> str:
    """`unsigned 32-bit integer`, `2 × f16`."""
    if type.name in FORMATS:
        return FORMATS[type.name]
    if type.is_packed:
        return f"{type.lanes} × .{type.element.name}, packed in {type.bits} bits"
    noun = "bits" if type.kind == "b" else "integer" if type.is_int else "number"
    return f"{type.bits} {noun} of any kind" if type.kind == "b" else f"{type.bits}-bit {KINDS[type.kind]} {noun}"
