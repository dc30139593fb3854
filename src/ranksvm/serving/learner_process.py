"""The learner in a process of its own, so that learning does not slow down the process that ranks."""

import json
import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress

from ranksvm._util.types import Json
from ranksvm.exceptions import StoreError
from ranksvm.serving.learner import MAX_FAILURES, Learner, Schedule, Served, summary
from ranksvm.serving.learning import Learning, Settings
from ranksvm.serving.models import ranking_model_from
from ranksvm.serving.store import Store, open_store

__all__ = ["LearnerProcess"]

logger = logging.getLogger("ranksvm.serving")

# Seconds until a learner that has ended is restarted, and maximum wait for its last checkpoint.
_RESTART_SECONDS, _LAST_CHECKPOINT_SECONDS = 0.5, 60.0


class LearnerProcess:
    """A learner in another process, and the models that it wrote last; the class has the interface of `Learner`.

    Parameters
    ----------
    store : Store
        The log, with at least one checkpoint.
    url : str
        Path or URL with which the other process opens the store.
    schedule : Schedule
        When it writes checkpoints, and removes old events.
    reward_wait : float, optional
        Seconds after which an event accepts no feedback.
    unanswered : str
        What becomes of such an event: see `open_store`.
    """

    def __init__(self, store: Store, url: str, schedule: Schedule, reward_wait: float | None, unanswered: str):
        self._store = store
        self._settings = {"url": url, "reward_wait": reward_wait, "unanswered": unanswered}
        self.schedule = schedule
        self.learns = False
        self.trouble: str | None = None
        self._owner: str | None = None
        self._process: subprocess.Popen[str] | None = None
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._turn = threading.Lock()
        self._version = 0
        # position of the newest checkpoint when the last process ended, and the number of processes that ended at this
        # position. If there are any, the next process writes a checkpoint after every entry, so that the entry at which
        # it ends is known.
        self._ends = 0, 0
        self.served: Served
        self.summary: Json
        self.settings: Settings
        self.follow()

    def start(self) -> None:
        """Start the process."""
        self._thread = threading.Thread(target=self._run, name="ranksvm-learner", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Notify the learner that the log has a new entry."""
        process = self._process
        if process is not None and process.stdin is not None:
            with suppress(OSError, ValueError):  # it has ended
                process.stdin.write("\n")
                process.stdin.flush()

    def close(self) -> None:
        """End the process, after a checkpoint."""
        self._ended.set()
        process = self._process
        if process is not None and process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
            try:
                process.wait(_LAST_CHECKPOINT_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
        if self._thread is not None:
            self._thread.join()

    def follow(self) -> None:
        """Rank with the newest checkpoint, whichever process wrote it."""
        with self._turn:
            newest = self._store.newest_version()
            found = None if newest == self._version else self._store.checkpoint(newest)
            if found is None:
                return
            learning = Learning.from_bytes(found.state, ranking_model_from)
            self._version, self.settings, self.summary = newest, learning.settings, summary(learning)
            self.served = Served(found.version, found.position, found.at, learning.models, learning.range)

    # -- private methods -----------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._ended.is_set():
            self._process = subprocess.Popen(_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            with suppress(OSError):
                self._process.stdin.write(json.dumps(self._settings | {"schedule": self._next_schedule()}) + "\n")
                self._process.stdin.flush()
            for line in self._process.stdout:
                self._take_report(json.loads(line))
            code = self._process.wait()
            self.learns = False
            if not self._ended.is_set():
                self._replace(code)

    def _take_report(self, report: Json) -> None:
        self.learns, self.trouble, self._owner = report["learns"], report["trouble"], report["owner"]
        if report["version"] != self._version:
            with suppress(StoreError):  # it is read later
                self.follow()

    def _next_schedule(self) -> Schedule:
        return self.schedule._replace(every=1) if self._ends[1] else self.schedule

    def _count_end(self, code: int) -> None:
        """Skip an entry at which several processes in a row ended."""
        with suppress(StoreError):  # if the store fails, this end is not counted
            self.follow()
            position, count = self.served.position, 1
            if position == self._ends[0]:
                count += self._ends[1]
            if count > MAX_FAILURES:  # not >=: the first process may have ended at a later entry
                self._store.mark_skipped(position + 1, f"the learning process ended with code {code}.", self._owner)
                count = 0
            self._ends = position, count

    def _replace(self, code: int) -> None:
        self._count_end(code)
        self.trouble = f"the learner ended with code {code}, and is started again."
        logger.warning(self.trouble)
        if self._owner is not None:
            with suppress(StoreError):  # if the store fails, the lease ends by itself
                self._store.release(self._owner)
        self._ended.wait(_RESTART_SECONDS)


def _command() -> list[str]:
    """The command of the other process: it runs this interpreter, so that the same packages are imported."""
    return [sys.executable, *(["-S"] if sys.flags.no_site else []), "-m", "ranksvm.serving.learner_process"]


def main() -> None:
    """Learn in the other process, until the process that ranks closes stdin or has ended."""
    for name in ("SIGINT", "SIGTERM"):  # terminals and systemd send these signals to all processes
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    logging.basicConfig(format="%(levelname)s: %(message)s")
    settings = json.loads(sys.stdin.readline())
    store = open_store(
        settings["url"], create=False, reward_wait=settings["reward_wait"], unanswered=settings["unanswered"]
    )
    last_report: list[Json] = []

    def tell() -> None:
        report = {"version": learner.served.version, "learns": learner.learns, "trouble": learner.trouble}
        if report not in last_report:
            last_report[:] = [report]
            with suppress(OSError):  # the process that ranks has ended
                print(json.dumps({**report, "owner": learner.owner}), flush=True)

    learner = Learner(store, Schedule(*settings["schedule"]), tell, ranks=False)
    learner.start()
    for _ in sys.stdin:
        learner.wake()
    learner.close()
    store.close()
    sys.stdout = open(os.devnull, "w")  # noqa: SIM115 (nobody reads what is flushed at the end)


if __name__ == "__main__":
    main()
