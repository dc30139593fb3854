"""Fits in rounds: the trace over evaluation sets, when to stop, and the model that is kept."""

import numpy as np
import pytest

from ranksvm.estimators.base.evaluation_rounds import EvaluationRounds
from ranksvm.fits.evaluation import EvaluationSet, EvaluationSets
from ranksvm.metrics import parse_metric

# Each feature ranks the three documents: all pairs wrong, one of three right, all right.
SET = EvaluationSet(np.array([[0, 0, 2.0], [1, 2, 1], [2, 1, 0]]), np.array([2.0, 1.0, 0.0]), np.zeros(3, dtype=int))
VALUES = [0.0, 1 / 3, 1.0]
METRIC = "pairwise_accuracy"


def run(values, patience, sets=(SET, SET)):
    given = EvaluationSets([f"valid_{place}" for place in range(len(sets))], list(sets), [parse_metric(METRIC)])
    rounds = EvaluationRounds(None, given, (), len(values), patience)
    stops = [
        rounds.record(lambda X, value=value: X[:, value], lambda number=number: number)
        for number, value in enumerate(values)
    ]
    return rounds, stops


def test_every_round_is_logged_with_its_value_on_each_set(caplog):
    with caplog.at_level("INFO", logger="ranksvm"):
        run([2, 1], None)
    assert caplog.messages == [
        "epoch 1: valid_0 pairwise_accuracy 1.0000, valid_1 pairwise_accuracy 1.0000",
        "epoch 2: valid_0 pairwise_accuracy 0.3333, valid_1 pairwise_accuracy 0.3333",
    ]


@pytest.mark.parametrize(
    ("values", "patience", "stops", "best"),
    [
        ([0, 1, 1, 1], 2, [False, False, False, True], 2),
        ([2, 1, 2], 1, [False, True, True], 1),  # as good is no better
        ([0, 0, 2, 1, 1, 1], 3, [False] * 5 + [True], 3),
        ([0, 1, 2], 5, [False] * 3, 3),
    ],
)
def test_early_stopping(values, patience, stops, best):
    rounds, found = run(values, patience)
    assert found == stops
    assert rounds.best_model == best - 1
    trace = [pytest.approx(VALUES[value]) for value in values]
    assert rounds.evals_result == {"valid_0": {METRIC: trace}, "valid_1": {METRIC: trace}}
    assert rounds.best_round == best
    assert rounds.best_score == trace[best - 1]


def test_without_patience_only_the_trace_is_kept():
    rounds, stops = run([2, 0, 1], None)
    assert stops == [False] * 3
    assert rounds.evals_result["valid_0"] == {METRIC: [1.0, 0.0, pytest.approx(1 / 3)]}
    assert rounds.best_model is rounds.best_round is rounds.best_score is None


def test_without_sets_nothing_is_evaluated():
    rounds, stops = run([2, 1], None, sets=())
    assert stops == [False] * 2
    assert rounds.evals_result == {}
