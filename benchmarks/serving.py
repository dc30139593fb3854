"""How many requests a second does a learning service answer, how long do they take, and does learning slow them down?

    python benchmarks/serving.py                 100 documents x 46 features; the store in the folder of TMPDIR
    python benchmarks/serving.py --seconds 5     longer
    python benchmarks/serving.py --log FILE      and a restart with 1,000,000 answers; FILE is made (1 min) if it is new
    python benchmarks/serving.py --only quality  one part of the page: load, quality or peers

The load generator is wrk (`apt-get install wrk`), or `benchmarks/_load.py` where it is not installed, in a process of
its own on the same processors. The store is on a disk (not a memory file system), whose own time for a write and
fdatasync is measured beside it.
"""

import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import numpy as np

import _common as common
import _serving_peers
import _serving_quality
import ranksvm

LOAD = Path(__file__).with_name("_load.py")
WRK, SCRIPT = shutil.which("wrk"), Path(__file__).with_name("_load.lua")
LOG = 1_000_000
N_FEATURES = 46
PARTS = ("load", "quality", "peers")
# loads that have goals
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
        """Resident memory in MB of the process that ranks, and of the one that learns."""
        own = self.process.pid
        (child,) = {pid for tasks in Path(f"/proc/{own}/task").glob("*/children") for pid in tasks.read_text().split()}
        return [
            int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) / 1000 for pid in (own, child)
        ]

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
        """What it found: requests a second, and times in ms."""
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
        ("--only", {"choices": PARTS, "action": "append", "help": "parts of the page; may be given again"}),
    )
    chosen, parts = options.only or PARTS, []
    if "load" in chosen:
        parts += measured_load(options)
    if "quality" in chosen or "peers" in chosen:
        data, name, drifts = ranksvm.make_ranking(n_queries=10, n_docs=5, random_state=0), "made", ("sudden",)
        if not options.smoke:
            data, name, drifts = common.read("MQ2008"), "MQ2008, Fold1, train", ("none", "sudden")
        if "quality" in chosen:
            parts.append(_serving_quality.part(Service, data, name, drifts))
        if "peers" in chosen:
            parts.append(_serving_peers.part(data, name))
    text = common.page("A learning service", "serving", options, parts, "starlette", "uvicorn", "msgspec")
    common.publish(text, options)


def measured_load(options):
    """Parts of the page: rates, times, lag, restart and memory."""
    seconds, n_events = (0.2, 100) if options.smoke else (options.seconds, int(1500 * options.seconds))
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        service = Service(folder / "events.db")
        asked, binary = rank_requests(100, rng)
        load(service.port, min(0.5, seconds), 8, asked)  # everything is loaded and compiled from here on
        found = {
            JSON_RANK: load(service.port, seconds, 8, asked),
            "rank, JSON, 1 connection": load(service.port, seconds, 1, asked),
            FLOAT32_RANK: load(service.port, seconds, 8, binary),
        }
        median, slow = disk(folder, 5 if options.smoke else 200)
        first = service.memory()
        # the event of each was answered before and is in the store
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
    long = restart(options.log) if options.log else None
    goals = load_goals(found, (lag_beside, lag), again.start_seconds, long)
    return [*goals, *load_parts(found, (median, slow), (first, last), (position, store), long)]


def restart(path):
    """Seconds of a restart on a log, most of it after the checkpoint, and memory when it begins to learn and later."""
    if not Path(path).exists():
        make_log(path)
    service = Service(path)
    seconds, learning = service.start_seconds, service.get("/v1/models")["learning"]
    while service.get("/v1/models")["learning"]["position"] == learning["position"]:
        time.sleep(0.05)
    before, position = service.memory(), service.get("/v1/models")["learning"]["position"]
    time.sleep(20)
    after, learnt = service.memory(), service.get("/v1/models")["learning"]["position"] - position
    service.process.kill()
    service.process.wait()
    return seconds, learning["lag"], before, after, learnt


def make_log(path):
    """A log of many answers, after its first checkpoint."""
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


def load_goals(found, lags, again, long):
    """The table of goals and verdicts."""
    rows = [at_least(f"{name}, per second", found[name]["rate"], goal) for name, goal in RATES.items()]
    rows += [at_most(f"{name}, p99 ms", found[name]["p99"], 25) for name in (JSON_RANK, FLOAT32_RANK)]
    rows.append(at_most("learning adds to p99 of ranking, ms", found[LEARNING]["p99"] - found[IDLE]["p99"], 5))
    rows.append(at_most(f"learning lag after {FEEDBACK_1}, beside rankings, s", lags[0], 1))
    rows.append(at_most(f"learning lag after {FEEDBACK_256}, s", lags[1], 1))
    rows.append(at_most("restart, s", again, 3))
    if long is not None:
        seconds, n_answers, before, after, learnt = long
        rows.append(at_most(f"restart with {n_answers:,} answers after the checkpoint, s", seconds, 3))
        # flat, but for caches of a few MB
        grown = 100 * (sum(after) / sum(before) - 1)
        rows.append(at_most(f"growth of memory while {learnt:,} of these answers were learnt from, %", grown, 5))
    return [common.table(["measure", "found", "goal"], rows)]


def at_least(name, value, goal):
    return [name, f"{value:,.0f}", f"at least {goal:,}: " + ("met" if value >= goal else "**MISSED**")]


def at_most(name, value, goal):
    return [name, f"{value:.2f}", f"at most {goal:g}: " + ("met" if value <= goal else "**MISSED**")]


def load_parts(found, disk_times, memory, held, long):
    """What was measured, beside the goals."""
    position, store = held
    (median, slow), (first, last) = disk_times, memory
    parts = [
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
    if long is not None:
        _, n_answers, before, after, learnt = long
        parts.append(
            f"With {n_answers:,} answers after the last checkpoint it ranks with that checkpoint, while "
            f"the other process learns: {learnt:,} answers in 20 s. Memory went from {before[0]:.0f} and "
            f"{before[1]:.0f} MB to {after[0]:.0f} and {after[1]:.0f} MB."
        )
    return parts


if __name__ == "__main__":
    main()
