"""Products with a sparse A of f16 or bf16: a dense A is put together in registers, and another function multiplies that one.

Of four neighbours along K two are stored, in one word of a lane, and four bits of metadata say which (PTX 9.7.14.6.1).  A word
of the dense A has two of the four: shuffles bring the stored word and the metadata to its lane, where zeros fill it up.
"""

from __future__ import annotations

from dataclasses import replace

from ptxvm.algebra.types import bf16, f16
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.values.mma_writer import WORDS, leave
from ptxvm.isa.fragments import Product, Sparsity, mma_fragment
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.warp_matrix import where

CHUNK = 4  # elements, of which two are stored


def is_sparse(product: Product) -> bool:
    """Is it a product with a sparse A of halves, and without scales?"""
    return product.sparsity is not None and product.scaling is None and product.a.type in (f16, bf16)


def dense(product: Product) -> Product:
    """The product with a dense A."""
    shape = f"m16n8k{product.b.shape[0]}"
    return replace(product, a=mma_fragment("a", product.a.type, shape), sparsity=None)


def function(unit: Unit, name: str, called: str, product: Product, sparsity: Sparsity) -> str:
    """The text of the function, which calls that of the dense product."""
    code, whole = Code(unit), dense(product)
    stored, rest = product.a.registers, product.b.registers + product.c.registers
    words = [_register(code, "%room", n) for n in range(stored)]
    metadata = _register(code, "%room", stored + rest)
    for n in range(whole.a.registers):
        _keep(code, "%work", n, _dense_register(code, product, sparsity, (n, words), metadata))
    for n in range(rest):
        _keep(code, "%work", whole.a.registers + n, _register(code, "%room", stored + n))
    done = code.emit(f"call i32 @{called}(ptr %work)", pure=False)
    leave(code, code.emit(f"icmp eq i32 {done}, 0"))
    for n in range(product.d.registers):
        _keep(code, "%room", n, _register(code, "%work", n, pure=False))
    size = STEP * (whole.a.registers + rest)
    lines = "\n".join([f"  %work = alloca [{size} x i8], align 64", *code.lines])
    return f"define internal i32 @{name}(ptr %room) noinline #0 {{\nentry:\n{lines}\n  ret i32 1\n}}"


def _register(code: Code, base: str, number: int, *, pure: bool = True) -> str:
    return code.emit(f"load {WORDS}, ptr {code.offset(base, STEP * number)}, align 64", pure=pure)


def _keep(code: Code, base: str, number: int, value: str) -> None:
    code.run(f"store {WORDS} {value}, ptr {code.offset(base, STEP * number)}, align 64")


def _dense_register(code: Code, product: Product, sparsity: Sparsity, of: tuple[int, list[str]], metadata: str) -> str:
    """A register of the dense A, given its number and the stored registers: two of the four elements of a chunk a lane."""
    number, words = of
    each = product.a.packed
    places = [dense(product).a.layout(lane, each * number) for lane in range(WARP)]  # of the lower element
    chunks = [(row, column // CHUNK) for row, column in places]
    held = [divmod(int(where(product.a)[0][row, 2 * chunk]), each * product.a.registers) for row, chunk in chunks]
    told = [divmod(int(where(sparsity.metadata)[0][place]), sparsity.metadata.elements) for place in chunks]
    (register,) = {element // each for _, element in held}
    word = code.shuffle("i32", WARP, words[register], "poison", [lane for lane, _ in held])
    bits = code.shuffle("i32", WARP, metadata, "poison", [lane for lane, _ in told])
    indices = code.emit(f"lshr {WORDS} {bits}, {_vector([4 * nibble for _, nibble in told])}")
    parts = [code.emit(f"and {WORDS} {word}, splat (i32 65535)"), code.emit(f"lshr {WORDS} {word}, splat (i32 16)")]
    halves = ["zeroinitializer", "zeroinitializer"]
    for element, part in enumerate(parts):
        index = code.emit(f"and {WORDS} {code.emit(f'lshr {WORDS} {indices}, splat (i32 {2 * element})')}, splat (i32 3)")
        for half, old in enumerate(halves):
            here = code.emit(f"icmp eq {WORDS} {index}, {_vector([column % CHUNK + half for _, column in places])}")
            halves[half] = code.emit(f"select <{WARP} x i1> {here}, {WORDS} {part}, {WORDS} {old}")
    return code.emit(f"or {WORDS} {halves[0]}, {code.emit(f'shl {WORDS} {halves[1]}, splat (i32 16)')}")


def _vector(numbers: list[int]) -> str:
    return "<" + ", ".join(f"i32 {n}" for n in numbers) + ">"
