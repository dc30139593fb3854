"""Fuzz a service and its learner: processes that get ordinary and hostile requests and are killed at random.

Each case checks that everything that was acknowledged is in the log, that the learner has processed the whole log, and
that a replay finds all digests correct and ends with the same bytes as the model that ranks. No request may get a
5xx status, and each must be answered unless a process was killed. No traceback may be logged, and no process may ever
use more than `MEMORY` bytes.
"""

import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time
from collections import Counter

import ranksvm
from fuzz.hostile_requests import Known, Requests
from fuzz.mutations import pick
from ranksvm.serving.access import SCOPES, add_key
from ranksvm.serving.learner import begin
from ranksvm.serving.learning import CHAMPION, Settings
from ranksvm.serving.replay import replay
from ranksvm.serving.store import open_store

# Largest memory of a process of the service, in bytes; not checked under sanitizers, which need several times as much.
MEMORY = 512 << 20
SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
# Time limits in seconds: for an answer, for the answer to a request of unclear length, for a start, and for learning.
ANSWER, UNCLEAR, START, END = 60.0, 0.2, 60.0, 120.0
# Seconds after which an idle connection is not reused.
IDLE = 1.0
STATUSES = {200, 202, 400, 401, 403, 404, 405, 409, 410, 411, 413, 414, 415, 417, 422, 429, 431, 501, 505}
# Names of features, among them names that have another meaning in requests, and odd ones.
NAMES = (["f1", "f2", "f3"], ["matrix", "é\U0001f600", ' "\\'], ["x"], ["a", "b", "c", "d", "e"])


def solar(order, **options):
    return ranksvm.SOLARRanker(order, random_state=0, **options)


KILLS = ("service", "both", "learner")
CHAMPIONS = (
    lambda: solar(1, C=1e-2),
    lambda: solar(2, gamma=1.0),
    lambda: solar(2, gamma=10.0, average=True),
    lambda: solar(2, covariance="diagonal", decay=0.99),
    lambda: ranksvm.PRanker(levels=[0, 1, 2]),
    lambda: ranksvm.PairwisePerceptronRanker(),
    lambda: ranksvm.PerceptronCommitteeRanker(3),
    lambda: ranksvm.RankSVM(max_iter=50),
)


class Target:
    """A store, and the processes that work on it."""

    requests = 1000  # number of requests of a case

    def __init__(self, folder):
        self._folder = folder
        self.figures = {"requests": 0, "memory": 0, "kills": Counter(), "answers": Counter(), "entries": Counter()}

    def run(self, random):
        """Start a service, send requests and kill processes, stop the service, and check its log."""
        for old in self._folder.glob("events.db*"):
            old.unlink()
        path, names = str(self._folder / "events.db"), pick(random, NAMES)
        key, options = _new_store(random, path, names)
        requests = Requests(random, names, key, may_expire=any("wait" in option for option in options))
        kills = {int(at): pick(random, KILLS) for at in random.integers(self.requests, size=3)}
        service = _Service(path, options, self.figures)
        try:
            for number in range(self.requests):
                self.figures["requests"] += 1
                how = kills.get(number)
                service.exchange(requests, kill=how)
                if how in ("service", "both"):
                    service = service.killed()
                    for one in requests.known:  # the last rankings may not have been written to disk
                        one.certain = one.seq is not None
            service.end(path)
        finally:
            service.clean_up()
        self._check_log(path, requests.known)

    def _check_log(self, path, known):
        """Check that all acknowledged feedback is in the log, and that a replay gives the bytes of the newest model."""
        store = open_store(path, create=False)
        events = {}
        while part := store.entries(len(events), 1000):
            events |= {found.seq: found.entry.event for found in part}
        for one in known:
            assert one.seq is None or events[one.seq] == one.event
        learning = replay(store).learning
        assert learning.to_bytes() == store.checkpoint().state
        found = {"all": len(events), "skipped": learning.skipped, "marked as skipped": len(store.skipped_entries())}
        self.figures["entries"].update(found)
        store.close()


def _new_store(random, path, names):
    """Make a store with models; return an API key, or None, and options of the service."""
    models = {CHAMPION: pick(random, CHAMPIONS)()}
    explore = pick(random, ["none", "none", "epsilon", "fair-pairs", "team-draft"])
    if explore == "team-draft" or random.random() < 0.2:
        models["challenger"] = pick(random, CHAMPIONS)()
    store = open_store(path)
    settings = Settings(names, pick(random, ["ndcg@10", "map"]), refit_every=100, refit_window=300)
    begin(store, models, settings, at=time.time())
    key = add_key(store, "all", list(SCOPES)) if random.random() < 0.5 else None
    store.close()
    options = [f"--every={pick(random, [1, 7, 50, 1000])}", "--seconds=0.05", f"--explore={explore}"]
    return key, [*options, *pick(random, [[], [], [], ["--reward-wait=1"]])]


