"""Compiles the programs of this folder with nvcc and runs them on ptxvm; each checks its own results.

    python tests/clients/cuda_cpp/run.py [NAME ...]

nvcc is `$NVCC`, or that of the package `nvidia-cuda-nvcc` of this Python, or the one on the path; the programs are linked with
the shared runtime library.  A program may say in comments at its beginning: `// flags:` for nvcc, `// devices:` how many
there are, `// device:` their model, `// output:` the lines that it prints.  Binaries are kept in `.cache/cuda_cpp` until their
source changes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import time
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
CACHE = HERE.parents[2] / ".cache" / "cuda_cpp"
PROGRAMS = sorted(path.stem for path in HERE.glob("*.cu"))
LONGEST = 600  # seconds for a program, which takes some: more is a hang
LIBRARIES = ("lib", "lib64")  # of a toolkit; the wheels have the first


def compiler() -> Path | None:
    """nvcc, None where there is none."""
    if given := os.environ.get("NVCC"):
        return Path(given)
    spec = importlib.util.find_spec("nvidia")
    for place in spec.submodule_search_locations or () if spec else ():
        for found in Path(place).glob("cu*/bin/nvcc"):
            return found
    found_on_path = shutil.which("nvcc")
    return Path(found_on_path) if found_on_path else None


def said(source: str, what: str) -> str:
    """What a program says of itself."""
    found = re.search(rf"^// {what}: (.*)$", source, re.MULTILINE)
    return found.group(1) if found else ""


@cache
def toolkit(nvcc: Path) -> Path:
    """The folder of the toolkit that nvcc is of: it says so itself, since it may be a script that calls another."""
    told = subprocess.run([nvcc, "--dryrun", "-c", "-x", "cu", os.devnull], capture_output=True, text=True, check=True).stderr
    found = re.search(r"^#\$ TOP=(.*)$", told, re.MULTILINE)
    return Path(found.group(1)) if found else nvcc.parents[1]


def runtime(nvcc: Path) -> Path:
    """The toolkit's shared runtime library, which programs are linked with."""
    for folder in LIBRARIES:
        for found in sorted((toolkit(nvcc) / folder).glob("libcudart.so*")):
            return found
    raise FileNotFoundError(f"{toolkit(nvcc)} has no shared runtime library: install nvidia-cuda-runtime")


def build(name: str, nvcc: Path) -> Path:
    """The binary of a program; subprocess.CalledProcessError with nvcc's messages where it does not compile."""
    path = HERE / f"{name}.cu"
    source, shared = path.read_text(encoding="utf-8"), (HERE / "check.h").read_bytes()
    key = hashlib.sha256(source.encode() + shared + str(nvcc).encode()).hexdigest()[:16]
    binary = CACHE / f"{name}-{key}"
    if not binary.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        links = CACHE / "lib"
        links.mkdir(exist_ok=True)
        link = links / "libcudart.so"
        link.unlink(missing_ok=True)
        link.symlink_to(runtime(nvcc))
        flags = said(source, "flags").split()
        command = [
            str(nvcc),
            "-O2",
            "-std=c++17",
            "-cudart",
            "shared",
            *flags,
            f"-L{links}",
            f"-L{toolkit(nvcc) / 'lib'}",
            str(path),
        ]
        made = binary.with_suffix(".made")
        subprocess.run([*command, "-o", str(made)], check=True, capture_output=True, text=True)
        made.replace(binary)
    return binary


def run(name: str, nvcc: Path, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    """Run a program on ptxvm, with options of `ptxvm exec`."""
    source = (HERE / f"{name}.cu").read_text(encoding="utf-8")
    machine = [word for what in ("devices", "device") if (wanted := said(source, what)) for word in (f"--{what}", wanted)]
    command = [sys.executable, "-m", "ptxvm", "exec", *machine, *options, "--"]
    return subprocess.run([*command, str(build(name, nvcc))], capture_output=True, text=True, check=False, timeout=LONGEST)


def verdict(name: str, done: subprocess.CompletedProcess[str]) -> str:
    """What is wrong with a run, "" if nothing is."""
    wanted = said((HERE / f"{name}.cu").read_text(encoding="utf-8"), "output")
    if done.returncode:
        return f"status {done.returncode}\n{done.stdout[-1500:]}{done.stderr[-3000:]}"
    if wanted and done.stdout.splitlines() != wanted.split("|"):
        return f"it printed {done.stdout!r}"
    return "" if done.stdout.endswith("passed\n") else "it did not say that it passed"


def main(names: list[str]) -> int:
    """Run the programs; how many failed."""
    nvcc = compiler()
    if nvcc is None:
        print("there is no nvcc: install nvidia-cuda-nvcc and nvidia-cuda-runtime, or set NVCC")
        return 1
    failed = 0
    for name in names or PROGRAMS:
        begun = time.perf_counter()
        try:
            build(name, nvcc)
            built = time.perf_counter()
            wrong = verdict(name, run(name, nvcc))
        except subprocess.CalledProcessError as error:
            built, wrong = begun, f"nvcc: {error.stderr}"
        except subprocess.TimeoutExpired:
            wrong = f"it ran for more than {LONGEST} s"
        failed += bool(wrong)
        print(f"{'FAILED' if wrong else 'passed'}  {time.perf_counter() - built:6.2f} s  {name}  {wrong}".rstrip(), flush=True)
    print(f"{len(names or PROGRAMS) - failed} of {len(names or PROGRAMS)} programs passed")
    return failed


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
