"""The writer of functions for matrix products (mma): the layout of fragments, and the shuffles that follow from it.

An element of D is a lane of one of its registers.  Shuffles bring the factors of its sum, which are lanes of A and of B, to
that lane; their order follows from the layouts of the fragments.

A function takes the registers of A, B and C as `Emitter.host_call` stores them in memory, and stores D there.  It returns 0
where it leaves the product to the host.
"""

from __future__ import annotations

from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.isa.fragments import Fragment, Product
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.warp_matrix import where

WORDS = f"<{WARP} x i32>"


class ProductWriter:
    """Writes the function for a product; `kind` distinguishes it from others for the same types and shape."""

    kind = ""

    def __init__(self, unit: Unit, product: Product) -> None:
        self.code, self.product, self.type = Code(unit), product, product.a.type
        self.depth, self.count = product.a.shape[1], product.d.elements
        positions = [[product.d.layout(lane, n) for lane in range(WARP)] for n in range(self.count)]
        rows, columns = ([tuple(at[axis] for at in each) for each in positions] for axis in (0, 1))
        self.rows, self.columns = list(dict.fromkeys(rows)), list(dict.fromkeys(columns))
        self.pairs = [(self.rows.index(r), self.columns.index(c)) for r, c in zip(rows, columns, strict=True)]

    def function(self, name: str) -> str:
        """The text of the function."""
        self.body()
        lines = "\n".join(self.code.lines)
        return f"define internal i32 @{name}(ptr %room) noinline #0 {{\nentry:\n{lines}\n  ret i32 1\n}}"

    def body(self) -> None:
        """Write its body."""
        raise NotImplementedError

    # ── operands ────────────────────────────────────────────────────────────────────────

    def register(self, number: int) -> str:
        """The address of a register."""
        return self.code.emit(f"getelementptr i8, ptr %room, i64 {STEP * number}")

    def loaded(self, vector: str, first: int, count: int) -> list[str]:
        """Load some registers as vectors of a type."""
        return [self.code.emit(f"load {vector}, ptr {self.register(first + n)}, align 64") for n in range(count)]

    def give(self, vector: str, results: list[str]) -> None:
        """Store the registers of D."""
        for n, result in enumerate(results):
            self.code.run(f"store {vector} {result}, ptr {self.register(n)}, align 64")

    @property
    def first_of_b(self) -> int:
        """The number of the first register of B."""
        return self.product.a.registers

    @property
    def first_of_c(self) -> int:
        """The number of the first register of C."""
        return self.product.a.registers + self.product.b.registers

    def leave(self, refused: str, otherwise: str = "") -> None:
        """Leave the product to the host if a condition holds in some lane, or to another function that is named."""
        leave(self.code, refused, otherwise)

    def multiply_add(self, llvm: str, function: str, left: list[str], right: list[str], totals: list[str]) -> None:
        """Add the products to `totals`, one after the other along the depth; `function` is the intrinsic that does it."""
        vector = f"<{WARP} x {llvm}>"
        for k in range(self.depth):
            rows = [self.from_a(llvm, left, each, k) for each in self.rows]
            columns = [self.from_b(llvm, right, each, k) for each in self.columns]
            for n, (row, column) in enumerate(self.pairs):
                arguments = (vector, rows[row]), (vector, columns[column]), (vector, totals[n])
                totals[n] = self.code.intrinsic(vector, function, *arguments)

    # ── shuffles ────────────────────────────────────────────────────────────────────────

    def from_a(self, llvm: str, elements: list[str], rows: tuple[int, ...], k: int, each: int = 1) -> str:
        """Elements of a row of A, one for each lane; a lane of the vectors holds `each` neighbouring elements."""
        return self._brought(llvm, self.product.a, elements, [(row, k) for row in rows], each)

    def from_b(self, llvm: str, elements: list[str], columns: tuple[int, ...], k: int, each: int = 1) -> str:
        """Elements of a column of B, one for each lane."""
        return self._brought(llvm, self.product.b, elements, [(k, column) for column in columns], each)

    def _brought(self, llvm: str, fragment: Fragment, elements: list[str], positions: list[tuple[int, int]], each: int) -> str:
        held = [divmod(int(where(fragment)[0][position]), fragment.packed * fragment.registers) for position in positions]
        return self.gathered(llvm, elements, [(element // each, lane) for lane, element in held], WARP)

    def gathered(self, llvm: str, vectors: list[str], positions: list[tuple[int, int]], count: int) -> str:
        """Gather elements of some vectors, each given as (vector, index)."""
        order = [position for _, position in positions]
        sources = sorted({source for source, _ in positions})
        found = self.code.shuffle(llvm, count, vectors[sources[0]], "poison", order)
        for source in sources[1:]:
            other = self.code.shuffle(llvm, count, vectors[source], "poison", order)
            chosen = [len(order) + n if which == source else n for n, (which, _) in enumerate(positions)]
            found = self.code.shuffle(llvm, len(order), found, other, chosen)
        return found


def leave(code: Code, refused: str, otherwise: str = "") -> None:
    """Leave the product if a condition holds: to the host, or to the function of a name, which has the same operands."""
    bad, good = code.label(), code.label()
    code.branch(refused, bad, good, likely=False)
    code.block(bad)
    answer = code.emit(f"call i32 @{otherwise}(ptr %room)", pure=False) if otherwise else "0"
    code.run(f"ret i32 {answer}")
    code.block(good)
