"""AdditiveRankSVMCV: the choice among step weights, C and numbers of interactions."""

import numpy as np
import pytest

import ranksvm
from ranksvm import AdditiveRankSVM, AdditiveRankSVMCV, Preferences, RankSVM
from ranksvm.exceptions import OptionError
from ranksvm.fits import additive_levels


def curved(n_queries=60, n_docs=10, seed=0, curve=True):
    random = np.random.default_rng(seed)
    n = n_queries * n_docs
    X = random.normal(size=(n, 5))
    utility = X[:, 0] - X[:, 1]
    if curve:
        utility = -(X[:, 0] ** 2) + X[:, 1] + 2.0 * X[:, 2] * X[:, 3]
    y = np.digitize(utility + 0.3 * random.normal(size=n), [-1.0, 0.5, 1.5])
    return X, y, np.repeat(np.arange(n_queries), n_docs)


def test_every_score_is_that_of_its_model():
    X, y, qid = curved()
    Z, v, q = curved(seed=1)
    search = AdditiveRankSVMCV(Cs=[0.01, 0.1], step_weights=[0.0, 1.0], interactions=[0, 1])
    search.fit(X, y, qid=qid, eval_set=[(Z, v)], eval_qid=[q])
    assert search.step_weights_.tolist() == [0.0, 0.0, 1.0, 1.0]
    assert search.interaction_counts_.tolist() == [0, 1, 0, 1]
    assert search.scores_.shape == (4, 2, 1)
    for row, weight, count in zip(search.scores_, search.step_weights_, search.interaction_counts_, strict=True):
        for score, C in zip(row[:, 0], search.Cs_, strict=True):
            pairs = [(2, 3)] if count else 0  # the pair that is planted
            one = AdditiveRankSVM(C=C, step_weight=weight, interactions=pairs).fit(X, y, qid=qid)
            assert one.score(Z, v, qid=q) == pytest.approx(score, abs=2e-3)
    assert search.best_score_ == search.mean_scores_.max()
    assert (search.step_weight_, search.n_interactions_) == (1.0, 1)
    assert search.interactions_.tolist() == [[2, 3]]
    assert search.interaction_bounds_[7] == 0.0  # the pair (2, 3)
    assert search.candidate_bounds_.argmax() == 7
    assert search.score(Z, v, qid=q) == pytest.approx(search.best_score_)


def test_folds_refit_the_choice_to_all_data():
    X, y, qid = curved()
    search = AdditiveRankSVMCV(Cs=[0.01, 0.1], cv=3).fit(X, y, qid=qid)
    assert search.scores_.shape == (3, 2, 3)
    assert search.step_weight_ > 0.0
    again = AdditiveRankSVM(C=search.C_, step_weight=search.step_weight_).fit(X, y, qid=qid)
    assert search.objective_ == pytest.approx(again.objective_, rel=2e-4)
    assert search.fitted_params_["step_weight"] == search.step_weight_


def test_a_linear_truth_gives_a_linear_model_or_one_as_good():
    X, y, qid = curved(120, curve=False)
    Z, v, q = curved(seed=3, curve=False)
    search = AdditiveRankSVMCV(cv=3).fit(X, y, qid=qid)
    linear = RankSVM(C=0.1).fit(X, y, qid=qid)
    assert search.score(Z, v, qid=q) >= linear.score(Z, v, qid=q) - 0.01


def test_missing_values_and_listed_interactions_in_folds():
    X, y, qid = curved()
    X[::7, 4] = np.nan
    search = AdditiveRankSVMCV(Cs=[0.1], step_weights=[1.0], interactions=[(2, 3)], cv=2).fit(X, y, qid=qid)
    assert search.interaction_counts_.tolist() == [-1]
    assert search.n_interactions_ == 1
    assert np.isfinite(search.predict(X)).all()


