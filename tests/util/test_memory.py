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
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "OWN_CGROUPS", tmp_path / "cgroup")
    (tmp_path / "cgroup").write_text("0::/\n")
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


def set_group(folder, limit, used, cached, *, version):
    """Write the files of a control group."""
    names = ("memory.max", "memory.current") if version == 2 else ("memory.limit_in_bytes", "memory.usage_in_bytes")
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in zip(names, (limit, used), strict=True):
        (folder / name).write_text(f"{value}\n")
    # version 1 does not count inner groups in inactive_file, but in total_inactive_file
    lines = [f"inactive_file {cached}"] if version == 2 else ["inactive_file 0", f"total_inactive_file {cached}"]
    (folder / "memory.stat").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("version", [1, 2])
def test_limits_of_nested_control_groups(tmp_path, monkeypatch, version):
    # version 1 has a folder for each controller, and a large number instead of "max"
    top = tmp_path / "memory" if version == 1 else tmp_path
    unlimited = 2**63 - 4096 if version == 1 else "max"
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "OWN_CGROUPS", tmp_path / "cgroup")
    own = "9:cpu,cpuacct:/other\n4:memory:/slice/job:1\n0::/other\n" if version == 1 else "0::/slice/job:1\n"
    (tmp_path / "cgroup").write_text(own)
    set_group(top, unlimited, 10**9, 0, version=version)
    assert memory.free_memory() > 10_000_000
    set_group(top / "slice" / "job:1", 2_000_000, 1_500_000, 500_000, version=version)
    assert memory.free_memory() == 1_000_000
    set_group(top / "slice", 1_600_000, 1_500_000, 0, version=version)  # an outer group with a lower limit
    assert memory.free_memory() == 100_000
    set_group(top / "slice", 1_600_000, 1_700_000, 0, version=version)
    assert memory.free_memory() == 0
    set_group(top / "slice", unlimited, 1_500_000, 0, version=version)
    set_group(top / "another", 1000, 0, 0, version=version)
    assert memory.free_memory() == 1_000_000


def test_a_container_that_sees_its_own_group_as_the_top(tmp_path, monkeypatch):
    monkeypatch.setattr(memory, "CGROUPS", tmp_path)
    monkeypatch.setattr(memory, "OWN_CGROUPS", tmp_path / "cgroup")
    (tmp_path / "cgroup").write_text("4:memory:/docker/0123abcd\n")
    set_group(tmp_path / "memory", 2_000_000, 1_500_000, 0, version=1)
    assert memory.free_memory() == 500_000
    (tmp_path / "cgroup").write_bytes(b"4:memory:/not UTF-8: \xff\n")
    assert memory.free_memory() == 500_000


def test_the_limit_of_the_address_space(tmp_path, monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(memory, "STATM", tmp_path / "statm")
    (tmp_path / "statm").write_text("20 10 5 1 0 8 0\n")
    page = memory.os.sysconf("SC_PAGE_SIZE")
    assert memory.used_memory() == 10 * page
    monkeypatch.setattr(resource, "getrlimit", lambda _: (25 * page, resource.RLIM_INFINITY))
    assert memory.free_memory() == 5 * page
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert memory.free_memory() > 10_000_000
