"""Reading LETOR text: speed and peak memory of `read_letor` and of scikit-learn's `load_svmlight_file`.

    python benchmarks/read_letor.py                 a dense file of 300 MB and 136 features; prints the table
    python benchmarks/read_letor.py --write         also writes benchmarks/results/read_letor.md
    python benchmarks/read_letor.py --smoke         uses a small file, to check that the script runs

Each row is measured in a separate process: the best of three times, with the file in the page cache. Memory is the
largest growth of anonymous memory (Linux's RssAnon, sampled every 2 ms), divided by the size of the returned arrays.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np

from _digests import seal

HERE = pathlib.Path(__file__).parent
N_FEATURES = 136


def make_file(path, megabytes):
    """Write a file like LETOR's: five grades, 120 documents per query, values with six decimals, a fifth zeros."""
    from ranksvm import make_ranking, write_letor

    rows = max(240, int(megabytes * 1e6 / 1450))
    data = make_ranking(rows // 120, 120, N_FEATURES, density=0.8, random_state=0)
    np.round(np.minimum(np.abs(data.X) / 4, 1), 6, out=data.X)
    write_letor(path, data)


def compressed(path, suffix):
    """Write a compressed copy of a text file."""
    from ranksvm._util.atomic_files import atomic_text_file

    target = path.with_name(path.name + suffix)
    with atomic_text_file(target) as out:
        out.write(path.read_bytes())
    return target


def anonymous_bytes():
    """Anonymous memory of this process in bytes; 0 if the system does not report it."""
    try:
        lines = pathlib.Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) * 1024
    except (OSError, StopIteration):
        return 0


def measure(reader, path, n_jobs, repeats):
    """Measure a reader in this process: shortest time, peak memory of the first reading, and sizes."""
    if reader == "ranksvm":
        from ranksvm import read_letor

        def read():
            data = read_letor(path, n_jobs=n_jobs)
            return data.X.nbytes + data.y.nbytes + data.qid.nbytes, float(data.X.sum(dtype=np.float64))
    else:
        from sklearn.datasets import load_svmlight_file

        def read():
            X, y, qid = load_svmlight_file(path, query_id=True)
            size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes + qid.nbytes
            return size, float(X.data.sum())

    before = peak = anonymous_bytes()
    done = threading.Event()

    def watch():
        nonlocal peak
        while not done.wait(0.002):
            peak = max(peak, anonymous_bytes())

    seconds = []
    watcher = threading.Thread(target=watch)
    watcher.start()
    for _ in range(repeats):
        start = time.perf_counter()
        size, total = read()
        seconds.append(time.perf_counter() - start)
        done.set()  # memory is sampled only in the first reading, so that the times of the others are not disturbed
        watcher.join()
    return {"seconds": min(seconds), "peak": (peak - before) / size, "bytes": size, "sum": total}


def run(reader, path, n_jobs, repeats):
    """Run `measure` in a separate process."""
    command = [sys.executable, __file__, "--measure", reader, str(path), str(n_jobs), str(repeats)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def benchmark(megabytes):
    """Lines of the report."""
    from papers.machine import machine, versions

    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "dense.txt"
        make_file(path, megabytes)
        size = path.stat().st_size / 1e6
        repeats = 3 if megabytes < 1000 else 1
        rows = [("scikit-learn `load_svmlight_file`", run("sklearn", path, 1, repeats))]
        rows += [(f"`read_letor`, {n} thread{'s' * (n > 1)}", run("ranksvm", path, n, repeats)) for n in (1, 2)]
        for suffix in (".gz", ".zst"):
            try:
                target = compressed(path, suffix)
            except ImportError:
                continue
            rows.append((f"`read_letor`, 2 threads, {suffix}", run("ranksvm", target, 2, repeats)))
            target.unlink()
    reference = rows[0][1]
    for _, row in rows:
        assert abs(row["sum"] - reference["sum"]) <= 1e-6 * abs(reference["sum"]), "the readers disagree"
    report = [
        f"A dense file of {size:.0f} MB, {N_FEATURES} features, values of six decimals.",
        "",
        "| reader | seconds | MB of text/s | times scikit-learn | peak memory / result |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, row in rows:
        seconds = row["seconds"]
        report.append(
            f"| {name} | {seconds:.2f} | {size / seconds:.0f} | {reference['seconds'] / seconds:.1f} "
            f"| {row['peak']:.2f} |"
        )
    report += ["", f"{machine()}; {versions()}"]
    return report


def main():
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--megabytes", type=float, default=300)
    parser.add_argument("--smoke", action="store_true", help="a file of 2 MB")
    parser.add_argument("--write", action="store_true", help="write the result file")
    parser.add_argument("--measure", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.measure:
        reader, path, n_jobs, repeats = arguments.measure
        print(json.dumps(measure(reader, path, int(n_jobs), int(repeats))))
        return
    report = benchmark(2 if arguments.smoke else arguments.megabytes)
    print("\n".join(report))
    if arguments.write:
        command = "python benchmarks/read_letor.py --write"
        text = "\n".join(["# Reading LETOR text", "", f"`{command}`", "", *report, ""])
        (HERE / "results").mkdir(exist_ok=True)
        page = HERE / "results" / "read_letor.md"
        page.write_text(text)
        seal(page)


if __name__ == "__main__":
    main()
