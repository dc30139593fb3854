"""Block coordinate ascent on the dual, for data with far fewer rows than features."""

import threading
from typing import Any, TypeVar

import numpy as np

from ranksvm.solvers.monitor import History, Monitor, SolverResult, Status, relative_gap
from ranksvm.solvers.protocol import DualObjective

__all__ = ["dual_ascent"]

D = TypeVar("D")

# An iteration takes one epoch plus EPOCH_SHARE times the number of epochs so far, but at most EPOCHS, because its
# certificate costs half an epoch.
EPOCH_SHARE = 0.1
EPOCHS = 20
# After this part of ``max_epochs``, the method stops once it is not expected to meet ``tol``: if the gap falls as fast
# as in the second half of the epochs so far, it does not reach ``tol`` in the epochs that are left. (Earlier, this
# cannot be judged: in a problem that took 205 of 501 epochs, the relative gap was 1 after 56, 0.7 after 84, and 0.06
# after 126.)
FORECAST = 0.25


def dual_ascent(
    objective: DualObjective[D],
    start: D,
    *,
    tol: float = 1e-4,
    max_iter: int = 1000,
    max_epochs: float = float("inf"),
    interrupted: threading.Event | None = None,
    label: str | None = "",
) -> SolverResult:
    """Maximize a dual by visiting its blocks of variables in a random order, each block nearly maximized in a visit.

    An iteration is one epoch (a visit to every block) or several, and ends with the certificate. In the history,
    ``evaluations`` counts the epochs.

    The method is from Hsieh, Chang, Lin, Keerthi & Sundararajan, "A dual coordinate descent method for large-scale
    linear SVM", ICML 2008; here a block is the pairs of a query.

    Parameters
    ----------
    objective : DualObjective
        The problem.
    start : object
        An evaluated point of the problem, changed in place.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Largest number of iterations.
    max_epochs : float
        No iteration begins after this number of epochs. The method stops earlier if it is not expected to meet ``tol``
        by then.
    interrupted : threading.Event, optional
        Stops the run at the next certificate when set.
    label : str or None
        Prefix of the log lines; None: no log lines.

    Returns
    -------
    SolverResult
        The last point, its certificate and the reason for stopping.
    """
    monitor: Monitor[Any] = Monitor(objective, tol, max_iter, interrupted, label, descends=False)  # type: ignore[arg-type]  # no steps
    point = start
    while (status := monitor.record(point)) is None:
        if monitor.n_evaluations >= max_epochs or _too_slow(monitor.history, tol, max_epochs):
            status = Status.MAX_ITERATIONS
            break
        epochs = min(EPOCHS, 1 + int(EPOCH_SHARE * monitor.n_evaluations))
        objective.ascend(point, epochs)
        monitor.n_evaluations += epochs
    return monitor.result(point, status)


def _too_slow(history: History, tol: float, max_epochs: float) -> bool:
    """Whether ``tol`` is not expected to be met within ``max_epochs``."""
    epochs = np.array(history.evaluations)
    if epochs[-1] < FORECAST * max_epochs:
        return False
    earlier = int(np.searchsorted(epochs, epochs[-1] / 2, side="right")) - 1
    now, before = (relative_gap(history.duality_gap[place], history.objective[place]) for place in (-1, earlier))
    if now <= tol:  # only round-off is in the way
        return False
    if before <= now:
        return True
    log_reduction = np.log(before / now) * (max_epochs - epochs[-1]) / (epochs[-1] - epochs[earlier])
    return bool(log_reduction < np.log(now / tol))
