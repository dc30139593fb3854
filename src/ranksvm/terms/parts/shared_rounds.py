"""Rounds (computations of sums over all rows) that several solvers share.

Each solver calls `round` as if it were alone, and one round of the backend answers all of them.
"""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from ranksvm.terms.parts.backend import Backend, Job, PartInfo
from ranksvm.terms.parts.part import Part

__all__ = ["SharedRounds", "side_by_side"]

Result = TypeVar("Result")


class _PendingJobs:
    """The jobs (requests for sums) of one solver, and their result or error."""

    def __init__(self, jobs: Sequence[Job]):
        self.jobs = jobs
        self.answers: list[list[Any]] | None = None
        self.error: BaseException | None = None


class SharedRounds:
    """A backend for several solvers, each in a thread of its own: see `Backend` for the methods.

    A round begins only when every solver that is still running has called `round`. A round of many jobs costs hardly
    more than one of a single job if its cost is network traffic, or a reading of a file.

    Parameters
    ----------
    backend : Backend
        The backend that computes the rounds; its `put` has been called.
    n_solvers : int
        Number of solvers; each calls `leave` when it has ended.
    """

    def __init__(self, backend: Backend, n_solvers: int):
        self.backend = backend
        self._n_solvers = n_solvers
        self._waiting: list[_PendingJobs] = []
        self._stopped = False
        self._changed = threading.Condition()

    def put(self, parts: Sequence[Any]) -> None:
        """Take the parts."""
        self.backend.put(parts)

    def round(self, jobs: Sequence[Job]) -> list[list[Any]]:
        """Sums over all parts, once the other solvers have also asked."""
        pending = _PendingJobs(jobs)
        with self._changed:
            if self._stopped:
                raise RuntimeError("these rounds have been stopped")
            self._waiting.append(pending)
            self._ask_if_complete()
            while pending.answers is None and pending.error is None:
                self._changed.wait()
        if pending.error is not None:
            raise pending.error
        assert pending.answers is not None
        return pending.answers

    def leave(self) -> None:
        """Record that one of the solvers has ended."""
        with self._changed:
            self._n_solvers -= 1
            self._ask_if_complete()

    def stop(self) -> None:
        """Make every solver fail when it asks again."""
        with self._changed:
            self._stopped = True
            for pending in self._waiting:
                pending.error = RuntimeError("these rounds have been stopped")
            self._waiting = []
            self._changed.notify_all()

    def sample(self, n_rows: int, seed: int) -> list[Part]:
        """A sample of about ``n_rows`` rows, in this process."""
        return self.backend.sample(n_rows, seed)

    def info(self) -> list[PartInfo]:
        """The sizes of the parts."""
        return self.backend.info()

    def close(self, fit: str | None = None) -> None:
        """Free the caches of the parts."""
        self.backend.close(fit)

    def _ask_if_complete(self) -> None:
        """Run the round of all solvers once all have asked, in the thread that asks last."""
        if not self._waiting or len(self._waiting) < self._n_solvers:
            return
        all_pending, self._waiting = self._waiting, []
        try:
            answers = iter(self.backend.round([job for pending in all_pending for job in pending.jobs]))
            for pending in all_pending:
                pending.answers = [next(answers) for _ in pending.jobs]
        except BaseException as error:
            for pending in all_pending:
                pending.error = error
        self._changed.notify_all()


def side_by_side(backend: Backend, solvers: Sequence[Callable[[Backend], Result]]) -> list[Result]:
    """The results of several solvers that share every round.

    Parameters
    ----------
    backend : Backend
        The backend of the rounds.
    solvers : sequence of callable
        Each is called with a backend to use, in a thread of its own.

    Returns
    -------
    list
        Their results. If one fails, its error is raised, and the others fail when they ask again.
    """
    if len(solvers) == 1:
        return [solvers[0](backend)]
    shared = SharedRounds(backend, len(solvers))

    def run(solver: Callable[[Backend], Result]) -> Result:
        try:
            return solver(shared)
        finally:
            shared.leave()

    with ThreadPoolExecutor(len(solvers)) as threads:
        try:
            return list(threads.map(run, solvers))
        except BaseException:  # such as Ctrl-C, which only this thread receives
            shared.stop()
            raise
