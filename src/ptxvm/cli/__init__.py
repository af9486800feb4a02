"""The command line: the commands that `ptxvm --help` lists.

Exit codes: 0 all is well, 1 the module or the kernel is wrong, 2 the call is wrong, 3 ptxvm is, 130 interrupted.
"""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence

from ptxvm.cli.failures import TRACEBACK, report
from ptxvm.cli.standard_streams import watched

COLLECTED = (100_000, 20, 100)
"""The thresholds of the garbage collector: a command makes many objects that live to its end."""


def command() -> int:
    """The command of this process, which ends with it: nothing is collected at its end."""
    gc.set_threshold(*COLLECTED)
    try:
        return main()
    finally:
        gc.freeze()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; what goes wrong becomes a line on stderr and the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    before = words[: words.index("--")] if "--" in words else words
    if wants_traceback := TRACEBACK in before:
        words.remove(TRACEBACK)
    with watched():
        try:
            return perform(words)
        except Exception as wrong:  # noqa: BLE001 - the last line of defence: every failure is reported by its kind
            return report(wrong, words, traceback=wants_traceback or bool(os.environ.get("PTXVM_TRACEBACK")))
        except KeyboardInterrupt:
            return 130


def perform(words: list[str]) -> int:
    """Run one command, which raises what goes wrong."""
    from click import Abort

    from ptxvm.cli.app import Interrupted, app

    try:
        result = app.main(words, prog_name="ptxvm", standalone_mode=False)
    except (Abort, Interrupted) as stopped:
        raise KeyboardInterrupt from stopped
    sys.stdout.flush()
    return result if isinstance(result, int) else 0
