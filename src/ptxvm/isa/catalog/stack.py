"""Stack manipulation (PTX 9.7.17)."""

from __future__ import annotations

from ptxvm.algebra.types import u64
from ptxvm.isa.model import instruction

GUARANTEED_ALIGNMENT = 8
GREATEST_ALIGNMENT = 1 << 23

TYPES = ".type = { .u32, .u64 };"


@instruction(f"stacksave.type d; {TYPES}", section="9.7.17.1", types="d: type plain", needs={"": "PTX 7.3, sm_52"})
def stacksave(i, mem):
    """The stack pointer."""
    return mem.stack_pointer().to(i.type)


@instruction(f"stackrestore.type a; {TYPES}", section="9.7.17.2", types="a: type plain", needs={"": "PTX 7.3, sm_52"})
def stackrestore(i, a, mem):
    """Set the stack pointer to what `stacksave` gave, which frees what was allocated since."""
    mem.stack_pointer(a.to(u64))


@stackrestore.rule("P2304")
def saved_pointer(i):
    """The stack pointer comes from a register."""
    if i.shape("a").kind in ("integer", "float", "variable", "function"):
        return "Result register required for instruction 'stackrestore'"
    return None


@instruction(
    f"alloca.type d, size{{, alignment}}; {TYPES}",
    section="9.7.17.3",
    types="d: type plain, size: type plain, alignment: u32 imm",
    needs={"": "PTX 7.3, sm_52"},
)
def alloca(i, size, alignment, mem):
    """Allocate bytes of local memory until the function returns, aligned to 8 bytes or as asked."""
    return mem.allocate_stack(size.to(u64), alignment or GUARANTEED_ALIGNMENT).to(i.type)


@alloca.rule("P2305")
def power_of_two(i):
    """The alignment is a power of two, at most 2**23."""
    alignment = i.value("alignment")
    if alignment is None or (0 < alignment <= GREATEST_ALIGNMENT and alignment & (alignment - 1) == 0):
        return None
    return "Alignment must be a power of two"
