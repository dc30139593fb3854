"""Fitting without query ids: refused where several queries are plausible, a warning otherwise, and said outright."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import ranksvm
from ranksvm.data.queries import MAX_ROWS_WITHOUT_QID
from ranksvm.exceptions import DataError, OneQueryWarning

MODELS = [
    ranksvm.RankSVM(C=1e-4),
    ranksvm.RankSVMCV(Cs=[1e-4]),
    ranksvm.KernelRankSVM(kernel="linear", C=1e-4),
    ranksvm.FactorizedRankSVM(C=1e-4, random_state=0),
    ranksvm.RegularizedRankSVM(C=1e-4),
    ranksvm.SOLARRanker(random_state=0),
    ranksvm.PRanker(random_state=0),
]


def rows(n):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    return X, (X[:, 0] > 1.2).astype(float)


def arguments(model, X, y):
    """Those that the model needs besides: a choice among C needs validation data where there is one query."""
    return {"eval_set": [(X, y)]} if isinstance(model, ranksvm.RankSVMCV) else {}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_many_rows_are_refused_and_few_told(model):
    X, y = rows(MAX_ROWS_WITHOUT_QID + 1)
    with pytest.raises(DataError, match=r"fit got 1,001 rows without query ids.* qid=.* group=\[1001\]"):
        model.fit(X, y, **arguments(model, X, y))
    X, y = rows(60)
    with pytest.warns(OneQueryWarning, match="all 60 rows are one query") as caught:
        model.fit(X, y, **arguments(model, X, y))
    assert len(caught) == 1


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("said", [{"group": [1200]}, {"qid": np.zeros(1200)}])
def test_one_query_can_be_said_outright(model, said):
    X, y = rows(1200)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneQueryWarning)
        model.fit(X, y, **said, **arguments(model, X, y))
    assert model.n_queries_ == 1


def test_the_warning_is_of_the_callers_line():
    X, y = rows(60)
    with pytest.warns(OneQueryWarning) as caught:
        ranksvm.RankSVM().fit(X, y)
    assert caught[0].filename == __file__


def test_pairs_need_no_queries():
    X, _ = rows(1200)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneQueryWarning)
        ranksvm.RankSVM().fit(X, pairs=[[0, 1], [3, 2]])


def test_one_query_at_a_time_needs_no_id():
    X, y = rows(1200)
    with warnings.catch_warnings():
        warnings.simplefilter("error", OneQueryWarning)
        ranksvm.SOLARRanker(random_state=0).partial_fit(X, y)


def test_cross_val_score_without_queries():
    X, y = rows(2000)
    with pytest.raises(ValueError, match="1,600 rows without query ids"):
        cross_val_score(ranksvm.RankSVM(), X, y)
    with pytest.warns(OneQueryWarning):
        cross_val_score(ranksvm.RankSVM(C=1e-3), X[:200], y[:200])


@pytest.mark.parametrize("name", ["qid", "query_id", "group_id", "session", "Query-ID"])
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_column_named_like_ids_of_queries_is_no_feature(name, library):
    frames = pytest.importorskip(library)
    pytest.importorskip("narwhals")
    X, y = rows(60)
    qid = np.repeat([1, 2, 3], 20)
    frame = frames.DataFrame({"a": X[:, 0], "b": X[:, 1], name: qid})
    for model in (ranksvm.RankSVM(C=1e-3), ranksvm.SOLARRanker(random_state=0)):
        for given in ({"qid": qid}, {"group": [20, 20, 20]}):
            refused = f"X has a column '{name}'.* qid='{name}'; or drop it .* or rename it"
            if (name, *given) == ("qid", "group"):
                refused = "or a column 'qid' of a DataFrame.* or group .*, not both"
            with pytest.raises(DataError, match=refused):
                model.fit(frame, y, **given)
        assert model.fit(frame, y, qid=name).n_queries_ == 3
        assert list(model.feature_names_in_) == ["a", "b"]
    other = frames.DataFrame({"a": X[:, 0], "b": X[:, 1], "session_length": X[:, 2]})
    assert ranksvm.RankSVM().fit(other, y, qid=qid).n_features_in_ == 3


@pytest.mark.parametrize(
    ("name", "what"),
    [
        *((name, "labels, .*: pass it as y and drop it from X") for name in ("label", "Relevance", "grade", "rel")),
        *((name, "ids of documents, .*: drop it") for name in ("docid", "doc_id", "document", "document_id")),
        *((name, "an index of pandas, .*: drop it") for name in ("Unnamed: 0", "__index_level_0__")),
    ],
)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_column_named_like_labels_or_documents_is_no_feature(name, what, library):
    """A copy of the labels among the features was fitted, with NDCG 1."""
    frames = pytest.importorskip(library)
    pytest.importorskip("narwhals")
    X, y = rows(60)
    qid = np.repeat([1, 2, 3], 20)
    frame = frames.DataFrame({"a": X[:, 0], name: y})
    for fit in (
        ranksvm.RankSVM().fit,
        ranksvm.KernelRankSVM().fit,
        ranksvm.SOLARRanker().partial_fit,
        lambda X, y, qid: ranksvm.cross_validate(ranksvm.RankSVM(), X, y, qid=qid),
    ):
        with pytest.raises(DataError, match=f"X has a column '{name}', which is named like {what}; or rename it"):
            fit(frame, y, qid=qid)
    assert ranksvm.RankSVM(C=1e-3).fit(frame[["a"]], y, qid=qid).n_features_in_ == 1
    renamed = frames.DataFrame({"a": X[:, 0], f"{name}_model": X[:, 1]})
    assert ranksvm.RankSVM(C=1e-3).fit(renamed, y, qid=qid).n_features_in_ == 2


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_column_of_the_name_of_y_is_no_feature(library):
    frames = pytest.importorskip(library)
    pytest.importorskip("narwhals")
    X, y = rows(60)
    qid = np.repeat([1, 2, 3], 20)
    frame = frames.DataFrame({"a": X[:, 0], "target": y})
    for fit in (
        ranksvm.RankSVM().fit,
        ranksvm.PRanker().fit,
        lambda X, y, qid: ranksvm.cross_validate(ranksvm.RankSVM(), X, y, qid=qid),
        lambda X, y, qid: ranksvm.progressive_validation(ranksvm.SOLARRanker(), X, y, qid=qid),
    ):
        with pytest.raises(DataError, match=r"X has a column 'target', which is also the name of y.*y\.to_numpy\(\)"):
            fit(frame, frame["target"], qid=qid)
    model = ranksvm.RankSVM(C=1e-3).fit(frame, frame["target"].to_numpy(), qid=qid)
    assert list(model.feature_names_in_) == ["a", "target"]
    assert model.score(frame, frame["target"], qid=qid) == 1.0


def test_a_number_is_no_name_of_labels():
    frames = pytest.importorskip("pandas")
    X, y = rows(60)
    model = ranksvm.RankSVM(C=1e-3).fit(frames.DataFrame(X), frames.Series(y, name=0), qid=np.repeat([1, 2, 3], 20))
    assert model.n_features_in_ == X.shape[1]
