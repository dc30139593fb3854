"""Compare a loss with the sum over listed pairs; several test modules use this."""

import numpy as np
import pytest

from oracle import ExplicitPairs, LogisticFunction, centered
from ranksvm.data import ComparablePairs, PairList, Queries
from ranksvm.losses import FunctionLoss, Hinge, HuberHinge, Logistic, SquaredHinge
from ranksvm.losses.protocol import LossSums

# The ways to process the pairs of a query, as options of ComparablePairs.
WAYS = {
    "all pairs": {"visit_limit": np.inf},
    "direct sweep": {"visit_limit": -1.0, "direct_limit": 1 << 20},
    "parting sweep": {"visit_limit": -1.0, "direct_limit": 0},
}
SWEEPS = ("direct sweep", "parting sweep")


class SquaredHingeFunction:
    """The squared hinge as a user would write it."""

    def value(self, margins):
        return np.maximum(0.0, 1.0 - margins) ** 2

    def derivative(self, margins):
        return -2.0 * np.maximum(0.0, 1.0 - margins)

    def curvature(self, margins):
        return np.where(margins < 1.0, 2.0, 0.0)


class AtWidth:
    """A loss that is evaluated at a fixed width."""

    def __init__(self, loss, width=None):
        self.loss, self.width = loss, width

    def __getattr__(self, name):
        return getattr(self.loss, name)

    def evaluate(self, scores, state, first, last, gradient_range):
        part = slice(self.loss.pairs.pointers[first], self.loss.pairs.pointers[last])
        return LossSums(*self.loss.evaluation(state, self.width)(first, last, scores[part], gradient_range))


# name -> a function that makes the loss of given pairs, and the width for the oracle
WIDTH = 0.37
LOSSES = {
    "squared_hinge": (lambda pairs: AtWidth(SquaredHinge(pairs)), None),
    "huber": (lambda pairs: AtWidth(HuberHinge(pairs), WIDTH), WIDTH),
    "wide huber": (lambda pairs: AtWidth(HuberHinge(pairs), 2.5), 2.5),
    "hinge": (lambda pairs: AtWidth(Hinge(pairs), 1e-3), 1e-3),
    "logistic": (lambda pairs: AtWidth(Logistic(pairs)), None),
}
# the functions that the oracle needs for losses that are neither a squared nor a Huberized hinge
FUNCTIONS = {"logistic": LogisticFunction()}
# LOSSES and a loss that visits every pair
EVERY_LOSS = LOSSES | {"function": (lambda pairs: AtWidth(FunctionLoss(pairs, SquaredHingeFunction())), None)}


def make_pairs(y, qid, way=None, **options):
    """The pairs that labels imply, processed in one of WAYS; None: in the way that is chosen for each query."""
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), np.asarray(y, dtype=float), **options)
    if way is not None:
        parts = pairs.pointers, pairs.rows, pairs.levels, pairs.n_levels, pairs.preferred, pairs.other
        pairs = ComparablePairs(*parts, pairs.gain, pairs.adjacent, **WAYS[way])
    return pairs


def make_loss(y, qid, way=None, *, name="squared_hinge", **options):
    """A loss over the pairs that labels imply."""
    return LOSSES[name][0](make_pairs(y, qid, way, **options))


def evaluate(loss, scores, state=None):
    """Value, gradient and state; scores and gradient in the sorted order of the pairs."""
    state = state or loss.new_state()
    gradient = np.empty(loss.pairs.n_rows)
    value = loss.evaluate(scores, state, 0, loss.pairs.n_queries, gradient).value
    return value, gradient, state


def product(loss, state, v):
    out = np.empty(len(v))
    loss.hessian(state)(0, loss.pairs.n_queries, v, out)
    return out


