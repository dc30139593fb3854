"""Hessians and diagonals of part of the rows, listed and visited pairs, against every pair written out."""

import numpy as np
import pytest

from oracle import ExplicitPairs
from ranksvm.data import ComparablePairs, PairList, Queries, as_design_matrix
from ranksvm.losses import HuberHinge, SquaredHinge
from ranksvm.terms import host as threaded
from ranksvm.terms.host import ThreadedTerm


def term_of_labels(X, y, qid, n_threads=1):
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), np.asarray(y, dtype=float))
    return ThreadedTerm(as_design_matrix(X), SquaredHinge(pairs), n_threads)


def listed(rng, n_rows, n_pairs):
    """Random pairs of different rows, some rows in several of them, some in none."""
    first = rng.integers(0, n_rows, n_pairs)
    return np.column_stack([first, (first + rng.integers(1, n_rows, n_pairs)) % n_rows])


def squares_of(term, point):
    """Number of the rows whose squares are the Hessian; None if it is not built of squares."""
    rows = np.empty((term.n_rows, term.n_variables))
    term.design.gather(term.pairs.rows, 0, term.n_rows, rows)
    return term.loss.hessian_rows(point.state, 0, term.pairs.n_queries, rows, np.empty((2 * len(rows), rows.shape[1])))


@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.parametrize("n_pairs", [1, 30, 100, 1000])
@pytest.mark.parametrize("loss", [SquaredHinge, HuberHinge])
def test_the_hessian_of_listed_pairs(n_threads, n_pairs, loss, monkeypatch):
    """By differences where pairs are few, by rows where they are many: the same."""
    monkeypatch.setattr(threaded, "PARALLEL_WORK", 0)
    monkeypatch.setattr(threaded, "PARALLEL_PYTHON", 0)
    rng = np.random.default_rng(n_pairs)
    X, pairs = rng.normal(size=(60, 4)), listed(rng, 60, n_pairs)
    weight = rng.random(n_pairs) * (rng.random(n_pairs) < 0.8) + 1e-3
    width = None if loss is SquaredHinge else 0.7
    found = PairList.from_pairs(Queries.from_qid(None, 60), pairs, pair_weight=weight)
    term = ThreadedTerm(as_design_matrix(X), loss(found), n_threads)
    w = rng.normal(size=4)
    D = X[pairs[:, 0]] - X[pairs[:, 1]]
    margin = D @ w
    active = margin < 1.0 if width is None else (margin < 1.0) & (margin >= 1.0 - width)
    curvature = weight * active * (2.0 if width is None else 1.0 / width)
    expected = (D.T * curvature) @ D
    point = term.evaluate(w, width)
    np.testing.assert_allclose(term.curvature(point, 1.0, 0), expected, rtol=1e-10, atol=1e-12)
    assert squares_of(term, point) == (np.count_nonzero(active) if n_pairs <= 2 * found.n_rows else None)


@pytest.mark.parametrize("loss", [SquaredHinge, HuberHinge])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_hessian_of_queries_of_two_documents_and_fewer(loss, weighted, monkeypatch):
    monkeypatch.setattr(threaded, "HESSIAN_BYTES", 7 * 32)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 4)), rng.integers(0, 2, 60).astype(float)
    qid = rng.permutation(np.repeat(np.arange(35), 2)[:60])
    weights = {"sample_weight": rng.random(60) + 0.1} if weighted else {}
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, 60), y, **weights)
    term = ThreadedTerm(as_design_matrix(X), loss(pairs))
    w, width = rng.normal(size=4), None if loss is SquaredHinge else 0.7
    point = term.evaluate(w, width)
    assert squares_of(term, point) == np.count_nonzero(point.state.degrees) // 2
    expected = np.column_stack([term.curvature_product(point, v) for v in np.eye(4)])
    np.testing.assert_allclose(term.curvature(point, 1.0, 0), expected, rtol=1e-10, atol=1e-12)
    if loss is SquaredHinge:
        oracle = ExplicitPairs(y, qid, X, **weights)
        np.testing.assert_allclose(np.eye(4) + expected, oracle.hessian(w, 1.0), rtol=1e-10, atol=1e-12)


