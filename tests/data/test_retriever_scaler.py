"""`RetrieverScaler` beside the arithmetic of the engines, query by query and document by document, in float32."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import example, given, strategies as st
from sklearn.utils.estimator_checks import check_estimator

from ranksvm import RetrieverScaler
from ranksvm.exceptions import DataError, OptionError

SETTINGS = [
    *(("elasticsearch", normalizer) for normalizer in ("minmax", "l2_norm", "none")),
    *(("opensearch", normalizer) for normalizer in ("minmax", "l2_norm")),
]


def minmax_of_elasticsearch(scores):
    """MinMaxScoreNormalizer.java."""
    low, high = min(scores), max(scores)
    if abs(low - high) < np.float32(1e-6):
        return [np.float32(1)] * len(scores)
    return [(score - low) / (high - low) for score in scores]


def l2_of_elasticsearch(scores):
    """L2ScoreNormalizer.java."""
    norm = np.float32(np.sqrt(sum(float(score) * float(score) for score in scores)))
    return list(scores) if norm < np.float32(1e-6) else [score / norm for score in scores]


def minmax_of_opensearch(scores):
    """MinMaxScoreNormalizationTechnique.java."""
    low, high = min(scores), max(scores)
    if low == high:
        return [np.float32(1)] * len(scores)
    found = [(score - low) / (high - low) for score in scores]
    return [np.float32(0.001) if score == 0 else score for score in found]


def l2_of_opensearch(scores):
    """L2ScoreNormalizationTechnique.java."""
    norm = np.float32(np.sqrt(sum(float(score) * float(score) for score in scores)))
    return [np.float32(0) if norm == 0 else score / norm for score in scores]


NORMALIZERS = {
    ("elasticsearch", "minmax"): minmax_of_elasticsearch,
    ("elasticsearch", "l2_norm"): l2_of_elasticsearch,
    ("elasticsearch", "none"): list,
    ("opensearch", "minmax"): minmax_of_opensearch,
    ("opensearch", "l2_norm"): l2_of_opensearch,
}


def as_the_engine_does(X, qid, engine, normalizer):
    """Each retriever's list of a query is normalized by itself; documents that are not in it get 0."""
    found = np.zeros(X.shape, dtype=np.float32)
    for query in set(qid):
        for column in range(X.shape[1]):
            rows = [row for row in range(len(qid)) if qid[row] == query and not np.isnan(X[row, column])]
            if rows:
                scores = [np.float32(X[row, column]) for row in rows]
                found[rows, column] = NORMALIZERS[engine, normalizer](scores)
    return found


@st.composite
def results(draw):
    n_rows = draw(st.integers(1, 25))
    qid = draw(st.lists(st.integers(0, 4), min_size=n_rows, max_size=n_rows))
    values = st.one_of(st.just(np.nan), st.sampled_from([0.0, 0.5, 2.0, 1e-7, 30.0]), st.floats(0, 100, width=32))
    X = draw(st.lists(st.tuples(values, values), min_size=n_rows, max_size=n_rows))
    return np.array(X, dtype=np.float32), np.array(qid)


def scores_of(*scores):
    """The scores of one retriever for one query."""
    return np.array([scores], dtype=np.float32).T, np.zeros(len(scores), dtype=int)


@pytest.mark.parametrize(("engine", "normalizer"), SETTINGS)
@given(result=results())
@example(result=scores_of(1e-6))  # as float32, neither below 1e-6 nor equal to it in float64
@example(result=scores_of(0.0, 1e-6))
@example(result=scores_of(1.4e-45, 1.4e-45))
def test_equals_the_arithmetic_of_the_engine(engine, normalizer, result):
    X, qid = result
    before = X.copy()
    found = RetrieverScaler(normalizer, engine=engine).fit_transform(X, qid=qid)
    np.testing.assert_allclose(found, as_the_engine_does(X, qid, engine, normalizer), rtol=1e-5, atol=1e-7)
    np.testing.assert_array_equal(X, before)
    assert found.dtype == np.float32


def test_a_retriever_that_returned_nothing_counts_for_nothing():
    X = [[1.0, np.nan], [3.0, np.nan], [np.nan, 5.0]]
    for engine, normalizer in SETTINGS:
        found = RetrieverScaler(normalizer, engine=engine).fit_transform(X, qid=[1, 1, 2])
        assert (found[:2, 1] == 0.0).all()
        assert found[2, 0] == 0.0
        assert found[2, 1] > 0.0


def test_what_is_refused():
    X, qid = [[1.0], [2.0]], [1, 1]
    with pytest.raises(OptionError, match="engine must be one of 'elasticsearch', 'opensearch', got 'solr'"):
        RetrieverScaler(engine="solr").fit(X, qid=qid)
    with pytest.raises(OptionError, match="normalizer must be one of 'minmax', 'l2_norm' for opensearch, got 'none'"):
        RetrieverScaler("none", engine="opensearch").fit(X, qid=qid)
    with pytest.raises(DataError, match="RetrieverScaler takes no sparse X"):
        RetrieverScaler().fit(sp.csr_array(X), qid=qid)
    with pytest.raises(DataError, match=r"infinity at X\[1, 0\]"):
        RetrieverScaler().fit([[np.nan], [np.inf]], qid=qid)


def test_sklearn_checks():
    reason = "a row is scaled by the rows of its query, and without qid the rows given are one query"
    check_estimator(RetrieverScaler(), expected_failed_checks={"check_methods_subset_invariance": reason})
