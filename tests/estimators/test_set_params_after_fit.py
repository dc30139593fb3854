"""A fitted model is what was fitted: its methods do not read hyper-parameters, which may have been set since."""

import copy

import numpy as np
import pytest
from sklearn.base import clone

import ranksvm
from ranksvm import (
    FactorizedRankSVM,
    KernelRankSVM,
    KernelRankSVMCV,
    PairwisePerceptronRanker,
    PerceptronCommitteeRanker,
    PRanker,
    RankSVM,
    RankSVMCV,
    RegularizedRankSVM,
    SOLARRanker,
    make_ranking,
)

DATA = make_ranking(n_queries=12, n_docs=8, n_features=4, random_state=0)
X, Y, QID = DATA.X.astype(np.float64), DATA.y, DATA.qid
# What is about how to work, not about what a model is.
HOW = {"n_jobs", "verbose", "memory_limit"}
WITH_DUAL = [
    RankSVM(C=0.01),
    RankSVM(C=0.1, loss="hinge", pair_selection="adjacent", pair_weighting="label_gap"),
    RankSVM(C=0.1, loss="huber", huber_width=0.3),
    RankSVMCV(Cs=[0.01, 0.1], cv=2, rule="one_standard_error"),
    KernelRankSVM(C=0.1, kernel="poly", degree=2, coef0=0.5, gamma=0.3),
    KernelRankSVM(C=0.1, kernel="linear"),
    KernelRankSVM(C=0.1, approximation="nystroem", n_components=20, random_state=0, pair_weighting="per_query"),
    KernelRankSVM(C=0.1, approximation="fourier", n_components=20, random_state=0, loss="hinge"),
    KernelRankSVMCV(Cs=[0.01, 0.1], gammas=[0.1, 0.5], cv=2),
    FactorizedRankSVM(C=0.1, random_state=0),
    RegularizedRankSVM(C=0.1, gamma=0.3, lam=0.5),
]
ONLINE = [
    SOLARRanker(C=0.1, average=True),
    SOLARRanker(order=2, gamma=1.0, covariance="diagonal"),
    SOLARRanker(order=2, gamma=1.0),
    PRanker(average=True),
    PairwisePerceptronRanker(average=True),
    PerceptronCommitteeRanker(n_experts=3),
]


def answers(model):
    """What all public methods and properties of a fitted model give, by name."""
    found = {
        "predict": model.predict(X),
        "rank": list(model.rank(X, QID).values()),
        "score": model.score(X, Y, qid=QID),
    }
    if hasattr(model, "dual_coef"):
        found["dual_coef"] = model.dual_coef(X, Y, QID).to_coo().toarray()
    if hasattr(model, "low_rank_coef"):
        found["low_rank_coef"] = [block.alpha for block in model.low_rank_coef(X, Y, QID)]
    if hasattr(model, "explain"):
        found["explain"] = model.explain(X, QID).contributions
        found["importance"] = model.feature_importance(X, QID)
        found["coef_table"] = model.coef_table()["weight"]
    if hasattr(model, "rank_one_query"):
        found["rank_one_query"] = model.rank_one_query(X)
        found["coef"] = model.coef_
    if getattr(model, "_covariance_", None) is not None:
        found["covariance"] = model.covariance_
    if hasattr(model, "support_vectors_"):
        found["prune"] = model.prune(0.05).n_dropped
        found["pruned"] = model.predict(X)
    return found


@pytest.mark.parametrize("model", [*WITH_DUAL, *ONLINE], ids=lambda model: str(model).replace("\n", ""))
def test_methods_read_what_was_fitted(model):
    model = clone(model).fit(X, Y, qid=QID)
    expected = answers(copy.deepcopy(model))
    # whatever reads one of these trips over it
    model.set_params(**{name: object() for name in model.get_params() if name not in HOW})
    found = answers(model)
    assert found.keys() == expected.keys()
    for name in expected:
        values, others = (each if isinstance(each, list) else [each] for each in (expected[name], found[name]))
        for one, other in zip(values, others, strict=True):
            np.testing.assert_array_equal(one, other, err_msg=name)


def test_the_dual_is_that_of_the_C_of_the_fit():
    model = RankSVM(C=0.01, tol=1e-10).fit(X, Y, qid=QID).set_params(C=1.0)
    beta = model.dual_coef(X, Y, QID).per_document()
    np.testing.assert_allclose(X.T @ beta, model.coef_, atol=1e-4)


def test_a_covariance_of_one_feature_keeps_its_shape():
    for covariance, other, shape in (("full", "diagonal", (1, 1)), ("diagonal", "full", (1,))):
        model = SOLARRanker(order=2, covariance=covariance).fit(X[:, :1], Y, qid=QID).set_params(covariance=other)
        assert model.covariance_.shape == shape


def test_a_warm_start_of_another_kernel_begins_from_the_function_of_the_last_fit():
    how = {"C": 0.1, "gamma": 0.2, "n_components": 96, "approximation": "nystroem", "random_state": 0, "tol": 1e-8}
    model = KernelRankSVM(kernel="rbf", **how).fit(X, Y, qid=QID)
    cold = KernelRankSVM(kernel="laplacian", **how).fit(X, Y, qid=QID)
    model.set_params(kernel="laplacian", warm_start=True).fit(X, Y, qid=QID)
    np.testing.assert_allclose(model.predict(X), cold.predict(X), atol=1e-3)
    assert model.fitted_params_["kernel"] == "laplacian"


@pytest.mark.parametrize("model", WITH_DUAL[:6], ids=lambda model: str(model).replace("\n", ""))
def test_what_was_fitted_is_saved(model, tmp_path):
    model = clone(model).fit(X, Y, qid=QID)
    expected = model.dual_coef(X, Y, QID).to_coo().toarray()
    changed = {"loss": "huber", "huber_width": 7.0, "pair_weighting": "gain_gap"}
    model.set_params(**changed, **({"C": 100.0} if hasattr(model, "C") else {}))
    model.save(tmp_path / "model")
    loaded = ranksvm.load(tmp_path / "model")
    assert loaded.loss == "huber"
    np.testing.assert_array_equal(loaded.dual_coef(X, Y, QID).to_coo().toarray(), expected)


@pytest.mark.parametrize("model", WITH_DUAL[:4], ids=lambda model: str(model).replace("\n", ""))
def test_files_of_earlier_versions_say_what_was_fitted_by_the_parameters(model, tmp_path):
    model = clone(model).fit(X, Y, qid=QID)
    expected = model.fitted_params_
    del model.fitted_params_
    model.save(tmp_path / "model")
    assert ranksvm.load(tmp_path / "model").fitted_params_ == expected
