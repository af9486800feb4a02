"""Stores of several lanes to one place, where the last active lane stays: as of the lane that writes the sum of a warp."""

from __future__ import annotations

from ptxvm.engine.jit.node.node import NodeBuilder


def store(at: NodeBuilder, llvm: str, size: int, pointer: str, vectors: list[str]) -> None:
    """Store the elements that the last active lane has, if there is one, side by side."""
    code, width, lanes = at.code, at.width, at.active_vector()
    here, onward, last = code.label(), code.label(), str(width - 1)
    if lanes is None:
        code.jump(here)
    else:
        bits, name = code.mask_bits(lanes), f"llvm.ctlz.i{width}"
        code.unit.declarations[name] = f"declare i{width} @{name}(i{width}, i1 immarg)"
        zeros = code.call(f"i{width}", name, (f"i{width}", bits), ("i1", "false"))
        last = code.emit(f"sub i{width} {width - 1}, {zeros}")
        code.branch(code.emit(f"icmp eq i{width} {bits}, 0"), onward, here)
    with code.scope():
        code.block(here)
        for n, vector in enumerate(vectors):
            one = code.emit(f"extractelement <{width} x {llvm}> {vector}, i{width} {last}")
            code.run(f"store {llvm} {one}, ptr {code.offset(pointer, n * size)}, align {min(size, 16)}")
        code.jump(onward)
    code.block(onward)
