"""The disk cache: compiled kernels as files, for later processes.

An entry is a file, named by a digest of all that the code depends on.  A temporary file is written and then renamed, so a
reader finds a whole entry or none.  An entry begins with a digest of its contents, so a damaged one is noticed and compiled
again.  When the cache exceeds its size, the least recently used entries are removed.

An entry is machine code that this process will run.  So it is used only if no other user can have written it: this user
owns the folder and the entry, and no other user may write to them.  The check is made on the opened file, not on its path,
which could name another file a moment later.

A process that makes an entry claims it, so that others which need it wait for it and do not make it too.

`PTXVM_CACHE` names the folder, or is `off`; `PTXVM_CACHE_SIZE` is its size in MiB (256 by default).
"""

from __future__ import annotations

import functools
import os
import stat
import sys
import time
from _thread import get_ident
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from ptxvm.engine.jit.ir.digest import SIZE as DIGEST_SIZE, Digest
from ptxvm.machine import settings

MAGIC = b"ptxvm 2\n"
SUFFIX = ".kernel"
CLAIM = ".claim"  # behind it, of the file by whose lock an entry is claimed
DAY = 86_400  # seconds
FILLED = 0.8  # of the size remains after a trim
PATIENCE = 10.0  # seconds for which a claim is waited for: its process may have been stopped
NAP = 0.005  # seconds between two looks
BETWEEN_TRIMS = 1 / 32  # of the size is stored between two trims, on average: a trim looks at every entry
OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # opening a pipe does not block
WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Untrusted(Exception):  # noqa: N818 - it says what is wrong
    """A file that is not this user's alone, or is damaged."""


