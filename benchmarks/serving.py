"""How many requests per second does a learning service answer, how long do they take, and does learning slow them down?

    python benchmarks/serving.py                 100 documents x 46 features; the store is in the folder TMPDIR
    python benchmarks/serving.py --seconds 5     longer measurements
    python benchmarks/serving.py --log FILE      also a log of 1,000,000 answers (6 min); makes FILE if absent (1 min)
    python benchmarks/serving.py --only quality  one part of the page: load, log, quality or peers
    python benchmarks/serving.py --cache FILE    stores each part in a file, and measures only the missing parts

The load generator is wrk (`apt-get install wrk`), or `benchmarks/_load.py` if wrk is not installed. It is a separate
process on the same processors. The store must be on a disk (not in a memory file system); the time of the disk for a
write with fdatasync is also measured.
"""

import json
import os
import re
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from functools import partial
from pathlib import Path

import numpy as np

import _common as common
import _serving_peers
import _serving_quality
import ranksvm
from _pieces import Pieces, Section

LOAD = Path(__file__).with_name("_load.py")
WRK, SCRIPT = shutil.which("wrk"), Path(__file__).with_name("_load.lua")
LOG = 1_000_000
N_FEATURES = 46
# names of the loads that have goals, or that are compared
JSON_RANK, FLOAT32_RANK = "rank, JSON, 8 connections", "rank, float32, 8 connections"
FEEDBACK_1, FEEDBACK_256 = "feedback, 1 connection", "feedback, 256 connections"
RATES = {JSON_RANK: 1500, FLOAT32_RANK: 3000, FEEDBACK_1: 800, FEEDBACK_256: 2500}
IDLE, LEARNING = "rank, JSON, 2 connections, idle learner", "rank, JSON, 2 connections, while it learns"


