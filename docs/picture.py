"""Draw docs/session.svg, the picture in the README, from what the commands really print: `make picture`."""

from __future__ import annotations

import io
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).parent
WIDTH = 108
SESSION = [
    "ptxvm check mistakes.ptx",
    "ptxvm explain 'prmt.b32 %r1, %r2, %r3, 0x5250;' --set %r2=0x80818283 --set %r3=0x40414243",
    "ptxvm run ../examples/saxpy.ptx --grid 4 --block 256 1000 2.5 'f32[1000]=arange' 'f32[1000]=ones'",
]


def printed_by(command: str) -> str:
    """What a command prints on a terminal of our width, colours included."""
    terminal = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(WIDTH), "TERM": "xterm-256color"}
    program, *arguments = shlex.split(command)
    beside = Path(sys.executable).parent / program
    done = subprocess.run(  # noqa: S603  the commands stand above
        [beside, *arguments],
        cwd=DOCS,
        env=terminal,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout


def main() -> None:
    """Run the session and write the picture."""
    console = Console(record=True, width=WIDTH, force_terminal=True, color_system="truecolor", file=io.StringIO())
    for command in SESSION:
        console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
        console.print(Text.from_ansi(printed_by(command).rstrip()))
        console.print()
    svg = console.export_svg(title="ptxvm", unique_id="session")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # fetches nothing from the network
    (DOCS / "session.svg").write_text(svg)


if __name__ == "__main__":
    main()
