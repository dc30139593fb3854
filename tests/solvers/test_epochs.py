"""Minimizing in epochs: when it stops, and what it leaves."""

import threading

import numpy as np
import pytest

from ranksvm.exceptions import DataError
from ranksvm.solvers import EpochStatus, minimize_in_epochs


class Halving:
    """``-1 + 2^-n`` after n epochs of two parts each."""

    def __init__(self):
        self.value = 0.0
        self.scale = 4.0
        self.refreshed = 0
        self.parts = 0
        self.left = 0.0

    def remaining_decrease(self):
        return self.left

    def epoch(self):
        for _ in range(2):
            self.parts += 1
            yield 8.0
        self.value = 0.5 * (self.value - 1.0)

    def refresh(self):
        self.refreshed += 1


def test_it_converges():
    objective = Halving()
    result = minimize_in_epochs(objective, tol=2.5e-4, max_epochs=100)  # of 4
    assert result.status is EpochStatus.CONVERGED
    assert result.n_epochs == 10
    assert result.history.as_dict() == {
        "objective": [-1.0 + 0.5**n for n in range(1, 11)],
        "projected_gradient": [4.0] * 10,
    }
    assert objective.refreshed == 1


def test_short_steps_are_no_convergence():
    objective = Halving()
    objective.left = 2e-3
    assert minimize_in_epochs(objective, tol=2.5e-4, max_epochs=100).status is EpochStatus.MAX_EPOCHS
    objective = Halving()
    objective.left = 1e-3
    assert minimize_in_epochs(objective, tol=2.5e-4, max_epochs=100).status is EpochStatus.CONVERGED


def test_round_off_is_no_change():
    objective = Halving()
    objective.scale = 0.0
    result = minimize_in_epochs(objective, tol=1e-3, max_epochs=100)
    assert result.status is EpochStatus.CONVERGED
    assert result.n_epochs == 47  # 2^-47 < 1e-14


def test_it_stops_at_max_epochs():
    result = minimize_in_epochs(Halving(), tol=2.5e-4, max_epochs=9)
    assert result.status is EpochStatus.MAX_EPOCHS
    assert result.n_epochs == 9


def test_it_stops_early():
    calls = []
    result = minimize_in_epochs(
        Halving(), tol=2.5e-4, max_epochs=9, after_epoch=lambda: calls.append(0) or len(calls) == 4
    )
    assert result.status is EpochStatus.STOPPED_EARLY
    assert result.n_epochs == 4


def test_it_is_interrupted_between_two_parts():
    event, objective = threading.Event(), Halving()
    objective.refresh = lambda: setattr(objective, "refreshed", objective.parts)
    result = minimize_in_epochs(
        objective, tol=1e-3, max_epochs=9, interrupted=event, after_epoch=lambda: objective.parts == 4 and event.set()
    )
    assert result.status is EpochStatus.INTERRUPTED
    assert result.n_epochs == 2
    assert objective.refreshed == 5


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_overflow(value):
    objective = Halving()
    objective.value = value
    with pytest.raises(DataError, match="overflows float64"):
        minimize_in_epochs(objective, tol=1e-3, max_epochs=9)
