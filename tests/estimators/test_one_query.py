"""Fitting without query ids: refused where several queries are plausible, a warning otherwise, and said outright."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import cross_val_score

import ranksvm
from ranksvm.data.validation import MOST_ROWS_WITHOUT_QID
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
    X, y = rows(MOST_ROWS_WITHOUT_QID + 1)
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
                refused = "a column 'qid' of a DataFrame is that, too.* or group .*, not both"
            with pytest.raises(DataError, match=refused):
                model.fit(frame, y, **given)
        assert model.fit(frame, y, qid=name).n_queries_ == 3
        assert list(model.feature_names_in_) == ["a", "b"]
    other = frames.DataFrame({"a": X[:, 0], "b": X[:, 1], "session_length": X[:, 2]})
    assert ranksvm.RankSVM().fit(other, y, qid=qid).n_features_in_ == 3
