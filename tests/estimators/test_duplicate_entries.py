"""Sparse matrices with several entries for one place, which add up, give what their sums give."""

import numpy as np
import pytest
import scipy.sparse as sp

import ranksvm


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    # in eighths, so that sums are exact: the perceptrons' mistakes would amplify round-off
    X = rng.integers(1, 30, size=(60, 4)) / 8 * (rng.uniform(size=(60, 4)) < 0.7)
    parts = [rng.integers(-20, 20, size=X.shape) / 8 * (X != 0) for _ in range(2)]
    parts.append(X - sum(parts))
    rows, columns = (np.concatenate([place] * 3) for place in np.nonzero(X))
    values = np.concatenate([part[np.nonzero(X)] for part in parts])
    order = np.argsort(rows, kind="stable")
    pointers = np.concatenate(([0], np.cumsum(np.bincount(rows, minlength=60))))
    repeated = sp.csr_matrix((values[order], columns[order], pointers), shape=X.shape)
    assert not repeated.has_canonical_format
    np.testing.assert_allclose(repeated.toarray(), X)
    return X, repeated, rng.integers(0, 3, 60), np.repeat(np.arange(6), 10)


MODELS = [
    ranksvm.RankSVM(C=0.1, tol=1e-10),
    ranksvm.RankSVM(C=0.1, tol=1e-10, solver="tron"),
    ranksvm.RankSVM(C=0.1, tol=1e-10, solver="newton"),
    *(ranksvm.KernelRankSVM(kernel=kernel, tol=1e-10) for kernel in ("rbf", "poly", "laplacian", "cosine")),
    ranksvm.FactorizedRankSVM(random_state=0, max_epochs=3),
    ranksvm.SOLARRanker(order=1, random_state=0),
    ranksvm.SOLARRanker(order=2, random_state=0),
    ranksvm.SOLARRanker(order=2, covariance="diagonal", random_state=0),
    ranksvm.PRanker(random_state=0),
    ranksvm.PairwisePerceptronRanker(random_state=0),
    ranksvm.PerceptronCommitteeRanker(random_state=0),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("model", MODELS, ids=lambda model: repr(model)[:60])
def test_fit_and_predict(data, model):
    X, repeated, y, qid = data
    before = repeated.copy()
    wanted = model.fit(sp.csr_matrix(X), y, qid=qid).predict(sp.csr_matrix(X))
    found = model.fit(repeated, y, qid=qid).predict(repeated)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert repeated.nnz == before.nnz
    np.testing.assert_array_equal(repeated.data, before.data)


def test_gamma_scale_is_that_of_the_values(data):
    X, repeated, y, qid = data
    found = ranksvm.KernelRankSVM(gamma="scale").fit(repeated, y, qid=qid).gamma_
    assert found == pytest.approx(1 / (X.shape[1] * X.var()))


def test_scaler(data):
    X, repeated, _, qid = data
    scaler = ranksvm.QueryStandardScaler(with_mean=False)
    wanted = scaler.fit_transform(sp.csr_matrix(X), qid=qid).toarray()
    np.testing.assert_allclose(scaler.fit_transform(repeated, qid=qid).toarray(), wanted)


def test_rank_is_keyed_by_dates(data):
    X, _, y, _ = data
    days = np.repeat(np.array(["2024-05-01", "2024-05-02"], dtype="datetime64[ns]"), 30)
    ranking = ranksvm.RankSVM().fit(X, y, qid=days).rank(X, days)
    assert list(ranking) == [days[0], days[-1]]
    assert len(ranking[days[0]]) == 30
