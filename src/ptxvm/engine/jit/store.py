"""Compiled kernels on disk, for the processes to come.

An entry is a file of its own, named by what the code depends on.  It is written elsewhere first and then renamed, so that
a reader finds all of it or nothing; it begins with a digest of its contents, so that a damaged one is noticed and made
again.  When all of them take more than their share, those not used for the longest time go.

`PTXVM_CACHE` names the folder, or says `off`; `PTXVM_CACHE_SIZE` is how many MiB it may take (256 unless it says so).
"""

from __future__ import annotations

import os
import time
from _thread import get_ident
from contextlib import suppress
from pathlib import Path

from ptxvm.engine.jit.digest import SIZE as DIGEST_SIZE, Digest

SIZE = 256  # MiB
MAGIC = b"ptxvm 1\n"
SUFFIX = ".kernel"
DAY = 86_400  # seconds
FILLED = 0.8  # of the size is left when the store has been too large


class Store:
    """A folder of entries; `limit` is in bytes."""

    def __init__(self, folder: Path, limit: int = SIZE << 20) -> None:
        self.folder, self.limit = folder, limit
        self._refused = False

    def get(self, key: str) -> bytes | None:
        """The contents of an entry; None where there is none, or it is damaged."""
        path = self._path(key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        head = len(MAGIC) + DIGEST_SIZE
        if data[:head] != MAGIC + Digest().add(data[head:]).bytes:
            _warn("%s is damaged, and made again", path)
            with suppress(OSError):
                path.unlink()
            return None
        self._used(path)
        return data[head:]

    def put(self, key: str, contents: bytes) -> None:
        """Keep an entry; where that is not possible, the log says why, once."""
        if self._refused:
            return
        path = self._path(key)
        new = path.with_name(f"{path.name}.{os.getpid()}.{get_ident()}")
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            new.write_bytes(MAGIC + Digest().add(contents).bytes + contents)
            new.replace(path)
            self._trim()
        except OSError as wrong:
            self._refused = True
            _warn("compiled kernels cannot be kept in %s: %s", self.folder, wrong)
            with suppress(OSError):
                new.unlink()

    def _path(self, key: str) -> Path:
        return self.folder / (key + SUFFIX)

    def _used(self, path: Path) -> None:
        """Its time tells when it was used last; of another user's files only the owner may change that."""
        with suppress(OSError):
            os.utime(path)

    def _trim(self) -> None:
        """Remove the oldest entries of a store that is too large, and what a process left that died while it wrote."""
        found = []
        with os.scandir(self.folder) as files:
            for file in files:
                with suppress(FileNotFoundError):  # another process was faster
                    info = file.stat()
                    old = info.st_mtime < time.time() - DAY
                    if file.name.endswith(SUFFIX):
                        found.append((info.st_mtime_ns, info.st_size, file.path))
                    elif SUFFIX in file.name and old:
                        Path(file.path).unlink()
        total = sum(size for _, size, _ in found)
        if total <= self.limit:
            return
        for _, size, path in sorted(found):
            if total <= FILLED * self.limit:
                break
            Path(path).unlink(missing_ok=True)
            total -= size


def _warn(message: str, *words: object) -> None:
    import logging  # noqa: PLC0415 - most processes have nothing to say

    logging.getLogger("ptxvm.jit").warning(message, *words)


def from_environment() -> Store | None:
    """The store that the user wants; None where it is off."""
    place = os.environ.get("PTXVM_CACHE", "")
    if place == "off":
        return None
    return Store(Path(place).expanduser() if place else _usual_place(), _size() << 20)


def _usual_place() -> Path:
    from platformdirs import user_cache_path  # noqa: PLC0415 - it takes as long to import as a kernel to load

    return user_cache_path("ptxvm", appauthor=False) / "kernels"


def _size() -> int:
    text = os.environ.get("PTXVM_CACHE_SIZE", str(SIZE))
    if not text.isdigit():
        raise ValueError(f"PTXVM_CACHE_SIZE is a number of MiB, not {text!r}")
    return int(text)
