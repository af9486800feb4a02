"""The sessions of a page, run: what stands below each `$ command` is what it prints.

Sphinx runs them when it reads the page; `python docs/sessions.py docs/explanation/memory-model.md` writes them into the file.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
SESSION = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SECONDS = re.compile(r'"seconds": [\d.e-]+')


def rerun(text: str) -> str:
    """The text of a page with the sessions as they run now."""
    return SESSION.sub(lambda session: f"```console\n{_session(session[1])}```", text)


def _session(text: str) -> str:
    commands = [line[2:] for line in text.splitlines() if line.startswith("$ ")]
    return "".join(f"$ {command}\n{printed_by(command)}" for command in commands)


def printed_by(command: str) -> str:
    """What a command prints, run in the repository; how long it took differs each time."""
    beside = Path(sys.executable).parent
    done = subprocess.run(  # noqa: S602 - our own page
        re.sub(r"^ptxvm\b", f"{sys.executable} -m ptxvm", command),
        shell=True,
        cwd=ROOT,
        env={"PATH": f"{beside}:/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return SECONDS.sub('"seconds": ...', done.stdout).rstrip() + "\n"


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name)
        page.write_text(rerun(page.read_text(encoding="utf-8")), encoding="utf-8")
