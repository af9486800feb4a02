"""The `.approx` functions within the error bounds of the manual and no nearer to silicon: `numerics="fast"`.

The processor's estimates and one step of Newton's method, or polynomials (Chebyshev fits of the ranges given below).
"""

from __future__ import annotations

from ptxvm.engine.jit.values.approx_exact import FLOATS, SIGN, WORDS, FunctionWriter

EXPONENTIAL = (  # 2**x, from -1/2 to 1/2
    1.0,
    0.6931472,
    0.2402265,
    0.05550327,
    0.009618025,
    0.0013400433,
    0.00015469732,
)
LOGARITHM = (  # log2(1 + x) / x, from -1/4 to 1/2
    1.442695,
    -0.7213475,
    0.48090076,
    -0.3606751,
    0.28838456,
    -0.24014169,
    0.20908245,
    -0.1903189,
    0.1508518,
    -0.06450844,
)
THREE_QUARTERS = 0x3F40_0000
SINE = (1.0, -0.16666651, 0.00833198, -0.00019495)  # sin(x) / x by the square of x, to a quarter of pi
COSINE = (1.0, -0.49999894, 0.04165627, -0.00135975)  # cos(x) likewise
QUARTER = (1.5707964, -4.371139e-08)  # pi / 2: an f32, and the rest
MOST_TANH = 10.0  # from here on it is 1
LOG2_E = 1.442695


class FastWriter(FunctionWriter):
    """Writes a function for the lanes of one register."""

    def fma(self, a: str, b: str, c: str) -> str:
        """a*b + c."""
        return self.floats("fma", a, b, c)

    def negated(self, a: str) -> str:
        """-a."""
        return self.op(f"fneg {FLOATS} {a}")

    def times(self, a: str, b: str) -> str:
        """a*b."""
        return self.op(f"fmul {FLOATS} {a}, {b}")

    def polynomial(self, x: str, coefficients: tuple[float, ...]) -> str:
        """By Horner's rule, the constant first."""
        total = self.number(coefficients[-1])
        for coefficient in coefficients[-2::-1]:
            total = self.fma(total, x, self.number(coefficient))
        return total

    def rcp(self) -> str:
        """1/a: 0.6 ulp."""
        first = self.estimate("rcp", self.a)
        return self.fma(first, self.fma(self.negated(self.a), first, self.number(1.0)), first)

    def rsqrt(self) -> str:
        """1 over the root: 2**-22.95."""
        first = self.estimate("rsqrt", self.a)
        half = self.times(self.times(self.a, self.number(0.5)), first)
        return self.fma(first, self.fma(self.negated(half), first, self.number(0.5)), first)

    def sqrt(self) -> str:
        """The root: 0.6 ulp."""
        reciprocal = self.estimate("rsqrt", self.a)
        first = self.times(self.a, reciprocal)
        rest = self.fma(self.negated(first), first, self.a)
        return self.fma(rest, self.times(reciprocal, self.number(0.5)), first)

    def ex2(self) -> str:
        """2**a: 1 ulp."""
        near = self.floats("copysign", self.exponent_size(), self.a)
        whole = self.floats("roundeven", near)
        return self.by_power(self.polynomial(self.op(f"fsub {FLOATS} {near}, {whole}"), EXPONENTIAL), whole)

    def wave(self, *, more: int, nearest: bool) -> str:
        """The sine of the size of the argument and some quarter turns more, by the angle that is left from the nearest one."""
        size = self.floats("fabs", self.a)
        turns = self.floats("roundeven", self.times(size, self.number(1 / QUARTER[0])))
        angle = size
        for part in QUARTER:
            angle = self.fma(turns, self.number(-part), angle)
        square = self.times(angle, angle)
        sine, cosine = self.times(angle, self.polynomial(square, SINE)), self.polynomial(square, COSINE)
        number = self.word("add", self.op(f"fptosi {FLOATS} {turns} to {WORDS}"), more)
        is_odd = self.op(f"icmp ne {WORDS} {self.word('and', number, 1)}, zeroinitializer")
        sign = self.word("and", self.word("shl", number, 30), SIGN)
        return self.as_floats(self.word("xor", self.as_words(self.select(is_odd, cosine, sine)), sign))

    def tanh(self) -> str:
        """The hyperbolic tangent: 2**-11 of the result."""
        size = self.floats("minnum", self.floats("fabs", self.a), self.number(MOST_TANH))
        falling = type(self)(self.code, self.times(size, self.number(-2 * LOG2_E))).ex2()
        above = type(self)(self.code, self.op(f"fadd {FLOATS} {falling}, {self.number(1.0)}")).rcp()
        found = self.times(self.op(f"fsub {FLOATS} {self.number(1.0)}, {falling}"), above)
        near = self.fma(self.times(self.times(size, size), size), self.number(-1 / 3), size)  # where the difference loses bits
        small = self.op(f"fcmp olt {FLOATS} {size}, {self.number(0.125)}")
        return self.floats("copysign", self.select(small, near, found), self.a)

    def lg2(self) -> str:
        """The logarithm to base 2, of a significand from 3/4 to 3/2: 2**-23 about one, else 1 ulp."""
        exponent = self.word("ashr", self.word("sub", self.bits, THREE_QUARTERS), 23)
        significand = self.as_floats(self.word("sub", self.bits, self.word("shl", exponent, 23)))
        part = self.op(f"fsub {FLOATS} {significand}, {self.number(1.0)}")
        whole = self.op(f"sitofp {WORDS} {exponent} to {FLOATS}")
        return self.fma(part, self.polynomial(part, LOGARITHM), whole)
