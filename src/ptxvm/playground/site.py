"""The static page: the same files, with Python in the browser (Pyodide) in place of a server.

The page loads a Pyodide distribution: of a content delivery network, whose files are pinned by their digests, or of a folder
that becomes part of the page.  From there come Python, NumPy and ml_dtypes; ptxvm itself is a wheel beside the page.
"""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
from pathlib import Path

from ptxvm.playground.files import CONFIGURATION, page_files, policy

VERSION = "314.0.7"
NETWORK = "https://cdn.jsdelivr.net"
CORE = f"{NETWORK}/npm/pyodide@{VERSION}/"
PACKAGES = f"{NETWORK}/pyodide/v{VERSION}/full/"
"""Where the wheels that the lock file names are; Pyodide compares their digests with the lock's."""
PINNED = {
    "pyodide.mjs": "sha384-Lp79fMwxa4n2BLtugpUAoQMlbxIdg8iCUiP1r3h7nJLkQjwlXT1JzZTeHVL+f4Dg",
    "pyodide.asm.mjs": "sha384-/2281iaC0Iimw0B3Kagy1DBfZcJG3W4KYW+EmOqhsdY3fR9BJ88FE2Zt6y0KQKpa",
    "pyodide.asm.wasm": "sha384-y++qrQ72KPA1fTjLIuGMP+jppgGxjbLCgfdb0zMrnNnQVhxRUXTOTF6rTxNzllSu",
    "python_stdlib.zip": "sha384-xW3A5jmenkrPXbsgrIaB1FCJh9OuLT7FRMagsJMgtlhVc19k/mSy3+7nMaF/d767",
    "pyodide-lock.json": "sha384-o8SQQvpVlZnOl04+3dFTJipKxul9GbViVusA379wlOrfHSgxbzt0yPiqCTxOiYES",
}
"""The digests of what is loaded from `CORE`: Python 3.14 and its library, and the lock file."""
BEFORE_314 = {"pyodide.asm.mjs": "pyodide.asm.js"}
"""Names of files that were others in distributions of before."""
WHEELS = ("numpy", "ml-dtypes")
FOLDER = "pyodide/"


def write_site(folder: Path, wheel: Path, pyodide: Path | None = None) -> None:
    """Write the page into a folder; `pyodide` is a folder with a Pyodide distribution, which is copied.

    FileNotFoundError where that lacks a file that every page needs.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    scripts = NETWORK if pyodide is None else "'self'"
    for name, content in page_files().items():
        (folder / name).write_bytes(with_policy(content, policy(scripts)) if name == "index.html" else content)
    shutil.copy(wheel, folder)
    if pyodide is None:
        source: dict[str, object] = {"core": CORE, "packages": PACKAGES, "integrity": PINNED}
    else:
        source = {"core": FOLDER, "packages": FOLDER, "integrity": copied(pyodide, folder / FOLDER)}
    ours = {"backend": "pyodide", "wheel": wheel.name, "wheel_integrity": digest(wheel.read_bytes()), "load": WHEELS}
    (folder / CONFIGURATION).write_text(json.dumps(ours | source, indent=1) + "\n", encoding="utf-8")


def with_policy(page: bytes, rules: str) -> bytes:
    """The page with its policy in it, where no server sends one; frames are the server's business."""
    rules = rules.partition("; frame-ancestors")[0]
    tag = f'<meta http-equiv="Content-Security-Policy" content="{rules}">'
    return page.replace(b'<meta charset="utf-8">', f'<meta charset="utf-8">\n{tag}'.encode(), 1)


def copied(pyodide: Path, folder: Path) -> dict[str, str]:
    """Copy what the page needs of a distribution; the digests of what every page loads."""
    folder.mkdir()
    lock = json.loads((pyodide / "pyodide-lock.json").read_text(encoding="utf-8"))
    wheels = [pyodide / lock["packages"][name]["file_name"] for name in WHEELS if name in lock["packages"]]
    core = [BEFORE_314.get(name, name) if not (pyodide / name).exists() else name for name in PINNED]
    for each in (*(pyodide / name for name in core), *(wheel for wheel in wheels if wheel.exists())):
        shutil.copy(each, folder)
    return {name: digest((folder / name).read_bytes()) for name in core}


def digest(content: bytes) -> str:
    """The digest of a file, as browsers compare it."""
    return "sha384-" + base64.b64encode(hashlib.sha384(content).digest()).decode()


__all__ = ["write_site"]
