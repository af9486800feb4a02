"""The store of compiled kernels: what is kept, what is thrown away, and what happens to damaged entries."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest
from platformdirs import user_cache_path
from python_threads import at_once

import ptxvm
from ptxvm.engine.jit.objects import disk_cache
from ptxvm.engine.jit.objects.disk_cache import DiskCache


def test_what_was_put_is_found_by_another_store(tmp_path: Path) -> None:
    DiskCache(tmp_path / "new" / "folder").put("a", b"code")
    assert DiskCache(tmp_path / "new" / "folder").get("a") == b"code"
    assert DiskCache(tmp_path / "new" / "folder").get("b") is None


@pytest.mark.parametrize(
    "damage",
    [lambda d: d[:-1], lambda d: d[:20], lambda d: b"", lambda d: d[:-1] + bytes([d[-1] ^ 1]), lambda d: b"x" + d],
    ids=["shortened", "only a head", "empty", "a bit turned", "shifted"],
)
def test_a_damaged_entry_is_none_and_can_be_made_again(
    tmp_path: Path, damage: object, caplog: pytest.LogCaptureFixture
) -> None:
    kept = DiskCache(tmp_path)
    kept.put("a", b"some code")
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with caplog.at_level(logging.WARNING):
        assert kept.get("a") is None
    assert "is damaged" in caplog.text
    kept.put("a", b"new code")
    assert kept.get("a") == b"new code"


def test_an_entry_that_is_claimed_is_waited_for(tmp_path: Path) -> None:
    """Of two that need an entry at once one makes it, and the other finds it."""
    made: list[int] = []

    def make(number: int) -> None:
        with DiskCache(tmp_path).claimed("a") as was_claimed:
            found = DiskCache(tmp_path).get("a")
            assert was_claimed is (found is not None)
            if found is None:
                made.append(number)
                time.sleep(0.1)
                DiskCache(tmp_path).put("a", b"code")

    at_once(make, range(2))
    assert len(made) == 1
    assert [each.name for each in tmp_path.iterdir()] == ["a.kernel"]


def test_a_claim_is_not_waited_for_long_and_ends_with_its_process(tmp_path: Path) -> None:
    with DiskCache(tmp_path).claimed("a") as first, DiskCache(tmp_path).claimed("a", 0.02) as second:
        assert (first, second) == (False, True)
    (tmp_path / "a.kernel.claim").touch()  # what a process that was killed has left
    with DiskCache(tmp_path).claimed("a") as after:
        assert not after


def left(path: Path) -> Path:
    """What another store has left of an entry, to be replaced by something else."""
    DiskCache(path).put("a", b"some code")
    (entry,) = path.iterdir()
    entry.unlink()
    return entry


def elsewhere(entry: Path) -> Path:
    """The same entry, in another folder of this user."""
    other = entry.parent.parent / "other"
    DiskCache(other).put("a", b"other code")
    return next(other.iterdir())


def filled(entry: Path) -> None:
    """A folder with a file somewhere in it."""
    (entry / "deep").mkdir(parents=True)
    (entry / "deep" / "file").write_bytes(b"x")


def writable(entry: Path) -> None:
    """An entry that other users may write to."""
    DiskCache(entry.parent).put("a", b"their code")
    entry.chmod(0o666)


INSTEAD = {
    "pipe": (os.mkfifo, "is no file"),
    "folder": (Path.mkdir, "is no file"),
    "filled folder": (filled, "is no file"),
    "link": (lambda entry: entry.symlink_to(elsewhere(entry)), "cannot be read"),
    "dangling link": (lambda entry: entry.symlink_to("nowhere"), "cannot be read"),
    "writable by others": (writable, "may be written by other users"),
}


@pytest.mark.parametrize("way", INSTEAD)
def test_what_is_no_entry_of_this_user_is_made_again(tmp_path: Path, way: str, caplog: pytest.LogCaptureFixture) -> None:
    """It is neither waited for, nor read, nor followed; and where it stood is an entry afterwards."""
    make, said = INSTEAD[way]
    entry = left(tmp_path / "kept")
    make(entry)
    kept = DiskCache(tmp_path / "kept")
    with caplog.at_level(logging.WARNING):
        assert kept.get("a") is None
    assert f"{entry} {said}" in caplog.text
    kept.put("a", b"new code")
    assert DiskCache(tmp_path / "kept").get("a") == b"new code"
    assert stat.S_IMODE(entry.lstat().st_mode) == 0o600
    if way == "link":
        assert DiskCache(tmp_path / "other").get("a") == b"other code"


@pytest.mark.parametrize("way", INSTEAD)
def test_an_entry_takes_the_place_of_whatever_is_there(tmp_path: Path, way: str) -> None:
    entry = left(tmp_path / "kept")
    INSTEAD[way][0](entry)
    DiskCache(tmp_path / "kept").put("a", b"new code")  # which did not look before
    assert DiskCache(tmp_path / "kept").get("a") == b"new code"


@pytest.mark.parametrize("mode", [0o777, 0o775, 0o722, 0o1777])
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, mode: int, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "kept"
    DiskCache(folder).put("a", b"code")
    folder.chmod(mode)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):  # one for each module
            kept = DiskCache(folder)
            assert kept.get("a") is None
            kept.put("b", b"code")
    assert caplog.text.count(f"cannot be kept in {folder}: the folder may be written by other users; `chmod go-w`") == 1
    folder.chmod(0o755)
    assert DiskCache(folder).get("b") is None
    assert DiskCache(folder).get("a") == b"code"


def test_what_belongs_to_another_user_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    DiskCache(tmp_path / "kept").put("a", b"code")
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    with caplog.at_level(logging.WARNING):
        assert DiskCache(tmp_path / "kept").get("a") is None
        DiskCache(tmp_path / "kept").put("b", b"code")
    assert f"the folder belongs to user {mine}" in caplog.text
    monkeypatch.undo()
    assert [path.stem for path in (tmp_path / "kept").iterdir()] == ["a"]


def test_a_link_to_a_folder_of_this_user_is_one(tmp_path: Path) -> None:
    DiskCache(tmp_path / "kept").put("a", b"code")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    assert DiskCache(tmp_path / "link").get("a") == b"code"


def test_those_used_longest_ago_go_first(tmp_path: Path) -> None:
    kept = DiskCache(tmp_path, limit=10_000)
    for n in range(8):
        kept.put(f"k{n}", bytes(1000))
        (entry,) = tmp_path.glob(f"k{n}.*")
        os.utime(entry, (1_000_000 + n, 1_000_000 + n))
    assert kept.get("k0") == bytes(1000)  # which is used now
    kept.put("large", bytes(3000))
    # 8 entries of 1040 bytes with their heads and one of 3040 make 11,360; four must go to get below 80 % of 10,000
    assert {path.stem for path in tmp_path.iterdir()} == {"k0", "k5", "k6", "k7", "large"}


def test_what_a_dead_process_left_goes_after_a_day(tmp_path: Path) -> None:
    old, new = tmp_path / "a.kernel.17.1", tmp_path / "a.kernel.17.2"
    for path in (old, new):
        path.write_bytes(b"half of an entry")
    os.utime(old, (1, 1))
    DiskCache(tmp_path, limit=100).put("b", b"code")
    assert not old.exists()
    assert new.exists()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    kept = DiskCache(file / "inside")
    with caplog.at_level(logging.WARNING):
        kept.put("a", b"code")
        kept.put("b", b"code")
    assert caplog.text.count("cannot be kept") == 1
    assert DiskCache(file / "inside").get("a") is None


def test_many_threads_may_write_and_read_one_entry(tmp_path: Path) -> None:
    contents = [bytes([n]) * 50_000 for n in range(4)]
    seen: list[bytes | None] = []

    def work(n: int) -> None:
        kept = DiskCache(tmp_path, limit=120_000)
        for _ in range(20):
            kept.put("a", contents[n])
            kept.put(f"own{n}", contents[n])
            seen.append(kept.get("a"))

    at_once(work, range(4))
    assert {each for each in seen if each is not None} <= set(contents)
    assert {path.suffix for path in tmp_path.iterdir()} == {disk_cache.SUFFIX}  # nothing half written is left


def test_the_environment_places_it_sizes_it_and_turns_it_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXVM_CACHE", "off")
    assert disk_cache.from_environment() is None
    monkeypatch.setenv("PTXVM_CACHE", str(tmp_path))
    monkeypatch.setenv("PTXVM_CACHE_SIZE", "3")
    placed = disk_cache.from_environment()
    assert placed is not None
    assert (placed.folder, placed.limit) == (tmp_path, 3 << 20)
    monkeypatch.delenv("PTXVM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    usual = disk_cache.from_environment()
    assert usual is not None
    assert "ptxvm" in str(usual.folder)
    monkeypatch.setenv("PTXVM_CACHE_SIZE", "many")
    with pytest.raises(ValueError, match="PTXVM_CACHE_SIZE is a number of MiB, not 'many'"):
        disk_cache.from_environment()
    monkeypatch.setenv("PTXVM_CACHE", "~no-such-user/x")
    with pytest.raises(ValueError, match="PTXVM_CACHE is a folder, and there is no home directory for '~no-such-user/x'"):
        disk_cache.from_environment()


@pytest.mark.parametrize("xdg", [None, "", " ", "/srv/elsewhere", "/srv/with blanks "])
def test_the_usual_folder_is_that_of_platformdirs(xdg: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """An oracle of its own: on Linux the folder is found without it, since it takes long to import."""
    monkeypatch.delenv("PTXVM_CACHE", raising=False)
    if xdg is None:
        monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_CACHE_HOME", xdg)
    found = disk_cache.from_environment()
    assert found is not None
    assert found.folder == user_cache_path("ptxvm", appauthor=False) / "kernels"


def test_entries_are_looked_through_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A trim looks at every entry, so that one follows a thirty-second of the size, on average, and not each entry."""
    scans: list[int] = []
    scandir = os.scandir
    monkeypatch.setattr(os, "scandir", lambda folder: scans.append(folder) or scandir(folder))
    kept = DiskCache(tmp_path, limit=32_000)
    for n in range(1000):
        kept.put(f"k{n}", n.to_bytes(4) * 25)
    # each is a tenth of what is stored between two trims: 100 on average, with a deviation of 9.5
    assert 60 < len(scans) < 140
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 1.3 * 32_000


def test_code_is_found_again_through_a_link_to_the_package(tmp_path: Path) -> None:
    """`ptxvm exec` gives each program a link in a folder of its own: the key of kept code must not have its path."""
    package, keys = Path(ptxvm.__file__).resolve().parent, set[str]()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ptxvm").symlink_to(package)
        program = "import ptxvm; from ptxvm.engine.jit.objects.code_cache import ourselves; print(ptxvm.__file__, ourselves())"
        environment = os.environ | {"PYTHONPATH": str(tmp_path / name)}
        done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        path, key = done.stdout.split()
        assert path == str(tmp_path / name / "ptxvm" / "__init__.py")
        keys.add(key)
    assert len(keys) == 1
