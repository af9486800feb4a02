"""`python -m ptxvm` is the command `ptxvm`."""

from ptxvm.cli import main

if __name__ == "__main__":
    main()
