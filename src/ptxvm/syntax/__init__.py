"""From text to tree and back: `parse` reads a module, `print_module` writes one.

This package knows no instruction and no name; what they mean is the business of `ptxvm.isa` and `ptxvm.analysis`.
"""

from ptxvm.syntax import tree
from ptxvm.syntax.parser import parse
from ptxvm.syntax.printer import print_module, print_operand, print_statement
from ptxvm.syntax.source import Source

__all__ = ["Source", "parse", "print_module", "print_operand", "print_statement", "tree"]
