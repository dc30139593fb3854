"""The memory limit of a fit: the user's limit, or a share of the free memory."""

import math
import os
import re
from pathlib import Path

from ranksvm._util.types import MemoryLimit
from ranksvm.exceptions import OptionError

# Share of the free memory that a fit may use by default.
FREE_SHARE = 0.5
# Bytes that are assumed to be free if the system does not report the free memory.
UNKNOWN_FREE = 2 << 30

MEMINFO = Path("/proc/meminfo")
STATM = Path("/proc/self/statm")
# Folder of the files with the memory limit and the used memory of a container, if there is one.
CGROUP = Path("/sys/fs/cgroup")

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
    try:
        return int(STATM.read_text(encoding="utf-8").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError, AttributeError):
        return 0


def free_memory() -> int:
    """Bytes that can be used without swapping out other programs, as reported by the system."""
    available = _of_machine()
    left = _of_container()
    return available if left is None else min(available, left)


def _of_machine() -> int:
    try:
        return 1024 * _numbers(MEMINFO)["MemAvailable:"]
    except (OSError, ValueError, KeyError):
        pass  # not Linux
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return UNKNOWN_FREE


def _of_container() -> int | None:
    """The remaining memory of a control group; cached files that can be dropped count as free."""
    try:
        limit = int((CGROUP / "memory.max").read_text(encoding="utf-8"))
        used = int((CGROUP / "memory.current").read_text(encoding="utf-8"))
        return max(0, limit - used + _numbers(CGROUP / "memory.stat")["inactive_file"])
    except (OSError, ValueError, KeyError):
        return None  # no control group, or no limit


def _numbers(file: Path) -> dict[str, int]:
    """First word of a line -> the number after it."""
    lines = [line.split() for line in file.read_text(encoding="utf-8").splitlines()]
    return {words[0]: int(words[1]) for words in lines if len(words) > 1}
