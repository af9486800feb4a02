"""Moves, of registers, constants, addresses, and the parts of a register (PTX 9.7.9.3 and 9.7.9.4)."""

from __future__ import annotations

from ptxvm.algebra.derived.packed import elements, pack
from ptxvm.algebra.state_space import Space
from ptxvm.algebra.types import Type, pred, u64
from ptxvm.diagnostics import Severity
from ptxvm.diagnostics.errors import Unsupported
from ptxvm.isa.model import Problem, instruction
from ptxvm.isa.operand_types import UNKNOWN

MISMATCH = "Arguments mismatch for instruction 'mov'"


@instruction(
    """
    mov.type  d, {!}a;
    .type = { .pred, .b16, .b32, .b64, .b128, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 };
    """,
    section="9.7.9.3",
    types="d: type split, a: type split function passed",
    needs={"": "PTX 1.0", ".b128": "PTX 8.3, sm_70"},
)
def mov(i, a):
    """Copy a register, a special register or a constant, or take the address of a variable or function in its space.

    A .b type also packs the elements of a vector into one register, the first lowest, and unpacks a register into them;
    a vector is written in braces, or is a vector register.
    """
    if isinstance(a, list):
        return pack(a, i.type)
    count = width(shape(i, "d"))
    return elements(a, Type.named[f"b{i.type.bits // count}"]) if count else a


def shape(i, operand):
    """What stands for an operand."""
    return i.shape(operand) or UNKNOWN


def widths(i):
    """How many elements the destination and the source have; 0 for one that is no vector."""
    return [width(shape(i, "d")), width(shape(i, "a"))]


def width(operand):
    """The number of elements of a vector in braces, of a vector register, or of `%tid` as a whole; 0 of a scalar."""
    if operand.kind == "register":
        return operand.detail or 0
    return len(operand.items) if operand.kind in ("vector", "special") else 0


@mov.rule("P1608")
def type_of_a_function_address(i):
    """The address of a function is .b64 or .u64, in 32-bit modules .b32 or .u32."""
    if shape(i, "a").kind != "function" or i.type.kind in ("b", "u"):
        return None
    ptxas = "Unexpected instruction types specified for 'mov instruction with function address operand'"
    help = f"write `mov.u{i.type.bits}`"
    return Problem("P1608", f"the address of a function is no {i.type}", help=help, ptxas=ptxas, severity=Severity.WARNING)


@mov.rule("P1601")
def one_vector_of_two_or_four(i):
    """Of the two operands one may be a vector, of two or four elements, where the type is a .b type; `%tid` is none there."""
    if not any(widths(i)) or (i.type.kind == "b" and sorted(widths(i)) in ([0, 2], [0, 4])):
        if shape(i, "a").kind == "special" and shape(i, "a").items:
            said = f"'%{shape(i, 'a').detail}' is a vector: a component of it is needed"
            return Problem("P1601", said, operand="a", help="write `{}.x`".format, ptxas=MISMATCH)
        return None
    ptxas = "Argument vector size mismatch for instruction 'mov'"
    if i.type.kind == "b" and sorted(widths(i)) in ([2, 2], [4, 4]):
        ptxas = "Illegal vector-vector operands for vector-scalar or scalar-vector mov instruction"
    whole = next((name for name in ("d", "a") if shape(i, name).kind == "special" and shape(i, name).items), "")
    if whole:
        said = f"'%{shape(i, whole).detail}' is a vector: a component of it is needed"
        return Problem("P1601", said, operand=whole, help="write `{}.x`".format, ptxas=ptxas)
    return None if i.type.bits % max(widths(i)) else ptxas  # what does not add up is said of the operand


@mov.rule("P1602")
def nothing_but_sinks(i):
    """At least one element of the destination is a register."""
    d = shape(i, "d")
    if d.kind == "sink":
        return "Result discard mode is not allowed for instruction 'mov'"
    if d.kind == "vector" and all(item.kind == "sink" for item in d.items):
        return "Unable to infer type of vector elements (assuming .b8)"
    return None


@mov.rule("P1603")
def not_is_for_predicates(i):
    """Only a predicate is negated."""
    if shape(i, "a").kind == "not" and i.type is not pred:
        return Problem("P1603", "only a predicate is negated with '!'", operand="a", ptxas=MISMATCH)
    return None


OPAQUE = {"texref": "texture", "samplerref": "sampler", "surfref": "surface"}


@mov.rule("P1605")
def address_of_an_opaque_variable(i):
    """The address of a texture, sampler or surface is taken as .u64."""
    a = shape(i, "a")
    kind = OPAQUE.get(a.detail) if a.kind == "variable" else None
    if kind and i.type is not u64:
        return Problem("P1605", f"Indirect access to {kind} requires .u64 type", operand="a")
    return None


@mov.rule("P1606")
def address_of_an_argument(i):
    """The address of a .param variable declared within a function cannot be taken (since PTX 1.4)."""
    a = shape(i, "a")
    if a.kind == "variable" and a.space is Space.PARAM_LOCAL and i.version >= (1, 4):
        said = "the address of a .param variable of the function's own cannot be taken"
        return Problem("P1606", said, operand="a", ptxas=MISMATCH)
    return None


def indirect_access(opaque):
    """Is the address that of a texture, sampler or surface?"""

    def condition(i):
        return shape(i, "a").kind == "variable" and shape(i, "a").detail == opaque

    condition.__name__ = f"indirect_{OPAQUE[opaque]}_access"
    return condition


for _opaque in OPAQUE:
    mov.needs_when("PTX 3.1, sm_20")(indirect_access(_opaque))


@mov.needs_when("PTX 2.1")
def function_address(i):
    """The address of a function."""
    return shape(i, "a").kind == "function"


@instruction(
    """
    mov.vec.type  d, a;
    .vec = { .v2, .v4 };
    .type = { .b16, .b32, .b64, .u16, .u32, .u64, .s16, .s32, .s64, .f32, .f64 };
    """,
    section="9.7.9.3",
    types="d: type, a: type function passed",
    needs={"": "PTX 1.0"},
)
def mov_vector(i, a):
    """Copy a vector, or a special register of four components (PTX 1.0; the manual has it no longer).

    Of one register ptxas moves the parts: each becomes an element, with zeros above it.
    """
    if isinstance(a, list):
        return a
    bits = i.type.bits // size(i)
    if bits < 8 or i.type.is_float:
        raise Unsupported(f"'mov.{i.vec}{i.type}' of one register")
    parts = elements(a.view(i.type.as_bits), Type.named[f"b{bits}"])
    return [part.to(i.type.as_bits).view(i.type) for part in parts]


def size(i):
    """How many elements the vectors have."""
    return 2 if i.vec == "v2" else 4


@mov_vector.rule("P1607")
def vectors_of_that_size(i):
    """The destination is a vector of that size, and the source one, or one register or constant."""
    d, a = widths(i)
    if d == 0:
        return "Result vector expected"
    if d != size(i) or a not in (0, d):
        return "Argument vector size mismatch for instruction 'mov'"
    return None
