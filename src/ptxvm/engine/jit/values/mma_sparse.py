"""Products with a sparse A of halves or bytes: a dense A is put together in registers, and another function multiplies it.

Of four neighbours along K two are stored, in one word of a lane, and four bits of metadata say which (PTX 9.7.14.6.1); half
bytes are neighbours by pairs, which are bytes.  A word of the dense A has two of the four halves, or all four bytes: shuffles
bring the stored word and the metadata to its lane, where zeros fill it up.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from ptxvm.algebra.types import b32, bf16, f16, s32
from ptxvm.engine.jit.abi.operand_room import STEP
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.values.mma_writer import WORDS, leave
from ptxvm.isa.fragments import Product, Sparsity, halved_fragment, mma_fragment
from ptxvm.isa.special_registers import WARP
from ptxvm.machine.warp_matrix import where

CHUNK = 4  # halves or bytes, of which two are stored


def is_sparse(product: Product) -> bool:
    """Is it a product with a sparse A of halves or integers, and without scales?"""
    of_integers = product.d.type is s32
    return product.sparsity is not None and product.scaling is None and (of_integers or product.a.type in (f16, bf16))


def dense(product: Product) -> Product:
    """The product with a dense A; the product itself where A is dense."""
    if product.sparsity is None:
        return product
    shape = f"m16n8k{product.b.shape[0]}"
    a = halved_fragment("a", shape) if product.a.halved else mma_fragment("a", product.a.type, shape)
    return replace(product, a=a, sparsity=None)


def function(unit: Unit, name: str, called: str, product: Product, sparsity: Sparsity, *, by_halves: bool = False) -> str:
    """The text of the function, which calls that of the dense product.

    Where that sums the lower halves of the registers and then the upper ones, `by_halves`, it sums even chunks, then odd ones.
    """
    code, whole = Code(unit), dense(product)
    placed = partial(_in_halves, code) if by_halves else _as_it_is
    stored, rest = product.a.registers, product.b.registers + product.c.registers
    words = [_register(code, "%room", n) for n in range(stored)]
    metadata = _register(code, "%room", stored + rest)
    for n in range(whole.a.registers):
        _keep(code, "%work", n, placed(_dense_register(code, product, sparsity, (n, words), metadata)))
    scales = range(rest + 1, rest + 1 + (2 if product.scaling is not None else 0))  # behind the metadata
    for n, source in enumerate((*range(rest), *scales)):
        value = _register(code, "%room", stored + source)
        _keep(code, "%work", whole.a.registers + n, placed(value) if n < product.b.registers else value)
    done = code.emit(f"call i32 @{called}(ptr %work)", pure=False)
    leave(code, code.emit(f"icmp eq i32 {done}, 0"))
    for n in range(product.d.registers):
        _keep(code, "%room", n, _register(code, "%work", n, pure=False))
    size = STEP * (whole.a.registers + rest + len(scales))
    lines = "\n".join([f"  %work = alloca [{size} x i8], align 64", *code.lines])
    return f"define internal i32 @{name}(ptr %room) noinline #0 {{\nentry:\n{lines}\n  ret i32 1\n}}"


def _as_it_is(word: str) -> str:
    return word


def _in_halves(code: Code, word: str) -> str:
    """Chunks of four bytes: of an even and an odd one, in lanes beside each other, that stands in the lower halves of both."""
    other = code.shuffle("i32", WARP, word, "poison", [lane ^ 1 for lane in range(WARP)])
    is_odd = "<" + ", ".join(f"i1 {lane % 2}" for lane in range(WARP)) + ">"
    even, odd = (
        code.emit(f"select <{WARP} x i1> {is_odd}, {WORDS} {x}, {WORDS} {y}") for x, y in ((other, word), (word, other))
    )
    down = code.emit(f"select <{WARP} x i1> {is_odd}, {WORDS} splat (i32 16), {WORDS} zeroinitializer")
    lower = code.emit(f"and {WORDS} {code.emit(f'lshr {WORDS} {even}, {down}')}, splat (i32 65535)")
    upper = code.emit(f"shl {WORDS} {code.emit(f'lshr {WORDS} {odd}, {down}')}, splat (i32 16)")
    return code.emit(f"or {WORDS} {lower}, {upper}")


def _register(code: Code, base: str, number: int, *, pure: bool = True) -> str:
    return code.emit(f"load {WORDS}, ptr {code.offset(base, STEP * number)}, align 64", pure=pure)


def _keep(code: Code, base: str, number: int, value: str) -> None:
    code.run(f"store {WORDS} {value}, ptr {code.offset(base, STEP * number)}, align 64")


def _dense_register(code: Code, product: Product, sparsity: Sparsity, of: tuple[int, list[str]], metadata: str) -> str:
    """A register of the dense A, given its number and the stored registers: two or all of the parts of a chunk a lane."""
    number, words = of
    each, part = product.a.packed, sparsity.chunk // CHUNK  # elements of a register, and of a part of a chunk
    places = [dense(product).a.layout(lane, each * number) for lane in range(WARP)]  # of the lowest element
    chunks = [(row, column // sparsity.chunk) for row, column in places]
    firsts = [(row, chunk * sparsity.chunk // 2) for row, chunk in chunks]
    held = [divmod(int(where(product.a)[0][first]), each * product.a.registers) for first in firsts]
    told = [divmod(int(where(sparsity.metadata)[0][place]), sparsity.metadata.elements) for place in chunks]
    (register,) = {element // each for _, element in held}
    word = code.shuffle("i32", WARP, words[register], "poison", [lane for lane, _ in held])
    bits = code.shuffle("i32", WARP, metadata, "poison", [lane for lane, _ in told])
    indices = code.emit(f"lshr {WORDS} {bits}, {_vector([4 * nibble for _, nibble in told])}")
    size = b32.bits * part // each
    found = ["zeroinitializer"] * (each // part)
    for stored in range(2):
        below = [size * (element % each // part + stored) for _, element in held]
        shifted = code.emit(f"lshr {WORDS} {word}, {_vector(below)}")
        kept = code.emit(f"and {WORDS} {shifted}, splat (i32 {(1 << size) - 1})")
        index = code.emit(f"and {WORDS} {code.emit(f'lshr {WORDS} {indices}, splat (i32 {2 * stored})')}, splat (i32 3)")
        for place, old in enumerate(found):
            here = code.emit(f"icmp eq {WORDS} {index}, {_vector([column // part % CHUNK + place for _, column in places])}")
            found[place] = code.emit(f"select <{WARP} x i1> {here}, {WORDS} {kept}, {WORDS} {old}")
    whole = found[0]
    for place, other in enumerate(found[1:], 1):
        whole = code.emit(f"or {WORDS} {whole}, {code.emit(f'shl {WORDS} {other}, splat (i32 {size * place})')}")
    return whole


def _vector(numbers: list[int]) -> str:
    return "<" + ", ".join(f"i32 {n}" for n in numbers) + ">"
