"""Minimization in epochs, passes over the data that update the variables: trace and stopping rule."""

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

import numpy as np

from ranksvm._util.verbosity import PASSING
from ranksvm.exceptions import DataError

__all__ = ["EpochHistory", "EpochObjective", "EpochResult", "EpochStatus", "minimize_in_epochs"]

logger = logging.getLogger("ranksvm.solvers")

# A relative change of the objective below this is round-off.
ROUND_OFF = 1e-14


class EpochObjective(Protocol):
    """The objective that is minimized; it holds the current variables."""

    @property
    def value(self) -> float:
        """The objective."""

    @property
    def scale(self) -> float:
        """The scale to which changes of the objective are compared."""

    def epoch(self) -> Iterator[float]:
        """One pass over the data, part by part; each part yields its share of the squared projected gradient."""

    def remaining_decrease(self) -> float:
        """Decrease of the objective by one pass with exact line searches from here: 0 at stationary points only.

        The variables stay as they are. If epochs themselves have exact line searches, the result may be 0 at any point,
        because the last epoch has shown the decrease.
        """

    def refresh(self) -> None:
        """Remove accumulated round-off."""


class EpochStatus(Enum):
    """Why the epochs ended; the value is a sentence for the user."""

    CONVERGED = "Converged: an epoch, with exact line searches, changed the objective by no more than tol allows."
    MAX_EPOCHS = (
        "Stopped at max_epochs while an epoch, with exact line searches, could still change the objective by more than "
        "tol allows: raise max_epochs or tol, lower C, scale the features alike, or leave learning_rate at 'auto'."
    )
    STOPPED_EARLY = "Stopped early: no better value on the first evaluation set in early_stopping_rounds epochs."
    STOPPED_BY_CALLBACK = "Stopped by a callback of fit, which returned True."
    INTERRUPTED = "Interrupted: this is the model so far; fit again with warm_start=True to continue from it."


@dataclass
class EpochHistory:
    """Trace of a run: for each epoch, the objective after it and the projected gradient during it."""

    objective: list[float] = field(default_factory=list)
    projected_gradient: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, list[float]]:
        """The trace as plain lists by name."""
        return dict(vars(self))


@dataclass
class EpochResult:
    """Outcome of a run.

    Attributes
    ----------
    status : EpochStatus
        Why it stopped.
    history : EpochHistory
        Trace.
    """

    status: EpochStatus
    history: EpochHistory

    @property
    def n_epochs(self) -> int:
        """Number of complete epochs."""
        return len(self.history.objective)


def minimize_in_epochs(
    objective: EpochObjective,
    *,
    tol: float,
    max_epochs: int,
    interrupted: threading.Event | None = None,
    after_epoch: Callable[[], bool] = lambda: False,
) -> EpochResult:
    """Run epochs until neither one of them nor exact line searches change the objective by more than ``tol`` allows.

    A small change alone proves nothing: short steps change little anywhere.

    Parameters
    ----------
    objective : EpochObjective
        The problem; it keeps the final variables.
    tol : float
        Stop when the change of the objective in an epoch, and its remaining decrease, are at most this times its scale.
    max_epochs : int
        Largest number of epochs.
    interrupted : threading.Event, optional
        Stops the run at the next part of an epoch when set.
    after_epoch : callable
        Called after each epoch; stops the run if it returns True.

    Returns
    -------
    EpochResult
        Why it stopped, and the trace.

    Raises
    ------
    DataError
        When the objective overflows.
    """
    history = EpochHistory()
    status = EpochStatus.MAX_EPOCHS
    before = _finite(objective.value)
    for number in range(1, max_epochs + 1):
        squared = 0.0
        for part in objective.epoch():
            squared += part
            if interrupted is not None and interrupted.is_set():
                objective.refresh()
                return EpochResult(EpochStatus.INTERRUPTED, history)
        value = _finite(objective.value)
        history.objective.append(value)
        history.projected_gradient.append(float(np.sqrt(squared)))
        logger.info("epoch %d: objective %.9g, projected gradient %.2e", number, value, np.sqrt(squared), extra=PASSING)
        if after_epoch():
            status = EpochStatus.STOPPED_EARLY
            break
        allowed = max(tol * objective.scale, ROUND_OFF * abs(value))
        if abs(before - value) <= allowed and objective.remaining_decrease() <= allowed:
            status = EpochStatus.CONVERGED
            break
        before = value
    objective.refresh()
    return EpochResult(status, history)


def _finite(value: float) -> float:
    if not np.isfinite(value):
        raise DataError(
            f"The objective overflows float64 ({value:g}): features, C or a fixed learning_rate are too large. "
            "Scale them down."
        )
    return value