@pytest.mark.parametrize("interactions", [1, [(2, 3)], [(2, 3), (0, 4)], []])
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_bounds_are_for_the_chosen_c(interactions, loss):
    X, y, qid = curved()
    options = {"interactions": interactions, "loss": loss, "tol": 1e-7}
    search = AdditiveRankSVMCV(Cs=[0.01, 0.1], step_weights=[1.0], **options)
    # all scores are equal, so that the smallest C is chosen, not the middle one
    search.fit(X, y, qid=qid, eval_set=[(X, np.zeros(len(X)))], eval_qid=[qid])
    assert search.C_ == 0.01
    one = AdditiveRankSVM(C=search.C_, **options).fit(X, y, qid=qid)
    assert search.interactions_.tolist() == one.interactions_.tolist()
    np.testing.assert_allclose(search.candidate_bounds_, one.candidate_bounds_, rtol=1e-2)
    np.testing.assert_allclose(search.interaction_bounds_, one.interaction_bounds_, rtol=1e-2, atol=1e-6)


def test_bounds_if_no_interaction_is_chosen():
    X, y, qid = curved()
    search = AdditiveRankSVMCV(Cs=[0.01], step_weights=[1.0], interactions=[0, 1])
    search.fit(X, y, qid=qid, eval_set=[(X, np.zeros(len(X)))], eval_qid=[qid])
    assert search.n_interactions_ == 0
    assert (search.candidate_bounds_ == search.interaction_bounds_).all()
    assert not search.interaction_table()["chosen"].any()


def test_a_value_that_is_missing_in_one_test_part_only():
    X, y, qid = curved()
    kind = np.random.default_rng(0).integers(0, 3, len(y))
    X[:, 4] = kind
    X[33, 4] = 7.0  # a category of one query
    X[5, 1] = X[8, 4] = np.nan
    options = {"linear": False, "interactions": [(2, 3)], "categorical": [4]}
    search = AdditiveRankSVMCV(Cs=[0.1], step_weights=[1.0], cv=3, tol=1e-9, **options).fit(X, y, qid=qid)
    assert search.has_missing_.tolist() == [0, 1, 0, 0, 1]
    filled = X.copy()
    filled[5, 1], filled[8, 4] = -1e6, 99.0  # the first level, and no category: without effect
    for fold, (train, test) in enumerate(ranksvm.QueryKFold(3).split(X, y, qid)):
        one = AdditiveRankSVM(C=0.1, tol=1e-9, **options)
        Z = filled if np.isin([5, 8], test).all() else X
        score = one.fit(X[train], y[train], qid=qid[train]).score(Z[test], y[test], qid=qid[test])
        assert search.scores_[0, 0, fold] == pytest.approx(score, abs=1e-6)


@pytest.mark.parametrize("text", [False, True])
def test_frames_with_a_value_that_is_missing_in_one_test_part_only(text):
    pd = pytest.importorskip("pandas")
    X, y, qid = curved()
    frame = pd.DataFrame(X, columns=list("abcde"))
    frame["e"] = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    if text:
        frame["e"] = frame["e"].map({0.0: "red", 1.0: "blue", 2.0: "white"})
    frame.loc[8, "e"] = None if text else np.nan
    search = AdditiveRankSVMCV(Cs=[0.1], step_weights=[1.0], cv=3, categorical=["e"]).fit(frame, y, qid=qid)
    assert search.has_missing_.tolist() == [0, 0, 0, 0, 1]
    assert np.isfinite(search.scores_).all()


