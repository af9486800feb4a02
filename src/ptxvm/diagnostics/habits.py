"""Words of CUDA C, of SASS and of other assemblers, and what PTX has in their place: tables for the help of a message."""

from __future__ import annotations

import re

_CUDA = {
    "__syncthreads": "bar.sync 0;",
    "syncthreads": "bar.sync 0;",
    "__syncwarp": "bar.warp.sync 0xffffffff;",
    "syncwarp": "bar.warp.sync 0xffffffff;",
    "__threadfence": "membar.gl;",
    "threadfence": "membar.gl;",
    "__threadfence_block": "membar.cta;",
    "__threadfence_system": "membar.sys;",
    "__shfl_sync": "shfl.sync.idx.b32 d, a, lane, 31, mask;",
    "__shfl_up_sync": "shfl.sync.up.b32 d, a, delta, 0, mask;",
    "__shfl_down_sync": "shfl.sync.down.b32 d, a, delta, 31, mask;",
    "__shfl_xor_sync": "shfl.sync.bfly.b32 d, a, lanes, 31, mask;",
    "__ballot_sync": "vote.sync.ballot.b32 d, p, mask;",
    "__all_sync": "vote.sync.all.pred d, p, mask;",
    "__any_sync": "vote.sync.any.pred d, p, mask;",
    "__activemask": "activemask.b32 d;",
    "__popc": "popc.b32 d, a;",
    "__clz": "clz.b32 d, a;",
    "__ffs": "bfind.u32 d, a;",
    "__brev": "brev.b32 d, a;",
    "__ldg": "ld.global.nc.f32 d, [a];",
    "__nanosleep": "nanosleep.u32 t;",
    "__trap": "trap;",
    "atomicAdd": "atom.global.add.u32 d, [a], b;",
    "atomicSub": "atom.global.add.s32 d, [a], b; with the negative of b",
    "atomicMin": "atom.global.min.s32 d, [a], b;",
    "atomicMax": "atom.global.max.s32 d, [a], b;",
    "atomicExch": "atom.global.exch.b32 d, [a], b;",
    "atomicCAS": "atom.global.cas.b32 d, [a], b, c;",
    "atomicInc": "atom.global.inc.u32 d, [a], b;",
    "atomicDec": "atom.global.dec.u32 d, [a], b;",
    "atomicAnd": "atom.global.and.b32 d, [a], b;",
    "atomicOr": "atom.global.or.b32 d, [a], b;",
    "atomicXor": "atom.global.xor.b32 d, [a], b;",
    "assert": "trap; under a guard",
    "if": "@p bra LABEL;",
    "while": "@p bra LABEL; back to the start of the loop",
    "for": "@p bra LABEL; back to the start of the loop",
    "goto": "bra LABEL;",
    "return": "ret;",
    "fmaf": "fma.rn.f32 d, a, b, c;",
    "sqrtf": "sqrt.rn.f32 d, a;",
    "fabsf": "abs.f32 d, a;",
    "sinf": "sin.approx.f32 d, a;",
    "cosf": "cos.approx.f32 d, a;",
    "expf": "ex2.approx.f32 d, a; of a times log2(e)",
    "logf": "lg2.approx.f32 d, a; times ln(2)",
}

