"""Random functions in LLVM's language, which LLVM compiles twice: for this processor, and to PTX.

What LLVM chooses for an operation (`bfe` for shifts, `prmt` for a reversal of bytes, `mul.hi` for a division by a constant,
`brx.idx` for a `switch`) comes from nobody here; that both of its back ends mean the same is LLVM's promise.  A function reads
eight numbers of 64 bits and writes eight, and its control flow depends on them, so that the threads of a warp part.
What LLVM leaves open is left out: payloads of NaN (all become one NaN), shifts by more than the width, division by zero.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

WORDS = 8
WIDTHS = {"i8": 8, "i16": 16, "i32": 32, "i64": 64, "i128": 128}
INTEGERS = tuple(WIDTHS)
FLOATS = ("float", "double")
VECTORS = {"i32": ("<4 x i8>", "<2 x i16>"), "i64": ("<8 x i8>", "<4 x i16>", "<2 x i32>"), "i128": ("<4 x i32>", "<2 x i64>")}
BINARY = ("add", "sub", "mul", "and", "or", "xor")
FLOAT_BINARY = ("fadd", "fsub", "fmul", "fdiv")
COMPARISONS = ("eq", "ne", "ugt", "uge", "ult", "ule", "sgt", "sge", "slt", "sle")
ORDERINGS = ("oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno")
EXTREMES = ("umin", "umax", "smin", "smax", "uadd.sat", "usub.sat", "sadd.sat", "ssub.sat")
OVERFLOWS = ("uadd", "usub", "sadd", "ssub", "umul", "smul")
COUNTS = ("ctpop", "ctlz", "cttz", "bswap", "bitreverse", "abs")
ROUNDINGS = ("floor", "ceil", "trunc", "rint", "fabs", "sqrt")
SMALL = (0, 1, 2, 3, 5, 7, 10, 15, 31, 32, 63, 100, 127, -1, -2, -7)
INTERESTING = (*SMALL, 128, 255, 1000, 0x7FFF, 0xFFFF, 0x7FFFFFFF, 0x80000000)


@dataclass
class Module:
    """What the functions of a program share: declarations, tables, functions that are called."""

    rng: np.random.Generator
    declarations: set[str] = field(default_factory=set)
    tables: list[str] = field(default_factory=list)
    functions: list[str] = field(default_factory=list)

    def table(self) -> str:
        """A constant array of 16 words."""
        name = f"@table{len(self.tables)}"
        words = ", ".join(f"i32 {n}" for n in self.rng.integers(-(2**31), 2**31, 16))
        self.tables.append(f"{name} = internal unnamed_addr constant [16 x i32] [{words}]")
        return name

    def text(self, caller: str) -> str:
        """The whole, with what calls `f`."""
        return "\n".join([*self.tables, *sorted(self.declarations), *self.functions, caller])


class Function:
    """One function as it grows: its lines, and the values that may be used where it stands."""

    def __init__(self, module: Module, parameters: Sequence[tuple[str, str]], *, calls: int) -> None:
        self.module, self.rng, self.calls = module, module.rng, calls
        self.lines: list[str] = []
        self.slots: list[str] = []
        self.names = 0
        self.values: dict[str, list[str]] = {type: [] for type in (*INTEGERS, *FLOATS, "i1")}
        for type, name in parameters:
            self.values[type].append(name)
        self.variables = [(type, self.slot(type)) for type in (*INTEGERS, *FLOATS) for _ in range(2)]
        self.array = self.slot("[16 x i32]")
        for type, slot in self.variables:
            self.line(f"store {type} {self.constant(type)}, ptr {slot}")
        for n in range(16):
            self.line(f"{(at := self.name())} = getelementptr i32, ptr {self.array}, i32 {n}")
            self.line(f"store i32 {n}, ptr {at}")

    # ── writing ─────────────────────────────────────────────────────────────────────

    def pick(self, choices: Sequence[str]) -> str:
        """One of the choices."""
        return choices[int(self.rng.integers(len(choices)))]

    def name(self) -> str:
        """A new name of a value or a label."""
        self.names += 1
        return f"%v{self.names}"

    def line(self, text: str) -> None:
        """One more line."""
        self.lines.append(text)

    def slot(self, type: str) -> str:
        """Memory of this function."""
        name = f"%slot{len(self.slots)}"
        self.slots.append(f"{name} = alloca {type}")
        return name

    def new(self, type: str, text: str) -> str:
        """A value, named and kept for use."""
        name = self.name()
        self.line(f"{name} = {text}")
        self.values[type].append(name)
        return name

    def intrinsic(self, result: str, name: str, *arguments: tuple[str, str]) -> str:
        """The text of a call of an intrinsic."""
        types = ", ".join(type for type, _ in arguments)
        self.module.declarations.add(f"declare {result} @llvm.{name}({types})")
        return f"call {result} @llvm.{name}({', '.join(f'{type} {value}' for type, value in arguments)})"

    # ── operands ────────────────────────────────────────────────────────────────────

    def constant(self, type: str) -> str:
        """A constant."""
        if type in FLOATS:
            return self.pick(("0.0", "1.0", "-0.0", "0.5", "-3.0", "65536.0", "0x7FF0000000000000", "0x3810000000000000"))
        if type == "i1":
            return self.pick(("true", "false"))
        n = INTERESTING[int(self.rng.integers(len(INTERESTING)))]
        half = 1 << WIDTHS[type] - 1
        return str((n + half) % (2 * half) - half)

    def value(self, type: str) -> str:
        """A value that there is, with a liking for the latest, or a constant."""
        there = self.values[type]
        if not there or self.rng.random() < 0.12:
            return self.constant(type)
        return there[-1 - int(min(self.rng.geometric(0.25) - 1, len(there) - 1))]

    def integer(self) -> str:
        """A type of integers, the usual ones more often."""
        return self.pick((*INTEGERS, "i32", "i32", "i64"))

    # ── statements ──────────────────────────────────────────────────────────────────

    def statement(self, depth: int) -> None:
        """One statement, which may hold others."""
        simple = (
            self.binary, self.binary, self.binary, self.divide, self.shift, self.funnel, self.extreme, self.overflow,
            self.count, self.compare, self.choose, self.resize, self.assign, self.assign, self.look_up, self.local_store,
            self.local_load, self.vector, self.shuffle, self.real, self.real, self.round, self.fused, self.order,
            self.to_real, self.to_integer, self.real_size,
        )  # fmt: skip
        nested = (self.branch, self.loop, self.switch, self.call)
        if depth and self.rng.random() < 0.15:
            nested[int(self.rng.integers(len(nested)))](depth - 1)
        else:
            simple[int(self.rng.integers(len(simple)))]()

    def block(self, depth: int, most: int) -> None:
        """Some statements, whose values nobody sees afterwards but through variables."""
        with self.scope():
            for type, slot in self.variables:
                if self.rng.random() < 0.3:
                    self.new(type, f"load {type}, ptr {slot}")
            for _ in range(int(self.rng.integers(2, most))):
                self.statement(depth)
            for _ in range(3):
                self.assign()

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """What is named within is not known afterwards."""
        before = {type: list(values) for type, values in self.values.items()}
        yield
        self.values = before

    def assign(self) -> None:
        """Set a variable, or read one."""
        type, slot = self.variables[int(self.rng.integers(len(self.variables)))]
        if self.rng.random() < 0.6:
            self.line(f"store {type} {self.value(type)}, ptr {slot}")
        else:
            self.new(type, f"load {type}, ptr {slot}")

    def binary(self) -> None:
        """Two operands of one type of integers."""
        type = self.integer()
        self.new(type, f"{self.pick(BINARY)} {type} {self.value(type)}, {self.value(type)}")

    def divide(self) -> None:
        """By a constant, or by what cannot be zero; the signed ones with a divisor that cannot be -1."""
        type = self.pick(INTEGERS[:4])
        if self.rng.random() < 0.5:
            divisor = self.pick(("3", "5", "7", "10", "16", "100", "127"))
        else:
            small = self.new(type, f"and {type} {self.value(type)}, {127 >> 1}")
            divisor = self.new(type, f"or {type} {small}, 1")
        self.new(type, f"{self.pick(('udiv', 'sdiv', 'urem', 'srem'))} {type} {self.value(type)}, {divisor}")

    def amount(self, type: str) -> str:
        """By how much to shift."""
        if self.rng.random() < 0.5:
            return str(self.rng.integers(WIDTHS[type]))
        return self.new(type, f"and {type} {self.value(type)}, {WIDTHS[type] - 1}")

    def shift(self) -> None:
        """By less than the width."""
        type = self.integer()
        by = self.amount(type)
        self.new(type, f"{self.pick(('shl', 'lshr', 'ashr'))} {type} {self.value(type)}, {by}")

    def funnel(self) -> None:
        """Of two words, or of one that turns round."""
        type = self.integer()
        operands = [(type, self.value(type)) for _ in range(3)]
        if self.rng.random() < 0.5:
            operands[1] = operands[0]
        self.new(type, self.intrinsic(type, f"{self.pick(('fshl', 'fshr'))}.{type}", *operands))

    def extreme(self) -> None:
        """The greater, the smaller, or a sum that stays in range."""
        type = self.pick(INTEGERS[:4])
        operands = [(type, self.value(type)) for _ in range(2)]
        self.new(type, self.intrinsic(type, f"{self.pick(EXTREMES)}.{type}", *operands))

    def overflow(self) -> None:
        """A sum or product, and whether it fits."""
        type = self.pick(INTEGERS[:4])
        operands = [(type, self.value(type)) for _ in range(2)]
        pair = f"{{ {type}, i1 }}"
        self.line(
            f"{(both := self.name())} = {self.intrinsic(pair, f'{self.pick(OVERFLOWS)}.with.overflow.{type}', *operands)}"
        )
        self.new(type, f"extractvalue {pair} {both}, 0")
        self.new("i1", f"extractvalue {pair} {both}, 1")

    def count(self) -> None:
        """One operand: bits counted or reversed."""
        type, operation = self.integer(), self.pick(COUNTS)
        if operation == "bswap" and type == "i8":
            operation = "bitreverse"
        flag = [("i1", "false")] if operation in {"ctlz", "cttz", "abs"} else []
        self.new(type, self.intrinsic(type, f"{operation}.{type}", (type, self.value(type)), *flag))

    def compare(self) -> None:
        """Of integers."""
        type = self.integer()
        self.new("i1", f"icmp {self.pick(COMPARISONS)} {type} {self.value(type)}, {self.value(type)}")

    def choose(self) -> None:
        """One of two, by a predicate."""
        type = self.pick((*INTEGERS, *FLOATS, "i1"))
        self.new(type, f"select i1 {self.value('i1')}, {type} {self.value(type)}, {type} {self.value(type)}")

    def resize(self) -> None:
        """Between widths of integers, predicates among them."""
        source, target = self.pick(("i1", *INTEGERS)), self.pick(("i1", *INTEGERS))
        order = ("i1", *INTEGERS)
        if source == target:
            return
        growing = order.index(source) < order.index(target)
        operation = self.pick(("zext", "sext")) if growing else "trunc"
        self.new(target, f"{operation} {source} {self.value(source)} to {target}")

    # ── memory ──────────────────────────────────────────────────────────────────────

    def position(self) -> str:
        """A position in an array of 16."""
        return self.new("i32", f"and i32 {self.value('i32')}, 15")

    def look_up(self) -> None:
        """An element of a constant table."""
        table = self.module.table() if len(self.module.tables) < 3 else f"@table{self.rng.integers(3)}"
        self.line(f"{(at := self.name())} = getelementptr i32, ptr {table}, i32 {self.position()}")
        self.new("i32", f"load i32, ptr {at}")

    def local_store(self) -> None:
        """An element of the array, or a byte of it."""
        self.line(f"{(at := self.name())} = getelementptr i32, ptr {self.array}, i32 {self.position()}")
        type = self.pick(("i32", "i32", "i8", "i16"))
        self.line(f"store {type} {self.value(type)}, ptr {at}")

    def local_load(self) -> None:
        """An element of the array, or a byte of it."""
        self.line(f"{(at := self.name())} = getelementptr i32, ptr {self.array}, i32 {self.position()}")
        type = self.pick(("i32", "i32", "i8", "i16"))
        self.new(type, f"load {type}, ptr {at}")

    # ── vectors ─────────────────────────────────────────────────────────────────────

    def as_vector(self, whole: str, vector: str) -> str:
        """The bits of an integer as elements."""
        self.line(f"{(name := self.name())} = bitcast {whole} {self.value(whole)} to {vector}")
        return name

    def vector(self) -> None:
        """An operation element by element."""
        whole = self.pick(tuple(VECTORS))
        type = self.pick(VECTORS[whole])
        first, second, result = self.as_vector(whole, type), self.as_vector(whole, type), self.name()
        if self.rng.random() < 0.4:
            element = type.split()[-1].rstrip(">")
            suffix = f"v{type[1:].split()[0]}{element}"
            text = self.intrinsic(type, f"{self.pick(EXTREMES[:4])}.{suffix}", (type, first), (type, second))
        else:
            text = f"{self.pick(BINARY)} {type} {first}, {second}"
        self.line(f"{result} = {text}")
        self.new(whole, f"bitcast {type} {result} to {whole}")

    def shuffle(self) -> None:
        """Elements of two vectors in another order."""
        whole = self.pick(tuple(VECTORS))
        type = self.pick(VECTORS[whole])
        count = int(type[1:].split()[0])
        order = ", ".join(f"i32 {n}" for n in self.rng.integers(0, 2 * count, count))
        first, second, result = self.as_vector(whole, type), self.as_vector(whole, type), self.name()
        self.line(f"{result} = shufflevector {type} {first}, {type} {second}, <{count} x i32> <{order}>")
        self.new(whole, f"bitcast {type} {result} to {whole}")

    # ── floating point ──────────────────────────────────────────────────────────────

    def real(self) -> None:
        """Arithmetic of floats."""
        type = self.pick(FLOATS)
        self.new(type, f"{self.pick(FLOAT_BINARY)} {type} {self.value(type)}, {self.value(type)}")

    def round(self) -> None:
        """One float."""
        type = self.pick(FLOATS)
        suffix = "f32" if type == "float" else "f64"
        self.new(type, self.intrinsic(type, f"{self.pick(ROUNDINGS)}.{suffix}", (type, self.value(type))))

    def fused(self) -> None:
        """A product and sum rounded once, or a sign."""
        type = self.pick(FLOATS)
        suffix = "f32" if type == "float" else "f64"
        name, count = (("fma", 3), ("copysign", 2))[int(self.rng.integers(2))]
        if name == "copysign":  # the sign of a NaN is open
            self.line(f"{(number := self.name())} = fcmp ord {type} {(sign := self.value(type))}, 0.0")
            self.line(f"{(known := self.name())} = select i1 {number}, {type} {sign}, {type} 1.0")
            self.new(type, self.intrinsic(type, f"copysign.{suffix}", (type, self.value(type)), (type, known)))
            return
        self.new(type, self.intrinsic(type, f"{name}.{suffix}", *[(type, self.value(type)) for _ in range(count)]))

    def order(self) -> None:
        """Of floats."""
        type = self.pick(FLOATS)
        self.new("i1", f"fcmp {self.pick(ORDERINGS)} {type} {self.value(type)}, {self.value(type)}")

    def to_real(self) -> None:
        """A float of an integer."""
        source, target = self.pick(INTEGERS[:4]), self.pick(FLOATS)
        self.new(target, f"{self.pick(('sitofp', 'uitofp'))} {source} {self.value(source)} to {target}")

    def to_integer(self) -> None:
        """By saturation: what does not fit is open otherwise."""
        source, target = self.pick(FLOATS), self.pick(INTEGERS[:4])
        suffix = "f32" if source == "float" else "f64"
        operation = self.pick(("fptosi", "fptoui"))
        self.new(target, self.intrinsic(target, f"{operation}.sat.{target}.{suffix}", (source, self.value(source))))

    def real_size(self) -> None:
        """Between the two widths of floats."""
        if self.rng.random() < 0.5:
            self.new("double", f"fpext float {self.value('float')} to double")
        else:
            self.new("float", f"fptrunc double {self.value('double')} to float")

    # ── control flow ────────────────────────────────────────────────────────────────

    def branch(self, depth: int) -> None:
        """If, with or without else."""
        n = self.name()[1:]
        self.line(f"br i1 {self.value('i1')}, label %{n}.then, label %{n}.else")
        self.line(f"{n}.then:")
        self.block(depth, 8)
        self.line(f"br label %{n}.end")
        self.line(f"{n}.else:")
        if self.rng.random() < 0.6:
            self.block(depth, 8)
        self.line(f"br label %{n}.end")
        self.line(f"{n}.end:")

    def loop(self, depth: int) -> None:
        """At most eight times, and left before by a condition now and then."""
        n, counter = self.name()[1:], self.slot("i32")
        times = self.new("i32", f"and i32 {self.value('i32')}, 7")
        self.line(f"store i32 {times}, ptr {counter}")
        self.line(f"br label %{n}.loop")
        self.line(f"{n}.loop:")
        with self.scope():
            self.block(depth, 6)
            left = self.new("i32", f"load i32, ptr {counter}")
            less = self.new("i32", f"sub i32 {left}, 1")
            self.line(f"store i32 {less}, ptr {counter}")
            self.line(f"{(more := self.name())} = icmp sgt i32 {left}, 0")
            if self.rng.random() < 0.4:
                self.compare()
                self.line(f"{(both := self.name())} = and i1 {more}, {self.value('i1')}")
                more = both
        self.line(f"br i1 {more}, label %{n}.loop, label %{n}.end")
        self.line(f"{n}.end:")

    def switch(self, depth: int) -> None:
        """Up to eight ways."""
        n, ways = self.name()[1:], int(self.rng.integers(2, 9))
        self.line(f"{(chosen := self.name())} = and i32 {self.value('i32')}, {ways if ways > 4 else 7}")
        self.line(f"switch i32 {chosen}, label %{n}.end [ {' '.join(f'i32 {k}, label %{n}.way{k}' for k in range(ways))} ]")
        for k in range(ways):
            self.line(f"{n}.way{k}:")
            self.block(0, 5)
            self.line(f"br label %{n}.{f'way{k + 1}' if k + 1 < ways and self.rng.random() < 0.3 else 'end'}")
        self.line(f"{n}.end:")

    def call(self, depth: int) -> None:
        """A function that is not inlined, with arguments of all types and a structure of two as the result."""
        if not self.calls:
            return self.binary()
        types = [self.pick((*INTEGERS, *FLOATS, "i1")) for _ in range(int(self.rng.integers(1, 6)))]
        first, second = self.pick(INTEGERS), self.pick((*INTEGERS, *FLOATS))
        name = f"@callee{len(self.module.functions)}"
        index = len(self.module.functions)
        self.module.functions.append("")
        callee = Function(self.module, [(type, f"%p{n}") for n, type in enumerate(types)], calls=self.calls - 1)
        for _ in range(8):
            callee.statement(1)
        pair = f"{{ {first}, {second} }}"
        callee.line(f"%half = insertvalue {pair} undef, {first} {callee.value(first)}, 0")
        callee.line(f"%whole = insertvalue {pair} %half, {second} {callee.value(second)}, 1")
        callee.line(f"ret {pair} %whole")
        parameters = ", ".join(f"{type} %p{n}" for n, type in enumerate(types))
        self.module.functions[index] = callee.text(f"define internal {pair} {name}({parameters}) noinline")
        arguments = ", ".join(f"{type} {self.value(type)}" for type in types)
        self.line(f"{(both := self.name())} = call {pair} {name}({arguments})")
        self.new(first, f"extractvalue {pair} {both}, 0")
        self.new(second, f"extractvalue {pair} {both}, 1")
        return None

    def text(self, head: str) -> str:
        """The function."""
        return "\n".join([f"{head} {{", *self.slots, *self.lines, "}"])


def program(rng: np.random.Generator, statements: int = 60) -> Module:
    """A random program, whose function `f` reads eight numbers and writes eight."""
    module = Module(rng)
    body = Function(module, [], calls=2)
    for n in range(WORDS):
        body.line(f"{(at := body.name())} = getelementptr i64, ptr %in, i64 {n}")
        body.new("i64", f"load i64, ptr {at}")
    for source, target in (("i64", "i32"), ("i64", "i16"), ("i64", "i8"), ("i64", "i32")):
        body.new(target, f"trunc {source} {body.value(source)} to {target}")
    body.new("double", f"sitofp i64 {body.value('i64')} to double")
    body.new("float", f"uitofp i32 {body.value('i32')} to float")
    for _ in range(statements):
        body.statement(3)
    for n, (type, slot) in enumerate(list(body.variables)):
        write(body, n, type, slot)
    body.line("ret void")
    module.functions.append(body.text("define void @f(ptr %out, ptr %in)"))
    return module


def write(body: Function, n: int, type: str, slot: str) -> None:
    """Mix a variable into one of the results; all NaNs are one."""
    value = body.new(type, f"load {type}, ptr {slot}")
    if type in FLOATS:
        whole = "i32" if type == "float" else "i64"
        body.line(f"{(number := body.name())} = fcmp ord {type} {value}, 0.0")
        body.line(f"{(known := body.name())} = select i1 {number}, {type} {value}, {type} 12345.0")
        value, type = body.new(whole, f"bitcast {type} {known} to {whole}"), whole
    if type == "i128":
        body.line(f"{(high := body.name())} = lshr i128 {value}, 64")
        body.line(f"{(mixed := body.name())} = xor i128 {value}, {high}")
        value = mixed
    if type != "i64":
        value = body.new("i64", f"{'trunc' if type == 'i128' else 'zext'} {type} {value} to i64")
    at, before, after = body.name(), body.name(), body.name()
    body.line(f"{at} = getelementptr i64, ptr %out, i64 {n % WORDS}")
    body.line(f"{before} = load i64, ptr {at}")
    body.line(f"{after} = add i64 {before}, {value}")
    body.line(f"store i64 {after}, ptr {at}")
