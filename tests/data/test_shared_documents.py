"""Documents of several queries, counted against sets."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ranksvm.data import shared_documents
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
        "SharedDocuments(4 rows, 3 documents, 1 of them in several queries; 1.33 queries per document; of a query's "
        "documents 50.0% in another one too)"
    )


def test_one_query_shares_nothing():
    found = shared_documents(["a", "b", "a"])
    assert (found.n_rows, found.n_documents, found.n_shared) == (3, 2, 0)


def test_errors():
    with pytest.raises(DataError, match="docid is None"):
        shared_documents(None, [1, 2])
    with pytest.raises(DataError, match=r"docid must have one id for each row, and at least one row, got .* \(0,\)"):
        shared_documents([])
    with pytest.raises(DataError, match="qid has 1 entries"):
        shared_documents(["a", "b"], [1])


def test_comments_of_letor_name_documents(shared_data):
    data = read_data(shared_data / "OHSUMED" / "Fold1" / "train.txt.gz")
    found = shared_documents(data.docid, data.qid)
    sizes = {query: set(data.docid[data.qid == query]) for query in np.unique(data.qid).tolist()}
    assert found.n_documents == len(set().union(*sizes.values()))
    assert found.documents_per_query.sum() == sum(map(len, sizes.values()))
