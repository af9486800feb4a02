"""The tables that compiled code has of tensor copies, tensor memory, textures and surfaces, for one host thread.

They are empty when a launch begins: its record has null pointers, and an entry that the host makes puts a table there.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ptxvm.engine.jit.abi import surface_plan, texture_plan
from ptxvm.engine.jit.abi.copy_plan import PLANS, WORDS
from ptxvm.engine.jit.abi.launch_record import AT, Record
from ptxvm.engine.jit.abi.tensor_record import CELLS, MOST_PIECES, OWNERS, PRODUCT, PRODUCTS, UNIT
from ptxvm.engine.jit.abi.tile_product import MOST_COLUMNS, MOST_ROWS
from ptxvm.isa.shared_matrix import PIECE
from ptxvm.machine.per_lane import Array
from ptxvm.machine.tensor_memory import TensorMemory

if TYPE_CHECKING:
    from ptxvm.machine.tensor_engine import InPlace

MAP_GRAIN = 64  # bytes: the alignment of tensor maps
FIELDS = ("copy_plans", "tensor_cells", "tensor_products", "texture_plans", "surface_plans")


class PlanTables:
    """The tables, with what their entries point to."""

    def __init__(self, record: Record, resident: int) -> None:
        self.record = record
        images = ((each.PLANS, len(each.WORDS)) for each in (texture_plan, surface_plan))
        shapes = (PLANS, len(WORDS)), (resident, len(CELLS)), (PRODUCTS, len(PRODUCT)), *images
        self.tables = {field: np.zeros(shape, np.uint64) for field, shape in zip(FIELDS, shapes, strict=True)}
        self._named: dict[tuple[str, int], Sequence[Array]] = {}  # the arrays that an entry names, by table and number
        self._products = 0
        self.calls: dict[Hashable, list[InPlace | None]] = {}  # of products that the host calls

    def forget(self) -> None:
        """Empty all tables."""
        for field in FIELDS:
            self.record[AT[field]] = 0
        self._named, self._products, self.calls = {}, 0, {}

    def forget_cells(self) -> None:
        """Empty the table of tensor memory."""
        self.record[AT["tensor_cells"]] = 0

    def _entries(self, field: str) -> npt.NDArray[np.uint64]:
        """A table that compiled code sees."""
        table = self.tables[field]
        if not self.record[AT[field]]:
            table[:] = 0
            self.record[AT[field]] = table.ctypes.data
        return table

    def _enter(self, field: str, number: int, words: Sequence[int], *named: Array) -> None:
        """Enter a plan with a number into a table, and keep the arrays that its words name."""
        self._entries(field)[number] = words
        self._named[field, number] = named

    def copy(self, words: Sequence[int], offsets: Array) -> None:
        """Enter the plan of a tensor copy, and the offsets of its rows."""
        self._enter("copy_plans", words[0] // MAP_GRAIN % PLANS, words, offsets)

    def cells(self, slot: int, cta: int, memory: TensorMemory) -> None:
        """Enter the tensor memory of the CTA in a slot."""
        owners = np.zeros(OWNERS, np.uint8)
        for first, count in memory.allocated.items():
            owners[first // UNIT : (first + count) // UNIT] = first // UNIT + 1
        words = cta + 1, memory.cells.ctypes.data, memory.ctas, *owners.view(np.uint64).tolist()
        self._entries("tensor_cells")[slot] = words

    def product(self, words: Sequence[int], tables: Sequence[Array]) -> None:
        """Enter the plan of a product and the tables that it names, in the place of the oldest one."""
        entries = self._entries("tensor_products")
        if (entries[:, :3] == np.array(words[:3], np.uint64)).all(axis=1).any():
            return
        number, self._products = self._products % PRODUCTS, self._products + 1
        self._enter("tensor_products", number, words, *tables)

    def texture(self, words: Sequence[int], *arrays: Array) -> None:
        """Enter the plan of look-ups in a texture, and the arrays that its words name."""
        self._enter("texture_plans", words[0] % texture_plan.PLANS, words, *arrays)

    def surface(self, words: Sequence[int], array: Array) -> None:
        """Enter the plan of a surface, and its array."""
        self._enter("surface_plans", words[0] % surface_plan.PLANS, words, array)

    @cached_property
    def copies(self) -> Array:
        """Memory for copies, a row for each: K-major and negated A and B, a whole A that was sparse, A and B times scales."""
        return np.empty((5, MOST_PIECES * PIECE), np.uint8)

    @cached_property
    def kept(self) -> Array:
        """Memory for D before a product in several parts."""
        return np.empty(MOST_ROWS * MOST_COLUMNS, np.uint32)

    @cached_property
    def room(self) -> Array:
        """Memory for functions that multiply tiles."""
        return np.empty(MOST_ROWS * MOST_COLUMNS, np.uint32)