def rows_form(loss, state, X):
    """X'HX, computed from the rows from which an explicit Hessian is built."""
    rows, out = X.copy(), np.empty((2 * len(X), X.shape[1]))
    n_squares = loss.hessian_rows(state, 0, loss.pairs.n_queries, rows, out)
    if n_squares is not None:
        return out[:n_squares].T @ out[:n_squares]
    Z = out[: len(rows)]
    return 0.5 * (rows.T @ Z + Z.T @ rows)


def product_with_matrix(loss, state, V, active):
    """H times a matrix with a row for each document; only the rows of active documents are taken, the others stay 0."""
    found = np.zeros_like(V)
    columns = np.full((len(active), V.shape[1] + 2), np.nan, V.dtype)
    rows = np.full_like(columns, np.nan)
    rows[:, 1:-1] = V[active]
    loss.hessian(state).product(0, loss.pairs.n_queries, rows[:, 1:-1], columns[:, 1:-1])
    assert np.isnan(columns[:, [0, -1]]).all()
    found[active] = columns[:, 1:-1]
    return found


def check_against_pairs(y, qid, scores, way=None, *, name="squared_hinge", pairs=None, **options):
    """Check value, gradient, Hessian product, diagonal and rows of a loss; ``scores`` has a score for each row.

    ``pairs`` are row numbers (preferred, other) instead of those that the labels imply.
    """
    make, width = EVERY_LOSS[name]
    if pairs is None:
        over = make_pairs(y, qid, way, **options)
    else:
        over = PairList.from_pairs(Queries.from_qid(qid, len(y)), pairs, **options)
    loss, function = make(over), FUNCTIONS.get(name)
    oracle = ExplicitPairs(y, qid, width=width, function=function, pairs=pairs, **options)
    order = over.rows if over.rows is not None else np.arange(len(y))
    assert over.n_pairs == oracle.n_pairs
    assert over.weight == pytest.approx(oracle.weight.sum(), rel=1e-12)
    state, gradient = loss.new_state(), np.empty(over.n_rows)
    sums = loss.evaluate(np.ascontiguousarray(scores[order]), state, 0, over.n_queries, gradient)
    # round-off of sums over a query, whose terms are weights times scores times distances from the median score; an
    # error of eps * size in a margin changes a Huberized loss relatively by eps * size / width
    size = 1.0 + np.abs(centered(scores, qid)).max()
    eps = 2e-15 * len(y)
    bound = eps * (1.0 + oracle.weight.sum())
    narrow = 1.0 if width is None else max(1.0, 1.0 / width)
    assert sums.value == pytest.approx(oracle.loss(scores), rel=1e-12 * narrow, abs=bound * size**2)
    if name == "hinge":
        assert sums.excess == pytest.approx(oracle.excess(scores), rel=1e-12 * narrow, abs=bound * size**2)
        assert sums.slack == pytest.approx(oracle.slack(scores), rel=1e-12 * narrow, abs=bound * size**2)
        assert sums.slack >= 0.0
    expected = oracle.loss_gradient(scores)[order]
    np.testing.assert_allclose(gradient, expected, rtol=1e-12 * narrow, atol=bound * size * narrow)
    H = oracle.loss_hessian(scores)[np.ix_(order, order)]
    rng = np.random.default_rng(0)
    v = rng.normal(size=len(order))
    np.testing.assert_allclose(product(loss, state, v), H @ v, rtol=1e-12, atol=10 * bound * narrow)
    diagonal = loss.curvature_diagonal(state, 0, len(order))
    np.testing.assert_allclose(diagonal, np.diagonal(H), rtol=1e-12, atol=10 * bound * narrow)
    X = rng.normal(size=(len(order), 3))
    np.testing.assert_allclose(rows_form(loss, state, X), X.T @ H @ X, rtol=1e-11, atol=100 * bound * narrow)
    if name == "function":
        return
    for dtype, digits in ((np.float64, 1.0), (np.float32, 1e9)):
        found = product_with_matrix(loss, state, X.astype(dtype), np.flatnonzero(diagonal > 0.0))
        np.testing.assert_allclose(found, H @ X, rtol=1e-11 * digits, atol=10 * bound * narrow * digits)