def test_pairs_files_and_calibration(tmp_path):
    random = np.random.default_rng(0)
    data = Preferences(random.normal(0.4, 1.0, (150, 3)), random.normal(0.0, 1.0, (150, 3)))
    search = AdditiveRankSVMCV(Cs=[0.01, 0.1], step_weights=[0.5], cv=3).fit(data)
    assert 0.5 < search.best_score_ < 1.0
    assert search.calibrate(data).predict_proba(data).shape == (150,)
    search.save(tmp_path / "model")
    loaded = ranksvm.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(data.chosen), search.predict(data.chosen))
    assert np.array_equal(loaded.mean_scores_, search.mean_scores_)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"step_weights": [-1.0]}, "step_weights must be"),
        ({"step_weights": ["a"]}, "step_weights must be numbers"),
        ({"step_weights": ["0.1"]}, "step_weights must be numbers"),
        ({"step_weights": [True]}, "step_weights must be numbers"),
        ({"step_weights": []}, "step_weights must be a list"),
        ({"step_weights": [0.0], "linear": False}, "leave nothing to learn"),
        ({"step_weights": [0.0, 1.0], "linear": False}, "leave nothing to learn"),
        ({"interactions": "all"}, "interactions must be"),
        ({"interactions": [1, -1]}, "interactions must be"),
        ({"interactions": [(0, 0)]}, "with itself"),
        ({"max_bins": 1000}, "max_bins must be"),
    ],
)
def test_invalid_options(params, message):
    X, y, qid = curved(10)
    with pytest.raises(OptionError, match=message):
        AdditiveRankSVMCV(cv=2, **params).fit(X, y, qid=qid)


def test_all_pairs_of_features_are_tried_once():
    data = ranksvm.make_ranking(n_queries=20, n_docs=10, n_features=4, random_state=0)
    ranker = AdditiveRankSVMCV([0.01], step_weights=[1.0], interactions="auto", cv=2)
    assert ranker.fit(data.X, data.y, qid=data.qid).interaction_counts_.tolist() == [0, 8]  # there are 6 pairs
    ranker.set_params(interactions=[4, 6, 7])
    assert ranker.fit(data.X, data.y, qid=data.qid).interaction_counts_.tolist() == [4, 6]


def test_codes_of_validation_data_are_looked_up_once(monkeypatch):
    X, y, qid = curved()
    calls, plain = [], additive_levels.codes_of
    monkeypatch.setattr(additive_levels, "codes_of", lambda *given: calls.append(1) or plain(*given))
    options = {"Cs": [1e-3, 1e-2], "interactions": [0, 2], "cv": 3}
    ranker = AdditiveRankSVMCV(**options).fit(X, y, qid=qid)
    assert ranker.scores_.shape == (6, 2, 3)
    assert len(calls) == 3
    calls.clear()
    sets = {"eval_set": [(X, y), (X[:300], y[:300])], "eval_qid": [qid, qid[:300]]}
    AdditiveRankSVMCV(**options).fit(X, y, qid=qid, **sets)
    assert len(calls) == 2


def test_interactions_of_a_fold_of_pairs_are_those_of_its_training_part():
    data = ranksvm.make_ranking(n_queries=30, n_docs=10, n_features=6, random_state=0)
    score = data.X[:, 0] * data.X[:, 1] + data.X[:, 2]
    rng = np.random.default_rng(0)
    ends = np.concatenate([query * 10 + rng.choice(10, (15, 2)) for query in range(30)])
    ends = ends[ends[:, 0] != ends[:, 1]]
    pairs = ends[score[ends[:, 0]] + 0.3 * rng.normal(size=len(ends)) > score[ends[:, 1]]]
    options = {"step_weights": [1.0], "tol": 1e-9, "interactions": 3}
    folds = [
        (np.flatnonzero(data.qid[pairs[:, 0]] % 3 != fold), np.flatnonzero(data.qid[pairs[:, 0]] % 3 == fold))
        for fold in range(3)
    ]
    found = AdditiveRankSVMCV([0.05], cv=folds, **options).fit(data.X, pairs=pairs, qid=data.qid)
    chosen = set()
    for fold, (train, test) in enumerate(folds):
        # the levels are those of all rows, which stay where they are
        alone = AdditiveRankSVM(0.05, tol=1e-9, interactions=3).fit(data.X, pairs=pairs[train], qid=data.qid)
        preferred, other = alone.predict(data.X)[pairs[test]].T
        accuracy = ranksvm.metrics.evaluate_pairs(preferred, other, data.qid[pairs[test, 0]]).means
        assert found.scores_[0, 0, fold] == pytest.approx(accuracy["pairwise_accuracy"], abs=1e-12)
        chosen.add(str(alone.interactions_.tolist()))
    assert len(chosen) > 1
