"""Memory that one fit needs beyond its data, measured in a process of its own.

python benchmarks/_peak_memory.py FOLDER C [LOSS]: FOLDER holds X.npy (or X.npz, CSR), y.npy and qid.npy. Prints JSON,
bytes.
"""

import json
import resource
import sys
from pathlib import Path

import numpy as np
import scipy.sparse

from ranksvm import RankSVM, make_ranking


def peak() -> int:
    """Largest resident size of this process so far."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage begins with the size of the parent process on Linux
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        return int(fields["VmHWM"].split()[0]) * 1024
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> None:
    """Run from the command line."""
    folder, C, loss = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "squared_hinge"
    # what the first fit imports and starts is not the data's doing
    small = make_ranking(200, 20, 50, random_state=0)
    RankSVM(C=1e-3, loss=loss).fit(small.X, small.y, qid=small.qid)
    before = peak()
    # plain reads into arrays of their own: at their end the peak is what the process holds
    sparse = (folder / "X.npz").exists()
    X = scipy.sparse.load_npz(folder / "X.npz") if sparse else np.load(folder / "X.npy")
    y, qid = np.load(folder / "y.npy"), np.load(folder / "qid.npy")
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sparse else X.nbytes
    loaded = peak()
    RankSVM(C=C, loss=loss).fit(X, y, qid=qid)
    print(json.dumps({"X": size, "labels": y.nbytes + qid.nbytes, "loading": loaded - before, "fit": peak() - loaded}))


if __name__ == "__main__":
    main()
