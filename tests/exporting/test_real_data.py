"""1,000 real queries in every target: the order of the model, and scores within float32 of its own."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from export_runtimes import RUNTIMES, scores_of
from ranksvm import KernelRankSVM, QueryMinMaxScaler, QueryStandardScaler, RankSVM, export
from ranksvm.data import read_data
from ranksvm.metrics.scorers import predict_scores

QUERIES = 1000
SCALERS = {
    "none": None,
    "standard": StandardScaler(),
    "min-max": MinMaxScaler(),
    "query-minmax": QueryMinMaxScaler(),
    "query-standard": QueryStandardScaler(),
}
BY_QUERY = ("onnx", "sql", "python", "javascript", "java", "c", "json")


def rows_of_queries(X, qid, n):
    """The first n queries, features far from 0 and of different scales, all of them numbers of float32."""
    rows = np.isin(qid, list(dict.fromkeys(qid))[:n])
    scales = np.logspace(-3, 3, X.shape[1])
    return (X[rows] * scales + 10.0 * scales).astype(np.float32).astype(np.float64), qid[rows], rows


@pytest.fixture(scope="module")
def queries(shared_data):
    """1,000 queries of MQ2007, and what their models score."""
    data = read_data(next((shared_data / "MQ2007-partial" / "Fold1").glob("train*")))
    X, qid, rows = rows_of_queries(np.asarray(data.X, dtype=np.float64), data.qid, QUERIES)
    assert len(set(qid)) == QUERIES
    return X, data.y[rows], qid


@pytest.fixture(scope="module")
def models(queries):
    """Name of a scaler -> model and scores, fitted on first use."""
    X, y, qid = queries
    fitted = {}

    def model(name):
        if name not in fitted:
            scaler = None if SCALERS[name] is None else clone(SCALERS[name])
            ranker = RankSVM(C=1e-3, tol=1e-3)
            if scaler is None:
                found = ranker.fit(X, y, qid=qid)
            else:
                given = {"qid": qid} if name.startswith("query") else {}
                Z = scaler.fit(X).transform(X, **given)
                found = Pipeline([("scaler", scaler), ("ranker", ranker.fit(Z, y, qid=qid))])
            fitted[name] = found, predict_scores(found, X, qid)
        return fitted[name]

    return model


def reversed_pairs(found, expected, qid, resolution):
    """Pairs of documents of a query in the other order, though their scores differ by more than ``resolution``."""
    count = 0
    for query in dict.fromkeys(qid):
        rows = qid == query
        ours = expected[rows][:, np.newaxis] - expected[rows]
        theirs = found[rows][:, np.newaxis] - found[rows]
        count += int(((ours > resolution) & (theirs <= 0)).sum())
    return count


def check(found, expected, qid, resolution):
    centred = []
    for scores in (found, expected):
        scores = np.asarray(scores, dtype=np.float64).copy()
        for query in dict.fromkeys(qid):
            scores[qid == query] -= scores[qid == query].mean()
        centred.append(scores)
    np.testing.assert_allclose(*centred, rtol=0, atol=resolution)
    assert reversed_pairs(found, expected, qid, resolution) == 0


@pytest.mark.slow
@pytest.mark.parametrize("scaler", SCALERS)
@pytest.mark.parametrize(("target", "runtime"), RUNTIMES)
def test_the_order_of_1000_queries(queries, models, target, runtime, scaler, tmp_path):
    by_query = scaler.startswith("query")
    if by_query and target not in BY_QUERY and (target, scaler) != ("vespa", "query-minmax"):
        pytest.skip("the target refuses scalers by query")
    if target == "onnx":
        pytest.importorskip("onnx", reason="onnx is not installed")
    X, _, qid = queries
    model, expected = models(scaler)
    found = scores_of(target, runtime, export(model, to=target, X=X, qid=qid), X, qid, tmp_path)
    assert np.isfinite(found).all()
    if not RUNTIMES[target, runtime][1]:
        resolution = 1e-11 * np.abs(expected).max()
    elif scaler == "none" and target != "onnx":
        # sums of float32 of large terms, which cancel: their round-off is that of the terms
        resolution = 2e-7 * np.abs(X * model.coef_).sum(axis=1).max()
    else:
        resolution = 1e-6 * max(1.0, np.abs(expected).max())
    check(found, expected, qid, resolution)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", ["rbf", "poly", "nystroem", "fourier"])
def test_kernels_in_onnx(queries, kernel, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed")
    X, y, qid = queries
    options = (
        {"approximation": kernel, "n_components": 100} if kernel in ("nystroem", "fourier") else {"kernel": kernel}
    )
    scaler = StandardScaler().fit(X)
    some = np.isin(qid, list(dict.fromkeys(qid))[:50])
    ranker = KernelRankSVM(C=0.01, gamma=0.02, tol=1e-2, random_state=0, **options)
    ranker.fit(scaler.transform(X[some]), y[some], qid=qid[some])
    model = Pipeline([("scaler", scaler), ("ranker", ranker)])
    expected = model.predict(X)
    found = scores_of("onnx", "onnxruntime", export(model, to="onnx"), X, qid, tmp_path)
    check(found, expected, qid, 1e-6 * max(1.0, np.abs(expected).max()))