_ASSEMBLERS = {
    "cmp": "setp.lt.s32 p, a, b;",
    "test": "setp.ne.b32 p, a, 0;",
    "jmp": "bra LABEL;",
    "j": "bra LABEL;",
    "b": "bra LABEL;",
    "br": "bra LABEL;",
    "branch": "bra LABEL;",
    "jump": "bra LABEL;",
    "load": "ld.global.u32 d, [a];",
    "ldr": "ld.global.u32 d, [a];",
    "lw": "ld.global.u32 d, [a];",
    "store": "st.global.u32 [a], b;",
    "str": "st.global.u32 [a], b;",
    "sw": "st.global.u32 [a], b;",
    "move": "mov.b32 d, a;",
    "li": "mov.b32 d, a;",
    "la": "mov.u64 d, variable;",
    "lea": "mov.u64 d, variable; or mad.wide.u32 d, index, size, base;",
    "sar": "shr.s32 d, a, b;",
    "sal": "shl.b32 d, a, b;",
    "sll": "shl.b32 d, a, b;",
    "srl": "shr.u32 d, a, b;",
    "sra": "shr.s32 d, a, b;",
    "lsl": "shl.b32 d, a, b;",
    "lsr": "shr.u32 d, a, b;",
    "asr": "shr.s32 d, a, b;",
    "rol": "shf.l.wrap.b32 d, a, a, c;",
    "ror": "shf.r.wrap.b32 d, a, a, c;",
    "inc": "add.s32 d, d, 1;",
    "dec": "add.s32 d, d, -1;",
    "imul": "mul.lo.s32 d, a, b;",
    "idiv": "div.s32 d, a, b;",
    "mod": "rem.s32 d, a, b;",
    "mla": "mad.lo.s32 d, a, b, c;",
    "mac": "mad.lo.s32 d, a, b, c;",
    "fmad": "fma.rn.f32 d, a, b, c;",
    "fadd": "add.f32 d, a, b;",
    "fsub": "sub.f32 d, a, b;",
    "fmul": "mul.f32 d, a, b;",
    "fdiv": "div.rn.f32 d, a, b;",
    "pow": "lg2.approx.f32 and ex2.approx.f32",
    "exp": "ex2.approx.f32 d, a; of a times log2(e)",
    "log": "lg2.approx.f32 d, a; times ln(2)",
    "nop": "no instruction: leave it out",
    "halt": "exit;",
    "hlt": "exit;",
    "leave": "ret;",
    "push": "st.local.b32 [a], b; into a .local variable",
    "pop": "ld.local.b32 d, [a]; from a .local variable",
    "sync": "bar.sync 0;",
    "fence.sc": "fence.sc.gpu;",
    "select": "selp.b32 d, a, b, p;",
    "cmov": "selp.b32 d, a, b, p;",
    "atomic": "atom.global.add.u32 d, [a], b;",
    "reduce": "red.global.add.u32 [a], b;",
    "shuffle": "shfl.sync.idx.b32 d, a, lane, 31, mask;",
    "ballot": "vote.sync.ballot.b32 d, p, mask;",
    "barrier0": "bar.sync 0;",
}

