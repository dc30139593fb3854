"""How many requests a second does a learning service answer, how long do they take, and does learning slow them down?

    python benchmarks/serving.py                 100 documents x 46 features; the store in the folder of TMPDIR
    python benchmarks/serving.py --seconds 5     longer

The load generator is `benchmarks/_load.py`, in a process of its own on the same processors. The store is on a disk
(not a memory file system), whose own time for a write and fdatasync is measured beside it.
"""

import json
import os
import re
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

import _common as common

LOAD = Path(__file__).with_name("_load.py")
N_FEATURES = 46


class Service:
    """A process of ``ranksvm serve``."""

    def __init__(self, store):
        command = [sys.executable, "-m", "ranksvm", "serve", "--learner", "solar2", "--gamma", "100", "--port", "0"]
        start = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, "--n-features", str(N_FEATURES), "--store", str(store)], stderr=subprocess.PIPE, text=True
        )
        for line in self.process.stderr:
            if found := re.search(r"Serving at http://[\d.]+:(\d+)", line):
                self.port = int(found[1])
                break
        self.start_seconds = time.perf_counter() - start

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}") as answer:
            return json.load(answer)

    def memory(self):
        """Resident memory in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1000

    def learnt(self):
        """Wait until everything was learnt from."""
        while (now := self.get("/v1/models")["learning"])["lag"]:
            time.sleep(0.05)
        return now["position"]

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.process.stderr.close()


def request(path, body, kind):
    """The bytes of a request."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def start_load(port, seconds, connections, requests, repeat=True):
    """Start the load generator."""
    process = subprocess.Popen(
        [sys.executable, LOAD, str(port), str(seconds), str(connections), "repeat" if repeat else "once"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    process.stdin.write(b"".join(struct.pack("<I", len(one)) + one for one in requests))
    process.stdin.close()
    return process


def end_load(process):
    found = json.loads(process.stdout.read())
    process.wait()
    assert all(status < "300" for status in found["statuses"]), found["statuses"]
    return found


def load(*arguments, **options):
    return end_load(start_load(*arguments, **options))


def row(name, found):
    times = np.array(found["times"]) * 1000
    p50, p90, p99 = np.percentile(times, [50, 90, 99])
    return [name, f"{len(times) / found['seconds']:,.0f}", f"{p50:.2f}", f"{p90:.2f}", f"{p99:.2f}"]


def rank_requests(n_documents, rng):
    """Bodies of JSON and of float32, of different documents."""
    asked, binary = [], []
    for _ in range(16):
        X = rng.normal(size=(n_documents, N_FEATURES))
        asked.append(request("/v1/rank", json.dumps({"matrix": X.round(6).tolist()}).encode(), "application/json"))
        binary.append(request("/v1/rank", X.astype("<f4").tobytes(), "application/octet-stream"))
    return asked, binary


def feedback_requests(service, n_events, rng):
    """Feedback on new events of 20 documents."""
    X = rng.normal(size=(20, N_FEATURES)).astype("<f4").tobytes()
    ranked = load(service.port, 600, 8, [request("/v1/rank", X, "application/octet-stream")] * n_events, repeat=False)
    bodies = [json.dumps({"clicks": [str(row)]}).encode() for row in range(20)]
    return [
        request(f"/v1/events/{event}/feedback", bodies[number % 20], "application/json")
        for number, event in enumerate(ranked["events"])
    ]


def disk(folder, repeats):
    """Milliseconds of a write of 16 kB and fdatasync: median and 90th percentile."""
    times, block = [], bytes(16384)
    with open(folder / "probe", "wb", buffering=0) as file:
        for _ in range(repeats):
            start = time.perf_counter()
            file.write(block)
            os.fdatasync(file.fileno())
            times.append(1000 * (time.perf_counter() - start))
    return np.percentile(times, [50, 90])


def main(argv=None):
    """Measure and write the page."""
    options = common.arguments(__doc__, argv, ("--seconds", {"type": float, "default": 3.0, "help": "of each load"}))
    seconds, n_events = (0.2, 20) if options.smoke else (options.seconds, int(700 * options.seconds))
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        service = Service(folder / "events.db")
        asked, binary = rank_requests(100, rng)
        load(service.port, min(0.5, seconds), 8, asked)  # everything is loaded and compiled from here on
        rows = [
            row("rank, JSON, 8 connections", load(service.port, seconds, 8, asked)),
            row("rank, JSON, 1 connection", load(service.port, seconds, 1, asked)),
            row("rank, float32, 8 connections", load(service.port, seconds, 8, binary)),
        ]
        median, slow = disk(folder, 5 if options.smoke else 200)
        first = service.memory()
        for connections in (1, 256):
            # the event of each was answered before and is in the store
            sent = feedback_requests(service, n_events if connections == 1 else 4 * n_events, rng)
            rows.append(
                row(
                    f"feedback, {connections} connection{'s'[: connections - 1]}",
                    load(service.port, 600, connections, sent, repeat=False),
                )
            )
        start = time.perf_counter()
        service.learnt()
        lag = time.perf_counter() - start
        sent = feedback_requests(service, n_events, rng)
        rows.append(row("rank, JSON, 2 connections, idle learner", load(service.port, seconds, 2, asked)))
        answering = start_load(service.port, seconds, 1, sent, repeat=False)
        rows.append(row("rank, JSON, 2 connections, while it learns", load(service.port, seconds, 2, asked)))
        end_load(answering)
        position, last = service.learnt(), service.memory()
        size = service.get("/v1/models")["store"]["bytes"] / 1e6
        service.stop()
        again = Service(folder / "events.db")
        assert again.get("/v1/models")["learning"]["position"] == position
        again.stop()
    publish(options, rows, (median, slow), lag, (first, last), (position, size, again.start_seconds))


def publish(options, rows, disk_times, lag, memory, store):
    """Write the page."""
    position, size, restart = store
    (median, slow), (first, last) = disk_times, memory
    parts = [
        common.table(["requests", "per second", "median ms", "p90 ms", "p99 ms"], rows),
        "Goals: 1,500 rankings a second in JSON and 3,000 in float32 at 8 connections, p99 25 ms; feedback 800 "
        "a second at 1 connection and 2,500 at 256; learning adds 5 ms to p99. The load generator is "
        "`benchmarks/_load.py` (asyncio streams of Python), on the same processors as the service.",
        f"The disk of the store takes {median:.2f} ms (median) and {slow:.1f} ms (p90) for a write of 16 kB and "
        "fdatasync. Feedback is answered after such a wait, which requests that come together share. After the last "
        f"feedback of 256 connections {lag:.2f} s passed until all of it was learnt from.",
        f"Resident memory was {first:.0f} MB after the first rankings and {last:.0f} MB in the end, with {position:,} "
        f"answers and {size:,.0f} MB of log. A restart took {restart:.1f} s to the first request, imports included.",
    ]
    text = common.page("A learning service", "serving", options, parts, "starlette", "uvicorn", "msgspec")
    common.publish(text, options)


if __name__ == "__main__":
    main()
