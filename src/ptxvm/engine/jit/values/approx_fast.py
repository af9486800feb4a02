"""The `.approx` functions within the error bounds of the manual and no nearer to silicon: `numerics="fast"`.

The processor's estimates and one step of Newton's method, or polynomials (Chebyshev fits of the ranges given below).
"""

from __future__ import annotations

from ptxvm.engine.jit.values.approx_exact import FLOATS, WORDS, FunctionWriter

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
        whole = self.floats("roundeven", self.a)
        part = self.op(f"fsub {FLOATS} {self.a}, {whole}")
        power = self.word("shl", self.op(f"fptosi {FLOATS} {whole} to {WORDS}"), 23)
        return self.as_floats(self.word("add", self.as_words(self.polynomial(part, EXPONENTIAL)), power))

    def lg2(self) -> str:
        """The logarithm to base 2, of a significand from 3/4 to 3/2: 2**-23 about one, else 1 ulp."""
        exponent = self.word("ashr", self.word("sub", self.bits, THREE_QUARTERS), 23)
        significand = self.as_floats(self.word("sub", self.bits, self.word("shl", exponent, 23)))
        part = self.op(f"fsub {FLOATS} {significand}, {self.number(1.0)}")
        whole = self.op(f"sitofp {WORDS} {exponent} to {FLOATS}")
        return self.fma(part, self.polynomial(part, LOGARITHM), whole)
