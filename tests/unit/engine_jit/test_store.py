"""The store of compiled kernels: what is kept, what is thrown away, and what happens to damaged entries."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

import pytest

from ptxvm.engine.jit import store
from ptxvm.engine.jit.store import Store


def test_what_was_put_is_found_by_another_store(tmp_path: Path) -> None:
    Store(tmp_path / "new" / "folder").put("a", b"code")
    assert Store(tmp_path / "new" / "folder").get("a") == b"code"
    assert Store(tmp_path / "new" / "folder").get("b") is None


@pytest.mark.parametrize(
    "damage",
    [lambda d: d[:-1], lambda d: d[:20], lambda d: b"", lambda d: d[:-1] + bytes([d[-1] ^ 1]), lambda d: b"x" + d],
    ids=["shortened", "only a head", "empty", "a bit turned", "shifted"],
)
def test_a_damaged_entry_is_none_and_can_be_made_again(
    tmp_path: Path, damage: object, caplog: pytest.LogCaptureFixture
) -> None:
    kept = Store(tmp_path)
    kept.put("a", b"some code")
    (path,) = tmp_path.iterdir()
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with caplog.at_level(logging.WARNING):
        assert kept.get("a") is None
    assert "is damaged" in caplog.text
    kept.put("a", b"new code")
    assert kept.get("a") == b"new code"


def test_those_used_longest_ago_go_first(tmp_path: Path) -> None:
    kept = Store(tmp_path, limit=10_000)
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
    Store(tmp_path).put("b", b"code")
    assert not old.exists()
    assert new.exists()


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = tmp_path / "file"
    file.write_text("no folder")
    kept = Store(file / "inside")
    with caplog.at_level(logging.WARNING):
        kept.put("a", b"code")
        kept.put("b", b"code")
    assert caplog.text.count("cannot be kept") == 1
    assert Store(file / "inside").get("a") is None


def test_many_threads_may_write_and_read_one_entry(tmp_path: Path) -> None:
    contents = [bytes([n]) * 50_000 for n in range(4)]
    seen: list[bytes | None] = []

    def work(n: int) -> None:
        kept = Store(tmp_path, limit=120_000)
        for _ in range(20):
            kept.put("a", contents[n])
            kept.put(f"own{n}", contents[n])
            seen.append(kept.get("a"))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {each for each in seen if each is not None} <= set(contents)
    assert {path.suffix for path in tmp_path.iterdir()} == {store.SUFFIX}  # nothing half written is left


def test_the_environment_places_it_sizes_it_and_turns_it_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTXVM_CACHE", "off")
    assert store.from_environment() is None
    monkeypatch.setenv("PTXVM_CACHE", str(tmp_path))
    monkeypatch.setenv("PTXVM_CACHE_SIZE", "3")
    placed = store.from_environment()
    assert placed is not None
    assert (placed.folder, placed.limit) == (tmp_path, 3 << 20)
    monkeypatch.delenv("PTXVM_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    usual = store.from_environment()
    assert usual is not None
    assert "ptxvm" in str(usual.folder)
    monkeypatch.setenv("PTXVM_CACHE_SIZE", "many")
    with pytest.raises(ValueError, match="PTXVM_CACHE_SIZE is a number of MiB, not 'many'"):
        store.from_environment()
