"""Draw docs/session.svg and docs/debugger.svg from what the commands really print: `make picture`."""

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

DEBUGGER = (
    "ptxvm debug parted.ptx --grid 1 --block 8 u32[8] -ex 'break TRIPLE if %r1 == 5' -ex run "
    "-ex 'info cuda lanes %r1 %r3' -ex stepi -ex 'print %r3' -ex reverse-stepi -ex 'print %r3' -ex list --batch"
)
PICTURES = {"session.svg": SESSION, "debugger.svg": [DEBUGGER]}


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
    """Run the sessions and write the pictures."""
    for name, session in PICTURES.items():
        console = Console(record=True, width=WIDTH, force_terminal=True, color_system="truecolor", file=io.StringIO())
        for command in session:
            console.print(Text.assemble(("$ ", "bold green"), (command, "bold")))
            console.print(Text.from_ansi(printed_by(command).rstrip()))
            console.print()
        svg = console.export_svg(title="ptxvm", unique_id=name.partition(".")[0])
        svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # fetches nothing from the network
        (DOCS / name).write_text(svg)


if __name__ == "__main__":
    main()
