"""The published solver that fits are measured against solves the problem it is meant to."""

import csv
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import _published_tron as published
from oracle import ExplicitPairs
from ranksvm import RankingData, RankSVM, make_ranking, read_letor, write_letor

pytestmark = pytest.mark.skipif(
    published.compiler() is None or sys.platform == "win32", reason="no C++ compiler for a POSIX library"
)


@settings(deadline=None)  # the first example compiles
@given(seed=st.integers(0, 999), n_levels=st.integers(1, 9))
def test_value_is_that_of_explicit_pairs(seed, n_levels):
    rng = np.random.default_rng(seed)
    qid = rng.integers(0, 4, size=40)
    y, X = rng.integers(0, n_levels, size=40) / 2.0, rng.integers(-2, 3, size=(40, 3)).astype(np.float64)
    w = rng.standard_normal(3)
    expected = ExplicitPairs(y, qid, X).value(w, 0.7)
    assert published.PublishedProblem(RankingData(X, y, qid)).value(0.7, w) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n_levels", [2, 5, None])
@pytest.mark.parametrize("C", [1e-3, 1.0, 128.0])
def test_finds_the_optimum_of_explicit_pairs(n_levels, C):
    data = make_ranking(12, (1, 30), 6, n_levels=n_levels, dtype=np.float64, random_state=0)
    data = data.select(np.random.default_rng(0).permutation(data.n_rows))
    oracle = ExplicitPairs(data.y, data.qid, data.X)
    fit = published.PublishedProblem(data).fit(C, eps=1e-9)
    optimum = oracle.value(oracle.solve(C), C)
    assert oracle.value(fit.coef, C) == pytest.approx(optimum, rel=1e-12)
    assert fit.values[-1] == pytest.approx(optimum, rel=1e-12)
    assert np.all(np.diff(fit.values) <= 0)
    assert np.linalg.norm(oracle.gradient(fit.coef, C)) == pytest.approx(
        fit.gradients[-1] * np.linalg.norm(oracle.gradient(np.zeros(6), C)), abs=1e-8 * C
    )


def test_stops_as_it_is_told():
    data = make_ranking(12, 30, 6, random_state=0)
    problem = published.PublishedProblem(data)
    full, loose, short = problem.fit(1.0, 1e-9), problem.fit(1.0, 1e-3), problem.fit(1.0, 1e-9, max_iter=2)
    assert np.flatnonzero(full.gradients <= 1e-3)[0] == loose.n_iter < full.n_iter
    assert short.n_iter == 2
    assert np.array_equal(short.values, full.values[:3])


@pytest.mark.parametrize("C", [1e-3, 1.0, 128.0])
def test_stopping_by_the_gradient_gives_its_models(C):
    """Ours, TRON as published, takes the same steps up to round-off."""
    data = make_ranking(12, 30, 6, dtype=np.float64, random_state=0)
    expected = published.PublishedProblem(data).fit(C, 1e-3)
    ours = RankSVM(C, solver="tron", stopping="gradient", tol=1e-3).fit(data.X, data.y, qid=data.qid)
    assert ours.n_iter_ == expected.n_iter
    assert ours.history_["hessian_products"][-1] == expected.n_products
    np.testing.assert_allclose(ours.history_["objective"], expected.values, rtol=1e-6)
    np.testing.assert_allclose(ours.coef_, expected.coef, rtol=1e-3)


def test_program_does_the_same_from_text(tmp_path):
    data = make_ranking(12, 30, 6, density=0.5, random_state=0)
    write_letor(tmp_path / "train.txt", data.X, data.y, qid=data.qid)
    data = read_letor(tmp_path / "train.txt")
    command = [str(published.program()), "0.5", "1e-6", str(tmp_path / "train.txt"), str(tmp_path / "model")]
    subprocess.run(command, check=True)
    expected = published.PublishedProblem(RankingData(data.X.astype(np.float64), data.y, data.qid)).fit(0.5, 1e-6)
    np.testing.assert_allclose(np.loadtxt(tmp_path / "model"), expected.coef, rtol=1e-5)


@pytest.mark.parametrize("name", ["MQ2008", "OHSUMED", "LightGBM-rank"])
def test_reference_optima(name, shared_data):
    with open(shared_data.parent / "reference" / "linear_l2_optima.csv", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["dataset"] == name]
    data = read_letor(shared_data / name / "Fold1" / "train.txt.gz", docids=False)
    problem = published.PublishedProblem(data)
    for row in rows:
        base, exponent = row["C"].split("^")
        C = float(base) ** int(exponent)
        fit = problem.fit(C, eps=1e-6)
        assert fit.values[-1] == pytest.approx(float(row["optimal_objective"]), rel=1e-7)