def term_of_queries(rng, n_levels, loss, scale=1.0, **options):
    """60 rows in queries of 1 to 12, some of one level, and w with which the margins are small."""
    X, y = rng.normal(size=(60, 4)) + 100.0, rng.integers(0, n_levels, 60).astype(float)
    qid = np.sort(rng.choice([1, 2, 3, 5, 8, 13], 60))
    qid[:3], y[:3] = 0, 1.0
    options = {name: value[qid] if name == "query_weight" else value for name, value in options.items()}
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, 60), y, **options)
    return ThreadedTerm(as_design_matrix(X), loss(pairs)), rng.normal(size=4) * scale


@pytest.mark.parametrize("loss", [SquaredHinge, HuberHinge])
@pytest.mark.parametrize("n_levels", [2, 3, 60])
@pytest.mark.parametrize("weighted", ["no", "by query", "by document"])
@pytest.mark.parametrize("scale", [0.0, 1e-3, 2.0])
@pytest.mark.parametrize("block_rows", [7, 1000])
def test_the_hessian_where_all_pairs_are_active(loss, n_levels, weighted, scale, block_rows, monkeypatch):
    """By squares where they all are (at 0 and near it) and weigh the same in a query, or have few levels."""
    monkeypatch.setattr(threaded, "HESSIAN_BYTES", block_rows * 32)
    rng = np.random.default_rng(n_levels)
    weights = {"by query": {"query_weight": rng.random(14) + 0.1}, "no": {}}
    weights["by document"] = {"sample_weight": rng.random(60) + 0.1}
    term, w = term_of_queries(rng, n_levels, loss, scale, **weights[weighted])
    width = None if loss is SquaredHinge else 1.5
    point = term.evaluate(w, width)
    of_few_levels = n_levels < 60 and loss is SquaredHinge
    assert (squares_of(term, point) is not None) == (of_few_levels or (scale < 0.1 and weighted != "by document"))
    expected = np.column_stack([term.curvature_product(point, v) for v in np.eye(4)])
    np.testing.assert_allclose(term.curvature(point, 1.0, 0), expected, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(term.curvature(point, 1.0, 0, double=False), expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("options", [{"selection": "adjacent"}, {"weighting": "label_gap"}, {"weighting": "per_query"}])
def test_squares_of_pairs_that_are_selected_or_weighted(options):
    term, w = term_of_queries(np.random.default_rng(0), 4, SquaredHinge, 0.0, **options)
    point = term.evaluate(w, None)
    assert (squares_of(term, point) is not None) == ("label_gap" not in options.values())
    expected = np.column_stack([term.curvature_product(point, v) for v in np.eye(4)])
    np.testing.assert_allclose(term.curvature(point, 1.0, 0), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"selection": "adjacent"}, {"weighting": "gain_gap"}, {"sample_weight": True}])
@pytest.mark.parametrize("length", [15, 1500])
@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_squares_of_nested_sets(share, length, options):
    """Three levels, the higher ones rarer: a row for each document and a few more, whose squares are the Hessian."""
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(3000, 4)) + 100.0, np.repeat(np.arange(3000 // length), length)
    y = (rng.random(3000) < share).astype(float)
    y[rng.random(3000) < share / 3] = 2.0
    if "sample_weight" in options:
        options = {"sample_weight": np.where(rng.random(3000) < 0.1, 0.0, rng.random(3000))}
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, 3000), y, **options)
    term = ThreadedTerm(as_design_matrix(X), SquaredHinge(pairs))
    for scale in (0.3, 1.0, 5.0):
        point = term.evaluate(scale * rng.normal(size=4), None)
        assert squares_of(term, point) <= 1.7 * term.n_rows
        expected = np.column_stack([term.curvature_product(point, v) for v in np.eye(4)])
        tolerance = 1e-11 * np.abs(expected).max()
        np.testing.assert_allclose(term.curvature(point, 1.0, 0), expected, atol=tolerance)
        tolerance = 1e-4 * np.abs(expected).max()
        np.testing.assert_allclose(term.curvature(point, 1.0, 0, double=False), expected, atol=tolerance)


