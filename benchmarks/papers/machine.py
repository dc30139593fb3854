"""Describe the machine and the versions, for pages of results."""

import os
import platform
from importlib import metadata
from pathlib import Path

import ranksvm
from ranksvm._util.threads import available_cpus

__all__ = ["machine", "versions"]

# The instruction sets in /proc/cpuinfo that matter for the speed of loops.
INSTRUCTION_SETS = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512dq", "avx512bw", "avx512vl", "amx_tile")


def machine() -> str:
    """Processor, cores, memory and system, as text."""
    name = platform.processor() or platform.machine()
    described = _described()
    name = described.get("model name", name)
    memory = ""
    if hasattr(os, "sysconf"):
        memory = f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB of memory"
    processor = f"{name} ({platform.machine()}{_instruction_sets(described)})"
    return f"{processor}, {available_cpus()} cores{memory}, {platform.system()}"


def _described() -> dict[str, str]:
    """Linux's description of the first processor; empty on other systems."""
    path = Path("/proc/cpuinfo")
    if not path.exists():
        return {}
    first = path.read_text().split("\n\n")[0]
    return {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in first.splitlines())}


def _instruction_sets(described: dict[str, str]) -> str:
    """A comma and the instruction sets of the processor, if the system reports them."""
    flags = described.get("flags", "").split()
    found = [name for name in INSTRUCTION_SETS if name in flags]
    return f", instruction sets {' '.join(found)}" if found else ""


def versions(*packages: str) -> str:
    """Versions of Python, ranksvm, NumPy, and the installed ones among ``packages``."""
    found = [f"Python {platform.python_version()}", f"ranksvm {ranksvm.__version__}"]
    for package in ("numpy", "scipy", "scikit-learn", *packages):
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(found)
