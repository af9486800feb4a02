"""Matrix products in vector registers: a function of the module for each kind of product (PTX 9.7.14)."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from ptxvm.algebra.types import f16, f32, f64, s32
from ptxvm.engine.jit.ir import cpu, libraries
from ptxvm.engine.jit.ir.builder import Unit
from ptxvm.engine.jit.values import f16_soft, mma_half_bytes, mma_scaled, mma_small, mma_sparse
from ptxvm.engine.jit.values.mma_doubles import Doubles, fused
from ptxvm.engine.jit.values.mma_floats import FORMS, ExactSmall, Fast, TensorCoreSums
from ptxvm.engine.jit.values.mma_integers import Bits, Integers
from ptxvm.engine.jit.values.mma_wide import WideSmall, WideSums
from ptxvm.engine.jit.values.mma_writer import ProductWriter
from ptxvm.isa.fragments import Product, Scaling
from ptxvm.machine.tensor_core import Accumulation as Core, Architecture, unit_of


@lru_cache(maxsize=256)
def _library(product: Product, by: Architecture | Core, _processor: str, *, fast: bool) -> str | None:
    unit = Unit()
    if isinstance(by, Core):
        function = written_for(unit, product, by, small=True, fast=fast)
    else:
        function = written(unit, product, by, fast=fast)
    return None if function is None else libraries.enter(unit, function)


def shared(unit: Unit, product: Product, by: Architecture | Core, *, fast: bool) -> str | None:
    """Declare the function for a product, which all kernels share; returns its name, or None where no writer handles it.

    A product by a tensor core is one of small numbers, as `written_for` has it.
    """
    name = _library(product, by, cpu.identity(), fast=fast)
    return None if name is None else libraries.declared(unit, name)


def written(unit: Unit, product: Product, architecture: Architecture, *, fast: bool) -> str | None:
    """Write the function for a product unless it is there; returns its name, or None where no writer handles it."""
    if mma_half_bytes.is_halved(product) and product.scaling is not None:
        return _of_half_bytes(unit, product, product.scaling)
    if mma_scaled.is_scaled(product) and product.scaling is not None:
        return _of_scaled(unit, product, product.scaling, architecture, fast=fast)
    if mma_small.is_small(product):
        return _of_small(unit, product, architecture, fast=fast)
    if mma_sparse.is_sparse(product):
        return _of_sparse(unit, product, architecture, fast=fast)
    if product.a.matrices > 1 or product.further:
        return None
    if product.d.type is not s32 and product.d.type is not f64:
        return written_for(unit, product, unit_of(product, architecture), fast=fast)
    found = _writer(unit, product)
    return None if found is None else _named(unit, product, found)


def _of_sparse(unit: Unit, product: Product, architecture: Architecture, *, fast: bool) -> str | None:
    """The function for a product with a sparse A of halves or integers."""
    whole = mma_sparse.dense(product)
    if product.d.type is s32:
        return _of_dense(unit, _named(unit, whole, Integers(unit, whole)), product)
    return _of_dense(unit, written_for(unit, whole, unit_of(product, architecture), sparse=True, fast=fast), product)


def _of_dense(unit: Unit, called: str | None, product: Product, *, by_halves: bool = False) -> str | None:
    """The function for a product, given that of the product with a dense A."""
    sparsity = product.sparsity
    if sparsity is None:
        return called
    return _around(
        unit, called, f"sparse.{sparsity.threads}",
        lambda name, dense: mma_sparse.function(unit, name, dense, product, sparsity, by_halves=by_halves),
    )  # fmt: skip


def _of_scaled(unit: Unit, product: Product, scaling: Scaling, architecture: Architecture, *, fast: bool) -> str | None:
    """The function for a product of small floats whose rows and columns have a scale."""
    whole, is_sparse = mma_sparse.dense(product), product.sparsity is not None
    called = written_for(unit, mma_scaled.tile(whole), unit_of(product, architecture), small=True, sparse=is_sparse, fast=fast)
    found = _around(
        unit, called, f"scaled.{product.a.type}.{product.b.type}",
        lambda name, tile: mma_scaled.function(unit, name, tile, whole, scaling),
    )  # fmt: skip
    return _of_dense(unit, found, product)


def _of_half_bytes(unit: Unit, product: Product, scaling: Scaling) -> str | None:
    """The function for a product of half bytes whose blocks have scales."""
    group, whole = mma_half_bytes.group(product), mma_sparse.dense(product)
    found = _around(
        unit, _named(unit, group, Integers(unit, group)), f"groups.{scaling.a.type}.{scaling.a.shape[1]}",
        lambda name, called: mma_half_bytes.function(unit, name, called, whole, scaling),
    )  # fmt: skip
    return _of_dense(unit, found, product)


def _of_small(unit: Unit, product: Product, architecture: Architecture, *, fast: bool) -> str | None:
    """The function for a product of floats of eight bits and less."""
    core, sparsity = unit_of(product, architecture), product.sparsity
    if product.scaling is not None or core.group > 1:
        return None
    if core.converted:
        return _of_converted(unit, product, architecture, fast=fast)
    whole = mma_sparse.dense(product)
    called = written_for(unit, mma_small.tile(whole), core, small=True, sparse=sparsity is not None, fast=fast)
    found = _around(
        unit, called, f"{product.a.type}.{product.b.type}", lambda name, tile: mma_small.function(name, tile, whole)
    )
    return _of_dense(unit, found, product)


def _of_converted(unit: Unit, product: Product, architecture: Architecture, *, fast: bool) -> str | None:
    """The function for a product of floats of eight bits by a core that takes them as f16."""
    whole = mma_sparse.dense(product)
    half = mma_small.half_of_registers(whole)
    called = written_for(unit, half, unit_of(half, architecture), sparse=product.sparsity is not None, fast=fast)
    found = _around(
        unit, called, f"converted.{product.a.type}.{product.b.type}",
        lambda name, half: mma_small.converted_function(name, half, whole),
    )  # fmt: skip
    return _of_dense(unit, found, product, by_halves=True)


def _around(unit: Unit, called: str | None, of: str, text: Callable[[str, str], str]) -> str | None:
    """The function that calls another one on operands that it prepares, by the text for both names; None where that is None."""
    if called is None:
        return None
    name = f"{called}.of.{of}"
    return name if name in unit.helpers else unit.helper(name, text(name, called))


def _named(unit: Unit, product: Product, found: ProductWriter, mark: str = "") -> str:
    """The name of the function of a writer, which is written unless it is there."""
    (m, k), n = product.a.shape, product.b.shape[1]
    types = ".".join(matrix.type.name for matrix in (product.d, product.a, product.b, product.c))
    name = f"ptxvm.mma.{types}.m{m}n{n}k{k}.r{product.a.registers}.{found.kind}{mark}"
    if name not in unit.helpers:
        unit.helper(name, found.function(name))
    return name


def written_for(
    unit: Unit, product: Product, core: Core, *, small: bool = False, sparse: bool = False, fast: bool
) -> str | None:
    """Write the function for a product of floats by a tensor core; returns its name, None for any other product.

    `small` numbers of eight bits and less come as f16 or bf16; of a `sparse` A half of the elements at most are not zero.
    """
    if not of_floats(product):
        return None
    mark = ".small" * small + ".sparse" * sparse
    if fast:
        return _named(unit, product, Fast(unit, product), mark)
    exact, wide = (ExactSmall, WideSmall) if small else (TensorCoreSums, WideSums)
    found = exact(unit, product, core, sparse=sparse)
    found.otherwise = _named(unit, product, wide(found), mark)
    return _named(unit, product, found, mark)


def _writer(unit: Unit, product: Product) -> ProductWriter | None:
    """The writer of the function for integers or f64."""
    if product.d.type is s32:
        return Bits(unit, product) if product.a.type.bits == 1 else Integers(unit, product)
    return Doubles(unit, product) if product.rounding == "rn" and fused() else None


def of_floats(product: Product) -> bool:
    """Is it a product of f16, bf16 or tf32, added to f32 or f16, which the processor converts?"""
    types = {matrix.type for matrix in (product.a, product.b, product.c, product.d)}
    if f16 in types and not f16_soft.native():
        return False
    added = {product.c.type, product.d.type} <= {f16, f32}
    return added and product.a.type is product.b.type and product.a.type in FORMS and not product.finite
