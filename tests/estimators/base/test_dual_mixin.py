"""The dual variables, against explicit pairs and against what duality says of them."""

import doctest

import numpy as np
import pytest
import scipy.sparse as sp

from oracle import ExplicitPairs, LogisticFunction
from ranksvm import RankSVM, RankSVMCV, make_ranking
from ranksvm.data import ComparablePairs
from ranksvm.estimators.base import dual_mixin
from ranksvm.exceptions import DataError, NoComparablePairsError
from ranksvm.losses import LOSSES, LossSpec

C = 0.05


def problem(kind="dense", interleaved=True, weighted=True, n_levels=4):
    rng = np.random.default_rng(0)
    data = make_ranking(8, 15, 6, n_levels=n_levels, random_state=0)
    order = rng.permutation(len(data.y)) if interleaved else np.arange(len(data.y))
    X, y, qid = data.X[order].astype(np.float64), data.y[order], data.qid[order]
    weights = {}
    if weighted:
        weights = {"sample_weight": rng.integers(3, size=len(y)), "query_weight": rng.uniform(0.5, 2, size=9)[qid]}
    oracle = ExplicitPairs(y, qid, X, **weights)
    return sp.csr_matrix(X) if kind == "sparse" else X, y, qid, weights, oracle


def test_example():
    assert doctest.testmod(dual_mixin).failed == 0


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_levels", [2, 4])
def test_alpha_against_explicit_pairs(kind, interleaved, weighted, n_levels):
    X, y, qid, weights, oracle = problem(kind, interleaved, weighted, n_levels)
    ranker = RankSVM(C=C).fit(X, y, qid=qid, **weights)
    dual = ranker.dual_coef(X, y, qid, **weights)
    expected = np.zeros((len(y), len(y)))
    expected[oracle.upper, oracle.lower] = 2 * C * oracle.weight * oracle.hinges(oracle.X @ ranker.coef_)
    found = dual.to_coo()
    np.testing.assert_allclose(found.toarray(), expected, atol=1e-14)
    assert found.nnz == np.count_nonzero(expected)
    np.testing.assert_allclose(dual.per_document(), expected.sum(axis=1) - expected.sum(axis=0), atol=1e-13)
    assert dual.n_pairs == oracle.n_pairs == ranker.n_pairs_
    weight = np.zeros_like(expected)
    weight[oracle.upper, oracle.lower] = oracle.weight
    assert len(dual) == 8
    for number, block in enumerate(dual):
        assert block.query == dual.query(block.query).query
        i, j = block.preferred_rows, block.other_rows
        assert set(qid[i]) | set(qid[j]) <= {block.query}
        np.testing.assert_allclose(block.alpha, expected[np.ix_(i, j)], atol=1e-14)
        np.testing.assert_allclose(block.weights, weight[np.ix_(i, j)])
        assert block.alpha.shape == block.shape
        np.testing.assert_array_equal(dual[number].alpha, block.alpha)


