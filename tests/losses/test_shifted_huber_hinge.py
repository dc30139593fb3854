"""The shifted Huberized hinge against every pair written out, and against the dual problem that it stands for."""

import numpy as np
import pytest
import scipy.optimize

from ranksvm import Queries
from ranksvm.data import ComparablePairs, PairBlocks
from ranksvm.losses import ShiftedHuberHinge
from sweep_checks import AtWidth, evaluate, product, rows_form

C, LAM = 0.7, 0.4


def make_loss(seed=0, n_levels=3, n=30, n_queries=3):
    rng = np.random.default_rng(seed)
    y, qid = rng.integers(0, n_levels, n), rng.integers(0, n_queries, n)
    y[:2], qid[:2] = (0, 1), 0
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, n), y.astype(float))
    blocks = PairBlocks(pairs)
    return AtWidth(ShiftedHuberHinge(pairs, blocks, C, LAM, rng.normal(size=blocks.n_entries))), rng


def explicit(loss):
    """Positions of the documents of each pair, and its target."""
    found = []
    for query in range(loss.blocks.n_queries):
        preferred, other = loss.blocks.documents(query)
        r, c = np.nonzero(loss.blocks.is_pair(query))
        found.append((preferred[r], other[c], loss.blocks.block(loss.target, query)[r, c]))
    return tuple(np.concatenate(part) for part in zip(*found, strict=True))


def pair_losses(loss, scores):
    """Value, minus the derivative and the second derivative of the loss of each pair, by the margin."""
    i, j, target = explicit(loss)
    h, d = 1.0 - (scores[i] - scores[j]) + 2.0 * LAM * target, 2.0 * LAM * C
    value = np.where(h <= 0.0, 0.0, np.where(h <= d, h**2 / (2 * d), h - d / 2))
    return i, j, value, np.clip(h / d, 0.0, 1.0), ((h > 0.0) & (h < d)) / d


@pytest.mark.parametrize("n_levels", [2, 3, 5, 100])
@pytest.mark.parametrize("size", [0.0, 0.5, 5.0])
def test_against_explicit_pairs(n_levels, size):
    loss, rng = make_loss(n_levels, n_levels)
    scores = size * rng.normal(size=loss.pairs.n_rows)
    i, j, values, pull, bend = pair_losses(loss, scores)
    value, gradient, state = evaluate(loss, scores)
    n = len(scores)
    assert value == pytest.approx(values.sum())
    np.testing.assert_allclose(gradient, np.bincount(j, pull, n) - np.bincount(i, pull, n), atol=1e-12)
    E = np.eye(n)[i] - np.eye(n)[j]
    H = (E.T * bend) @ E
    v = rng.normal(size=n)
    np.testing.assert_allclose(product(loss, state, v), H @ v, atol=1e-10)
    np.testing.assert_allclose(loss.curvature_diagonal(state, 0, n), np.diagonal(H), atol=1e-10)
    X = rng.normal(size=(n, 4))
    np.testing.assert_allclose(rows_form(loss, state, X), X.T @ H @ X, atol=1e-9)
    alpha = np.concatenate(
        [loss.alpha(scores, query)[loss.blocks.is_pair(query)] for query in range(loss.blocks.n_queries)]
    )
    np.testing.assert_allclose(alpha, C * pull, atol=1e-12)


@pytest.mark.parametrize("n_levels", [2, 100])
def test_gradient_against_finite_differences(n_levels):
    loss, rng = make_loss(7, n_levels)
    scores, step = rng.normal(size=loss.pairs.n_rows), 1e-6
    _, gradient, _ = evaluate(loss, scores)
    for document, unit in enumerate(step * np.eye(len(scores))):
        slope = (evaluate(loss, scores + unit)[0] - evaluate(loss, scores - unit)[0]) / (2.0 * step)
        assert gradient[document] == pytest.approx(slope, rel=1e-4, abs=1e-4)


def test_queries_by_ranges():
    loss, rng = make_loss(5, n=60, n_queries=7)
    scores, pointers = rng.normal(size=60), loss.pairs.pointers
    value, gradient, _ = evaluate(loss, scores)
    state, total, parts = loss.new_state(), 0.0, np.empty(60)
    for first, last in ((0, 2), (2, 3), (3, 7)):
        part = parts[pointers[first] : pointers[last]]
        total += loss.evaluate(scores, state, first, last, part).value
    assert total == pytest.approx(value)
    np.testing.assert_array_equal(parts, gradient)


def test_entries_beside_the_pairs_have_no_alpha():
    loss, rng = make_loss(1, n_levels=4)
    loss.target[:] = 100.0
    for query in range(loss.blocks.n_queries):
        alpha = loss.alpha(rng.normal(size=loss.pairs.n_rows), query)
        np.testing.assert_array_equal(alpha > 0.0, loss.blocks.is_pair(query))


def test_it_is_the_dual_of_the_coupled_problem():
    """min 1/2 |Z'alpha|^2 - sum alpha + lam |alpha - A|^2 over the box is lam |A|^2 less the minimum in w."""
    loss, rng = make_loss(2, n=12, n_queries=2)
    X = rng.normal(size=(12, 3))
    i, j, target = explicit(loss)
    Z = X[i] - X[j]

    def dual(alpha):
        w, rest = Z.T @ alpha, alpha - target
        return 0.5 * w @ w - alpha.sum() + LAM * rest @ rest, Z @ w - 1.0 + 2.0 * LAM * rest

    def primal(w):
        value, gradient, _ = evaluate(loss, X @ w)
        return 0.5 * w @ w + C * value, w + C * X.T @ gradient

    options = {"jac": True, "method": "L-BFGS-B", "options": {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 10_000}}
    lower = scipy.optimize.minimize(primal, np.zeros(3), **options)
    upper = scipy.optimize.minimize(dual, np.full(len(i), 0.5 * C), bounds=[(0.0, C)] * len(i), **options)
    assert upper.fun == pytest.approx(LAM * target @ target - lower.fun, rel=1e-8)
    np.testing.assert_allclose(Z.T @ upper.x, lower.x, atol=1e-5)
    _, _, _, pull, _ = pair_losses(loss, X @ lower.x)
    np.testing.assert_allclose(C * pull, upper.x, atol=1e-5)
