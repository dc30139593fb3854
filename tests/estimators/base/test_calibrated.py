"""calibrate and predict_proba: held-out margins are those of folds fitted one by one; the slope is that of a search."""

import numpy as np
import pandas as pd
import pytest
from scipy import optimize
from scipy.special import expit

from ranksvm import (
    AdditiveRankSVM,
    KernelRankSVM,
    KernelRankSVMCV,
    Preferences,
    QueryKFold,
    RankSVM,
    RankSVMCV,
    load,
    make_ranking,
)
from ranksvm.estimators.base.calibrated import platt_slope
from ranksvm.exceptions import DataError, OptionError

MODELS = {
    "linear": RankSVM(C=0.1, tol=1e-8),
    "searched": RankSVMCV(Cs=[0.01, 0.1], tol=1e-8),
    "kernel": KernelRankSVM(C=0.1, gamma=0.05, tol=1e-8),
    "searched kernel": KernelRankSVMCV(Cs=[0.1], gammas=[0.05, 0.2], cv=3, tol=1e-8),
}


def made(n_pairs=150, n_features=5, seed=0, slope=1.0, **options):
    """Answers whose preferences follow the model of Bradley and Terry."""
    random = np.random.default_rng(seed)
    first, second = random.normal(size=(2, n_pairs, n_features))
    w = slope * np.linspace(1.0, 0.0, n_features)
    swapped = random.random(n_pairs) > expit((first - second) @ w)
    chosen = np.where(swapped[:, None], second, first)
    return Preferences(chosen, np.where(swapped[:, None], first, second), prompt=np.arange(n_pairs) // 3, **options)


def by_hand(model, data, cv=5):
    margins = np.empty(data.n_pairs)
    for train, test in QueryKFold(cv).split(data.pairs, groups=data.prompt):
        fold = model.fit(data.taken(train))
        margins[test] = fold.predict(data.chosen[test]) - fold.predict(data.rejected[test])
    return platt_slope(margins, np.ones(data.n_pairs) if data.weight is None else data.weight)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_slope_is_that_of_folds_fitted_one_by_one(name, weighted):
    data = made(weight=np.random.default_rng(1).random(150) if weighted else None)
    model = MODELS[name].fit(data)
    before = model.predict(data.chosen)
    assert model.calibrate(data) is model
    np.testing.assert_array_equal(model.predict(data.chosen), before)
    if "kernel" in name:
        alone = KernelRankSVM(C=getattr(model, "C_", 0.1), gamma=model.gamma_, tol=1e-8)
    else:
        alone = RankSVM(C=getattr(model, "C_", 0.1), tol=1e-8)
    assert model.calibration_slope_ == pytest.approx(by_hand(alone, data), rel=1e-6)
    listed = {"pairs": data.pairs, "pair_weight": data.weight, "qid": data.qid}
    slope = model.calibration_slope_
    assert model.calibrate(data.X, **listed).calibration_slope_ == pytest.approx(slope)


def test_probabilities():
    data, test = made(), made(seed=1)
    model = RankSVM(C=0.1).fit(data).calibrate(data)
    p = model.predict_proba(test.chosen, test.rejected)
    margins = model.predict(test.chosen) - model.predict(test.rejected)
    np.testing.assert_allclose(p, expit(model.calibration_slope_ * margins))
    np.testing.assert_allclose(p + model.predict_proba(test.rejected, test.chosen), 1.0, atol=1e-15)
    np.testing.assert_array_equal(model.predict_proba(test.chosen, test.chosen), 0.5)


def test_they_are_those_of_bradley_and_terry():
    """With many pairs the probabilities are those that the preferences were drawn with."""
    data, random = made(6000, slope=2.0), np.random.default_rng(5)
    first, second = random.normal(size=(2, 3000, 5))
    truth = expit(2.0 * (first - second) @ np.linspace(1.0, 0.0, 5))
    p = RankSVM(C=1e-3).fit(data).calibrate(data).predict_proba(first, second)
    assert np.abs(p - truth).mean() < 0.02


def test_margins_of_pairs_seen_are_too_large():
    """With nearly as many features as pairs the training margins say nothing of the probabilities; the folds' do."""
    data, test = made(120, 80), made(3000, 80, seed=0)
    test = Preferences(test.chosen[1500:], test.rejected[1500:])

    def log_loss(model):
        return -np.log(model.predict_proba(test.chosen, test.rejected)).mean()

    crossed = RankSVM(C=1.0).fit(data).calibrate(data)
    seen = RankSVM(C=1.0).fit(data).calibrate(data, cv=None)
    assert log_loss(crossed) < 0.7 < log_loss(seen)


def test_pairs_held_out_already():
    data, other = made(), made(seed=1)
    model = RankSVM(C=0.1).fit(data).calibrate(other, cv=None)
    margins = model.predict(other.chosen) - model.predict(other.rejected)
    assert model.calibration_slope_ == pytest.approx(platt_slope(margins, np.ones(150)))


def test_a_fit_needs_a_new_calibration():
    data = made()
    model = RankSVM(C=0.1)
    for _ in range(2):
        assert not hasattr(model, "predict_proba")
        with pytest.raises(AttributeError, match=r"predict_proba needs a calibrated model: call calibrate\("):
            model.predict_proba(data.chosen, data.rejected)
        assert hasattr(model.fit(data).calibrate(data), "predict_proba")
        model.fit(data)
    assert "Probability that the document" in RankSVM.predict_proba.__doc__


def test_hyper_parameters_are_those_of_the_fit():
    data = made()
    model = RankSVM(C=0.1).fit(data).calibrate(data)
    expected = model.calibration_slope_
    assert model.set_params(C=100.0).calibrate(data).calibration_slope_ == pytest.approx(expected)


@pytest.mark.parametrize("name", MODELS)
def test_model_files_keep_it(name, tmp_path):
    data = made()
    model = MODELS[name].fit(data).calibrate(data, cv=3)
    model.save(tmp_path / "model")
    found = load(tmp_path / "model").predict_proba(data.chosen, data.rejected)
    np.testing.assert_array_equal(found, model.predict_proba(data.chosen, data.rejected))


def test_a_precomputed_kernel():
    data = made()
    gram = data.X @ data.X.T
    model = KernelRankSVM(C=0.1, kernel="precomputed", tol=1e-8).fit(gram, pairs=data.pairs, qid=data.qid)
    model.calibrate(gram, pairs=data.pairs, qid=data.qid)
    assert model.calibration_slope_ == pytest.approx(by_hand(RankSVM(C=0.1, tol=1e-8), data), rel=1e-3)
    assert model.predict_proba(gram[:150], gram[150:]).shape == (150,)


def test_frames_with_a_column_of_queries():
    data = made()
    frame = pd.DataFrame(data.X, columns=list("abcde")).assign(prompt=data.qid)
    model = RankSVM(C=0.1).fit(frame, pairs=data.pairs, qid="prompt")
    found = model.calibrate(frame, pairs=data.pairs).calibration_slope_
    assert found == pytest.approx(RankSVM(C=0.1).fit(data).calibrate(data).calibration_slope_)


def test_what_is_refused():
    data = made()
    model = RankSVM().fit(data)
    with pytest.raises(DataError, match="calibrate needs pairs"):
        model.calibrate(data.X)
    with pytest.raises(DataError, match="pairs is given in addition to Preferences"):
        model.calibrate(data, pairs=data.pairs)
    with pytest.raises(DataError, match="n_splits is 80 but there are only 50"):
        model.calibrate(data, cv=80)
    with pytest.raises(DataError, match="X has 3 features, but RankSVM is expecting 5"):
        model.calibrate(Preferences(data.chosen[:, :3], data.rejected[:, :3]))
    assert not hasattr(model, "predict_proba")
    model.calibrate(data)
    with pytest.raises(DataError, match="chosen has 150 rows and rejected 149"):
        model.predict_proba(data.chosen, data.rejected[:-1])


@pytest.mark.parametrize("option", [{"pair_weighting": "gain_gap"}, {"pair_selection": "adjacent"}], ids=str)
@pytest.mark.parametrize("kind", [RankSVM, KernelRankSVM, AdditiveRankSVM, RankSVMCV])
def test_models_that_need_labels_are_calibrated_on_new_pairs(kind, option):
    data = make_ranking(n_queries=10, n_docs=6, n_features=3, random_state=0)
    model = kind(**option).fit(data.X, data.y, qid=data.qid)
    pairs = np.array([[np.argmax(data.y), np.argmin(data.y)]])
    (name,) = option
    with pytest.raises(OptionError, match=f"{name}='.*' of this model needs labels, .* and cv=None"):
        model.calibrate(data.X, pairs=pairs)
    assert model.calibrate(data.X, pairs=pairs, cv=None).calibration_slope_ > 0


@pytest.mark.parametrize("kind", [RankSVM, lambda **options: RankSVMCV(Cs=[0.1], cv=3, **options)])
def test_signs_are_those_of_the_fit_whatever_is_set_since(kind):
    data = made()
    ranker = kind(monotone={0: "decreasing"}).fit(data)
    slope = ranker.calibrate(data).calibration_slope_
    assert slope > 0.0
    assert kind().fit(data).calibrate(data).calibration_slope_ != slope
    assert ranker.set_params(monotone=None).calibrate(data).calibration_slope_ == slope


def test_a_pruned_model_has_to_be_calibrated_again():
    data = made()
    ranker = KernelRankSVM(C=0.1, gamma=0.05).fit(data).calibrate(data)
    ranker.prune(0.1)
    with pytest.raises(AttributeError, match=r"predict_proba needs .* after every fit \(or prune\)"):
        ranker.predict_proba(data.chosen, data.rejected)


def test_predict_proba_takes_preferences():
    data = made()
    model = RankSVM(C=0.1).fit(data).calibrate(data)
    part = data.taken(np.arange(10))
    np.testing.assert_array_equal(model.predict_proba(part), model.predict_proba(part.chosen, part.rejected))
    with pytest.raises(DataError, match=r"predict_proba\(chosen, rejected\)"):
        model.predict_proba(data.chosen)


def loss(slope, margins, weight):
    n = np.count_nonzero(weight)
    target = (n + 1) / (n + 2)
    log_p, log_other = -np.logaddexp(0, -slope * margins), -np.logaddexp(0, slope * margins)
    return -weight @ (target * log_p + (1 - target) * log_other)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_has_the_largest_likelihood(scale, weighted):
    random = np.random.default_rng(0)
    margins = random.normal(0.4, 1.0, 200) * scale
    weight = random.integers(0, 3, 200).astype(float) if weighted else np.ones(200)
    found = platt_slope(margins, weight)
    best = optimize.minimize_scalar(lambda log: loss(np.exp(log) / scale, margins, weight), bounds=(-10, 10)).x
    assert found == pytest.approx(np.exp(best) / scale, rel=1e-4)
    assert platt_slope(3.0 * margins, weight) == pytest.approx(found / 3.0)


def test_the_slope_of_margins_that_are_all_right_is_finite():
    margins = np.array([1.0, 2.0, 0.5])
    slope = platt_slope(margins, np.ones(3))
    assert 0.0 < slope < 10.0
    many = platt_slope(np.tile(margins, 1000), np.ones(3000))
    assert slope < many < np.inf


@pytest.mark.parametrize("margins", [[-1.0, 0.5], [0.0, 0.0], [-1.0, 1.0], []])
def test_margins_that_say_nothing(margins):
    assert platt_slope(np.array(margins), np.ones(len(margins))) == 0.0


def test_pairs_without_weight():
    assert platt_slope(np.ones(2), np.zeros(2)) == 0.0