class _Service:
    """A service that runs in a process, with its learner in another, and a connection to it.

    Parameters
    ----------
    path : str
        The store.
    options : list of str
        Options of ``ranksvm serve``.
    figures : dict
        Counts, which are updated.
    """

    def __init__(self, path, options, figures):
        self._path, self._options, self._figures = path, options, figures
        self._said = pathlib.Path(f"{path}.said")
        python = [sys.executable, *(["-S"] if sys.flags.no_site else [])]
        command = [*python, "-m", "ranksvm", "serve", "--store", path, "--port", "0", *options]
        with self._said.open("wb") as said:
            # a new process group, which also contains the learner
            self._process = subprocess.Popen(command, stderr=said, start_new_session=True)
        self._socket, self._used = None, 0.0
        self.port = int(_wait_for(self._address, START, "the service does not start")[1])

    def _address(self):
        assert self._process.poll() is None, f"the service ended: {self._said.read_text()}"
        return re.search(r"Serving at http://[\d.]+:(\d+)", self._said.read_text())

    def exchange(self, requests, kill=None):
        """Send a request, kill processes if asked to, and check the answer."""
        sent, failure = requests.next(self.port), None
        try:
            self._send(sent.data)
            if kill is not None:
                self._kill(kill)
            answer = None if sent.cut else self._answer(sent)
        except (OSError, http.client.HTTPException) as error:
            answer, failure = None, error
        may_fail = not sent.framed or kill in ("service", "both")
        assert failure is None or may_fail, f"{failure!r}, for {sent.data[:3000]!r}"
        if sent.ends or answer is None:
            self._disconnect()
        if answer is None:
            if sent.event is not None:
                sent.event.certain = False
            return
        status, content = answer
        self._figures["answers"][status] += 1
        allowed = STATUSES if sent.expected is None else sent.expected
        assert status in allowed, f"{status} {content[:1000]!r}, for {sent.data[:3000]!r}"
        if status in (200, 202):
            self._note(requests, sent, content)
        elif sent.event is not None and not sent.framed:
            # the request may have been accepted, and the error may be about bytes after it
            sent.event.certain = False

    def _note(self, requests, sent, content):
        """Remember events and the feedback on them."""
        if sent.event is not None and b'"seq"' in content:
            sent.event.answered, sent.event.seq = sent.body, json.loads(content)["seq"]
        elif content.startswith(b'{"event"') and b'"order"' in content:
            ranking = json.loads(content)
            assert None not in ranking["scores"], f"scores that are not finite, for {sent.data[:3000]!r}"
            if sent.expected is not None:
                assert sorted(ranking["order"]) == sorted(sent.ids)
            requests.known.append(Known(ranking["event"], ranking["order"]))

    def _send(self, data):
        if time.monotonic() - self._used > IDLE:  # the service may close an idle connection at any moment
            self._disconnect()
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self.port), timeout=ANSWER)
        self._socket.sendall(data)
        self._used = time.monotonic()

    def _answer(self, sent):
        """Status and content of an answer."""
        self._socket.settimeout(ANSWER if sent.framed else UNCLEAR)
        answer = http.client.HTTPResponse(self._socket, method=sent.method)
        answer.begin()
        content = answer.read()
        if answer.will_close:
            self._disconnect()
        return answer.status, content

    def _disconnect(self):
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    # -- processes -----------------------------------------------------------------------------------------------------

    def _kill(self, how):
        self._measure()
        self._figures["kills"][how] += 1
        if how == "learner":
            for learner in _children(self._process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(learner, signal.SIGKILL)
        else:
            (os.killpg if how == "both" else os.kill)(self._process.pid, signal.SIGKILL)

    def killed(self):
        """Start another service after this one was killed."""
        self.clean_up()
        self._check_said()
        return _Service(self._path, self._options, self._figures)

    def end(self, path):
        """Stop the service after it has learned from the whole log."""
        store = open_store(path, create=False)
        _wait_for(lambda: store.checkpoint().position == store.head[0], END, "learning does not reach the end")
        store.close()
        self._measure()
        self._process.terminate()
        code = self._process.wait(ANSWER)
        self._check_said()
        assert code == 128 + signal.SIGTERM, f"the service ended with {code}: {self._said.read_text()}"

    def clean_up(self):
        """Disconnect, and kill the process if it still runs."""
        self._disconnect()
        self._process.kill()
        self._process.wait()

    def _check_said(self):
        said = self._said.read_text()
        place = said.find("Traceback")
        assert place < 0, said[max(0, place - 1000) : place + 5000]

    def _measure(self):
        """Measure and check the largest memory that the processes have used."""
        for process in (self._process.pid, *_children(self._process.pid)):
            memory = _memory(process)
            self._figures["memory"] = max(self._figures["memory"], memory)
            assert memory <= MEMORY or SANITIZED, f"a process has {memory >> 20} MB in memory"


def _children(parent):
    """Ids of the child processes of a process."""
    found = []
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            state, of = stat.read_text().rpartition(")")[2].split()[:2]
            found += [int(stat.parent.name)] * (int(of) == parent and state != "Z")
    return found


def _memory(process):
    """Largest number of bytes of memory that a process has used; 0 if it has ended."""
    with contextlib.suppress(OSError):
        found = re.search(r"VmHWM:\s*(\d+) kB", pathlib.Path(f"/proc/{process}/status").read_text())
        return 0 if found is None else int(found[1]) << 10
    return 0


def _wait_for(condition, seconds, what):
    """Wait until a condition returns a true value, and return this value."""
    until = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < until, f"{what} in {seconds} seconds"
        time.sleep(0.02)
    return found
