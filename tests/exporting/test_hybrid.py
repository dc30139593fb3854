"""Weights for hybrid search: what the engines compute from the files is what the models score."""

import json

import numpy as np
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

import ranksvm
from ranksvm import QueryMinMaxScaler, RankSVM, RetrieverScaler, export
from ranksvm.exceptions import OptionError

from .. import export_runtimes
from ..data.test_retriever_scaler import NORMALIZERS

NAMES = ["bm25", "vector", "title"]


@pytest.fixture(scope="module")
def results():
    """Scores of three retrievers; NaN for documents that one did not return."""
    random = np.random.default_rng(0)
    qid = np.repeat(np.arange(40), 12)
    y = random.integers(0, 3, len(qid))
    X = np.column_stack(
        [
            8.0 + 3.0 * y + 4.0 * random.normal(size=len(qid)),
            0.5 + 0.05 * y + 0.1 * random.normal(size=len(qid)),
            random.exponential(size=len(qid)),
        ]
    )
    X = np.maximum(X, 0.0).astype(np.float32).astype(np.float64)
    X[random.random(X.shape) < 0.3] = np.nan
    X[np.isnan(X).all(axis=1), 0] = 1.0
    return X, y, qid


def fitted(scaler, results, **options):
    X, y, qid = results
    ranker = RankSVM(C=0.1, monotone="increasing", **options)
    if scaler is None:
        return ranker.fit(np.nan_to_num(X), y, qid=qid)
    with sklearn.config_context(enable_metadata_routing=True):
        return make_pipeline(scaler, ranker).fit(
            X if isinstance(scaler, RetrieverScaler) else np.nan_to_num(X), y, qid=qid
        )


def scores_of(model, X, qid):
    if not hasattr(model, "steps"):
        return model.predict(np.nan_to_num(X))
    with sklearn.config_context(enable_metadata_routing=True):
        takes_missing = isinstance(model[0], RetrieverScaler)
        Z = X if takes_missing else np.nan_to_num(X)
        return model.predict(Z, qid=qid) if takes_missing else model.predict(Z)


def searched(retrievers, X, qid):
    """LinearRetrieverBuilder.java: normalized scores times weights, added up over the lists of the retrievers."""
    found = np.zeros(len(X), dtype=np.float32)
    for query in np.unique(qid):
        for column, retriever in enumerate(retrievers):
            weight = np.float32(retriever["weight"])
            assert weight >= 0
            rows = np.flatnonzero((qid == query) & ~np.isnan(X[:, column]))
            if len(rows):
                scores = NORMALIZERS["elasticsearch", retriever["normalizer"]](X[rows, column].astype(np.float32))
                found[rows] += weight * np.asarray(scores, dtype=np.float32)
    return found


