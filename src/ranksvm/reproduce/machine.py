"""The machine and the versions that a page of results names."""

import os
import platform
from importlib import metadata
from pathlib import Path

import ranksvm

__all__ = ["machine", "versions"]

# Of those that /proc/cpuinfo lists, the instruction sets that decide how fast loops are.
INSTRUCTION_SETS = ("sse4_2", "avx", "avx2", "fma", "f16c", "avx512f", "avx512dq", "avx512bw", "avx512vl", "amx_tile")


def machine() -> str:
    """Processor, cores, memory and system in a sentence."""
    name = platform.processor() or platform.machine()
    if Path("/proc/cpuinfo").exists():
        models = [
            line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "name" in line
        ]
        name = models[0] if models else name
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    memory = ""
    if hasattr(os, "sysconf"):
        memory = f", {os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 2**30:.0f} GiB of memory"
    return f"{name} ({platform.machine()}{_instruction_sets()}), {cores} cores{memory}, {platform.system()}"


def _instruction_sets() -> str:
    """What the processor has, after a comma, where the system says so."""
    if not Path("/proc/cpuinfo").exists():
        return ""
    flags = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("flags")]
    found = [name for name in INSTRUCTION_SETS if flags and name in flags[0].split()]
    return f", instruction sets {' '.join(found)}" if found else ""


def versions(*packages: str) -> str:
    """Versions of Python, ranksvm, NumPy, and those of ``packages`` that are installed."""
    found = [f"Python {platform.python_version()}", f"ranksvm {ranksvm.__version__}"]
    for package in ("numpy", "scipy", "scikit-learn", *packages):
        try:
            found.append(f"{package} {metadata.version(package)}")
        except metadata.PackageNotFoundError:
            continue
    return ", ".join(found)
