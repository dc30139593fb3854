"""The squared hinge against every pair written out: what several test modules do."""

import numpy as np
import pytest

from oracle import ExplicitPairs, centred
from ranksvm.data import ComparablePairs, Queries
from ranksvm.losses import SquaredHinge, SweepState

DIRECT, TREE = 1 << 20, 0


def make_loss(y, qid, direct_limit=None, **weights):
    """The loss over the pairs, the form of the sweep chosen."""
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), np.asarray(y, dtype=float), **weights)
    if direct_limit is not None:
        parts = pairs.pointers, pairs.rows, pairs.levels, pairs.n_levels, pairs.preferred, pairs.other
        pairs = ComparablePairs(*parts, direct_limit=direct_limit)
    return SquaredHinge(pairs)


def evaluate(loss, scores, state=None):
    """Value, gradient and state; scores and gradient in the sorted order of the pairs."""
    state = state or SweepState(loss.pairs)
    gradient = np.empty(loss.pairs.n_rows)
    value = loss.evaluate(scores, state, 0, loss.pairs.n_queries, gradient)
    return value, gradient, state


def product(loss, state, v):
    out = np.empty(len(v))
    loss.curvature_product(state, 0, loss.pairs.n_queries, v, out)
    return out


def rows_form(loss, state, X):
    """X'HX from the rows that an explicit Hessian is built of."""
    Z = np.empty_like(X)
    loss.curvature_rows(state, 0, loss.pairs.n_queries, X, Z)
    return 0.5 * (X.T @ Z + Z.T @ X)


def check_against_pairs(y, qid, scores, direct_limit=None, **weights):
    """Value, gradient, Laplacian product, its diagonal and its rows; ``scores`` by row."""
    oracle = ExplicitPairs(y, qid, **weights)
    loss = make_loss(y, qid, direct_limit, **weights)
    order = loss.pairs.rows if loss.pairs.rows is not None else np.arange(len(y))
    assert loss.pairs.n_pairs == oracle.n_pairs
    assert loss.pairs.weight == pytest.approx(oracle.weight.sum(), rel=1e-12)
    value, gradient, state = evaluate(loss, np.ascontiguousarray(scores[order]))
    # round-off: of sums over a query of weights times scores times their distance from the middle
    size = 1.0 + np.abs(centred(scores, qid)).max()
    eps = 2e-15 * len(y)
    bound = eps * (1.0 + oracle.weight.sum())
    assert value == pytest.approx(oracle.loss(scores), rel=1e-12, abs=bound * size**2)
    np.testing.assert_allclose(gradient, oracle.loss_gradient(scores)[order], rtol=1e-12, atol=bound * size)
    L = oracle.laplacian(scores)[np.ix_(order, order)]
    rng = np.random.default_rng(0)
    v = rng.normal(size=len(y))
    np.testing.assert_allclose(product(loss, state, v), 2.0 * L @ v, rtol=1e-12, atol=10 * bound)
    np.testing.assert_allclose(loss.curvature_diagonal(state, 0, len(y)), 2.0 * np.diagonal(L), atol=10 * bound)
    X = rng.normal(size=(len(y), 3))
    np.testing.assert_allclose(rows_form(loss, state, X), 2.0 * X.T @ L @ X, rtol=1e-11, atol=100 * bound)
