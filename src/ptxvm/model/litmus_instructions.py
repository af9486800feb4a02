"""Parser of litmus instructions: `ld.acquire.gpu r0, x`, `st [x], 1`, `bar.cta.sync 1`.

Beyond what the collected tests use there are byte ranges and vectors (`ld.relaxed.gpu.b16 r0, x+2`,
`st.weak.v2.b32 {x, y}` is `st.weak.v2.b32 x, {1, 2}`), `cp.async`, `mbarrier` and `barrier.cluster`.
"""

from __future__ import annotations

import re
from typing import cast

from ptxvm.algebra.asynchronous import Proxy
from ptxvm.algebra.memory_order import Order, Scope
from ptxvm.model.conditions import NotALitmusTest
from ptxvm.model.litmus_program import (
    Atomic,
    Barrier,
    Branch,
    Compute,
    Copy,
    Fence,
    LitmusInstruction,
    Load,
    Location,
    Operand,
    ProxyFence,
    Store,
    WaitForCopies,
)
from ptxvm.model.values import ARITHMETIC

PROXIES = {
    **dict.fromkeys(("ld", "st", "atom", "red"), Proxy.GENERIC),
    **dict.fromkeys(("suld", "sust", "suatom", "sured"), Proxy.SURFACE),
    **dict.fromkeys(("ldc", "cold"), Proxy.CONSTANT),
    "tld": Proxy.TEXTURE,
}
ORDERS = {str(order) for order in Order}
SCOPES = {str(scope): scope for scope in Scope}
SPACES = {"global", "shared", "const", "param", "local"}
KNOWN = ORDERS | SCOPES.keys() | SPACES | ARITHMETIC.keys() | {"cas"}
COMPARE = {"beq": "==", "bne": "!=", "bge": ">=", "ble": "<=", "bgt": ">", "blt": "<"}
WORDS = re.compile(r"[^\s,{}]+|\{[^}]*\}")
MEMBAR = {"cta": Scope.CTA, "gl": Scope.GPU, "sys": Scope.SYS}


def instruction(text: str) -> list[LitmusInstruction | str]:
    """Read an instruction or a label; an abbreviation gives several instructions.  A label is a `str`."""
    text = " ".join(text.split())
    if text.endswith(":"):
        return [text[:-1].strip()]
    head, _, rest = text.partition(" ")
    opcode, *modifiers = head.split(".")
    operands = WORDS.findall(rest)
    try:
        return _instruction(opcode, modifiers, operands, text)
    except (IndexError, KeyError, ValueError) as wrong:
        raise NotALitmusTest(f"`{text}` is no instruction of a litmus test{_why(wrong, text)}") from wrong


def _why(wrong: Exception, text: str) -> str:
    """The reason why an instruction cannot be read, or examples if it is not known."""
    if isinstance(wrong, ValueError) and str(wrong) != text:
        return f": {wrong}"
    example = "`ld.relaxed.gpu r0, x`, `st.weak x, 1`, `fence.sc.gpu` or `bar.cta.sync 0`"
    return f"; write such as {example}"


def _instruction(opcode: str, modifiers: list[str], operands: list[str], text: str) -> list[LitmusInstruction | str]:
    if opcode == "goto":
        return [Branch("==", 0, 0, operands[0], text=text)]
    if opcode in COMPARE:
        return [Branch(COMPARE[opcode], operand(operands[0]), operand(operands[1]), operands[2], text=text)]
    if opcode == "mov" or (opcode == "ld" and not modifiers and re.fullmatch(r"-?\d\w*|r\d+", operands[1])):
        return [Compute("exch", operands[0], 0, operand(operands[1]), text=text)]
    if opcode in ARITHMETIC:
        return [Compute(opcode, operands[0], operand(operands[1]), operand(operands[2]), text=text)]
    if opcode == "membar":
        return [Fence(Order.SC, MEMBAR[modifiers[0]], text=text)]
    if opcode == "fence":
        return _fence(modifiers, text)
    if opcode == "mbarrier":
        return _mbarrier(modifiers, operands, text)
    if opcode in ("bar", "barrier"):
        return [_barrier(modifiers, operands, text)]
    if opcode == "cp":
        return [_copy(modifiers, operands, text)]
    return [_access(opcode, modifiers, operands, text)]


def operand(text: str) -> Operand:
    """Read a number or a register."""
    return int(text, 0) if re.fullmatch(r"-?\d\w*", text) else text


def location(text: str, size: int = 0, element: int = 0) -> Location:
    """Read `x`, `[x]` or `[x+4]`; an element of a vector is that many sizes further."""
    name, _, offset = text.strip("[]").partition("+")
    return Location(name.strip(), int(offset or "0", 0) + element * size, size)


