"""Fits in rounds with evaluation sets: early stopping, callbacks, best rounds, of all models that have rounds."""

import warnings

import numpy as np
import pytest

import ranksvm
from ranksvm import FactorizedRankSVM, KernelRankSVMCV, RankSVM, RankSVMCV, SOLARRanker, make_ranking
from ranksvm.exceptions import DataError, OptionError
from ranksvm.metrics import evaluate

CS = [1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0]
IN_ROUNDS = [
    RankSVMCV(CS),
    KernelRankSVMCV(CS, [0.1]),
    FactorizedRankSVM(C=1.0, random_state=0, max_epochs=30),
    SOLARRanker(C=0.1, n_passes=10, random_state=0),
    ranksvm.PRanker(n_passes=10, random_state=0),
    ranksvm.PairwisePerceptronRanker(n_passes=10, average=True, random_state=0),
    ranksvm.PerceptronCommitteeRanker(n_passes=10, random_state=0),
]
EXACT = [RankSVM(), ranksvm.KernelRankSVM(), ranksvm.RegularizedRankSVM()]


def named(model):
    return type(model).__name__


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=30, n_docs=(4, 10), n_features=6, noise=2.0, random_state=0)


@pytest.fixture(scope="module")
def valid():
    return make_ranking(n_queries=20, n_docs=(4, 10), n_features=6, noise=2.0, random_state=1)


def fit(model, data, valid, **options):
    model = type(model)(**{**model.get_params(), **options.pop("params", {})})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(data.X, data.y, qid=data.qid, eval_set=(valid.X, valid.y), eval_qid=valid.qid, **options)


def value(model, valid, metric="ndcg@10"):
    return evaluate(valid.y, model.predict(valid.X), valid.qid, [metric])[metric]


@pytest.mark.parametrize("model", IN_ROUNDS, ids=named)
@pytest.mark.parametrize("patience", [1, 2])
def test_early_stopping_is_a_prefix_of_the_whole_run_and_keeps_its_best(model, patience, data, valid):
    whole = fit(model, data, valid).evals_result_["valid_0"]["ndcg@10"]
    fitted = fit(model, data, valid, params={"early_stopping_rounds": patience})
    found = fitted.evals_result_["valid_0"]["ndcg@10"]
    best_so_far = place = 0
    for place, each in enumerate(whole):
        if each > whole[best_so_far]:
            best_so_far = place
        if place - best_so_far >= patience:
            break
    assert found == whole[: place + 1]
    assert fitted.best_iteration_ == best_so_far + 1
    assert fitted.best_score_ == whole[best_so_far]
    assert value(fitted, valid) == pytest.approx(fitted.best_score_)


def test_the_attributes_of_a_stopped_path(data, valid, tmp_path):
    fitted = fit(RankSVMCV(CS), data, valid, params={"early_stopping_rounds": 1})
    n = len(fitted.Cs_)
    assert fitted.Cs_.tolist() == CS[:n]
    assert fitted.scores_.shape == (n, 1)
    assert fitted.Cs_[fitted.best_iteration_ - 1] == fitted.C_
    fitted.save_model(tmp_path / "model")
    assert ranksvm.load(tmp_path / "model").best_iteration_ == fitted.best_iteration_


def test_each_gamma_has_its_own_patience(data, valid):
    gammas = [0.01, 0.1, 1.0]
    fitted = fit(KernelRankSVMCV(CS, gammas), data, valid, params={"early_stopping_rounds": 1})
    tried = np.isfinite(fitted.scores_[:, :, 0])
    assert tried.any(axis=1).all()
    found = fitted.evals_result_["valid_0"]["ndcg@10"]
    assert found == fitted.scores_[:, :, 0][tried].tolist()
    assert found[fitted.best_iteration_ - 1] == fitted.best_score_
    assert value(fitted, valid) == pytest.approx(fitted.best_score_)


def test_the_best_iteration_of_folds(data):
    fitted = RankSVMCV(CS, cv=3).fit(data.X, data.y, qid=data.qid)
    assert fitted.Cs_[fitted.best_iteration_ - 1] == fitted.C_


@pytest.mark.parametrize("model", IN_ROUNDS, ids=named)
def test_callbacks_see_every_round_and_stop(model, data, valid):
    seen = []

    def watch(env):
        ((name, metric, found, maximize),) = env.evaluation_result_list
        seen.append((env.iteration, name, metric, found, maximize, env.begin_iteration, env.end_iteration))
        assert env.params == env.model.get_params(deep=False)
        return env.iteration == 2

    fitted = fit(model, data, valid, eval_names="held out", callbacks=[watch])
    values = fitted.evals_result_["held out"]["ndcg@10"]
    most = seen[0][-1]
    assert seen == [(place, "held out", "ndcg@10", values[place], True, 0, most) for place in range(3)]
    assert most >= 3
    if isinstance(model, FactorizedRankSVM):
        assert fitted.status_ == "Stopped by a callback of fit, which returned True."
        assert not fitted.converged_


def test_callbacks_without_sets(data):
    rounds = []
    options = {"qid": data.qid, "callbacks": [lambda env: rounds.append(env.evaluation_result_list)]}
    SOLARRanker(n_passes=3).fit(data.X, data.y, **options)
    assert rounds == [[], [], []]
    with pytest.raises(OptionError, match="callbacks follow the solutions along C on validation data"):
        RankSVMCV(CS).fit(data.X, data.y, **options)


