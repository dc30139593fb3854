"""Coordinate ascent on the dual: when it stops because it is too slow."""

import math

import numpy as np
import pytest

from ranksvm.solvers import Status, dual_ascent


class Falling:
    """A dual whose relative gap is a function of the number of epochs."""

    reserve = 0.0

    def __init__(self, gap):
        self.gap, self.epochs = gap, 0

    def ascend(self, point, epochs):
        self.epochs += epochs

    def certificate(self, point):
        return 2.0 - 1.0 / (1.0 + self.epochs), self.gap(self.epochs)

    def round_off(self, point, tol):
        return 0.0

    def refresh(self, point, visit_pairs=False):
        return False


class Point:
    w = np.ones(1)
    value = gap = 1.0


@pytest.mark.parametrize("n_epochs", [70, 150, 249])
def test_it_goes_on_if_the_gap_falls_fast_enough(n_epochs):
    result = dual_ascent(Falling(lambda epochs: 1e-4 ** (epochs / n_epochs)), Point(), max_epochs=250)
    assert result.status is Status.CONVERGED


@pytest.mark.parametrize("gap", [lambda epochs: 1.0, lambda epochs: 1e-4 ** (epochs / 1000)])
def test_it_stops_early_if_the_gap_falls_too_slowly(gap):
    result = dual_ascent(Falling(gap), Point(), max_epochs=250)
    assert result.status is Status.MAX_ITERATIONS
    assert 62.5 <= result.history.evaluations[-1] < 85


def test_it_goes_on_if_the_gap_falls_faster_and_faster():
    def gap(epochs):
        return 1.0 / (1.0 + math.exp(0.1 * (epochs - 90)))

    assert dual_ascent(Falling(gap), Point(), max_epochs=500).status is Status.CONVERGED


def test_it_goes_on_at_a_gap_of_0_if_only_round_off_is_in_the_way():
    dual = Falling(lambda epochs: 1.0 if epochs < 10 else 0.0)
    dual.round_off = lambda point, tol: 0.5**dual.epochs
    result = dual_ascent(dual, Point(), max_epochs=40)
    assert result.status is Status.CONVERGED
    assert result.history.evaluations[-1] > 10


@pytest.mark.parametrize("max_epochs", [0, 1, 2, 5])
def test_it_stops_after_few_epochs(max_epochs):
    result = dual_ascent(Falling(lambda epochs: 1.0), Point(), max_epochs=max_epochs)
    assert result.status is Status.MAX_ITERATIONS
    assert result.history.evaluations[-1] <= max_epochs


def test_without_a_limit_it_does_not_stop_early():
    result = dual_ascent(Falling(lambda epochs: 1e-4 ** (epochs / 3000)), Point())
    assert result.status is Status.CONVERGED
