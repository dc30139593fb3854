"""DaskAdditiveRankSVMCV against AdditiveRankSVMCV: the same scores, choice and model, wherever the rows are."""

import os
import signal

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

import ranksvm
from counted_rounds import CountedRounds
from ranksvm import AdditiveRankSVMCV, Preferences
from ranksvm.dask import DaskAdditiveRankSVMCV, DaskRankSVMCV
from ranksvm.dask.backend import DaskBackend
from ranksvm.dask.choosing_ranker import Choosing
from ranksvm.exceptions import NoComparablePairsError, OptionError

pytestmark = pytest.mark.usefixtures("client")

OPTIONS = {"Cs": [0.01, 0.1], "step_weights": [0.0, 1.0], "cv": 3, "tol": 1e-9, "n_jobs": 1}


@pytest.fixture(scope="module")
def values(data):
    """Features with missing values, and one of few values."""
    X = data.X.astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    return X


def cut(array, chunk=100):
    return da.from_array(array, chunks=(chunk, *np.shape(array)[1:]))


def check_same(found, expected):
    for name in ("Cs_", "step_weights_", "interaction_counts_", "interactions_", "cuts_", "n_cuts_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("scores_", "mean_scores_", "standard_errors_"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-6)
    for name in (
        "C_",
        "step_weight_",
        "n_interactions_",
        "best_iteration_",
        "n_pairs_",
        "n_queries_",
        "fitted_params_",
    ):
        assert getattr(found, name) == getattr(expected, name)
    assert found.fitted_params_ == expected.fitted_params_
    assert found.best_score_ == pytest.approx(expected.best_score_, abs=1e-6)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-8)
    np.testing.assert_allclose(found.shape_values_, expected.shape_values_, atol=2e-4)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"interactions": [0, 2], "categorical": [3], "step_weights": [1.0]},
        {"pair_weighting": "gain_gap", "metric": "map", "rule": "one_standard_error"},
        {"interactions": [(0, 5)], "monotone": "increasing", "step_weights": [1.0]},
    ],
    ids=lambda options: ",".join(map(str, options)) or "default",
)
def test_by_folds(data, values, options):
    options = OPTIONS | options
    expected = AdditiveRankSVMCV(**options).fit(values, data.y, qid=data.qid)
    found = DaskAdditiveRankSVMCV(**options).fit(cut(values), cut(data.y), qid=cut(data.qid))
    check_same(found, expected)
    assert found.scores_.shape == (len(found.step_weights_), 2, 3)


def test_a_value_that_is_missing_in_one_test_part_only(data):
    X = data.X.astype(np.float32)
    X[7, 3] = np.nan
    expected = AdditiveRankSVMCV(**OPTIONS).fit(X, data.y, qid=data.qid)
    check_same(DaskAdditiveRankSVMCV(**OPTIONS).fit(cut(X), cut(data.y), qid=cut(data.qid)), expected)


@pytest.mark.parametrize("patience", [None, 1])
def test_on_evaluation_sets(data, values, patience):
    train, valid = data.qid % 3 > 0, data.qid % 3 == 0
    options = OPTIONS | {"Cs": [1e-4, 1e-3, 0.01, 1.0], "early_stopping_rounds": patience}
    sets = {"eval_names": ["valid", "train"], "eval_metric": ["map"]}
    there = [(values[part], data.y[part]) for part in (valid, train)]
    qids = [data.qid[part] for part in (valid, train)]
    given = values[train], data.y[train]
    expected = AdditiveRankSVMCV(**options).fit(*given, qid=data.qid[train], eval_set=there, eval_qid=qids, **sets)
    found = DaskAdditiveRankSVMCV(**options).fit(
        *map(cut, given),
        qid=cut(data.qid[train]),
        eval_set=[tuple(map(cut, each)) for each in there],
        eval_qid=[*map(cut, qids)],
        **sets,
    )
    check_same(found, expected)
    assert found.evals_result_.keys() == expected.evals_result_.keys()
    for name, metrics in expected.evals_result_.items():
        assert found.evals_result_[name].keys() == metrics.keys()
        for metric, scores in metrics.items():
            np.testing.assert_allclose(found.evals_result_[name][metric], scores, atol=1e-6)


