"""The disk cache: what it returns, what it survives, and how large it gets."""

import multiprocessing
import os
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from codegen import cache
from codegen.cache import DiskCache, key_of, sources_digest

LARGE = 1 << 30


@pytest.fixture(autouse=True)
def _fresh_warning() -> Iterator[None]:
    cache._warned.done = False
    yield
    cache._warned.done = False


def files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*/*.kernel"))


def test_what_is_stored_is_loaded(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path / "made" / "on demand", LARGE)
    key = key_of("text", "target")
    assert disk.load(key) is None
    disk.store(key, b"\x00binary\xff")
    assert disk.load(key) == b"\x00binary\xff"
    assert DiskCache(tmp_path / "made" / "on demand", LARGE).load(key) == b"\x00binary\xff"
    assert not list((tmp_path / "made").rglob(".writing-*"))


def test_keys_tell_parts_apart() -> None:
    assert key_of("ab", "c") != key_of("a", "bc")
    assert key_of("ab") == key_of("ab")


def test_sources_are_part_of_the_key() -> None:
    assert len(sources_digest()) == 64
    assert sources_digest() == sources_digest()


@pytest.mark.parametrize(
    "content", [b"", b"short", b"blockarray kernel 1\n" + bytes(40), b"something else" * 10], ids=range(4)
)
def test_damaged_files_warn_once_and_are_replaced(tmp_path: Path, content: bytes) -> None:
    disk = DiskCache(tmp_path, LARGE)
    key = key_of("text")
    disk.store(key, b"good")
    (path,) = files(tmp_path)
    path.write_bytes(content)
    with pytest.warns(RuntimeWarning, match="is damaged; the kernel is compiled again and the file replaced"):
        assert disk.load(key) is None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert disk.load(key) is None
    disk.store(key, b"good")
    assert disk.load(key) == b"good"


def test_a_flipped_bit_is_noticed(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path, LARGE)
    key = key_of("text")
    disk.store(key, bytes(1000))
    (path,) = files(tmp_path)
    content = bytearray(path.read_bytes())
    content[-500] ^= 4
    path.write_bytes(content)
    with pytest.warns(RuntimeWarning, match="damaged"):
        assert disk.load(key) is None


def test_an_unwritable_place_warns_once(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.write_text("in the way")
    disk = DiskCache(blocked / "cache", LARGE)
    with pytest.warns(RuntimeWarning, match="cannot write to .*Set BLOCKARRAY_CACHE_DIR to a writable directory"):
        disk.store(key_of("text"), b"binary")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        disk.store(key_of("other"), b"binary")
        assert disk.load(key_of("text")) is None


def test_the_oldest_go_when_the_limit_is_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_STORES_BETWEEN_SWEEPS", 1)
    disk = DiskCache(tmp_path, 10_000)
    keys = [key_of(str(number)) for number in range(20)]
    for number, key in enumerate(keys):
        disk.store(key, bytes(1000))
        for path in tmp_path.glob(f"*/{key}.kernel"):
            os.utime(path, (1000 + number, 1000 + number))
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 11_000
    assert disk.load(keys[-1]) == bytes(1000)
    assert disk.load(keys[0]) is None


def test_use_keeps_an_entry_young(tmp_path: Path) -> None:
    disk = DiskCache(tmp_path, LARGE)
    disk.store(key_of("text"), b"binary")
    (path,) = files(tmp_path)
    os.utime(path, (1000, 1000))
    disk.load(key_of("text"))
    assert path.stat().st_mtime > 1000


def _store_often(directory: Path, number: int) -> None:
    disk = DiskCache(directory, LARGE)
    for turn in range(30):
        disk.store(key_of("shared"), bytes([number]) * 5000)
        found = disk.load(key_of("shared"))
        assert found is not None and len(set(found)) == 1 and len(found) == 5000, turn


def test_processes_that_write_one_entry_never_see_half_of_it(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    processes = [context.Process(target=_store_often, args=(tmp_path, number)) for number in range(3)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert len(files(tmp_path)) == 1
