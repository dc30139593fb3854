"""Check properties of data terms of every backend against computations with listed pairs.

A factory makes a term from a design, a loss and pairs: ``make(X, spec, pairs) -> DataTerm``. `check_all` runs every
property over data with ties, queries without pairs, weights and both storages.
"""

import numpy as np
import pytest
import scipy.sparse as sp

from oracle import ExplicitPairs, LogisticFunction
from ranksvm.data import ComparablePairs, PairList, Queries, partition
from ranksvm.losses import LossSpec
from ranksvm.terms.parts.part import Part
from sweep_checks import SquaredHingeFunction

# name -> the loss, and the width at which it and the oracle are evaluated
LOSSES = {
    "squared_hinge": (LossSpec("squared_hinge"), None),
    "huber": (LossSpec("huber", 0.4), 0.4),
    "hinge": (LossSpec("hinge"), 0.3),
    "logistic": (LossSpec("logistic"), None),
    "function": (LossSpec("custom", function=SquaredHingeFunction()), None),
}
# the functions that the oracle needs for losses that are neither a squared nor a Huberized hinge
FUNCTIONS = {"logistic": LogisticFunction()}
STORAGES = {"dense": np.ascontiguousarray, "csr": sp.csr_array}


class TermProblem:
    """A loss over the pairs of some data, and the oracle for it."""

    def __init__(self, loss="squared_hinge", storage="dense", seed=0, n=90, listed=False, **weights):
        rng = np.random.default_rng(seed)
        self.rng = rng
        X = rng.normal(size=(n, 6)) * (rng.random((n, 6)) < 0.6)
        # the data have ties, a query without pairs, and a query with a single document
        y = rng.integers(0, 4, n).astype(float)
        qid = rng.permutation(np.append(np.repeat(np.arange(9), (n - 1) // 9 + 1)[: n - 1], 99))
        y[qid == 3] = 1.0
        self.spec, self.width = LOSSES[loss]
        queries = Queries.from_qid(qid, n)
        if weights.get("sample_weight"):
            weights["sample_weight"] = rng.integers(0, 3, n).astype(float)
        if listed:
            number = np.argwhere((qid[:, None] == qid) & ~np.eye(n, dtype=bool))
            chosen = number[rng.permutation(len(number))[: 2 * n]]
            self.pairs = PairList.from_pairs(queries, chosen, **weights)
            weights["pairs"] = chosen
        else:
            self.pairs = ComparablePairs.from_labels(queries, y, **weights)
        self.X = STORAGES[storage](X)
        self.oracle = ExplicitPairs(y, qid, X, width=self.width, function=FUNCTIONS.get(loss), **weights)

    def points(self, n=3):
        """Weights at which some margins are below 1 and some above, and steps from there."""
        return [scale * self.rng.normal(size=(2, 6)) for scale in np.geomspace(0.1, 2.0, n)]


def parts_of(X, pairs, n_parts):
    """Divide data into parts of whole queries; each part has its own array of rows."""
    return [Part(X[part.rows], part.renumbered()) for part in partition(pairs, n_parts)]


def check_evaluation(term, problem):
    """Check sums and gradient at some weights, also if the evaluation starts from an earlier point."""
    oracle, near = problem.oracle, None
    for w, _ in problem.points():
        near = term.evaluate(w, problem.width, near)
        scores = oracle.X @ w
        assert near.sums.value == pytest.approx(oracle.loss(scores), rel=1e-11)
        if problem.spec.smoothed:
            assert near.sums.excess == pytest.approx(oracle.excess(scores), rel=1e-9)
            assert near.sums.slack == pytest.approx(oracle.slack(scores), rel=1e-9)
        else:
            assert (near.sums.excess, near.sums.slack) == (0.0, 0.0)
        gradient = np.asarray(near.gradient)
        assert (gradient.dtype, gradient.shape) == (np.float64, (term.n_variables,))
        np.testing.assert_allclose(gradient, oracle.X.T @ oracle.loss_gradient(scores), rtol=1e-9, atol=1e-9)


def check_segments(term, problem):
    """Check values and slopes at several positions along a step, and the point at one of them."""
    oracle = problem.oracle
    for w, step in problem.points():
        a, b = term.evaluate(w, problem.width), term.evaluate(w + step, problem.width)
        alphas = np.array([0.0, 0.2, 0.5, 1.0])
        values, slopes = term.along(a, b, alphas, problem.width)
        for alpha, value, slope in zip(alphas, values, slopes, strict=True):
            scores = oracle.X @ (w + alpha * step)
            assert value == pytest.approx(oracle.loss(scores), rel=1e-11)
            assert slope == pytest.approx(oracle.loss_gradient(scores) @ oracle.X @ step, rel=1e-8, abs=1e-8)
        one = term.along(a, b, alphas[2:3], problem.width)
        assert (one[0].shape, one[1].shape) == ((1,), (1,))
        assert one[0] == pytest.approx(values[2], rel=1e-12)
        between = term.between(a, b, 0.2, problem.width)
        scores = oracle.X @ (w + 0.2 * step)
        assert between.sums.value == pytest.approx(oracle.loss(scores), rel=1e-11)
        np.testing.assert_allclose(between.gradient, oracle.X.T @ oracle.loss_gradient(scores), rtol=1e-8, atol=1e-8)
        check_products(term, problem, between, scores)


def check_products(term, problem, at, scores):
    """Check products with the curvature matrix, the matrix itself and its diagonal."""
    H = problem.oracle.X.T @ problem.oracle.loss_hessian(scores) @ problem.oracle.X
    v = problem.rng.normal(size=term.n_variables)
    np.testing.assert_allclose(term.curvature_product(at, v), H @ v, rtol=1e-8, atol=1e-8)
    single = term.curvature_product(at, v, double=False)
    np.testing.assert_allclose(single, H @ v, rtol=1e-4, atol=1e-5 * np.abs(H).sum() * np.abs(v).max())
    np.testing.assert_allclose(term.curvature(at, 1.0, 0), H, rtol=1e-8, atol=1e-8)
    expected = np.diagonal(H)
    if not term.dense:
        degrees = np.diagonal(problem.oracle.loss_hessian(scores))
        expected = (problem.oracle.X**2).T @ degrees
    np.testing.assert_allclose(term.curvature_diagonal(at), expected, rtol=1e-8, atol=1e-8)


def check_another_width(term, problem):
    """Check that a point keeps the curvature for the width at which it was evaluated, whatever was evaluated later."""
    if problem.width is None:
        return
    w, _ = problem.points(1)[0]
    oracle = problem.oracle
    wide = term.evaluate(w, problem.width)
    narrow = term.between(wide, wide, 0.0, 0.5 * problem.width)
    v = problem.rng.normal(size=term.n_variables)
    scores = oracle.X @ w
    for at, width in ((wide, problem.width), (narrow, 0.5 * problem.width)):
        oracle.width = width
        assert at.sums.value == pytest.approx(oracle.loss(scores), rel=1e-11)
        H = oracle.X.T @ oracle.loss_hessian(scores) @ oracle.X
        np.testing.assert_allclose(term.curvature_product(at, v), H @ v, rtol=1e-8, atol=1e-8)
    oracle.width = problem.width


def check_sample(term, problem):
    """Check that a sample is a term over part of the rows, and that the estimated curvature is about the exact one."""
    sample = term.sample(max(1, term.n_rows // 3), 0)
    assert 0 < sample.n_rows < term.n_rows
    assert sample.weight > 0.0
    w, _ = problem.points(1)[0]
    found = sample.evaluate(w, problem.width)
    again = term.sample(max(1, term.n_rows // 3), 0).evaluate(w, problem.width)
    assert found.sums.value == again.sums.value > 0.0
    at = term.evaluate(np.zeros(6), problem.width)  # margins are 0, so that every pair is active, or none
    estimate, exact = term.curvature(at, 0.3, 0), term.curvature(at, 1.0, 0)
    np.testing.assert_array_equal(estimate, term.curvature(at, 0.3, 0))
    np.testing.assert_allclose(estimate, estimate.T, atol=1e-9)
    assert np.linalg.eigvalsh(estimate).min() > -1e-8
    assert 0.1 * np.trace(exact) <= np.trace(estimate) <= 10.0 * np.trace(exact)


def check_differences(term, problem):
    """Check that each row is the difference of two documents of a query with pairs; the process may have no rows."""
    found = term.differences(40)
    if found is None:
        return
    assert (found.shape, found.dtype) == ((40, 6), np.float64)
    np.testing.assert_array_equal(found, term.differences(40))
    qid, X = problem.oracle.qid, problem.oracle.X
    first, second = np.nonzero((qid[:, None] == qid) & ~np.eye(len(qid), dtype=bool))
    of_query = qid[first]
    queries = set()
    for difference in found:
        where = np.isclose(X[first] - X[second], difference, rtol=1e-12, atol=1e-12).all(axis=1)
        assert where.any()
        queries |= set(of_query[where])
    assert 3 not in queries or problem.pairs.weight_per_query.min() > 0.0  # query 3 has pairs only if they are listed
    assert len(queries) >= 5


def check_memory(term, problem):
    """Check that reusing the memory of a released evaluation changes no evaluation that is kept."""
    (w, step), (w2, _) = problem.points(2)
    kept, other = term.evaluate(w, problem.width), term.evaluate(w2, problem.width)
    value, gradient = kept.sums.value, kept.gradient.copy()
    term.release(other)
    term.evaluate(w + step, problem.width)
    assert kept.sums.value == value
    np.testing.assert_array_equal(kept.gradient, gradient)
    np.testing.assert_allclose(term.evaluate(w, problem.width).gradient, gradient, rtol=1e-10, atol=1e-10)


def check_description(term, problem):
    """Check the attributes of a term."""
    assert term.n_variables == 6
    assert term.weight == pytest.approx(problem.oracle.weight.sum(), rel=1e-12)
    assert term.n_rows == problem.pairs.n_rows
    assert term.dense == isinstance(problem.X, np.ndarray)
    assert term.row_bytes > 0.0
    assert term.positions_at_once >= 1
    H = problem.oracle.X.T @ problem.oracle.loss_hessian(np.zeros(len(problem.oracle.qid))) @ problem.oracle.X
    assert np.linalg.matrix_rank(H) <= term.curvature_rank


CHECKS = (
    check_description,
    check_evaluation,
    check_segments,
    check_another_width,
    check_sample,
    check_differences,
    check_memory,
)
PROBLEMS = {
    "plain": {},
    "csr": {"storage": "csr"},
    "weights": {"sample_weight": True, "weighting": "per_query"},
    "gains": {"weighting": "gain_gap", "sample_weight": True},
    "adjacent csr": {"storage": "csr", "selection": "adjacent"},
    "listed": {"listed": True},
}


def check_all(make, loss, kind, check):
    """Run one check on a term that a factory makes."""
    problem = TermProblem(loss, **PROBLEMS[kind])
    check(make(problem.X, problem.spec, problem.pairs), problem)
