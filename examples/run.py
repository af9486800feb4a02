"""Run seven kernels that nvcc compiled, and compare what they compute with NumPy.

    make run

The kernels are saxpy.cu, matmul.cu, total.cu, dequantize.cu, row_sums.cu, gemm_wgmma.cu and gemm_tcgen05.cu beside this file;
`make -C examples` writes their PTX again with nvcc.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import ptxvm

HERE = Path(__file__).parent
Floats = NDArray[np.float32] | NDArray[np.float16]


@dataclass
class Example:
    """A launch, and what NumPy says its result is."""

    kernel: str
    what: str
    grid: tuple[int, ...]
    block: tuple[int, ...]
    args: list[object]  # and what they point to
    result: Floats  # the array among `args` that the kernel writes
    expected: Floats
    findings: list[ptxvm.Finding] = field(default_factory=list)  # of the last launch, where it was checked

    @property
    def threads(self) -> int:
        """How many threads the launch has."""
        return int(np.prod(self.grid) * np.prod(self.block))

    def run(self, **how: Any) -> float:
        """Launch the kernel; the seconds that took, reading the PTX included."""
        start = time.perf_counter()
        kernel = ptxvm.load(HERE / f"{self.kernel}.ptx").kernel(self.kernel)
        args = self.args[: len(kernel.function.signature.parameters)]
        self.findings = kernel.launch(grid=self.grid, block=self.block, args=args, **how).findings
        return time.perf_counter() - start

    def difference(self) -> float:
        """The largest difference from NumPy, in parts of the largest value."""
        return float(np.max(np.abs(self.result - self.expected)) / np.max(np.abs(self.expected)))


def saxpy(random: np.random.Generator) -> Example:
    """One multiplication and one addition an element; the last block is not full."""
    n, a = 100_000, np.float32(2.5)
    x, y = random.random(n, np.float32), random.random(n, np.float32)
    expected = a * x + y
    return Example("saxpy", f"a x + y, {n:,} elements", (-(-n // 256),), (256,), [n, a, x, y], y, expected)


def matmul(random: np.random.Generator) -> Example:
    """A matrix product in tiles of shared memory; no side is a multiple of the tile."""
    rows, inner, columns = 150, 100, 170
    A, B = random.random((rows, inner), np.float32), random.random((inner, columns), np.float32)
    C = np.zeros((rows, columns), np.float32)
    grid = (-(-columns // 16), -(-rows // 16))
    what = f"A B, {rows}×{inner} by {inner}×{columns}, tiles in shared memory"
    return Example("matmul", what, grid, (16, 16), [A, B, C, rows, inner, columns], C, A @ B)


def total(random: np.random.Generator) -> Example:
    """A sum over all threads: by shuffles within each warp, by an atomic across warps."""
    n = 200_000
    x, result = random.random(n, np.float32), np.zeros(1, np.float32)
    expected = np.array([x.sum(dtype=np.float64)], np.float32)
    what = f"the sum of {n:,} numbers, warp shuffles and an atomic"
    return Example("total", what, (32,), (256,), [x, n, result], result, expected)


def dequantize(random: np.random.Generator) -> Example:
    """Signed bytes as halves, by permuting bytes: exact, so each of the 256 values is what NumPy says."""
    numbers = random.permutation(np.arange(-128, 128).repeat(256)).astype(np.int8)
    stored = (numbers.reshape(-1, 4)[:, [0, 2, 1, 3]].astype(np.int16) + 128).astype(np.uint8)
    packed, halves = stored.reshape(-1).view(np.uint32), np.zeros(numbers.size, np.float16)
    what = f"{numbers.size:,} int8 to fp16, four a thread by prmt and sub.f16x2"
    args: list[object] = [packed, halves, packed.size]
    return Example("dequantize", what, (packed.size // 256,), (256,), args, halves, numbers.astype(np.float16))


def row_sums(random: np.random.Generator) -> Example:
    """Sums of rows by a cluster of two blocks, to which tensor copies bring the matrix in a ring of buffers."""
    tiles, columns = 24, 64
    matrix = ptxvm.DeviceArray.from_host(random.random((16 * tiles, columns), np.float32))
    box = ptxvm.TensorMap.tiled(ptxvm.TensorType.FLOAT32, matrix, (columns, 8))
    sums, expected = np.zeros(16 * tiles, np.float32), matrix.array.sum(axis=1)
    what = f"sums of {16 * tiles} rows, tensor copies to a cluster of two blocks"
    return Example("row_sums", what, (2,), (160,), [box, sums, tiles, matrix], sums, expected)


def product(random: np.random.Generator, kernel: str, tile: tuple[int, int], threads: int, what: str) -> Example:
    """A product of small integers, which has no rounding: blocks of C, to which tensor copies bring tiles of A and B."""
    m, n, k = 128, 64, 256
    a, b = (random.integers(-3, 4, (rows, k)).astype(np.float16) for rows in (m, n))
    there = [ptxvm.DeviceArray.from_host(each) for each in (a, b)]
    maps = [
        ptxvm.TensorMap.tiled(ptxvm.TensorType.FLOAT16, each, (64, rows), swizzle=ptxvm.Swizzle.B128)
        for each, rows in zip(there, tile, strict=True)
    ]
    c, expected = np.zeros((m, n), np.float32), a.astype(np.float32) @ b.astype(np.float32).T
    said = f"A B, {m}×{k} by {k}×{n} in f16: {what}"
    return Example(kernel, said, (n // tile[1], m // tile[0]), (threads,), [*maps, c, n, k, there], c, expected)


def gemm_wgmma(random: np.random.Generator) -> Example:
    """Hopper's: a warp copies, a warpgroup multiplies."""
    return product(random, "gemm_wgmma", (64, 64), 160, "tensor copies and wgmma")


def gemm_tcgen05(random: np.random.Generator) -> Example:
    """Blackwell's: a thread copies, another multiplies into tensor memory, a warpgroup reads it."""
    return product(random, "gemm_tcgen05", (128, 32), 192, "tensor copies and tcgen05")


EXAMPLES: list[Callable[[np.random.Generator], Example]] = [
    saxpy, matmul, total, dequantize, row_sums, gemm_wgmma, gemm_tcgen05,
]  # fmt: skip
TOLERANCE = 1e-5  # the orders of summation differ, so do the last bits


def main() -> int:
    """Run the examples and print the table; 1 where one of them differs from NumPy."""
    random = np.random.default_rng(0)
    table = Table(title="Kernels compiled by nvcc 13.0, run on this CPU")
    table.add_column("kernel", style="bold")
    table.add_column("what it computes")
    for heading in ("threads", "seconds", "largest difference"):
        table.add_column(heading, justify="right")
    table.add_column("NumPy")
    differing = 0
    console = Console()
    for make in EXAMPLES:
        example = make(random)
        with console.status(f"{example.kernel}: {example.what}"):
            seconds = example.run()
        difference = example.difference()
        agrees = difference <= TOLERANCE  # not so for NaN
        differing += not agrees
        verdict = "[green]agrees[/]" if agrees else "[red]differs[/]"
        numbers = (f"{example.threads:,}", f"{seconds:.2f}", f"{difference:.1e}")
        table.add_row(example.kernel, example.what, *numbers, verdict)
    console.print(table)
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
