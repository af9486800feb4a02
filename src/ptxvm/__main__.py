"""`python -m ptxvm` is the command `ptxvm`."""

import sys

from ptxvm.cli import command

if __name__ == "__main__":
    sys.exit(command())
