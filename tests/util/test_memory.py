"""How much memory a kernel may take: limits as they are written, and what is free."""

import pytest

from ranksvm._util import checks, memory


@pytest.mark.parametrize(
    ("limit", "expected"),
    [
        (1000, 1000),
        (2.5e9, 2_500_000_000),
        ("4GB", 4 * 10**9),
        ("4 gb", 4 * 10**9),
        ("4G", 4 * 10**9),
        ("500MiB", 500 * 2**20),
        ("1.5KB", 1500),
        ("0.5TiB", 2**39),
        (" 4096 ", 4096),
        ("4096B", 4096),
    ],
)
def test_limits(limit, expected):
    assert checks.memory_limit(limit) is None
    assert memory.memory_bytes(limit) == expected


@pytest.mark.parametrize(
    "limit", ["", "GB", "4 GB free", "-4GB", "4iB", "1e9GB", "0GB", 0, -1, 0.5, True, float("inf"), b"4GB"]
)
def test_what_is_no_limit(limit):
    assert "must be None, a positive number of bytes" in checks.memory_limit(limit)


def test_half_of_what_is_free():
    assert checks.memory_limit(None) is None
    assert 0 < memory.memory_bytes(None) < 2**50


def test_the_least_that_machine_and_container_say(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    assert memory.free_memory() > 0  # from sysconf, or a guess
    (tmp_path / "meminfo").write_text("MemTotal:  9000 kB\nMemAvailable:    3000 kB\nHugePages_Total:  0\n")
    assert memory.free_memory() == 3000 * 1024
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1500000\n")
    (tmp_path / "memory.stat").write_text("anon 1000000\ninactive_file 500000\n")
    assert memory.free_memory() == 3000 * 1024
    (tmp_path / "memory.max").write_text("2000000\n")
    assert memory.free_memory() == 1_000_000
    assert memory.memory_bytes(None) == 500_000
    monkeypatch.delattr(memory.os, "sysconf")
    (tmp_path / "meminfo").unlink()
    (tmp_path / "memory.max").unlink()
    assert memory.free_memory() == memory.UNKNOWN_FREE