@pytest.mark.parametrize("model", IN_ROUNDS[::2], ids=named)
def test_a_callback_that_fails_leaves_the_model_as_it_was(model, data, valid):
    def fail(env):
        raise RuntimeError("no more")

    fitted = fit(model, data, valid)
    before = dict(vars(fitted))
    with pytest.raises(RuntimeError, match="no more"):
        fitted.fit(data.X, data.y, qid=data.qid, eval_set=(valid.X, valid.y), eval_qid=valid.qid, callbacks=[fail])
    assert vars(fitted) == before


@pytest.mark.parametrize("model", IN_ROUNDS, ids=named)
@pytest.mark.parametrize(
    ("callbacks", "message"),
    [
        (print, "callbacks must be a list of functions"),
        ([1], "callbacks has 1: a callback is a function of one argument"),
        ([type("Stop", (), {"stopping_rounds": 7})()], "give early_stopping_rounds=7 to the constructor"),
        ([type("Before", (), {"before_iteration": True, "__call__": print})()], "called after each round"),
    ],
)
def test_other_callbacks_are_refused(model, callbacks, message, data, valid):
    with pytest.raises(OptionError, match=message):
        fit(model, data, valid, callbacks=callbacks)


@pytest.mark.parametrize("model", IN_ROUNDS, ids=named)
def test_early_stopping_needs_sets_and_a_number(model, data, valid):
    for patience, message in ((0, "early_stopping_rounds must be a whole number from 1"), (2.5, "whole number")):
        with pytest.raises(OptionError, match=message):
            fit(model, data, valid, params={"early_stopping_rounds": patience})
    model = type(model)(early_stopping_rounds=3)
    with pytest.raises(OptionError, match="early_stopping_rounds=3 needs data to evaluate on"):
        model.fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize("model", IN_ROUNDS + EXACT, ids=named)
def test_metrics_names_and_weights_of_sets(model, data, valid):
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(valid.y))
    fitted = fit(
        model, data, valid, eval_names=["test"], eval_metric=["map", "ndcg"], eval_at=[3], eval_sample_weight=weight
    )
    own = [] if named(model) in map(named, EXACT) else ["ndcg@10"]
    assert list(fitted.evals_result_["test"]) == [*own, "map@3", "ndcg@3"]
    last = -1 if not hasattr(fitted, "C_") else fitted.best_iteration_ - 1
    scores = fitted.predict(valid.X)
    for metric, values in fitted.evals_result_["test"].items():
        expected = evaluate(valid.y, scores, valid.qid, metric, sample_weight=weight)[metric]
        assert values[last] == pytest.approx(expected)


@pytest.mark.parametrize("model", [*IN_ROUNDS[2:4], *EXACT], ids=named)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"eval_names": ["a", "b"]}, "eval_names must be 1 different strings"),
        ({"eval_names": [3]}, "eval_names must be 1 different strings"),
        ({"eval_sample_weight": [1.0, 2.0]}, "eval_set, valid_0: eval_sample_weight has 2 entries"),
        ({"eval_metric": "auc"}, "unknown metric 'auc'"),
        ({"eval_at": [0]}, "cut-off of ndcg must be at least 1"),
    ],
)
def test_what_cannot_be_evaluated(model, options, message, data, valid):
    with pytest.raises((DataError, OptionError), match=message):
        fit(model, data, valid, **options)


@pytest.mark.parametrize("option", ["eval_names", "eval_sample_weight", "eval_metric", "eval_at"])
def test_options_of_sets_without_sets(option, data):
    with pytest.raises(DataError, match=rf"{option} is given without eval_set=\[\(X, y\)\]"):
        RankSVM().fit(data.X, data.y, qid=data.qid, **{option: "map" if option == "eval_metric" else [1]})


def test_an_online_model_learns_on_from_its_best_pass(data, valid, tmp_path):
    model = SOLARRanker(order=2, n_passes=10, gamma=1.0, early_stopping_rounds=2, random_state=0)
    fitted = fit(model, data, valid)
    again = fit(model, data, valid, params={"n_passes": fitted.best_iteration_, "early_stopping_rounds": None})
    np.testing.assert_array_equal(fitted.coef_, again.coef_)
    np.testing.assert_array_equal(fitted.covariance_, again.covariance_)
    fitted.save(tmp_path / "model")
    for each in (fitted, again, loaded := ranksvm.load(tmp_path / "model")):
        each.partial_fit(valid.X, valid.y, qid=valid.qid)
    np.testing.assert_array_equal(fitted.coef_, again.coef_)
    np.testing.assert_array_equal(fitted.coef_, loaded.coef_)
    assert loaded.evals_result_ == fitted.evals_result_


def test_verbose_passes(data, valid, caplog):
    fit(SOLARRanker(n_passes=2, verbose=1), data, valid)
    words = [line.split(":")[0] for line in caplog.messages]
    assert words == ["pass 1", "pass 1", "pass 2", "pass 2"]


@pytest.mark.parametrize("model", [*IN_ROUNDS, *EXACT], ids=named)
def test_importances(model, data, valid):
    fitted = fit(model, data, valid)
    if "Kernel" in named(model):
        assert not hasattr(fitted, "feature_importances_")
        return
    np.testing.assert_allclose(fitted.feature_importances_, abs(fitted.coef_) / abs(fitted.coef_).sum())
    assert not hasattr(type(model)(), "feature_importances_")
