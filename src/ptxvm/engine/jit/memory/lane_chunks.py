"""Chunks: 16 bytes of each lane, at any addresses, are loaded at once and transposed.

A gather takes a time for each element; a load of 16 bytes takes that of one.
"""

from __future__ import annotations

from ptxvm.engine.jit.ir import cpu
from ptxvm.engine.jit.ir.builder import Code, Unit
from ptxvm.engine.jit.memory.words import SMALLEST, Word, split
from ptxvm.engine.jit.node.node import NodeBuilder

POINTERS = 24  # the number of the buffer for pointers
CHUNK = 16  # bytes: a register of the smallest kind, and the unit in which shuffles cost least


def suits(size: int, count: int) -> bool:
    """Are vectors of `count` elements of a size loaded by chunks?"""
    return size * count % CHUNK == 0 and size < CHUNK and cpu.has("avx2")


def load(at: NodeBuilder, llvm: str, size: int, count: int, pointers: str) -> list[str]:
    """Load vectors of whole chunks at the pointers of all lanes, of which the active ones count; a vector for each element.

    The pointers are kept in a buffer, since the processor reads them faster from there than out of vectors.
    """
    code, pointer_type, lanes = at.code, f"<{at.width} x ptr>", at.active_vector()
    buffer = at.buffer(f"[{at.width} x ptr]", POINTERS)
    if lanes is not None:
        scratch = code.splat("ptr", at.buffer(f"<{at.width} x i64>", 0))
        pointers = code.emit(f"select <{at.width} x i1> {lanes}, {pointer_type} {pointers}, {pointer_type} {scratch}")
    word = Word(max(size, SMALLEST), max(1, SMALLEST // size))
    each, vector, found = CHUNK // word.size, f"<{code.width} x {word.llvm}>", []
    piece = _function(code.unit, word.llvm, each)
    held = f"{{ {', '.join([vector] * each)} }}"
    for offset in range(0, size * count, CHUNK):
        here = code.emit(f"getelementptr i8, {pointer_type} {pointers}, i64 {offset}") if offset else pointers
        loaded = code.call(held, piece, (pointer_type, here), ("ptr", buffer), pure=False)
        found += [code.emit(f"extractvalue {held} {loaded}, {n}") for n in range(each)]
    if word.parts > 1:
        return [part for whole in found for part in split(code, llvm, word, whole)]
    return [code.bitcast(vector, whole, f"<{code.width} x {llvm}>") for whole in found]


def _function(unit: Unit, llvm: str, count: int) -> str:
    """Define the function that loads a chunk of `count` elements for every lane; returns its name."""
    width, vector = unit.width, f"<{unit.width} x {llvm}>"
    result = f"{{ {', '.join([vector] * count)} }}"

    def write(code: Code) -> str:
        code.run(f"store <{width} x ptr> %addresses, ptr %buffer, align 64")
        lanes = (64 if cpu.has("avx512f") else 32) // CHUNK * count  # of a group of registers that are transposed together
        parts = [_group(code, llvm, count, first, lanes) for first in range(0, width, lanes)]
        wholes = [code.concatenate(llvm, [part[n] for part in parts], lanes) for n in range(count)]
        return code.structure(result, *((vector, whole) for whole in wholes))

    return unit.piece(f"ptxvm.chunks.{llvm}", result, f"<{width} x ptr> %addresses, ptr %buffer", write)


def _group(code: Code, llvm: str, count: int, first: int, lanes: int) -> list[str]:
    """Load for some lanes, and transpose: register n has every `count`-th lane, from the n-th on."""
    registers = []
    for n in range(count):
        chunks = [_chunk(code, llvm, count, lane) for lane in range(first + n, first + lanes, count)]
        registers.append(code.concatenate(llvm, chunks, count))
    return transposed(code, llvm, registers, lanes)


def _chunk(code: Code, llvm: str, count: int, lane: int) -> str:
    pointer = pointer_in(code, code.emit(f"getelementptr ptr, ptr %buffer, i64 {lane}"))
    return code.emit(f"load <{count} x {llvm}>, ptr {pointer}, align 1", pure=False)


def pointer_in(code: Code, slot: str) -> str:
    """The pointer of a lane, from the buffer that they are stored to as a vector."""
    # volatile, or LLVM would take the pointers out of the vector
    return code.emit(f"load volatile ptr, ptr {slot}, align 8", pure=False)


def transposed(code: Code, llvm: str, registers: list[str], each: int) -> list[str]:
    """Transpose the squares of `len(registers)` elements, side by side in registers of `each` elements."""
    count = len(registers)
    half = count // 2
    while half:
        step = count // (2 * half)  # elements that move together
        mixed = [""] * count
        for n in range(count):
            low, high, upper = n & ~step, n | step, n & step
            order = []
            for k in range(each):
                source = k & ~step | upper
                order.append(source + (each if k & step else 0))
            mixed[n] = code.shuffle(llvm, each, registers[low], registers[high], order)
        registers, half = mixed, half // 2
    return registers