def test_listed_pairs(data, values):
    rng = np.random.default_rng(0)
    pairs = []
    for query in np.unique(data.qid)[:20]:
        rows = np.flatnonzero(data.qid == query)
        pairs += [(a, b) for a, b in rng.choice(rows, (15, 2)) if data.y[a] > data.y[b]]
    pairs = np.array(pairs)
    options = OPTIONS | {"interactions": [1, 2], "step_weights": [1.0]}
    expected = AdditiveRankSVMCV(**options).fit(values, pairs=pairs, qid=data.qid)
    found = DaskAdditiveRankSVMCV(**options).fit(cut(values), pairs=pairs, qid=cut(data.qid))
    check_same(found, expected)
    chosen, rejected = np.nan_to_num(values[pairs[:, 0]]), np.nan_to_num(values[pairs[:, 1]])
    given = Preferences(chosen, rejected)
    expected = AdditiveRankSVMCV(**OPTIONS).fit(given)
    found = DaskAdditiveRankSVMCV(**OPTIONS).fit(Preferences(cut(chosen), cut(rejected)))
    assert found.C_ == expected.C_
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-6)


def test_the_local_model(data, values, tmp_path):
    ranker = DaskAdditiveRankSVMCV(**OPTIONS).fit(cut(values), cut(data.y), qid=cut(data.qid))
    local = ranker.to_local()
    assert type(local) is AdditiveRankSVMCV
    assert len(local.shapes()) == values.shape[1]
    ranker.save(tmp_path / "model")
    np.testing.assert_array_equal(ranksvm.load(tmp_path / "model").predict(values), local.predict(values))
    np.testing.assert_array_equal(ranker.predict(cut(values)).compute(), local.predict(values))


def test_errors(data, values):
    given = cut(values), cut(data.y)
    with pytest.raises(OptionError, match="step_weights"):
        DaskAdditiveRankSVMCV(step_weights=[-1.0]).fit(*given, qid=cut(data.qid))
    with pytest.raises(OptionError, match="rule"):
        DaskAdditiveRankSVMCV(rule="worst").fit(*given, qid=cut(data.qid))
    y = np.where(data.qid == data.qid[0], data.y, 0.0)
    with pytest.raises(NoComparablePairsError, match="training part of fold"):
        DaskAdditiveRankSVMCV(**OPTIONS).fit(given[0], cut(y), qid=cut(data.qid))


@pytest.fixture
def interruptible():
    """Handle SIGINT as in the foreground: a process that was started in the background ignores it."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, handler)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_a_choice_with_the_settings_that_were_solved(data, values, monkeypatch):
    on_sets = Choosing.on_sets

    def interrupted(self, models):
        found = on_sets(self, models)
        os.kill(os.getpid(), signal.SIGINT)
        return found

    monkeypatch.setattr(Choosing, "on_sets", interrupted)
    given = cut(values), cut(data.y)
    options = OPTIONS | {"step_weights": [0.0, 1.0, 2.0]}
    ranker = DaskAdditiveRankSVMCV(**options, keep_on_interrupt=True)
    ranker.fit(*given, qid=cut(data.qid), eval_set=[given], eval_qid=[cut(data.qid)])
    assert ranker.step_weights_.tolist() == [0.0]
    assert ranker.duality_gap_ <= 1e-9 * ranker.objective_
    assert ranker.status_.startswith("Interrupted")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("kind", [DaskRankSVMCV, DaskAdditiveRankSVMCV])
def test_an_interrupted_choice_compares_all_values_of_C(data, values, monkeypatch, kind):
    Cs = [1e-6, 1e-3, 0.1]
    ranker = kind(Cs, tol=1e-9, keep_on_interrupt=True)
    if kind is DaskAdditiveRankSVMCV:
        ranker.set_params(step_weights=[1.0])
    X, y, qid = cut(np.nan_to_num(values)), cut(data.y), cut(data.qid)
    rounds = CountedRounds(monkeypatch, DaskBackend)
    whole = clone(ranker).fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid])
    rounds.interrupt_in_the_last()
    ranker.fit(X, y, qid=qid, eval_set=[(X, y)], eval_qid=[qid])
    assert ranker.status_.startswith("Interrupted")
    assert ranker.Cs_.tolist() == Cs
    assert ranker.C_ == whole.C_
    np.testing.assert_allclose(ranker.mean_scores_, whole.mean_scores_, atol=1e-6)


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_of_folds_is_an_interrupt(data, values, monkeypatch):
    monkeypatch.setattr(Choosing, "on_fold", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        DaskAdditiveRankSVMCV(**OPTIONS, keep_on_interrupt=True).fit(cut(values), cut(data.y), qid=cut(data.qid))
