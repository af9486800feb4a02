"""Builds a release in `dist/`: wheel, source distribution, notes, and a bill of materials; and tries both distributions.

Each is installed into a fresh environment with the versions of `locks/run.txt` and used from outside the checkout: it checks,
explains and runs an example.  Nothing is published.

The tree does not say where the project is published: `make release REPOSITORY=https://HOST/OWNER/ptxvm` does.  The package then
has its addresses, and the links and the picture of the README are absolute, as the page of a package needs them.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path

from flit_core import buildapi  # type: ignore[import-untyped]  # it has none
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from ptxvm import __version__

ROOT = Path(__file__).parents[1]
DIST = ROOT / "dist"
LOCK = ROOT / "locks" / "run.txt"
IN_SOURCE = ("tests/conftest.py", "docs/index.md", "examples/saxpy.ptx", "CHANGELOG.md", "LICENSE", "Makefile", "locks/dev.txt")
EXAMPLE = ROOT / "examples" / "saxpy.ptx"
NOT_COPIED = (".git", ".venv*", ".cache", ".*_cache", ".hypothesis", "__pycache__", "node_modules", "build", "dist")
LINK = re.compile(r"(?P<text>(?P<picture>!)?\[[^]]*\])\((?!https?:|#)(?P<path>[^)]+)\)")
PIN = re.compile(r"^(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)", re.MULTILINE)
MOST_LINES = 150  # of the notes, as towncrier writes them
COMMANDS = (
    ("ptxvm", "--version"),
    ("ptxvm", "check", "saxpy.ptx"),
    ("ptxvm", "explain", "prmt"),
    ("ptxvm", "examples", "litmus/message-passing.litmus"),
    ("ptxvm", "run", "saxpy.ptx", "--grid", "4", "--block", "256", "1000", "2.5", "f32[1000]=arange", "f32[1000]=ones"),
    ("ptxvm-ptxas", "-arch=sm_75", "saxpy.ptx"),
)


def main() -> int:
    """Build, look, try, and write the notes."""
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(published(Path(name) / "ptxvm", os.environ.get("REPOSITORY", "")))
        wheel, source = DIST / buildapi.build_wheel(str(DIST)), DIST / buildapi.build_sdist(str(DIST))
        os.chdir(ROOT)
    look(source)
    for each in (wheel, source):
        attempt(each)
        print(f"{each.relative_to(ROOT)}: {each.stat().st_size:,} bytes, installed and tried")
    version = wheel.name.split("-")[1]
    write(f"ptxvm-{version}.cdx.json", json.dumps(materials(version), indent=2) + "\n")
    write("notes.md", notes(version))
    return 0


def write(name: str, text: str) -> None:
    """Write a file of the release."""
    (DIST / name).write_text(text, encoding="utf-8")
    print(f"dist/{name}")


def published(folder: Path, address: str) -> Path:
    """The tree of the release, in a folder: the checkout, with addresses in the metadata and the README."""
    shutil.copytree(ROOT, folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
    if not address:
        print("the package has no addresses, and the links of its README are relative: see REPOSITORY in tools/release.py")
        return folder
    for name, change in (("README.md", absolute), ("pyproject.toml", with_addresses)):
        path = folder / name
        path.write_text(change(path.read_text(encoding="utf-8"), address.rstrip("/"), f"v{__version__}"), encoding="utf-8")
    return folder


def absolute(readme: str, address: str, tag: str) -> str:
    """The README with absolute links: to pictures as they are, to all else as pages, both of the release."""

    def link(match: re.Match[str]) -> str:
        return f"{match['text']}({address}/{'raw' if match['picture'] else 'blob'}/{tag}/{match['path']})"

    return LINK.sub(link, readme)


def with_addresses(pyproject: str, address: str, tag: str) -> str:
    """The metadata with the addresses of the project."""
    addresses = {
        "Repository": address,
        "Documentation": f"{address}/blob/{tag}/docs/index.md",
        "Changelog": f"{address}/blob/{tag}/CHANGELOG.md",
        "Issues": f"{address}/issues",
    }
    lines = [f'{name} = "{each}"' for name, each in addresses.items()]
    return "\n".join([pyproject.rstrip("\n"), "", "[project.urls]", *lines, ""])


def look(source: Path) -> None:
    """Is what a packager needs in the source distribution?"""
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    if missing := [name for name in IN_SOURCE if name not in names]:
        sys.exit(f"{source.name} lacks {', '.join(missing)}")


def attempt(distribution: Path) -> None:
    """Install a distribution into an environment of its own, and use it in a folder of its own."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        venv.create(folder / "venv", with_pip=True)
        commands = folder / "venv" / "bin"
        install: list[str | Path] = [commands / "python", "-m", "pip", "--disable-pip-version-check", "install", "-qq"]
        run([*install, "--require-hashes", "--only-binary", ":all:", "--requirement", LOCK], folder)
        run([*install, "--no-deps", "--no-build-isolation", distribution], folder)
        shutil.copy(EXAMPLE, folder)
        for command, *words in COMMANDS:
            run([commands / command, *words], folder)


def run(command: list[str | Path], folder: Path) -> None:
    """Run a command, which prints nothing unless it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "PTXVM"))}
    done = subprocess.run(command, cwd=folder, env=environment, text=True, capture_output=True, check=False)  # noqa: S603 - ours
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")


def materials(version: str) -> dict[str, object]:
    """The bill of materials, as CycloneDX 1.6 has it: ptxvm, what its lock installs beside it, and what needs what."""
    own, others = component("ptxvm", version), list(locked())
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {**own, "licenses": [{"license": {"id": "Apache-2.0"}}]}},
        "components": others,
        "dependencies": dependencies([own, *others]),
    }


def locked() -> Iterator[dict[str, object]]:
    """The packages of the lock, with the hashes of their files."""
    text = LOCK.read_text(encoding="utf-8")
    found = list(PIN.finditer(text))
    for match, end in zip(found, [*(each.start() for each in found[1:]), len(text)], strict=True):
        hashes = re.findall(r"--hash=sha256:(\w+)", text[match.start() : end])
        yield {**component(match["name"], match["version"]), "hashes": [{"alg": "SHA-256", "content": each} for each in hashes]}


def dependencies(components: Sequence[dict[str, object]]) -> list[dict[str, object]]:
    """For each package those of the lock that it needs without any extra, as its metadata in this environment says."""
    references = {canonicalize_name(str(each["name"])): each["bom-ref"] for each in components}
    found: list[dict[str, object]] = []
    for name, reference in references.items():
        wanted = [Requirement(line) for line in metadata.requires(name) or ()]
        needed = (canonicalize_name(each.name) for each in wanted if "extra" not in str(each.marker))
        found.append({"ref": reference, "dependsOn": sorted({str(references[each]) for each in needed if each in references})})
    return found


def component(name: str, version: str) -> dict[str, object]:
    """A package of PyPI."""
    reference = f"pkg:pypi/{name.lower().replace('_', '-')}@{version}"
    return {"type": "library", "bom-ref": reference, "name": name, "version": version, "purl": reference}


def notes(version: str) -> str:
    """What has changed since the release before, from the fragments; refused where they are too many to read."""
    command = [sys.executable, "-m", "towncrier", "build", "--draft", "--version", version]
    done = subprocess.run(command, cwd=ROOT, text=True, capture_output=True, check=True)  # noqa: S603 - ours
    if (count := len(done.stdout.splitlines())) > MOST_LINES:
        sys.exit(f"the notes have {count} lines, and at most {MOST_LINES} are read: merge the fragments of a theme in changes/")
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