@pytest.mark.parametrize(
    "scaler",
    [RetrieverScaler(), RetrieverScaler("l2_norm"), RetrieverScaler("none"), MaxAbsScaler(), None],
    ids=["minmax", "l2_norm", "none", "max-abs", "no scaler"],
)
def test_a_linear_retriever_scores_as_the_model(results, scaler):
    X, _, qid = results
    model = fitted(scaler, results)
    body = json.loads(export(model, to="elasticsearch-hybrid", names=NAMES).text)["request"]
    retrievers = body["retriever"]["linear"]["retrievers"]
    assert [set(each) for each in retrievers] == [{"retriever", "weight", "normalizer"}] * 3
    assert sum(each["weight"] for each in retrievers) == pytest.approx(1.0)
    expected = scores_of(model, X, qid)
    found = searched(retrievers, X, qid)
    factor = float(found @ expected / (expected @ expected))
    np.testing.assert_allclose(found, factor * expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize("normalizer", ["minmax", "l2_norm"])
def test_a_pipeline_of_opensearch_scores_as_the_model(results, normalizer):
    X, _, qid = results
    model = fitted(RetrieverScaler(normalizer, engine="opensearch"), results)
    document = json.loads(export(model, to="opensearch-hybrid", names=NAMES, name="hybrid").text)
    (processor,) = document["request"]["phase_results_processors"]
    processor = processor["normalization-processor"]
    assert processor["normalization"]["technique"] == {"minmax": "min_max", "l2_norm": "l2"}[normalizer]
    assert processor["combination"]["technique"] == "arithmetic_mean"
    weights = np.array(processor["combination"]["parameters"]["weights"], dtype=np.float32)
    assert (weights >= 0).all()
    assert (weights <= 1).all()
    assert abs(float(weights.sum()) - 1.0) < 0.01  # ScoreCombinationUtil.java
    assert len(document["search"]["query"]["hybrid"]["queries"]) == 3
    assert "_search?search_pipeline=hybrid " in document["ranksvm"]["use"]
    # ArithmeticMeanScoreCombinationTechnique.java: scores of documents that were not returned are 0 and count
    normalized = np.zeros(X.shape, dtype=np.float32)
    for query in np.unique(qid):
        for column in range(3):
            rows = np.flatnonzero((qid == query) & ~np.isnan(X[:, column]))
            if len(rows):
                normalized[rows, column] = NORMALIZERS["opensearch", normalizer](X[rows, column].astype(np.float32))
    found = (normalized * weights).sum(axis=1) / weights.sum()
    expected = scores_of(model, X, qid)
    factor = float(found @ expected / (expected @ expected))
    np.testing.assert_allclose(found, factor * expected, rtol=2e-5, atol=1e-6)


@pytest.mark.parametrize(
    "scaler", [StandardScaler(), RetrieverScaler("none"), None], ids=["standard", "none", "no scaler"]
)
def test_a_profile_of_vespa_scores_as_the_model(results, scaler):
    X, _, qid = results
    model = fitted(scaler, results)
    names = ["bm25(title)", "closeness(field,embedding)", "boost"]
    found = export(model, to="vespa-hybrid", names=names, name="hybrid")
    scores = export_runtimes.vespa(found, np.nan_to_num(X), qid)
    np.testing.assert_allclose(scores - scores[0], (s := scores_of(model, X, qid)) - s[0], atol=1e-9)
    assert "query(weight_bm25_title) double: " in found.text
    assert "query(weight_closeness_field_embedding) * " in found.text
    assert "query(weight_boost) double: " in found.text
    if isinstance(scaler, RetrieverScaler):
        assert "nan" not in export(model, to="vespa-hybrid", names=names, name="hybrid", X=X, qid=qid).text


def test_the_self_test_has_the_scores_of_the_engine(results):
    X, _, qid = results
    model = fitted(RetrieverScaler(), results)
    document = json.loads(export(model, to="elasticsearch-hybrid", names=NAMES, X=X, qid=qid).text)
    tests = document["ranksvm"]["test"]
    rows = np.array([[test["scores"].get(name, np.nan) for name in NAMES] for test in tests])
    assert np.isnan(rows).any()
    found = searched(document["request"]["retriever"]["linear"]["retrievers"], rows, np.zeros(3))
    np.testing.assert_allclose(found, [test["score"] for test in tests], rtol=1e-5, atol=1e-7)


def test_queries_come_from_templates(results):
    knn = {"knn": {"field": "embedding", "query_vector": [0.1], "k": 100, "num_candidates": 200}}
    templates = {
        "bm25": {"match": {"text": "{{q}}"}},
        "vector": knn,
        "title": {"term": {"title": "{{q}}"}},
        "x": {"match_all": {}},
    }
    model = fitted(RetrieverScaler(), results)
    result = export(model, to="elasticsearch-hybrid", names=NAMES, templates=templates)
    assert result.notes == []
    retrievers = json.loads(result.text)["request"]["retriever"]["linear"]["retrievers"]
    assert [each["retriever"] for each in retrievers] == [
        {"standard": {"query": {"match": {"text": "{{q}}"}}}},
        knn,
        {"standard": {"query": {"term": {"title": "{{q}}"}}}},
    ]
    with pytest.raises(OptionError, match="templates has no query 'title'; it has 'bm25', 'vector'"):
        export(model, to="elasticsearch-hybrid", names=NAMES, templates=dict(list(templates.items())[:2]))
    (note,) = export(model, to="elasticsearch-hybrid", names=NAMES).notes
    assert "REPLACE" in note


def test_what_an_engine_cannot_do_is_refused(results):
    X, y, qid = results
    of_es, of_os = fitted(RetrieverScaler(), results), fitted(RetrieverScaler(engine="opensearch"), results)
    with pytest.raises(
        OptionError, match=r"RetrieverScaler\('minmax', engine='elasticsearch'\).* opensearch-hybrid cannot"
    ):
        export(of_es, to="opensearch-hybrid")
    with pytest.raises(OptionError, match="These can: opensearch-hybrid"):
        export(of_os, to="elasticsearch-hybrid")
    with pytest.raises(OptionError, match=r"QueryMinMaxScaler.* elasticsearch-hybrid cannot do"):
        export(fitted(QueryMinMaxScaler(), results), to="elasticsearch-hybrid")
    with pytest.raises(OptionError, match=r'put a RetrieverScaler\(engine="opensearch"\) before the ranker'):
        export(fitted(None, results), to="opensearch-hybrid")
    with pytest.raises(OptionError, match="subtracts a number from each score"):
        export(fitted(StandardScaler(), results), to="elasticsearch-hybrid")
    for target in ("solr", "python", "onnx", "sql", "vespa"):
        with pytest.raises(OptionError, match=r"RetrieverScaler\('minmax', engine='elasticsearch'\)"):
            export(of_es, to=target)
    negative = RankSVM().fit(-np.nan_to_num(X), y, qid=qid)
    with pytest.raises(OptionError, match=r"the weight of 'vector' is -.*monotone=\"increasing\""):
        export(negative, to="elasticsearch-hybrid", names=NAMES)
    negative.coef_[:] = 0.0
    with pytest.raises(OptionError, match="all weights of the model are 0"):
        export(negative, to="elasticsearch-hybrid", names=NAMES)
    wide = np.random.default_rng(0).random((len(y), 6))
    with sklearn.config_context(enable_metadata_routing=True):
        scaler, ranker = RetrieverScaler(engine="opensearch"), RankSVM(monotone="increasing")
        six = make_pipeline(scaler, ranker).fit(wide, y, qid=qid)
    with pytest.raises(OptionError, match="has 6 retrievers, but a hybrid query of OpenSearch has at most 5"):
        export(six, to="opensearch-hybrid")


def test_a_stored_model_is_the_same(results, tmp_path):
    X, _, qid = results
    model = fitted(RetrieverScaler("l2_norm"), results)
    ranksvm.save(model, tmp_path / "model.rsvm")
    again = ranksvm.load(tmp_path / "model.rsvm")
    np.testing.assert_array_equal(scores_of(again, X, qid), scores_of(model, X, qid))
    assert export(again, to="elasticsearch-hybrid").text == export(model, to="elasticsearch-hybrid").text