_SASS = {
    "FADD": "add.f32", "FMUL": "mul.f32", "FFMA": "fma.rn.f32", "FSETP": "setp.lt.f32", "FMNMX": "min.f32",
    "FSEL": "selp.f32",
    "DADD": "add.f64", "DMUL": "mul.f64", "DFMA": "fma.rn.f64", "DSETP": "setp.lt.f64",
    "HADD2": "add.f16x2", "HMUL2": "mul.f16x2", "HFMA2": "fma.rn.f16x2", "HSETP2": "setp.lt.f16x2", "HMMA": "mma.sync",
    "MUFU": "rcp.approx.f32, rsqrt.approx.f32, sin.approx.f32, ex2.approx.f32 or lg2.approx.f32",
    "IADD": "add.s32", "IADD3": "add.s32", "IMAD": "mad.lo.s32", "IMUL": "mul.lo.s32", "ISETP": "setp.lt.s32",
    "IABS": "abs.s32",
    "IMNMX": "min.s32", "VIMNMX": "min.s32", "ISCADD": "mad.lo.s32", "LEA": "mad.lo.s32", "UIADD3": "add.s32",
    "UMOV": "mov.b32",
    "XMAD": "mad.lo.s32", "IDP": "dp4a.s32.s32", "LOP": "and.b32", "LOP3": "lop3.b32", "SHF": "shf.l.wrap.b32",
    "SHL": "shl.b32",
    "SHR": "shr.s32", "BREV": "brev.b32", "FLO": "bfind.u32", "POPC": "popc.b32", "SEL": "selp.b32", "PRMT": "prmt.b32",
    "I2F": "cvt.rn.f32.s32", "F2I": "cvt.rzi.s32.f32", "F2F": "cvt.rn.f32.f64", "I2I": "cvt.s32.s16",
    "FRND": "cvt.rni.f32.f32",
    "LDG": "ld.global.u32", "STG": "st.global.u32", "LDS": "ld.shared.u32", "STS": "st.shared.u32", "LDL": "ld.local.u32",
    "STL": "st.local.u32", "LD": "ld.u32", "ST": "st.u32", "LDC": "ld.const.u32", "ULDC": "ld.param.u32",
    "LDGSTS": "cp.async.ca",
    "LDSM": "ldmatrix.sync.aligned.m8n8.x4.shared.b16", "ATOM": "atom.add.u32", "ATOMG": "atom.global.add.u32",
    "ATOMS": "atom.shared.add.u32", "RED": "red.global.add.u32", "MEMBAR": "membar.gl", "BAR": "bar.sync",
    "SHFL": "shfl.sync",
    "VOTE": "vote.sync", "VOTEU": "vote.sync", "S2R": "mov.u32", "CS2R": "mov.u64", "S2UR": "mov.u32", "R2P": "setp.ne.b32",
    "P2R": "selp.b32", "BRA": "bra", "BRX": "brx.idx", "CALL": "call", "RET": "ret", "EXIT": "exit", "MOV": "mov.b32",
    "BSSY": "no instruction: leave it out", "BSYNC": "no instruction: leave it out", "NOP": "no instruction: leave it out",
    "WARPSYNC": "bar.warp.sync", "NANOSLEEP": "nanosleep.u32", "TEX": "tex.2d.v4.f32.f32", "TLD4": "tld4.r.2d.v4.f32.f32",
}  # fmt: skip

TYPES = {
    "i8": ("s8", "u8"), "i16": ("s16", "u16"), "i32": ("s32", "u32"), "i64": ("s64", "u64"), "i": ("s32", "u32"),
    "int": ("s32", "u32"), "integer": ("s32", "u32"), "int8": ("s8",), "int16": ("s16",), "int32": ("s32",),
    "int64": ("s64",),
    "uint": ("u32",), "uint8": ("u8",), "uint16": ("u16",), "uint32": ("u32",), "uint64": ("u64",), "unsigned": ("u32",),
    "char": ("s8", "u8"), "byte": ("b8", "u8"), "short": ("s16",), "ushort": ("u16",), "word": ("b32", "u32"),
    "dword": ("b64", "u64"),
    "long": ("s64",), "longlong": ("s64",), "ulong": ("u64",), "size_t": ("u64",), "ptr": ("u64",), "addr": ("u64",),
    "float": ("f32",), "fp32": ("f32",), "float32": ("f32",), "single": ("f32",), "f": ("f32",), "s": ("s32",), "u": ("u32",),
    "double": ("f64",), "fp64": ("f64",), "float64": ("f64",), "d": ("f64",),
    "half": ("f16",), "fp16": ("f16",), "float16": ("f16",), "bfloat16": ("bf16",), "half2": ("f16x2",),
    "bool": ("pred",), "predicate": ("pred",), "p": ("pred",), "i1": ("pred",),
}  # fmt: skip
"""Types under other names, and the types of PTX that hold their values."""

