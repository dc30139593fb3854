"""Documents of several queries, pairs per document, and variances within queries, against loops over queries."""

from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, strategies as st

from ranksvm.data import Queries, pairs_per_document, shared_documents, statistics
from ranksvm.data.statistics import within_query_variance
from ranksvm.datasets import read_data
from ranksvm.exceptions import DataError

ROWS = st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), min_size=1, max_size=30)


@given(ROWS, st.booleans())
def test_against_sets(rows, as_text):
    docid, qid = (np.array(column) for column in zip(*rows, strict=True))
    found = shared_documents([f"D{number}" for number in docid] if as_text else docid, qid)
    of_query = {query: {d for d, q in rows if q == query} for query in found.ids.tolist()}
    in_queries = {document: {q for d, q in rows if d == document} for document, _ in rows}
    shared = {document for document, queries in in_queries.items() if len(queries) > 1}
    assert (found.n_rows, found.n_documents, found.n_shared) == (len(rows), len(in_queries), len(shared))
    assert found.queries_per_document == pytest.approx(np.mean([len(queries) for queries in in_queries.values()]))
    assert found.documents_per_query.tolist() == [len(documents) for documents in of_query.values()]
    assert found.shared_per_query.tolist() == [len(documents & shared) for documents in of_query.values()]
    assert list(of_query) == list(dict.fromkeys(qid.tolist()))


def test_rows_without_an_id_are_documents_of_their_own():
    found = shared_documents(["", "a", "", "a"], [1, 1, 2, 2])
    assert (found.n_documents, found.n_shared) == (3, 1)
    assert found.share_per_query.tolist() == [0.5, 0.5]
    assert repr(found) == (
        "SharedDocuments(4 rows, 3 documents, 1 of them in several queries; 1.33 queries per document; on average "
        "50.0% of the documents of a query are in another one too)"
    )


def test_one_query_shares_nothing():
    found = shared_documents(["a", "b", "a"])
    assert (found.n_rows, found.n_documents, found.n_shared) == (3, 2, 0)


def test_errors_of_document_ids():
    with pytest.raises(DataError, match="docid is None"):
        shared_documents(None, [1, 2])
    with pytest.raises(DataError, match=r"docid must have one id for each row, and at least one row, got .* \(0,\)"):
        shared_documents([])
    with pytest.raises(DataError, match="qid has 1 entries"):
        shared_documents(["a", "b"], [1])
    with pytest.raises(DataError, match="docid is missing in row 1"):
        shared_documents(["a", None], [1, 2])
    ids = np.array([1, "a", "", ""], dtype=object)
    assert shared_documents(ids, [1, 2, 2, 3]).n_documents == 4


def test_comments_of_letor_name_documents(shared_data):
    data = read_data(shared_data / "OHSUMED" / "Fold1" / "train.txt.gz")
    found = shared_documents(data.docid, data.qid)
    sizes = {query: set(data.docid[data.qid == query]) for query in np.unique(data.qid).tolist()}
    assert found.n_documents == len(set().union(*sizes.values()))
    assert found.documents_per_query.sum() == sum(map(len, sizes.values()))


LABELED_ROWS = st.lists(st.tuples(st.integers(-1, 3), st.integers(1, 5)), min_size=1, max_size=30)


def listed(y, qid):
    ratios = []
    for query in set(qid):
        labels = [label for label, of_query in zip(y, qid, strict=True) if of_query == query]
        ratios.append(sum(a != b for a, b in combinations(labels, 2)) / len(labels))
    return sum(ratios) / len(ratios)


@given(LABELED_ROWS)
def test_against_listed_pairs(rows):
    y, qid = zip(*rows, strict=True)
    assert pairs_per_document(y, qid) == pytest.approx(listed(y, qid), rel=1e-12)
    assert pairs_per_document(np.array(y), None) == pytest.approx(listed(y, [1] * len(y)), rel=1e-12)


def test_it_is_the_mean_over_queries_not_a_ratio_of_totals():
    # queries of 2 documents with 1 pair, of 4 with 4, of 1 with none
    assert pairs_per_document([1, 0, 1, 1, 0, 0, 5], [1, 1, 2, 2, 2, 2, 3]) == pytest.approx((1 / 2 + 4 / 4 + 0) / 3)


def test_equal_labels_have_no_pairs():
    assert pairs_per_document([1, 1, 1], [1, 1, 2]) == 0.0


