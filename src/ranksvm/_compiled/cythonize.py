#!/usr/bin/env python3
"""Translate the Cython modules with outdated C++ files in one process: starting Cython takes longer than a translation.

Called by meson.build: ``cythonize.py FOLDER DEPENDENCY... -- CYTHON OPTION... -- SOURCE...``. FOLDER receives the C++
files; all of them depend on every DEPENDENCY.
"""

import shutil
import subprocess
import sys
from itertools import groupby
from pathlib import Path


def changed(path: str | Path) -> int:
    """Modification time of a file in ns; 0 if the file does not exist."""
    return Path(path).stat().st_mtime_ns if Path(path).exists() else 0


def main() -> int:
    """Run Cython on each source, unless its C++ file is newer than the source, all dependencies and Cython itself."""
    dependencies, command, sources = (
        list(group) for separates, group in groupby(sys.argv[1:], lambda argument: argument == "--") if not separates
    )
    folder, *dependencies = dependencies
    newest = max(changed(path) for path in (*dependencies, shutil.which(command[0]) or command[0]))
    out_of_date = [
        source
        for source in sources
        if changed(Path(folder, Path(source).stem + ".cpp")) <= max(newest, changed(source))
    ]
    return subprocess.call([*command, "-o", folder, *out_of_date]) if out_of_date else 0


if __name__ == "__main__":
    sys.exit(main())
