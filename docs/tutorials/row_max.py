"""The greatest number of each row, by Triton; writes row_max.ptx.  Needs Triton, and no GPU."""

from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def row_max(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + offsets, mask=offsets < columns, other=float("-inf"))
    tl.store(out + row, tl.max(values, 0))


signature = {"x": "*fp32", "out": "*fp32", "columns": "i32", "BLOCK": "constexpr"}
source = ASTSource(row_max, signature, constexprs={"BLOCK": 256})
compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32))
Path("row_max.ptx").write_text(compiled.asm["ptx"])
print(compiled.metadata.num_warps, "warps,", compiled.metadata.shared, "bytes of shared memory")
