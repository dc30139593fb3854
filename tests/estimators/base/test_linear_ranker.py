"""Explanations and importances of linear rankers, against their definitions."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

import ranksvm
from ranksvm import RankSVM, make_ranking
from ranksvm.exceptions import DataError


def fitted(kind="dense", interleaved=True, dtype=np.float64):
    """A ranker with explanations of its training data, and these as a dense float64 array."""
    rng = np.random.default_rng(0)
    data = make_ranking(6, 12, 8, random_state=0)
    X = data.X.astype(dtype)
    if kind == "sparse":
        X *= rng.random(X.shape) < 0.4
    order = rng.permutation(len(X)) if interleaved else slice(None)
    X, y, qid = X[order], data.y[order], data.qid[order]
    given = sp.csr_matrix(X) if kind == "sparse" else X
    ranker = RankSVM(C=0.1).fit(given, y, qid=qid)
    return ranker, given, X.astype(np.float64), qid


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("interleaved", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_contributions_against_the_definition(kind, interleaved, dtype):
    ranker, given, X, qid = fitted(kind, interleaved, dtype)
    explanation = ranker.explain(given, qid)
    means = np.array([X[qid == q].mean(axis=0) for q in qid])
    expected = (X - means) * ranker.coef_
    found = explanation.contributions
    assert sp.issparse(found) == (kind == "sparse")
    found = found.toarray() if kind == "sparse" else found
    np.testing.assert_allclose(found, expected, atol=1e-14)
    np.testing.assert_allclose(found.sum(axis=1), explanation.scores - explanation.mean_scores, atol=1e-13)
    np.testing.assert_allclose(explanation.scores, X @ ranker.coef_, atol=1e-13)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_document_and_a_pair(kind):
    ranker, given, X, qid = fitted(kind)
    explanation = ranker.explain(given, qid)
    ranking = ranker.rank(given, qid)
    for row in (0, 5, 71):
        rows = np.flatnonzero(qid == qid[row])
        document = explanation.document(row)
        assert document.other_row is None
        assert document.other_rank is None
        assert document.query == qid[row]
        assert document.n_documents == len(rows)
        assert ranking[qid[row]][document.rank - 1] == row
        expected = (X[row] - X[rows].mean(axis=0)) * ranker.coef_
        _check(document, expected, ranker.coef_)
        np.testing.assert_allclose(document.values, X[row, document.columns])
        np.testing.assert_allclose(document.other_values, X[rows].mean(axis=0)[document.columns], atol=1e-15)
        for other in rows[rows != row][:3]:
            pair = explanation.pair(row, other)
            assert ranking[qid[row]][pair.other_rank - 1] == other
            _check(pair, (X[row] - X[other]) * ranker.coef_, ranker.coef_)
            np.testing.assert_allclose(pair.other_values, X[other, pair.columns])


def _check(found, expected, coef):
    """Every feature with its contribution, the largest first, adding up to the difference of the scores."""
    np.testing.assert_allclose(found.contributions, expected[found.columns], atol=1e-14)
    assert np.abs(np.delete(expected, found.columns)).max(initial=0.0) <= 1e-14
    assert (np.diff(np.abs(found.contributions)) <= 0).all()
    np.testing.assert_array_equal(found.weights, coef[found.columns])
    assert found.contributions.sum() == pytest.approx(found.difference, abs=1e-13)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_query(kind):
    ranker, given, X, qid = fitted(kind)
    query = ranker.explain(given, qid).query(qid[0])
    np.testing.assert_array_equal(query.rows, ranker.rank(given, qid)[qid[0]])
    np.testing.assert_allclose(query.scores, (X @ ranker.coef_)[query.rows])
    expected = np.abs(ranker.coef_) * X[qid == qid[0]].std(axis=0, ddof=1)
    np.testing.assert_allclose(query.importances, np.sort(expected[expected > 0])[::-1])
    np.testing.assert_allclose(query.importances, expected[query.columns])


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("interleaved", [False, True])
def test_importance_against_the_definition(kind, interleaved):
    ranker, given, X, qid = fitted(kind, interleaved)
    squares = sum(((X[qid == q] - X[qid == q].mean(axis=0)) ** 2).sum(axis=0) for q in np.unique(qid))
    expected = np.abs(ranker.coef_) * np.sqrt(squares / (len(X) - len(np.unique(qid))))
    np.testing.assert_allclose(ranker.feature_importance(given, qid), expected)


def test_importance_is_that_of_the_single_query_where_there_is_one():
    ranker, given, _, qid = fitted()
    rows = qid == qid[0]
    query = ranker.explain(given[rows]).query(0)
    np.testing.assert_allclose(query.importances, ranker.feature_importance(given[rows])[query.columns])


def test_queries_of_one_document_have_nothing_to_explain():
    ranker, given, _, _ = fitted()
    explanation = ranker.explain(given[:2], ["a", "b"])
    assert len(explanation.document(0).columns) == 0
    assert explanation.query("a").importances.size == 0
    assert not explanation.contributions.any()
    assert not ranker.feature_importance(given[:2], ["a", "b"]).any()
    assert "sum" in repr(explanation.document(1))


def test_entries_of_one_place_add_up():
    ranker, *_ = fitted()
    twice = sp.csr_matrix((np.array([1.0, 2.0, 5.0]), np.array([1, 1, 0]), np.array([0, 2, 3])), shape=(2, 8))
    explanation = ranker.explain(twice)
    np.testing.assert_allclose(np.sort(explanation.pair(0, 1).values), [0.0, 3.0])
    np.testing.assert_allclose(np.sort(explanation.document(0).other_values), [1.5, 2.5])
    expected = ranker.explain(twice.toarray()).contributions
    np.testing.assert_allclose(explanation.contributions.toarray(), expected)


def test_names_and_columns_of_query_ids_of_a_data_frame():
    pandas = pytest.importorskip("pandas")
    _, _, X, qid = fitted()
    frame = pandas.DataFrame(X, columns=[f"f{i}" for i in range(8)]).assign(query=qid)
    y = X[:, 0] > 0
    ranker = RankSVM().fit(frame, y, qid="query")
    explanation = ranker.explain(frame)
    assert explanation.queries.n_queries == 6
    pair = explanation.pair(*explanation.query(qid[0]).rows[:2])
    assert pair.names == [f"f{column}" for column in pair.columns]
    assert pair.names[0] in repr(pair)
    np.testing.assert_allclose(ranker.feature_importance(frame), ranker.feature_importance(frame, "query"))


def test_names_given():
    ranker, given, _, qid = fitted()
    names = [f"feature {i}" for i in range(8)]
    explanation = ranker.explain(given, qid, feature_names=names)
    assert explanation.query(qid[0]).names[0].startswith("feature ")
    with pytest.raises(DataError, match=r"feature_names has shape \(7,\)"):
        ranker.explain(given, qid, feature_names=names[1:])


def test_plain_python_for_json():
    ranker, given, _, qid = fitted("sparse", dtype=np.float32)
    explanation = ranker.explain(given, qid)
    document = explanation.document(np.int64(4))
    found = json.loads(json.dumps(document.to_dict(2)))
    assert found["row"] == 4
    assert found["query"] == qid[4]
    assert len(found["features"]) == 2
    total = sum(feature["contribution"] for feature in found["features"]) + found["rest"]
    assert total == pytest.approx(found["difference"])
    assert document.to_dict()["rest"] == 0.0
    found = json.loads(json.dumps(explanation.query(qid[4]).to_dict(3)))
    assert [item["rank"] for item in found["documents"]] == [1, 2, 3]
    assert len(found["features"]) == 3


def test_texts():
    ranker, given, _, qid = fitted()
    explanation = ranker.explain(given, qid)
    first, second = explanation.query(qid[0]).rows[:2]
    assert f"Row {first} (rank 1 of 12, query {qid[0]}) scores" in repr(explanation.pair(first, second))
    assert f"above row {second} (rank 2)" in repr(explanation.pair(first, second))
    assert f"below row {first} (rank 1)" in repr(explanation.pair(second, first))
    assert "the mean of its query" in repr(explanation.document(first))
    assert "12 documents" in repr(explanation.query(qid[0]))
    assert "72 documents, 6 queries, 8 features" in repr(explanation)
    assert len(explanation) == 72


def test_errors():
    ranker, given, _, qid = fitted()
    explanation = ranker.explain(given, qid)
    other = int(np.flatnonzero(qid != qid[0])[0])
    with pytest.raises(DataError, match="belong to different queries"):
        explanation.pair(0, other)
    with pytest.raises(DataError, match="there is no row 72"):
        explanation.document(72)
    with pytest.raises(DataError, match="there is no row -1"):
        explanation.document(-1)
    with pytest.raises(DataError, match="a whole number"):
        explanation.document("a")
    with pytest.raises(DataError, match="there is no query 77"):
        explanation.query(77)
    with pytest.raises(DataError, match="qid has 3 entries"):
        ranker.explain(given, [1, 2, 3])
    with pytest.raises(ValueError, match="features"):
        ranker.explain(given[:, :3])
    with pytest.raises(ValueError, match="not fitted"):
        RankSVM().explain(given)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_many_rows_have_the_scores_of_a_few(kind, dtype, monkeypatch):
    ranker, given, X, _ = fitted(kind, dtype=dtype)
    scores = ranker.predict(given)
    np.testing.assert_allclose(scores, X @ ranker.coef_, rtol=0, atol=1e-13)
    monkeypatch.setattr("ranksvm.data.scores.PREDICT_ROWS", 7)
    ranker.set_params(n_jobs=2)
    np.testing.assert_array_equal(ranker.predict(given), scores)


def test_sparse_data_stay_sparse():
    """A million features: what is dense would not pass unseen."""
    rng = np.random.default_rng(0)
    X = sp.random_array((40, 1_000_000), density=1e-5, random_state=rng, format="csr")
    ranker = ranksvm.RankSVM().fit(X, rng.integers(3, size=40), qid=np.repeat([0, 1], 20))
    explanation = ranker.explain(X, np.repeat([0, 1], 20))
    assert explanation.contributions.nnz <= 20 * X.nnz
    assert len(explanation.pair(0, 1).columns) <= X[:2].nnz
    assert ranker.feature_importance(X, np.repeat([0, 1], 20)).shape == (1_000_000,)