NAMES = {
    "threadIdx": "%tid", "blockIdx": "%ctaid", "blockDim": "%ntid", "gridDim": "%nctaid", "clusterIdx": "%clusterid",
    "SR_TID": "%tid", "SR_CTAID": "%ctaid", "SR_NTID": "%ntid", "SR_NCTAID": "%nctaid", "SR_LANEID": "%laneid",
    "warpSize": "WARP_SZ", "warp_size": "WARP_SZ", "warpsize": "WARP_SZ", "laneId": "%laneid", "lane_id": "%laneid",
    "lane": "%laneid",
    "warpId": "%warpid", "warp_id": "%warpid", "thread_id": "%tid.x", "block_id": "%ctaid.x", "threadid": "%tid.x",
    "blockid": "%ctaid.x", "blockidx": "%ctaid", "threadidx": "%tid", "blockdim": "%ntid", "griddim": "%nctaid",
    "smId": "%smid",
}  # fmt: skip
"""Special registers under other names."""

VALUES = {
    "inf": ("0f7F800000", "0d7FF0000000000000"),
    "infinity": ("0f7F800000", "0d7FF0000000000000"),
    "nan": ("0f7FFFFFFF", "0dFFF8000000000000"),
    "true": ("1", "1"),
    "false": ("0", "0"),
    "null": ("0", "0"),
    "nullptr": ("0", "0"),
    "pi": ("0f40490FDB", "0d400921FB54442D18"),
}
"""Constants that have names elsewhere: as 32 bits and as 64."""

_CONDITIONAL = re.compile(r"j(?!mp)[a-z]{1,3}|b(?:eq|ne|lt|le|gt|ge|eqz|nez)", re.ASCII)


def opcode(word: str) -> str:
    """What PTX has for an instruction, function or statement of that name; empty where the name is not known."""
    found = _CUDA.get(word) or _SASS.get(word) or _ASSEMBLERS.get(word.lower())
    if found is None and _CONDITIONAL.fullmatch(word.lower()):
        found = "@p bra LABEL;"
    return found or ""


def in_ptx(word: str) -> str:
    """A help: what the word is in PTX; empty where the word is not known."""
    found = opcode(word)
    if not found:
        return ""
    return f"PTX has {found}" if found.startswith("no ") else f"in PTX this is `{found}`"


def register(name: str, component: str | None) -> str:
    """The special register that has another name elsewhere: `%tid.x` for `threadIdx` and `x`; empty for other names."""
    found = NAMES.get(name.lstrip("%")) or NAMES.get(name.lstrip("%").lower(), "")
    return f"{found}.{component.lower()}" if found and component and "." not in found else found


WORDS = {
    "less": ("lt",), "lss": ("lt",), "l": ("lt",), "greater": ("gt",), "g": ("gt",), "equal": ("eq",), "e": ("eq",),
    "z": ("eq",),
    "notequal": ("ne",), "neq": ("ne",), "nz": ("ne",), "lte": ("le",), "leq": ("le",), "gte": ("ge",), "geq": ("ge",),
    "rne": ("rn",), "nearest": ("rn",), "rtz": ("rz",), "zero": ("rz",), "rtp": ("rp",), "ru": ("rp",), "up": ("rp",),
    "rtn": ("rm",), "rd": ("rm",), "down": ("rm",), "ceil": ("rpi",), "floor": ("rmi",), "trunc": ("rzi",), "round": ("rni",),
    "xchg": ("exch",), "swap": ("exch",), "cmpxchg": ("cas",), "high": ("hi",), "low": ("lo",),
    "smem": ("shared",), "sharedmem": ("shared",), "gmem": ("global",), "lmem": ("local",), "constant": ("const",),
    "parameter": ("param",),
    "device": ("gpu",), "block": ("cta",), "system": ("sys",), "saturate": ("sat",), "volatil": ("volatile",),
    "x2": ("v2",), "x4": ("v4",),
    "butterfly": ("bfly",), "index": ("idx",),
}  # fmt: skip
"""Modifiers under other names, beside the types."""


def modifiers(word: str) -> tuple[str, ...]:
    """The modifiers of PTX that may be meant by a word of another language."""
    return TYPES.get(word.lower(), ()) + WORDS.get(word.lower(), ())
