"""The logistic loss through every estimator: searches, paths, model files, the command, and probabilities."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from command_runner import command_runner
from oracle import LogisticFunction
from ranksvm import (
    KernelRankSVM,
    KernelRankSVMCV,
    Preferences,
    RankSVM,
    RankSVMCV,
    load,
    make_ranking,
    regularization_path,
)
from ranksvm.analysis import weight_intervals
from ranksvm.cli import main
from ranksvm.datasets import write_data


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=40, n_docs=8, n_features=6, n_levels=3, noise=1.0, random_state=0)


def preferences(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return Preferences(rng.normal(0.3, 1.0, (n, 5)), rng.normal(0.0, 1.0, (n, 5)))


def test_it_is_the_logistic_regression_of_differences():
    data = preferences()
    weight = np.random.default_rng(1).integers(1, 5, 200).astype(float)
    model = RankSVM(0.5, loss="logistic", tol=1e-12).fit(Preferences(data.chosen, data.rejected, weight=weight))
    D, sign = data.chosen - data.rejected, np.where(np.arange(200) % 2, 1.0, -1.0)
    other = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-12, solver="newton-cholesky")
    other.fit(sign[:, None] * D, sign, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, other.coef_[0], atol=1e-6)
    probability = model.predict_proba(data.chosen, data.rejected)
    np.testing.assert_allclose(probability, other.predict_proba(D)[:, 1], atol=1e-6)


@pytest.mark.parametrize("search", [RankSVMCV, KernelRankSVMCV], ids=lambda kind: kind.__name__)
def test_searches(search, data):
    options = {"kernel": "rbf", "gammas": [0.1]} if search is KernelRankSVMCV else {}
    found, own = (
        search(Cs=[0.01, 0.1], cv=3, loss=loss, tol=1e-8, **options).fit(data.X, data.y, qid=data.qid)
        for loss in ("logistic", LogisticFunction())
    )
    assert found.C_ == own.C_
    np.testing.assert_allclose(found.scores_, own.scores_, atol=1e-3)
    assert found.predict_proba(data.X[:3], data.X[3:6]).shape == (3,)


def test_a_path(data):
    found, own = (
        regularization_path(data.X, data.y, qid=data.qid, Cs=[0.01, 0.1, 1.0], loss=loss, tol=1e-9)
        for loss in ("logistic", LogisticFunction())
    )
    np.testing.assert_allclose(found.objectives, own.objectives, rtol=1e-8)


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_features_that_stand_for_a_kernel(approximation, data):
    options = {"kernel": "rbf", "approximation": approximation, "n_components": 20, "random_state": 0, "tol": 1e-9}
    found, own = (
        KernelRankSVM(0.1, loss=loss, **options).fit(data.X, data.y, qid=data.qid)
        for loss in ("logistic", LogisticFunction())
    )
    assert found.objective_ == pytest.approx(own.objective_, rel=1e-8)


@pytest.mark.parametrize(
    "options", [{"monotone": "increasing"}, {"solver": "tron", "stopping": "gradient", "tol": 1e-6}]
)
def test_signs_and_the_published_rule(options, data):
    found, own = (
        RankSVM(0.1, loss=loss, **{"tol": 1e-9, **options}).fit(data.X, data.y, qid=data.qid)
        for loss in ("logistic", LogisticFunction())
    )
    assert found.objective_ == pytest.approx(own.objective_, rel=1e-8)
    assert found.converged_


def test_intervals_of_weights(data):
    found, own = (
        weight_intervals(RankSVM(0.01, loss=loss), data.X, data.y, qid=data.qid)
        for loss in ("logistic", LogisticFunction())
    )
    np.testing.assert_allclose(found.standard_errors, own.standard_errors, rtol=1e-4)


@pytest.mark.parametrize("model", [RankSVM(0.1), KernelRankSVM(0.1)], ids=lambda model: type(model).__name__)
def test_probabilities_need_no_calibration(model, tmp_path):
    data = preferences()
    model = clone(model).set_params(loss="logistic").fit(data)
    margins = model.predict(data.chosen) - model.predict(data.rejected)
    found = model.predict_proba(data.chosen, data.rejected)
    np.testing.assert_allclose(found, expit(margins))
    np.testing.assert_allclose(found + model.predict_proba(data.rejected, data.chosen), 1.0)
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert loaded.loss == "logistic"
    np.testing.assert_array_equal(loaded.predict_proba(data.chosen, data.rejected), found)
    # another loss for the next fit changes nothing of this one
    assert hasattr(model.set_params(loss="hinge"), "predict_proba")
    assert not hasattr(model.fit(data), "predict_proba")
    assert hasattr(model.set_params(loss="logistic").fit(data), "predict_proba")


def test_a_calibration_takes_precedence():
    data = preferences(60)
    model = RankSVM(100.0, loss="logistic").fit(data).calibrate(data)
    margins = model.predict(data.chosen) - model.predict(data.rejected)
    assert model.calibration_slope_ < 1.0
    found = model.predict_proba(data.chosen, data.rejected)
    np.testing.assert_allclose(found, expit(model.calibration_slope_ * margins))


def test_the_command(data, tmp_path, monkeypatch):
    write_data(data, tmp_path / "train.txt")
    line = ["train", "train.txt", "--loss", "logistic", "-C", "0.1", "-o", "m.rsvm"]
    monkeypatch.chdir(tmp_path)
    result = command_runner().invoke(main, line)
    assert result.exit_code == 0, result.output
    model = load(tmp_path / "m.rsvm")
    expected = RankSVM(0.1, loss="logistic").fit(data.X, data.y, qid=data.qid)
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-4)
    assert "logistic" in result.output
