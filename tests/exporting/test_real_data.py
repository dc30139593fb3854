"""1,000 real queries in every target: the order of the model, and scores within float32 of its own."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

from export_runtimes import RUNTIMES, scores_of
from ranksvm import KernelRankSVM, QueryMinMaxScaler, QueryStandardScaler, RankSVM, export
from ranksvm.datasets import read_data
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


@pytest.fixture(scope="module")
def queries(shared_data):
    """1,000 queries of MQ2007."""
    data = read_data(next((shared_data / "MQ2007-partial" / "Fold1").glob("train*")))
    rows = np.isin(data.qid, list(dict.fromkeys(data.qid))[:QUERIES])
    X, qid = np.asarray(data.X[rows], dtype=np.float32).astype(np.float64), data.qid[rows]
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


def check(found, expected, qid, single):
    """No pair of a query is in the other order, and differences of scores agree, within float32 if it is that."""
    assert np.isfinite(found).all()
    found = np.asarray(found, dtype=np.float64)
    reversed_pairs, worst = 0, 0.0
    for query in dict.fromkeys(qid):
        rows = qid == query
        ours = expected[rows][:, np.newaxis] - expected[rows]
        theirs = found[rows][:, np.newaxis] - found[rows]
        reversed_pairs += int(((ours > 0) & (theirs < 0)).sum())
        worst = max(worst, np.abs(ours - theirs).max())
    assert reversed_pairs == 0
    assert worst <= (1e-6 if single else 1e-14) * max(1.0, np.abs(expected).max())


@pytest.mark.parametrize(
    "scaler", [name if name == "none" else pytest.param(name, marks=pytest.mark.slow) for name in SCALERS]
)
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
    check(found, expected, qid, RUNTIMES[target, runtime][1])


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
    check(found, expected, qid, single=True)
