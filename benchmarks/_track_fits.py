"""The process in which `track.py` counts fits: python benchmarks/_track_fits.py FOLDER CASE,CASE [LIBRARY]

It reads the data of each case from FOLDER, where `track.py` has written them, so that hardly anything except fits runs
under valgrind. LIBRARY is the compiled `_callgrind.cpp`; without it, instructions are not counted. Prints a line of
JSON for each case.
"""

import ctypes
import json
import pickle
import sys
from pathlib import Path

from _track_cases import CASES, counts, fit, relative_gap


def main(folder: str, names: str, library: str | None = None) -> None:
    """Fit every case twice, and count the second fit: the first one imports what it needs."""
    control = None if library is None else ctypes.CDLL(library)
    for name in names.split(","):
        case, data = CASES[name], pickle.loads((Path(folder) / f"{name}.pickle").read_bytes())
        fit(case, data)
        if control is not None:
            control.counting_start()
        model = fit(case, data)
        if control is not None:
            control.counting_stop(name.encode())
        print(json.dumps({"case": name, **counts(model)._asdict(), "certificate": relative_gap(model)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