@pytest.mark.parametrize("storage", [np.float32, np.float64])
@pytest.mark.parametrize("fraction", [0.5, 1.0])
def test_products_in_float32_where_that_is_enough(storage, fraction):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(400, 5)).astype(storage) + storage(100.0), np.repeat(np.arange(40), 10)
    y = rng.integers(0, 3, 400)
    term, oracle = term_of_labels(X, y, qid), ExplicitPairs(y, qid, X.astype(float))
    point = term.evaluate(np.full(5, 0.1), None)
    exact = term.curvature(point, fraction, 0)
    if fraction == 1.0:
        np.testing.assert_allclose(np.eye(5) + exact, oracle.hessian(np.full(5, 0.1), 1.0), rtol=1e-11)
    else:
        sample = term.sample(201, 0)
        expected = sample.curvature(sample.evaluate(np.full(5, 0.1), None), 1.0, 0) * term.weight / sample.weight
        np.testing.assert_allclose(exact, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())
    single = term.curvature(point, fraction, 0, double=False)
    np.testing.assert_allclose(single, exact, rtol=1e-5, atol=1e-5 * np.abs(exact).max())
    assert np.abs(single - exact).max() > 0.0


@pytest.mark.parametrize("size", [1e-30, 1e25])
def test_features_whose_squares_float32_cannot_hold(size):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(400, 5)) * size, np.repeat(np.arange(40), 10)
    term = term_of_labels(X, rng.integers(0, 3, 400), qid)
    point = term.evaluate(np.zeros(5), None)
    assert np.isfinite(term.curvature(point, 0.5, 0, double=False)).all()
    assert np.isfinite(term.curvature(point, 1.0, 0, double=False)).all()


@pytest.mark.parametrize("docs", [4, 100, 10_000])
def test_the_diagonal_of_many_rows_is_estimated_from_some(docs, monkeypatch):
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(10_000, 6)) * np.geomspace(1e-3, 1e3, 6) + 5.0, np.arange(10_000) // docs
    term = term_of_labels(X, rng.integers(0, 3, 10_000), qid)
    point = term.evaluate(np.zeros(6), None)
    exact = np.diagonal(term.curvature(point, 1.0, 0))
    estimate = term.curvature_diagonal(point)
    np.testing.assert_allclose(estimate, exact, rtol=0.2)
    drawn = []
    monkeypatch.setattr(term, "_drawn", lambda *how: drawn.append(how))
    np.testing.assert_array_equal(term.curvature_diagonal(point), estimate)
    assert drawn == []  # the rows are those of the first time
    few = term_of_labels(X[:2000], rng.integers(0, 3, 2000), qid[:2000])
    point = few.evaluate(np.zeros(6), None)
    np.testing.assert_allclose(few.curvature_diagonal(point), np.diagonal(few.curvature(point, 1.0, 0)), rtol=1e-9)


@pytest.mark.parametrize("weighting", ["uniform", "gain_gap"])
def test_visited_pairs_have_less_round_off_than_swept_ones(weighting, monkeypatch):
    rng, n, width = np.random.default_rng(4), 500, 1e-4
    y = rng.integers(0, 5, n).astype(float)
    X, w = np.column_stack([y + 1e-4 * rng.random(n), rng.normal(size=n)]), np.array([1.0, 1e-4])
    pairs = ComparablePairs.from_labels(Queries.from_qid(np.zeros(n), n), y, weighting=weighting)
    term = ThreadedTerm(as_design_matrix(X), HuberHinge(pairs), 2)
    swept = term.evaluate(w, width)
    bound, v = term.round_off(swept, width, 1e-15, True), rng.normal(size=2)
    product = term.curvature_product(swept, v)
    monkeypatch.setattr(threaded, "MAX_VISITS", pairs.n_pairs - 1)
    assert not term.visit_pairs()
    monkeypatch.setattr(threaded, "MAX_VISITS", pairs.n_pairs)
    assert term.visit_pairs()
    assert not term.visit_pairs()
    visited = term.evaluate(w, width, swept)
    assert visited.sums.value == pytest.approx(swept.sums.value, abs=bound.value)
    np.testing.assert_allclose(visited.gradient, swept.gradient, atol=1e-8)
    np.testing.assert_allclose(term.curvature_product(visited, v), product, rtol=1e-9)
    assert term.round_off(visited, width, 1e-15, True).value < 1e-3 * bound.value
    oracle = ExplicitPairs(y, np.zeros(n), X, width=width, weighting=weighting)
    assert visited.sums.value == pytest.approx(oracle.loss(X @ w), rel=1e-9)
