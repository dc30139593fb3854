"""Pruned kernel models: what was dropped and how far the function moved, against the whole kernel matrix."""

import numpy as np
import pytest
import scipy.sparse as sp

from ranksvm import KernelRankSVM, load, make_ranking
from ranksvm.exceptions import OptionError
from ranksvm.kernels import expansions, kernel_named

PARAMETERS = {"gamma": 0.1, "degree": 2, "coef0": 1.0}


@pytest.fixture(scope="module")
def data():
    data = make_ranking(12, 15, 6, random_state=0)
    return data.X.astype(np.float64), data.y, data.qid


def fitted(kernel, data, **options):
    X, y, qid = data
    return KernelRankSVM(0.1, kernel=kernel, **PARAMETERS, **options).fit(X, y, qid=qid)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear", "laplacian", "cosine"])
@pytest.mark.parametrize("blocks", [(7, 11), (256, 4096)])
@pytest.mark.parametrize("tol", [0.3, 1e-2, 1e-4])
def test_as_many_of_the_smallest_terms_as_the_tolerance_allows(kernel, blocks, tol, data, monkeypatch):
    monkeypatch.setattr(expansions, "BLOCK_TERMS", blocks[0])
    monkeypatch.setattr(expansions, "BLOCK_OTHERS", blocks[1])
    X, _, _ = data
    ranker = fitted(kernel, data)
    b, Z, support, scores = ranker.dual_coef_, ranker.support_vectors_, ranker.support_, ranker.predict(X)
    Q = kernel_named(kernel, **PARAMETERS).block(Z, Z)
    order = np.argsort(np.abs(b) * np.sqrt(np.diagonal(Q)), kind="stable")
    norms = []
    for n in range(len(b) + 1):
        dropped = np.where(np.isin(np.arange(len(b)), order[:n]), b, 0.0)
        norms.append(np.sqrt(max(0.0, dropped @ Q @ dropped)))
    found = ranker.prune(tol)
    assert found.norm == pytest.approx(norms[-1], rel=1e-9)
    assert found.distance == pytest.approx(norms[found.n_dropped], rel=1e-6, abs=1e-9 * norms[-1])
    assert found.n_dropped == np.flatnonzero(np.array(norms) <= tol * norms[-1])[-1]
    assert found.relative_distance == found.distance / found.norm <= tol
    assert found.n_support == len(ranker.dual_coef_) == len(b) - found.n_dropped
    kept = np.sort(order[found.n_dropped :])
    np.testing.assert_array_equal(ranker.support_, support[kept])
    np.testing.assert_array_equal(ranker.dual_coef_, b[kept])
    np.testing.assert_array_equal(ranker.support_vectors_, Z[kept])
    change = np.abs(ranker.predict(X) - scores)
    assert (change <= found.distance * np.sqrt(kernel_named(kernel, **PARAMETERS).diagonal(X)) + 1e-9).all()
    if kernel in ("rbf", "laplacian", "cosine"):
        assert found.score_change == found.distance
    else:
        assert found.score_change is None


def test_prunings_add_up_and_are_saved(data, tmp_path):
    ranker = fitted("rbf", data)
    n, norm = len(ranker.dual_coef_), None
    dropped = distance = 0
    for tol in (0.01, 0.05):
        found = ranker.prune(tol)
        norm = found.norm if norm is None else norm
        dropped, distance = dropped + found.n_dropped, distance + found.distance
    assert ranker.pruned_ == {"n_dropped": dropped, "distance": distance, "norm": norm}
    assert len(ranker.dual_coef_) == n - dropped < n
    ranker.save(tmp_path / "model")
    assert load(tmp_path / "model").pruned_ == ranker.pruned_
    X, y, qid = data
    assert not hasattr(ranker.fit(X, y, qid=qid), "pruned_")


def test_sparse_documents_callables_and_landmarks(data):
    X, y, qid = data
    dense = fitted("rbf", data)
    sparse = fitted("rbf", (sp.csr_array(X), y, qid))
    one, two = dense.prune(0.05), sparse.prune(0.05)
    assert one.n_dropped == pytest.approx(two.n_dropped, abs=5)
    assert sp.issparse(sparse.support_vectors_)
    called = fitted(lambda X, Z: X @ Z.T, data)
    assert called.prune(0.05).n_dropped > 0
    landmarks = fitted("rbf", data, approximation="nystroem", n_components=40, random_state=0)
    before = landmarks.predict(X)
    found = landmarks.prune(0.1)
    assert np.abs(landmarks.predict(X) - before).max() <= found.score_change + 1e-9


def test_nothing_to_drop_and_nothing_left(data):
    X, _, _ = data
    ranker = fitted("rbf", data)
    assert ranker.prune(1e-12).n_dropped == 0
    duplicates = KernelRankSVM().fit(X[[0, 0]], [1, 0])  # f = 0: the two terms cancel
    found = duplicates.prune(0.5)
    assert found.norm == 0.0
    assert found.relative_distance == 0.0
    np.testing.assert_array_equal(duplicates.predict(X), 0.0)


def test_what_cannot_be_pruned(data):
    X, y, qid = data
    for tol in (0.0, 1.0, -0.1, "0.1", True, float("nan")):
        with pytest.raises(OptionError, match="tol must be a number between 0 and 1"):
            fitted("rbf", data).prune(tol)
    with pytest.raises(OptionError, match="a model with a precomputed kernel has none"):
        KernelRankSVM(kernel="precomputed").fit(X @ X.T, y, qid=qid).prune()
    with pytest.raises(OptionError, match="a model with random Fourier features has none"):
        fitted("rbf", data, approximation="fourier", n_components=10).prune()
    with pytest.raises(ValueError, match="not fitted"):
        KernelRankSVM().prune()


def test_nothing_is_dropped_of_what_cancellation_leaves():
    # of 1e9 times the difference of two documents next to each other, round-off leaves more than the other term
    X = np.array([[0.0, 1.0], [3.0, 1.0], [3.0, 1.0 + 1e-12]])
    for scale in (1e9, 1e9 / 3.0, 1e9 / 7.0):
        coef = np.array([1e-4, scale, -scale])
        kept, found = expansions.smallest_terms(kernel_named("rbf", gamma=1.0), X, coef, 0.5, n_threads=1)
        assert len(kept) == 3
        assert found.n_dropped == 0
