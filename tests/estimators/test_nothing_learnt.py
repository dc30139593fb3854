"""Fits and calibrations that learn nothing say so."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from ranksvm import (
    AdditiveRankSVM,
    KernelRankSVM,
    KernelRankSVMCV,
    Preferences,
    RankSVM,
    RankSVMCV,
    make_ranking,
    metrics,
)
from ranksvm.exceptions import UninformativeWarning

RANDOM = np.random.default_rng(0)
CHOSEN, REJECTED = RANDOM.normal(0.3, 1.0, (90, 4)), RANDOM.normal(0.0, 1.0, (90, 4))
MODELS = {
    "newton": RankSVM(solver="newton"),
    "tron": RankSVM(solver="tron"),
    "hinge": RankSVM(loss="hinge"),
    "dual": RankSVM(C=0.01, solver="dual"),
    "search": RankSVMCV(Cs=[0.1, 1.0], cv=3),
    "kernel": KernelRankSVM(gamma=1.0),
    "search of kernels": KernelRankSVMCV(Cs=[0.1], gammas=[0.5, 1.0], cv=3),
    "nystroem": KernelRankSVM(gamma=1.0, approximation="nystroem", n_components=5),
}


@pytest.mark.parametrize("name", MODELS)
def test_equal_documents_of_every_pair(name):
    with pytest.warns(UninformativeWarning, match="were chosen and rejected the same array") as found:
        model = MODELS[name].fit(Preferences(CHOSEN, CHOSEN))
    assert np.ptp(model.predict(REJECTED)) == 0.0
    assert [warning.filename for warning in found] == [__file__]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_hard_fit_of_the_dual_is_not_mistaken_for_one_that_learned_nothing():
    data = make_ranking(60, 20, 5, random_state=0)
    y = RANDOM.integers(0, 3, len(data.y))
    model = RankSVM(C=1e4, loss="hinge", solver="dual", max_iter=300).fit(data.X, y, qid=data.qid)
    assert model.coef_.any()


def test_constant_features_of_labels():
    with pytest.warns(UninformativeWarning, match="nothing to learn"):
        RankSVM().fit(np.ones((6, 2)), [0, 1, 2, 0, 1, 2], qid=[1, 1, 1, 2, 2, 2])


@pytest.mark.parametrize("options", [{}, {"interactions": 1}, {"monotone": "increasing"}, {"loss": "hinge"}])
def test_constant_features_of_a_model_without_linear_part(options):
    """There are no variables: each feature has one level."""
    X, y, qid = np.ones((6, 2)), [0, 1, 2, 0, 1, 2], [1, 1, 1, 2, 2, 2]
    with pytest.warns(UninformativeWarning, match="nothing to learn"):
        model = AdditiveRankSVM(linear=False, **options).fit(X, y, qid=qid)
    assert model.objective_ == 6.0
    assert model.converged_
    assert not model.predict(X).any()


def test_signs_that_no_weight_can_have():
    with pytest.warns(UninformativeWarning, match="no weight that monotone admits"):
        RankSVM(monotone="increasing").fit([[1.0], [0.0]], [0, 1], qid=[1, 1])


def test_each_pair_in_both_directions():
    with pytest.warns(UninformativeWarning, match="the pairs contradict each other"):
        RankSVM().fit(CHOSEN, pairs=[(0, 1), (1, 0), (2, 3), (3, 2)])


SMALL = {
    "newton": RankSVM(solver="newton"),
    "tron": RankSVM(solver="tron"),
    "hinge": RankSVM(loss="hinge"),
    "logistic": RankSVM(loss="logistic"),
    "monotone": RankSVM(monotone={0: -1}),
    "dual": RankSVM(solver="dual"),
    "direct": RankSVM(solver="direct"),
    "kernel": KernelRankSVM(gamma=0.1),
    "hinge of a kernel": KernelRankSVM(gamma=0.1, loss="hinge"),
    "additive": AdditiveRankSVM(),
}


@pytest.mark.parametrize("C", [1e-7, 1e-10])
@pytest.mark.parametrize("name", SMALL)
def test_a_small_C_ranks_although_tol_allows_weights_of_0(name, C):
    data = make_ranking(n_queries=10, n_docs=10, n_features=3, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UninformativeWarning)
        model = clone(SMALL[name]).set_params(C=C).fit(data.X, data.y, qid=data.qid)
    assert model.converged_
    assert metrics.evaluate(data.y, model.predict(data.X), data.qid, "pairwise_accuracy")["pairwise_accuracy"] > 0.8


@pytest.mark.parametrize("name", MODELS)
def test_what_has_been_learnt_is_not_warned_about(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error", UninformativeWarning)
        MODELS[name].fit(Preferences(CHOSEN, REJECTED))
        data = make_ranking(n_queries=10, random_state=0)
        MODELS[name].fit(data.X, data.y, qid=data.qid)


def test_a_slope_of_0():
    model = RankSVM(C=0.1).fit(Preferences(CHOSEN, REJECTED))
    n_right = int((model.predict(CHOSEN) < model.predict(REJECTED)).sum())
    with pytest.warns(UninformativeWarning, match=f"{n_right} of 90 are in the right order and 0 have equal") as found:
        model.calibrate(Preferences(REJECTED, CHOSEN), cv=None)
    assert found[0].filename == __file__
    assert model.calibration_slope_ == 0.0
    with pytest.warns(UninformativeWarning, match="0 of 90 are in the right order and 90 have equal scores"):
        model.calibrate(Preferences(CHOSEN, CHOSEN), cv=None)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UninformativeWarning)
        assert model.calibrate(Preferences(CHOSEN, REJECTED)).calibration_slope_ > 0.0