class Service:
    """A process of ``ranksvm serve``."""

    def __init__(self, store, n_features=N_FEATURES, *more):
        command = [sys.executable, "-m", "ranksvm", "serve", "--learner", "solar2", "--gamma", "100", "--port", "0"]
        start = time.perf_counter()
        self.process = subprocess.Popen(
            [*command, "--n-features", str(n_features), "--store", str(store), *more], stderr=subprocess.PIPE, text=True
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
        """Resident memory in MB of the process that ranks and of the process that learns."""
        own = self.process.pid
        (child,) = {pid for tasks in Path(f"/proc/{own}/task").glob("*/children") for pid in tasks.read_text().split()}
        return [
            int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1000 for pid in (own, child)
        ]

    def learnt(self):
        """Wait until the service has learned from the whole log; return the position in the log."""
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


class Load:
    """A load generator, which has been started."""

    def __init__(self, port, seconds, connections, requests, once=False, events=False):
        self._folder = tempfile.TemporaryDirectory()
        self._sent = Path(self._folder.name, "requests")
        self._sent.write_bytes(b"".join(struct.pack("<I", len(one)) + one for one in requests))
        self._wrk = WRK is not None and not events
        how = "once" if once else "repeat"
        command = [sys.executable, LOAD, str(port), str(seconds), str(connections), how]
        if self._wrk:
            load = ["-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", "--timeout", "30s"]
            command = [WRK, *load, "-s", SCRIPT, f"http://127.0.0.1:{port}", "--", self._sent, how]
        with open(self._sent, "rb") as sent:
            self._process = subprocess.Popen(command, stdin=sent, stdout=subprocess.PIPE)

    def end(self):
        """Wait for the end; return requests per second, and times in ms."""
        text = self._process.communicate()[0]
        self._folder.cleanup()
        found = json.loads(text[text.index(b"{") :])
        if self._wrk:
            assert found["errors"] == 0, found
            return found
        assert all(status < "300" for status in found["statuses"]), found["statuses"]
        p50, p90, p99 = np.percentile(np.array(found["times"]) * 1000, [50, 90, 99])
        rate = len(found["times"]) / found["seconds"]
        return {"rate": rate, "p50": p50, "p90": p90, "p99": p99, "events": found["events"]}


def load(*arguments, **options):
    return Load(*arguments, **options).end()


def row(name, found):
    return [name, f"{found['rate']:,.0f}", *(f"{found[p]:.2f}" for p in ("p50", "p90", "p99"))]


def rank_requests(n_documents, rng):
    """Ranking requests with bodies in JSON and in float32, each with different documents."""
    asked, binary = [], []
    for _ in range(16):
        X = rng.normal(size=(n_documents, N_FEATURES))
        asked.append(request("/v1/rank", json.dumps({"matrix": X.round(6).tolist()}).encode(), "application/json"))
        binary.append(request("/v1/rank", X.astype("<f4").tobytes(), "application/octet-stream"))
    return asked, binary


def feedback_requests(service, n_events, rng):
    """Rank new events of 20 documents, and return requests with feedback on them."""
    X = rng.normal(size=(20, N_FEATURES)).astype("<f4").tobytes()
    asked = [request("/v1/rank", X, "application/octet-stream")] * n_events
    ranked = load(service.port, 600, 8, asked, once=True, events=True)
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
    options = common.arguments(
        __doc__,
        argv,
        ("--seconds", {"type": float, "default": 3.0, "help": "of each load"}),
        ("--log", {"metavar": "FILE", "help": "a log of 1,000,000 answers"}),
        ("--only", {"default": "", "help": "measure only parts whose name has this in it"}),
        ("--cache", {"type": Path, "help": "file of the parts that are done"}),
    )
    found, pieces = sections(options), Pieces(options.cache)
    pieces.measure(found, options.only)
    text = common.page(
        "A learning service", "serving", options, pieces.parts(found), "starlette", "uvicorn", "msgspec", "uvloop"
    )
    common.publish(text, options)


def sections(options):
    """The parts of the page."""
    data, name, drifts = ranksvm.make_ranking(n_queries=10, n_docs=5, random_state=0), "made", ("sudden",)
    if not options.smoke:
        data, name, drifts = common.read("MQ2008"), "MQ2008, Fold1, train", ("none", "sudden")
    pieces = {
        "log": (partial(measured_log, options.log), log_in_words),
        "quality": (partial(_serving_quality.part, Service, data, name, drifts), str),
        "peers": (partial(_serving_peers.part, data, name), str),
    }
    if not options.log:
        del pieces["log"]
    # measured twice, because other programs on the machine may disturb a run
    runs = ("load",) if options.smoke else ("load", "load again")
    load = dict.fromkeys(runs, partial(measured_load, options))
    return [
        Section("load", load, lambda found: [load_in_words([one.value for one in found])]),
        *(
            Section(part, {part: piece}, lambda found, render=render: [render(found[0].value)])
            for part, (piece, render) in pieces.items()
        ),
    ]


def measured_load(options):
    """Measure rates, times, lag, restart and memory under load."""
    seconds, n_events = (0.2, 100) if options.smoke else (options.seconds, int(1500 * options.seconds))
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        service = Service(folder / "events.db")
        asked, binary = rank_requests(100, rng)
        load(service.port, min(0.5, seconds), 8, asked)  # after this, all code is loaded and compiled
        found = {
            JSON_RANK: load(service.port, seconds, 8, asked),
            "rank, JSON, 1 connection": load(service.port, seconds, 1, asked),
            FLOAT32_RANK: load(service.port, seconds, 8, binary),
        }
        median, slow = disk(folder, 5 if options.smoke else 200)
        first = service.memory()
        # the events of these requests were ranked before and are in the store
        sent = feedback_requests(service, n_events, rng)
        found[FEEDBACK_1] = load(service.port, seconds, 1, sent, once=True)
        sent = feedback_requests(service, 3 * n_events, rng)
        found[FEEDBACK_256] = load(service.port, seconds, 256, sent, once=True)
        start = time.perf_counter()
        service.learnt()
        lag = time.perf_counter() - start
        sent = feedback_requests(service, n_events, rng)
        found[IDLE] = load(service.port, seconds, 2, asked)
        answering = Load(service.port, seconds, 1, sent, once=True)
        found[LEARNING] = load(service.port, seconds, 2, asked)
        answering.end()
        start = time.perf_counter()
        position = service.learnt()
        lag_beside = time.perf_counter() - start
        last = service.memory()
        store = service.get("/v1/models")["store"]
        service.stop()
        again = Service(folder / "events.db")
        assert again.get("/v1/models")["learning"]["position"] == position
        again.stop()
    return {
        "loads": found,
        "lags": [lag_beside, lag],
        "disk": [float(median), float(slow)],
        "memory": [first, last],
        "position": position,
        "store": store,
        "restart": again.start_seconds,
    }


def measured_log(path):
    """Measure a restart with a log that is all after the checkpoint, memory during learning, and another restart."""
    if not Path(path).exists():
        make_log(path)
    with sqlite3.connect(path) as store:
        # restore the original state, if the file was used before
        store.execute("DELETE FROM checkpoints WHERE version > 1")
    store.close()
    service = Service(path)
    seconds, learning = service.start_seconds, service.get("/v1/models")["learning"]
    while service.get("/v1/models")["learning"]["position"] == learning["position"]:
        time.sleep(0.05)
    start, marks = time.perf_counter(), []
    while learning["lag"]:
        learning = service.get("/v1/models")["learning"]
        if len(marks) <= 10 * learning["position"] // learning["last"]:
            marks.append([learning["position"], *service.memory()])
        time.sleep(0.2)
    took = time.perf_counter() - start
    service.stop()
    again = Service(path)
    assert again.get("/v1/models")["learning"]["position"] == learning["last"]
    again.stop()
    return {
        "answers": learning["last"],
        "restart": seconds,
        "marks": marks,
        "seconds": took,
        "again": again.start_seconds,
    }


def make_log(path):
    """Make a log of many answers, with only the first checkpoint."""
    import msgspec

    from ranksvm.serving.learner import begin
    from ranksvm.serving.learning import Settings
    from ranksvm.serving.records import Entry, Event, Kind, Shown, event_id
    from ranksvm.serving.store import open_store

    store, rng = open_store(str(path)), np.random.default_rng(0)
    model = ranksvm.SOLARRanker(order=2, gamma=100.0, random_state=0)
    begin(store, {"champion": model}, Settings([f"f{j + 1}" for j in range(N_FEATURES)]), at=0.0)
    says = msgspec.msgpack.encode({"labels": [1.0, 0.0]})
    for _ in range(LOG // 500):
        items = []
        for X in rng.normal(size=(500, 2, N_FEATURES)).astype("<f4"):
            event = Event(event_id(), time.time(), Shown(["a", "b"], [0, 1], 1, N_FEATURES, "<f4"), X.tobytes())
            items += [event, Entry(Kind.FEEDBACK, event.id, says, time.time())]
        store.append(items)
    store.close()


def load_in_words(runs):
    """The part of the page about the loads: goals, verdicts and other measurements."""

    def values(of):
        return [of(run) for run in runs]

    rows = [
        at_least(f"{name}, per second", values(lambda run, name=name: run["loads"][name]["rate"]), goal)
        for name, goal in RATES.items()
    ]
    rows += [
        at_most(f"{name}, p99 ms", values(lambda run, name=name: run["loads"][name]["p99"]), 25)
        for name in (JSON_RANK, FLOAT32_RANK)
    ]
    added = values(lambda run: run["loads"][LEARNING]["p99"] - run["loads"][IDLE]["p99"])
    rows.append(at_most("learning adds to p99 of ranking, ms", added, 5))
    for place, name in enumerate((f"{FEEDBACK_1}, beside rankings", FEEDBACK_256)):
        rows.append(at_most(f"learning lag after {name}, s", values(lambda run, place=place: run["lags"][place]), 1))
    rows.append(at_most("restart, s", values(lambda run: run["restart"]), 3))
    heading = f"Found in {len(runs)} runs, one after another; a goal is met if all of them meet it. "
    heading += "What follows is of the first."
    return "\n\n".join([common.table(["measure", "found", "goal"], rows), heading, *load_parts(runs[0])])


def log_in_words(measured):
    """The part of the page about the long log: goals and verdicts."""
    n_answers, marks = measured["answers"], measured["marks"]
    totals = [ranks + learns for _, ranks, learns in marks]
    grown = 100 * (max(totals) / totals[0] - 1)
    restart = f"restart with {n_answers:,} answers after the checkpoint, s"
    rows = [
        at_most(restart, [measured["restart"]], 3),
        at_most(restart.replace("after", "before"), [measured["again"]], 3),
        # constant, except for caches of a few MB
        at_most(f"growth of memory at most while {n_answers:,} answers were learnt from, %", [grown], 5),
    ]
    memory = [[f"{position:,}", f"{ranks:.0f}", f"{learns:.0f}"] for position, ranks, learns in marks]
    return "\n\n".join(
        [
            "## A long log",
            common.table(["measure", "found", "goal"], rows),
            f"With {n_answers:,} answers after its last checkpoint a service ranks with that checkpoint, while the "
            f"other process learns: all of them in {measured['seconds']:.0f} s. Resident memory meanwhile:",
            common.table(["answers learnt from", "process that ranks, MB", "process that learns, MB"], memory),
        ]
    )


def at_least(name, values, goal):
    met = "met" if min(values) >= goal else "**MISSED**"
    return [name, "; ".join(f"{value:,.0f}" for value in values), f"at least {goal:,}: {met}"]


def at_most(name, values, goal):
    met = "met" if max(values) <= goal else "**MISSED**"
    return [name, "; ".join(f"{value:.2f}" for value in values), f"at most {goal:g}: {met}"]


def load_parts(measured):
    """The measurements and their goals."""
    found, position, store = measured["loads"], measured["position"], measured["store"]
    (median, slow), (first, last) = measured["disk"], measured["memory"]
    return [
        common.table(
            ["requests", "per second", "median ms", "p90 ms", "p99 ms"], [row(name, one) for name, one in found.items()]
        ),
        f"The load generator is {'wrk, one thread' if WRK else '`benchmarks/_load.py` (asyncio streams of Python)'}, "
        "on the same processors as the service, which has two processes: one ranks and stores, one learns. In the end "
        f"{store['waiting']} events waited in memory to be stored, and {store['dropped']} had been dropped. Lag is the "
        "time from the last answer to feedback until all of it was learnt from. Feedback is prepared for 1,500 answers "
        "a second at 1 connection and 4,500 at 256: no higher rate can be measured.",
        f"The disk of the store takes {median:.2f} ms (median) and {slow:.1f} ms (p90) for a write of 16 kB and "
        "fdatasync. Feedback is answered after such a wait, which requests that come together share.",
        f"Resident memory (of the process that ranks, and of the one that learns) was {first[0]:.0f} and "
        f"{first[1]:.0f} MB after the first rankings and {last[0]:.0f} and {last[1]:.0f} MB in the end, with "
        f"{position:,} answers and {store['bytes'] / 1e6:,.0f} MB of log. Times of restarts are those to the first "
        "request, imports included.",
    ]


if __name__ == "__main__":
    main()