class DiskCache:
    """A folder of entries; `limit` is in bytes."""

    def __init__(self, folder: Path, limit: int = settings.CACHE_SIZE << 20) -> None:
        self.folder, self.limit = folder, limit
        self._refused = False

    def get(self, key: str) -> bytes | None:
        """The contents of an entry; None if there is none, or if it is damaged or not this user's alone."""
        name = key + SUFFIX
        try:
            with self._opened() as folder:
                try:
                    return _read(name, folder)
                except FileNotFoundError:
                    return None
                except (OSError, Untrusted) as wrong:
                    _warn("%s %s, and is made again", self.folder / name, _said(wrong))
                    _remove(name, folder)
        except Untrusted as wrong:
            self._refuse(wrong)
        except OSError:
            return None
        return None

    def put(self, key: str, contents: bytes) -> None:
        """Store an entry, and trim the cache now and then; if that fails, the log says why, once."""
        if self._refused:
            return
        name, digest = key + SUFFIX, Digest().add(contents).bytes
        share = int.from_bytes(digest[:4]) / (1 << 32)  # from 0 to 1, and as good as random
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opened() as folder:
                _write(name, folder, MAGIC + digest + contents)
                if len(contents) > share * BETWEEN_TRIMS * self.limit:
                    self._trim(folder)
        except (OSError, Untrusted) as wrong:
            self._refuse(wrong)

    @contextmanager
    def claimed(self, key: str, patience: float = PATIENCE) -> Iterator[bool]:
        """Claim what an entry will be made of, first waiting for another process that has; gives whether there was one.

        A claim ends with its process.  Where `patience` ends before, in seconds, the entry is made twice.
        """
        file = None if self._refused else self._claim_file(key)
        if file is None:
            yield False
            return
        try:
            yield _waited(file, patience)
        finally:
            with suppress(OSError):
                (self.folder / (key + SUFFIX + CLAIM)).unlink()
            os.close(file)

    def _claim_file(self, key: str) -> int | None:
        """The open file whose lock is a claim; None where the folder is no cache, which storing the entry will tell."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._opened() as folder:
                return os.open(key + SUFFIX + CLAIM, WRITE & ~os.O_EXCL, 0o600, dir_fd=folder)
        except (OSError, Untrusted):
            return None

    @contextmanager
    def _opened(self) -> Iterator[int]:
        """The open folder; raises Untrusted if other users may write to it."""
        folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            if said := others_write(os.fstat(folder)):
                raise Untrusted(f"the folder {said}; `chmod go-w`, or another folder in PTXVM_CACHE, lets it be used")
            yield folder
        finally:
            os.close(folder)

    def _refuse(self, wrong: Exception) -> None:
        """Store nothing from now on."""
        self._refused = True
        _warn_once(f"compiled kernels cannot be kept in {self.folder}: {wrong}")

    def _trim(self, folder: int) -> None:
        """Remove the oldest entries of a cache that is too large, and temporary files of processes that died."""
        found = []
        with os.scandir(folder) as files:
            for file in files:
                with suppress(FileNotFoundError):  # another process was faster
                    info = file.stat(follow_symlinks=False)
                    old = info.st_mtime < time.time() - DAY
                    if file.name.endswith(SUFFIX):
                        found.append((info.st_mtime_ns, info.st_size, file.name))
                    elif SUFFIX in file.name and old:
                        _remove(file.name, folder)
        total = sum(size for _, size, _ in found)
        if total <= self.limit:
            return
        for _, size, name in sorted(found):
            if total <= FILLED * self.limit:
                break
            _remove(name, folder)
            total -= size


def _waited(file: int, patience: float) -> bool:
    """Lock a file; gives whether another process had it, which has ended or taken too long."""
    from fcntl import LOCK_EX, LOCK_NB, flock  # noqa: PLC0415 - most processes make no entry

    began, late = time.monotonic(), False
    while not late:
        try:
            flock(file, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            time.sleep(NAP)
            late = time.monotonic() - began > patience
        except OSError:  # a file system without locks
            return False
        else:
            break
    return time.monotonic() - began >= NAP


def others_write(info: os.stat_result) -> str:
    """Why another user may have written a file; empty if none can have."""
    if info.st_uid != os.geteuid():
        return f"belongs to user {info.st_uid}"
    return "may be written by other users" if info.st_mode & OTHERS_WRITE else ""


def _read(name: str, folder: int) -> bytes:
    """The contents of an entry that only this user can have written; notes that it was used."""
    file = os.open(name, READ, dir_fd=folder)
    try:
        info = os.fstat(file)
        if not stat.S_ISREG(info.st_mode):
            raise Untrusted("is no file")
        if said := others_write(info):
            raise Untrusted(said)
        with suppress(OSError):
            os.utime(file)  # its time is that of the last use
        data = FileIO(file, closefd=False).readall()
    finally:
        os.close(file)
    head = len(MAGIC) + DIGEST_SIZE
    if data[:head] != MAGIC + Digest().add(data[head:]).bytes:
        raise Untrusted("is damaged")
    return data[head:]


def _said(wrong: OSError | Untrusted) -> str:
    return f"cannot be read ({wrong.strerror})" if isinstance(wrong, OSError) else str(wrong)


def _write(name: str, folder: int, data: bytes) -> None:
    """Write a file, in place of an older one."""
    new = f"{name}.{os.getpid()}.{get_ident()}"
    _remove(new, folder)
    try:
        with os.fdopen(os.open(new, WRITE, 0o600, dir_fd=folder), "wb") as opened:
            opened.write(data)
        try:
            os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
        except IsADirectoryError:
            _remove(name, folder)
            os.rename(new, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        _remove(new, folder)
        raise


def _remove(name: str, folder: int) -> None:
    """Remove an entry: a file, or a folder that stands in its place."""
    try:
        os.unlink(name, dir_fd=folder)
    except (IsADirectoryError, PermissionError):  # POSIX: it is a folder
        import shutil  # noqa: PLC0415 - there is none as a rule

        shutil.rmtree(name, ignore_errors=True, dir_fd=folder)
    except OSError:
        pass


def _warn(message: str, *words: object) -> None:
    import logging  # noqa: PLC0415 - most processes have nothing to say

    logging.getLogger("ptxvm.jit").warning(message, *words)


@functools.cache
def _warn_once(message: str) -> None:
    """Warn once for a process, though each module has a cache."""
    _warn("%s", message)


def from_environment() -> DiskCache | None:
    """The disk cache as the environment says; None where it is off."""
    if not settings.cached():
        return None
    return DiskCache(settings.cache_folder() or _usual_folder(), settings.cache_size() << 20)


def _usual_folder() -> Path:
    if sys.platform == "linux":  # the XDG base directory specification, which platformdirs follows there too
        named = os.environ.get("XDG_CACHE_HOME", "")
        return Path(named if named.strip() else Path.home() / ".cache") / "ptxvm" / "kernels"
    from platformdirs import user_cache_path  # noqa: PLC0415 - it takes as long to import as a kernel to load

    return user_cache_path("ptxvm", appauthor=False) / "kernels"
