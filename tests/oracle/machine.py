"""One instruction run on arrays through the public interface."""

from __future__ import annotations

import zlib
from functools import cache

import numpy as np

import ptxvm


def size_of(type: str) -> int:
    """Bytes of a value."""
    return int(type[1:]) // 8


@cache
def kernel(instruction: str, result: str, types: tuple[str, ...], target: str) -> ptxvm.Kernel:
    """A kernel that computes `d[i] = instruction(a[i], b[i], …)`; `{d}` and `{0}` stand for the registers."""
    registers = {str(n): f"%x{n}" for n in range(len(types))}
    load = [
        f"ld.param.u64 %p, [p{n}]; mad.wide.u32 %p, %i, {size_of(t)}, %p; ld.global.{t} %x{n}, [%p];"
        for n, t in enumerate(types)
    ]
    text = instruction.replace("{d}", "%d")
    for n, name in registers.items():
        text = text.replace(f"{{{n}}}", name)
    parameters = ", ".join([".param .u64 pd", ".param .u32 count", *(f".param .u64 p{n}" for n in range(len(types)))])
    declared = " ".join(f".reg .{t} %x{n};" for n, t in enumerate(types))
    source = f"""
        .version 9.2
        .target {target}
        .address_size 64
        .visible .entry k({parameters})
        {{
            .reg .b64 %p; .reg .u32 %i, %t, %n; .reg .pred %out; .reg .{result} %d; {declared}
            .reg .b32 %w<8>; .reg .b16 %h<8>; .reg .b8 %q<8>;
            mov.u32 %i, %ctaid.x; mov.u32 %t, %ntid.x; mul.lo.u32 %i, %i, %t; mov.u32 %t, %tid.x; add.u32 %i, %i, %t;
            ld.param.u32 %n, [count];
            setp.ge.u32 %out, %i, %n;
            @%out bra done;
            {" ".join(load)}
            {text}
            ld.param.u64 %p, [pd]; mad.wide.u32 %p, %i, {size_of(result)}, %p; st.global.{result} [%p], %d;
        done:
            ret;
        }}
        """
    return ptxvm.load(source).kernel("k")


def run(instruction: str, result: str, *inputs: tuple[str, np.ndarray], target: str = "sm_100a") -> np.ndarray:
    """The bits of the results, as unsigned integers; each input is a register type and an array of bits.

    Warps in which some lanes are left out are compiled apart, which takes as long again: one instruction in eight has one.
    """
    count = whole = len(inputs[0][1])
    if zlib.crc32(instruction.encode()) % 8:
        whole = -(-count // 256) * 256
    out = np.zeros(whole, f"u{int(result[1:]) // 8}")
    arrays = [np.resize(bits, whole).astype(f"u{int(t[1:]) // 8}") for t, bits in inputs]
    launched = kernel(instruction, result, tuple(t for t, _ in inputs), target)
    launched.launch(grid=-(-count // 256), block=256, args=[out, np.uint32(whole), *arrays])
    return out[:count]
