"""Types and values: the language in which the catalog says what an instruction means."""

from ptxvm.algebra.types import Type
from ptxvm.algebra.value import Algebra, Rounding, Value, select

__all__ = ["Algebra", "Rounding", "Type", "Value", "select"]
