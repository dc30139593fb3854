"""The cutting planes that RankSVM is compared with solve the problem they are meant to."""

import csv

import numpy as np
import pytest
from hypothesis import given, strategies as st

import _cutting_planes as cutting_planes
from oracle import pairs_of
from ranksvm import make_ranking, read_letor


@given(seed=st.integers(0, 999), n_levels=st.integers(1, 5))
def test_value_and_subgradient_are_those_of_explicit_pairs(seed, n_levels):
    rng = np.random.default_rng(seed)
    qid = np.sort(rng.integers(0, 5, size=40))
    y, scores = rng.integers(0, n_levels, size=40) / 2.0, 1.5 * rng.standard_normal(40)
    upper, lower = pairs_of(y, qid)
    margin = scores[upper] - scores[lower]
    subgradient = np.zeros(40)
    np.subtract.at(subgradient, upper, margin < 1)
    np.add.at(subgradient, lower, margin < 1)
    value, found = cutting_planes.PairwiseHinge(y, qid)(scores)
    assert value == pytest.approx(np.maximum(0, 1 - margin).sum())
    assert np.array_equal(found, subgradient)


@pytest.mark.parametrize("line_search", [False, True])
@pytest.mark.parametrize("C", [1e-3, 1.0])
def test_bounds_close_in_on_the_optimum(line_search, C):
    data = make_ranking(12, 15, 6, dtype=np.float64, random_state=0)
    upper, lower = pairs_of(data.y, data.qid)
    solver = cutting_planes.CuttingPlanes(data.X, data.y, data.qid, C, line_search=line_search)
    w, trace = solver.solve(1e-9)
    margin = data.X[upper] @ w - data.X[lower] @ w
    assert 0.5 * w @ w + C * np.maximum(0, 1 - margin).sum() == pytest.approx(trace.objective[-1], rel=1e-12)
    assert np.all(np.diff(trace.objective) <= 0)
    assert max(trace.bound) <= trace.objective[-1]
    assert trace.objective[-1] - trace.bound[-1] <= 1e-9 * trace.objective[-1]


@pytest.mark.parametrize("line_search", [False, True])
def test_reference_optima(line_search, shared_data):
    with open(shared_data.parent / "reference" / "linear_l1_optima.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == "OHSUMED"]
    data = read_letor(shared_data / "OHSUMED" / "Fold1" / "train.txt.gz", docids=False)
    X = np.asarray(data.X, dtype=np.float64)
    for row in rows:
        base, exponent = row["C"].split("^")
        C = float(base) ** int(exponent)
        _, trace = cutting_planes.CuttingPlanes(X, data.y, data.qid, C, line_search=line_search).solve(1e-6)
        assert trace.objective[-1] == pytest.approx(float(row["primal_objective"]), rel=1e-6)