def _fence(modifiers: list[str], text: str) -> list[LitmusInstruction | str]:
    if modifiers[0] == "alias":
        return [ProxyFence(Proxy.ALIAS, text=text)]
    if modifiers[0] == "proxy":
        return [ProxyFence(Proxy(proxy), text=text) for proxy in modifiers[1:]]
    if len(modifiers) != 1 + (modifiers[0] in ORDERS):
        raise ValueError("a fence has an order and a scope, such as .sc.gpu")
    order, scope = modifiers if modifiers[0] in ORDERS else ("acq_rel", modifiers[0])
    if order not in ORDERS or scope not in SCOPES:
        raise ValueError(text)
    return [Fence(Order(order), SCOPES[scope], text=text)]


def _barrier(modifiers: list[str], operands: list[str], text: str) -> LitmusInstruction:
    """`bar.cta.sync name[, number[, threads]]`."""
    scope = SCOPES[modifiers.pop(0)] if modifiers[0] in SCOPES else Scope.CTA
    kind = modifiers[0]
    if kind not in ("sync", "arrive", "red", "wait"):
        raise ValueError(text)
    name, number, count = [*operands, *[""] * 3][:3]
    return Barrier(
        name if scope is Scope.CTA else "cluster",
        operand(number) if number else 0,
        operand(count) if count else None,
        arrives=kind != "wait",
        waits=kind != "arrive",
        scope=scope,
        orders="relaxed" not in modifiers,
        text=text,
    )


def _copy(modifiers: list[str], operands: list[str], text: str) -> LitmusInstruction:
    if modifiers[-1] == "wait_all":
        return WaitForCopies(text=text)
    proxy = Proxy.ASYNC if "bulk" in modifiers else Proxy.GENERIC
    size = _size(modifiers[1:])
    return Copy(location(operands[0], size), location(operands[1], size), proxy=proxy, text=text)


def _mbarrier(modifiers: list[str], operands: list[str], text: str) -> list[LitmusInstruction | str]:
    """An arrival counts on the object and releases; a wait reads it until so many arrived, and acquires.

    This is what PTX 8.8 says of both, as release and acquire patterns; phases are not modelled: one is enough here.
    """
    order = next((Order(m) for m in modifiers if m in ORDERS), None)
    scope = next((SCOPES[m] for m in modifiers if m in SCOPES), Scope.CTA)
    if modifiers[0] == "arrive":
        return [Atomic("add", None, location(operands[-1]), (1,), order=order or Order.RELEASE, scope=scope, text=text)]
    if modifiers[0] != "wait":
        raise ValueError(text)
    again, register = f"{text} again", f"#{operands[0].strip('[]')}"
    read = Load((register,), (location(operands[0]),), order=order or Order.ACQUIRE, scope=scope, text=text)
    return [again, read, Branch("!=", register, operand(operands[1]), again, text=text)]


def _access(opcode: str, modifiers: list[str], operands: list[str], text: str) -> LitmusInstruction:
    proxy = PROXIES[opcode]
    for modifier in modifiers:
        if modifier not in KNOWN and not re.fullmatch(r"v\d|[busf]\d+", modifier):
            raise ValueError(f".{modifier} is not known")
    is_atomic = opcode in ("atom", "suatom", "red", "sured")
    unsaid = Order.RELAXED if is_atomic or "mmio" in modifiers else Order.WEAK
    order = next((Order(m) for m in modifiers if m in ORDERS - {"mmio"}), unsaid)
    usual = Scope.SYS if "mmio" in modifiers else Scope.GPU if is_atomic else None
    scope = next((SCOPES[m] for m in modifiers if m in SCOPES), usual)
    vector = next((int(m[1:]) for m in modifiers if re.fullmatch(r"v\d", m)), 1)
    size = _size(modifiers)
    if order is Order.VOLATILE:  # 8.4.2: relaxed, of system scope
        order, scope = Order.RELAXED, scope or Scope.SYS
    if (order is Order.WEAK) != (not scope):
        raise ValueError(f".{order} has " + ("no scope" if scope else "a scope: .cta, .cluster, .gpu or .sys"))
    if is_atomic:
        register = None if "red" in opcode else operands.pop(0)
        kind = next(m for m in modifiers if m in ARITHMETIC or m == "cas")
        values = tuple(operand(word) for word in operands[1:])
        return Atomic(kind, register, location(operands[0], size), values, order=order, scope=scope, proxy=proxy, text=text)
    is_load = "ld" in opcode
    address, data = (operands[1], operands[0]) if is_load else (operands[0], operands[1])
    locations = tuple(location(address, size, element) for element in range(vector))
    parts = WORDS.findall(data.strip("{}"))
    if len(parts) != vector or len(operands) != 2:
        raise ValueError(text)
    if is_load:
        return Load(tuple(parts), locations, order=order, scope=scope, proxy=proxy, text=text)
    written = cast("tuple[Operand, ...]", tuple(operand(part) for part in parts))
    return Store(locations, written, order=order, scope=scope, proxy=proxy, text=text)


def _size(modifiers: list[str]) -> int:
    """The size of a type in bytes; 0, the whole variable, if there is no type."""
    return next((int(m[1:]) // 8 for m in modifiers if re.fullmatch(r"[bus]\d+", m)), 0)