def test_errors_of_labels():
    with pytest.raises(DataError, match=r"y must have one label for each row, and at least one row, got shape \(0,\)"):
        pairs_per_document([], None)
    with pytest.raises(DataError, match=r"got shape \(1, 2\)"):
        pairs_per_document([[1, 2]], None)
    with pytest.raises(DataError, match="qid has 1 entries"):
        pairs_per_document([1, 2], [1])
    with pytest.raises(DataError, match="y"):
        pairs_per_document([1, None], [1, 1])


# Xu et al. (IEEE TKDE 2019), Table 1, print 30.6 and 2.45.
@pytest.mark.parametrize(("name", "expected"), [("OHSUMED", 30.615), ("MQ2008", 2.485)])
def test_real_data(shared_data, name, expected):
    # the test parts of the five folds are all queries, each once
    parts = [read_data(shared_data / name / f"Fold{fold}" / "test.txt.gz") for fold in range(1, 6)]
    y, qid = (np.concatenate([getattr(part, field) for part in parts]) for field in ("y", "qid"))
    assert pairs_per_document(y, qid) == pytest.approx(expected, abs=5e-4)


def brute_force(X, qid):
    X = X.toarray() if sp.issparse(X) else X
    X, qid = X.astype(np.longdouble), np.asarray(qid)
    squares = sum(((X[qid == q] - X[qid == q].mean(axis=0)) ** 2).sum(axis=0) for q in np.unique(qid))
    return (squares / (len(qid) - len(np.unique(qid)))).astype(float)


@pytest.fixture(params=[1 << 18, 50, 7], ids=["one block", "several blocks", "long queries in chunks"])
def block(request, monkeypatch):
    monkeypatch.setattr(statistics, "BLOCK", request.param)


def rows_and_queries(seed, shuffled, n_rows=60, n_features=4):
    rng = np.random.default_rng(seed)
    qid = np.sort(rng.choice([0, 0, 1, 2, 3, 4], n_rows))
    if shuffled:
        rng.shuffle(qid)
    X = rng.normal(size=(n_rows, n_features)) * [1.0, 1e-3, 1e3, 0.0] + [0.0, 1.0, 5.0, 0.1]
    return X, qid


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [1, 3])
@pytest.mark.usefixtures("block")
def test_dense_against_the_definition(shuffled, dtype, n_threads):
    X, qid = rows_and_queries(0, shuffled)
    X = X.astype(dtype)
    found = within_query_variance(X, Queries.from_qid(qid), n_threads)
    np.testing.assert_allclose(found, brute_force(X, qid), rtol=1e-12)
    assert found[3] == 0.0


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.usefixtures("block")
def test_sparse_against_the_definition(shuffled, dtype):
    rng = np.random.default_rng(1)
    qid = rng.integers(6, size=50) if shuffled else np.sort(rng.integers(6, size=50))
    X = sp.random_array((50, 30), density=0.2, random_state=rng, format="csr", dtype=dtype)
    found = within_query_variance(X, Queries.from_qid(qid), 2)
    np.testing.assert_allclose(found, brute_force(X, qid), rtol=1e-6 if dtype is np.float32 else 1e-12)


def test_entries_of_one_place_add_up_and_X_stays_as_it_is():
    X = sp.csr_matrix((np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 2))
    np.testing.assert_allclose(within_query_variance(X, Queries.from_qid([1, 1])), [12.5, 4.5])
    assert X.nnz == 3


@pytest.mark.usefixtures("block")
def test_a_large_mean_costs_no_digits():
    rng = np.random.default_rng(2)
    offsets = np.repeat([1e8, -1e8, 3e8], 20)[:, None]
    small = rng.integers(8, size=(60, 3)).astype(float)
    qid = np.repeat([0, 1, 2], 20)
    found = within_query_variance(small + offsets, Queries.from_qid(qid))
    np.testing.assert_allclose(found, brute_force(small, qid), rtol=1e-13)
    found = within_query_variance(sp.csr_matrix(small + offsets), Queries.from_qid(qid))
    np.testing.assert_allclose(found, brute_force(small, qid), rtol=1e-13)


def test_queries_of_one_row_count_for_nothing():
    X = np.array([[1.0], [3.0], [100.0], [-50.0]])
    assert within_query_variance(X, Queries.from_qid([1, 1, 2, 3])).tolist() == [2.0]
    assert within_query_variance(X, Queries.from_qid([1, 2, 3, 4])).tolist() == [0.0]
    assert within_query_variance(X, Queries.from_group([0, 2, 0, 1, 1, 0], 4)).tolist() == [2.0]
