"""The memory limit of a fit: the user's limit, or a share of the free memory."""

import contextlib
import math
import os
import re
import sys
from pathlib import Path

from ranksvm._util.types import MemoryLimit
from ranksvm.exceptions import OptionError

if sys.platform != "win32":
    import resource

# Share of the free memory that a fit may use by default.
FREE_SHARE = 0.5
# Bytes that are assumed to be free if the system does not report the free memory.
UNKNOWN_FREE = 2 << 30

MEMINFO = Path("/proc/meminfo")
STATM = Path("/proc/self/statm")
# The control groups of this process, and the folder of all control groups, with their limits and used memory.
OWN_CGROUPS = Path("/proc/self/cgroup")
CGROUPS = Path("/sys/fs/cgroup")

# A memory limit as text.
MEMORY = re.compile(r"(\d+\.?\d*|\.\d+)\s*(?:([kmgt])(i?))?b?", re.IGNORECASE)


def memory_bytes(limit: MemoryLimit) -> int:
    """Convert a memory limit to bytes: a number, text such as "4GB", or None for half of the free memory.

    KB, MB, GB, TB are powers of 1000, KiB, MiB, GiB, TiB of 1024.
    """
    if limit is None:
        return int(FREE_SHARE * free_memory())
    if not isinstance(limit, str):
        return int(limit)
    match = MEMORY.fullmatch(limit.strip())
    assert match is not None, limit
    exponent = "kmgt".index(match[2].lower()) + 1 if match[2] else 0
    return int(float(match[1]) * (1024 if match[3] else 1000) ** exponent)


def check_fits(needed: int, limit: MemoryLimit, what: str, instead: str) -> None:
    """Refuse work that needs more memory than a limit allows.

    Parameters
    ----------
    needed : int
        Required bytes.
    limit : int, str or None
        The limit, as in `memory_bytes`.
    what : str
        What needs the memory, for the message.
    instead : str
        Advice for the message.

    Raises
    ------
    OptionError
        When more is needed.
    """
    allowed = memory_bytes(limit)
    if needed > allowed:
        whose = "half of the free memory" if limit is None else f"memory_limit={limit!r}"
        raise OptionError(f"{what}: {in_words(needed)}, more than {in_words(allowed)} ({whose}). {instead}")


def in_words(size: float) -> str:
    """A number of bytes in a suitable unit, such as "1.3 GB"."""
    units = ("bytes", "KB", "MB", "GB", "TB")
    power = min(int(math.log10(max(size, 1)) // 3), len(units) - 1)
    return f"{size / 1000**power:.3g} {units[power]}"


def used_memory() -> int:
    """Bytes of memory that this process takes; 0 if the system does not report it."""
    return _of_statm(1)


def free_memory() -> int:
    """Bytes that can be used without swapping out other programs, within limits of containers and of `ulimit -v`."""
    return min([_of_machine(), *_of_container(), *_of_address_space()])


def _of_statm(field: int) -> int:
    try:
        return int(STATM.read_text(encoding="utf-8").split()[field]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0


def _of_address_space() -> list[int]:
    """What is left of the limit of the process's address space, if there is one."""
    if sys.platform != "win32":
        limit, _ = resource.getrlimit(resource.RLIMIT_AS)
        if limit != resource.RLIM_INFINITY:
            return [max(0, limit - _of_statm(0))]
    return []


def _of_machine() -> int:
    try:
        return 1024 * _numbers(MEMINFO)["MemAvailable:"]
    except (OSError, ValueError, KeyError):
        pass  # not Linux
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN_FREE


def _of_container() -> list[int]:
    """The remaining memory of each control group that this process is in and that has a limit."""
    try:
        lines = OWN_CGROUPS.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return []  # not Linux
    left: list[int] = []
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:  # version 2
            top, names = CGROUPS, ("memory.max", "memory.current", "inactive_file")
        elif "memory" in controllers.split(","):
            top, names = CGROUPS / "memory", ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
        else:
            continue
        # The limits of outer groups apply too. In a container the own group may be visible only as the top.
        folder = top / path.lstrip("/")
        for each in (folder, *folder.parents[: len(folder.parts) - len(top.parts)]):
            with contextlib.suppress(OSError, ValueError, KeyError):  # no such group, or no limit
                left.append(_left_in(each, *names))
    return left


def _left_in(folder: Path, limit: str, used: str, cached: str) -> int:
    """The remaining memory of a control group; cached files that can be dropped count as free."""
    allowed, taken = (int((folder / name).read_text(encoding="utf-8")) for name in (limit, used))
    return max(0, allowed - taken + _numbers(folder / "memory.stat")[cached])


def _numbers(file: Path) -> dict[str, int]:
    """First word of a line -> the number after it."""
    lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
    return {words[0]: int(words[1]) for words in lines if len(words) > 1}