@pytest.mark.parametrize("tol", [1e-2, 1e-8])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", LOSSES)
def test_what_duality_says(tol, weighted, loss):
    X, y, qid, weights, _ = problem(weighted=weighted)
    ranker = RankSVM(C=C, tol=tol, loss=loss, huber_width=0.3).fit(X, y, qid=qid, **weights)
    dual = ranker.dual_coef(X, y, qid, **weights)
    w = X.T @ dual.per_document()
    assert np.linalg.norm(w - ranker.coef_) <= (1 + 1e-6) * np.sqrt(2 * ranker.duality_gap_) + 1e-12
    # alpha^2 / (4 C a) for the squared hinge, width alpha^2 / (2 C a) for the Huberized one, nothing for the hinge
    quadratic = {"squared_hinge": 0.25, "huber": 0.15, "hinge": 0.0, "logistic": 0.0}[loss]
    objective = -0.5 * w @ w
    for block in dual:
        a = block.weights > 0
        bounds = C * block.weights[a]
        if loss == "logistic":  # the entropy of alpha / (C a)
            objective -= np.sum(bounds * LogisticFunction().conjugate(-block.alpha[a] / bounds))
            continue
        objective += block.alpha.sum() - quadratic * np.sum(block.alpha[a] ** 2 / bounds)
        if loss != "squared_hinge":
            assert (block.alpha <= C * block.weights * (1 + 1e-12)).all()
    assert objective <= ranker.objective_ * (1 + 1e-12)
    # narrow widths, around 1e-6 at the end of the path of the hinge, divide the round-off of the scores
    assert ranker.objective_ - objective == pytest.approx(ranker.duality_gap_, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("selection", ["all", "adjacent"])
@pytest.mark.parametrize("weighting", ["uniform", "per_query", "label_gap", "gain_gap"])
def test_every_way_to_choose_and_weigh_pairs(loss, selection, weighting):
    X, y, qid, weights, _ = problem()
    weights["propensity"] = np.random.default_rng(1).uniform(0.2, 1.0, len(y))
    ranker = RankSVM(C=C, loss=loss, huber_width=0.5, pair_selection=selection, pair_weighting=weighting)
    ranker.fit(X, y, qid=qid, **weights)
    how = {"function": LogisticFunction()} if loss == "logistic" else {"width": ranker.width_}
    oracle = ExplicitPairs(y, qid, X, selection=selection, weighting=weighting, **how, **weights)
    _check(ranker.dual_coef(X, y, qid, **weights), oracle, ranker.coef_)


@pytest.mark.parametrize("weighting", ["uniform", "per_query"])
@pytest.mark.parametrize("interleaved", [False, True])
def test_explicit_pairs(weighting, interleaved):
    X, y, qid, weights, oracle = problem(interleaved=interleaved)
    rng = np.random.default_rng(2)
    chosen = rng.choice(oracle.n_pairs, 40)
    pairs = np.column_stack([oracle.upper, oracle.lower])[np.append(chosen, chosen[:5])]
    weights = {**weights, "pairs": pairs, "pair_weight": rng.uniform(0.5, 1.5, len(pairs))}
    ranker = RankSVM(C=1.0, pair_weighting=weighting).fit(X, qid=qid, **weights)
    oracle = ExplicitPairs(y, qid, X, weighting=weighting, **weights)
    dual = ranker.dual_coef(X, qid=qid, **weights)
    _check(dual, oracle, ranker.coef_, C=1.0)
    assert len(dual) == 8
    assert dual.n_pairs == 45
    expected = [np.count_nonzero(qid[oracle.upper] == block.query) for block in dual]
    assert dual.pairs_per_query.tolist() == expected
    assert dual.entries_per_query.tolist() == [block.alpha.size for block in dual]
    for block in dual:
        assert set(qid[block.preferred_rows]) <= {block.query}
    with pytest.raises(DataError, match="not both"):
        ranker.dual_coef(X, y, qid, **weights)


def _check(dual, oracle, w, C=C):
    expected = np.zeros((len(oracle.qid), len(oracle.qid)))
    np.add.at(expected, (oracle.upper, oracle.lower), C * oracle.weight * oracle.pulls(oracle.X @ w))
    np.testing.assert_allclose(dual.to_coo().toarray(), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(dual.per_document(), expected.sum(axis=1) - expected.sum(axis=0), atol=1e-12)


def test_blocks_are_triangular_by_label_and_two_levels_one_rectangle():
    X, y, qid, _, _ = problem(weighted=False)
    dual = RankSVM(C=C).fit(X, y, qid=qid).dual_coef(X, y, qid)
    assert dual.entries_per_query.tolist() == [block.alpha.size for block in dual]
    for block in dual:
        assert (np.diff(y[block.preferred_rows]) <= 0).all()
        assert (np.diff(y[block.other_rows]) <= 0).all()
        np.testing.assert_array_equal(block.weights > 0, y[block.preferred_rows][:, None] > y[block.other_rows])
        assert set(block.other_rows) == set(np.flatnonzero((qid == block.query) & (y < y[qid == block.query].max())))
    y = np.argsort(np.argsort(y)) % 2
    for block in RankSVM(C=C).fit(X, y, qid=qid).dual_coef(X, y, qid):
        assert (block.weights == 1).all()
        assert block.shape == (y[qid == block.query].sum(), (1 - y[qid == block.query]).sum())


def test_blocks_are_made_when_asked_for(monkeypatch):
    made = []
    explicit = ComparablePairs.explicit
    monkeypatch.setattr(ComparablePairs, "explicit", lambda self, query: made.append(query) or explicit(self, query))
    X, y, qid, _, _ = problem(weighted=False)
    ranker = RankSVM(C=C).fit(X, y, qid=qid)
    dual = ranker.dual_coef(X, y, qid)
    assert len(dual) == 8
    assert "8 queries" in repr(dual)
    assert dual.pairs_per_query.sum() == ranker.n_pairs_
    assert made == []
    assert dual[-1].query == dual.query(dual[7].query).query
    assert made == [7, 7, 7]
    blocks = iter(dual)
    next(blocks)
    assert made == [7, 7, 7, 0]


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("width", [1.0, 0.1])
def test_alpha_is_minus_the_derivative_of_the_loss(loss, width):
    margins = np.linspace(-2, 2, 41) + 0.013
    hinge = np.maximum(0.0, 1.0 - margins)
    values = {
        "squared_hinge": lambda h: h**2,
        "huber": lambda h: np.where(h <= width, h**2 / (2 * width), h - width / 2),
    }
    if loss == "logistic":
        expected = -3.0 * LogisticFunction().derivative(margins)
        np.testing.assert_allclose(LossSpec(loss).alpha(margins, 3.0), expected, atol=1e-12)
        return
    value = values["huber" if loss == "hinge" else loss]
    step = 1e-6
    derivative = (value(np.maximum(0, hinge + step)) - value(np.maximum(0, hinge - step))) / (2 * step)
    expected = np.where(hinge > 0, 3.0 * derivative, 0.0)
    spec = LossSpec(loss, width if loss == "huber" else None)
    np.testing.assert_allclose(spec.alpha(margins, 3.0, width), expected, atol=1e-5)


def test_the_c_that_was_chosen():
    X, y, qid, _, _ = problem(weighted=False)
    ranker = RankSVMCV(Cs=[0.01, 0.1], cv=2, tol=1e-10).fit(X, y, qid=qid)
    beta = ranker.dual_coef(X, y, qid).per_document()
    np.testing.assert_allclose(X.T @ beta, ranker.coef_, atol=1e-4)


def test_groups_queries_without_pairs_and_columns_of_query_ids():
    pandas = pytest.importorskip("pandas")
    X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), [1, 0, 1, 1]
    dual = RankSVM().fit(X, y, group=[2, 2]).dual_coef(X, y, group=[2, 2])
    assert [block.shape for block in dual] == [(1, 1), (0, 0)]
    assert dual.to_coo().nnz == 1
    frame = pandas.DataFrame({"x": X[:, 0], "query": [5, 5, 6, 6]})
    ranker = RankSVM().fit(frame, y, qid="query")
    assert [block.query for block in ranker.dual_coef(frame, y)] == [5, 6]
    assert "1 preferred x 1 other documents, 1 pairs, 1 entries of alpha not 0" in repr(ranker.dual_coef(frame, y)[0])


def test_errors():
    X, y, qid, _, _ = problem(weighted=False)
    ranker = RankSVM(C=C).fit(X, y, qid=qid)
    dual = ranker.dual_coef(X, y, qid)
    with pytest.raises(IndexError, match="there is no query number 8"):
        dual[8]
    with pytest.raises(DataError, match="there is no query 'x'"):
        dual.query("x")
    with pytest.raises(DataError, match="y has 3 entries"):
        ranker.dual_coef(X, y[:3], qid)
    with pytest.raises(DataError, match="nan in row"):
        ranker.dual_coef(X, np.full(len(y), np.nan), qid)
    with pytest.raises(NoComparablePairsError):
        ranker.dual_coef(X, np.ones(len(y)), qid)
    with pytest.raises(ValueError, match="not fitted"):
        RankSVM().dual_coef(X, y, qid)


def test_data_with_another_number_of_pairs_are_refused():
    data = make_ranking(n_queries=5, n_docs=6, n_features=3, random_state=0)
    model = RankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    with pytest.raises(DataError, match=r"There are \d+ pairs, but the model was fitted to \d+: give"):
        model.dual_coef(data.X[:12], data.y[:12], data.qid[:12])
