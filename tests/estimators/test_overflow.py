"""What overflows is refused: online learners name the row and are left as they were, options are named."""

import copy

import numpy as np
import pytest
import scipy.sparse as sp

import ranksvm
from ranksvm.exceptions import DataError, OptionError

MODELS = {
    "first order": ranksvm.SOLARRanker(random_state=0),
    "first order, mean": ranksvm.SOLARRanker(average=True, random_state=0),
    "first order that forgets": ranksvm.SOLARRanker(decay=0.9, random_state=0),
    "second order": ranksvm.SOLARRanker(2, random_state=0),
    "diagonal": ranksvm.SOLARRanker(2, covariance="diagonal", random_state=0),
    "PRank": ranksvm.PRanker(random_state=0),
    "perceptron": ranksvm.PairwisePerceptronRanker(average=True, random_state=0),
    "committee": ranksvm.PerceptronCommitteeRanker(2, random_state=0),
}
Y = np.array([2.0, 0, 1, 0])


def documents(sparse=False, **values):
    X = np.random.default_rng(0).normal(size=(4, 6))
    X[:, 4:] = 0
    for place, value in values.items():
        X[int(place[1]), int(place[2])] = value
    return sp.csr_matrix(X) if sparse else X


def state(model):
    return copy.deepcopy({name: value for name, value in vars(model).items() if name.endswith("_")})


def assert_same(model, before):
    after = state(model)
    assert after.keys() == before.keys()
    for name, value in before.items():
        np.testing.assert_array_equal(after[name], value)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_huge_features(name, sparse):
    for values in ({"x01": 1.7e308, "x11": -1.7e308}, {"x01": 1e154, "x22": 1e300}, {"x30": -1e308, "x21": 1e200}):
        model = copy.deepcopy(MODELS[name]).fit(documents(sparse), Y)
        X, before = documents(sparse, **values), state(model)
        rows = {int(place[1]) for place in values}
        for learn in (model.partial_fit, model.predict_then_learn):
            said = refusal(learn, X)
            if said is None:
                assert np.isfinite(model.coef_).all()
                assert np.isfinite(model.counts_).all()
                break
            assert any(f"row {row} (from 0)" in said for row in rows)
            assert_same(model, before)


def refusal(learn, X):
    try:
        learn(X, Y)
    except DataError as error:
        return str(error)
    return None


@pytest.mark.parametrize("name", ["first order", "perceptron", "committee", "diagonal", "second order"])
def test_opposite_features_of_1e308_are_refused(name):
    model = copy.deepcopy(MODELS[name])
    X = documents(x01=1.7e308, x11=-1.7e308)
    for learn in (model.fit, model.partial_fit):
        with pytest.raises(DataError, match=r"overflows float64, and the model is as it was .* row [01] \(from 0\)"):
            learn(X, Y)
        assert not hasattr(model, "weights_")


def test_denormal_propensities():
    for model in (ranksvm.SOLARRanker(), ranksvm.RankSVM()):
        with pytest.raises(DataError, match=r"pairs in which row 2 \(from 0\) is preferred overflows"):
            model.fit(documents(), Y, propensity=[1, 1, 5e-324, 1])


def test_enormous_weights():
    model = ranksvm.PairwisePerceptronRanker(random_state=0).fit(documents(), Y)
    before = state(model)
    with pytest.raises(DataError, match=r"weights are as large as 1.7e\+308"):
        model.partial_fit_pairs(documents(), [[0, 1], [1, 0], [0, 1], [1, 0]], weight=[1.7e308] * 4)
    assert_same(model, before)


def test_scores_that_overflow():
    model = ranksvm.PairwisePerceptronRanker().fit(documents(x01=1e70), Y)
    with pytest.raises(DataError, match=r"score of row 0 \(from 0\) is -?inf"):
        model.predict(documents(x01=1e250))


def test_rows_that_few_columns_have_are_restored_in_them():
    X = sp.csr_matrix(([1.0, 2.0, 1.7e308, -1.7e308], ([0, 1, 2, 3], [1, 7, 500, 500])), shape=(4, 1000))
    model = ranksvm.SOLARRanker(average=True, random_state=0).fit(abs(X[:2]), [1, 0])
    before = state(model)
    with pytest.raises(DataError, match=r"row [23] \(from 0\) has the value 1.7e\+308 in feature f501"):
        model.partial_fit(X, Y)
    assert_same(model, before)


@pytest.mark.parametrize(
    "model",
    [
        ranksvm.RankSVM(C=10**400),
        ranksvm.RankSVM(tol=10**400),
        ranksvm.RankSVM(loss="huber", huber_width=10**400),
        ranksvm.RankSVM(max_iter=10**400),
        ranksvm.RankSVMCV(Cs=[10**400]),
        ranksvm.KernelRankSVM(gamma=10**400),
        ranksvm.KernelRankSVM(kernel="poly", degree=10**400),
        ranksvm.KernelRankSVM(n_components=10**400, approximation="nystroem"),
        ranksvm.KernelRankSVM(memory_limit=10**400),
        ranksvm.FactorizedRankSVM(n_components=10**400),
        ranksvm.FactorizedRankSVM(learning_rate=10**400),
        ranksvm.RegularizedRankSVM(lam=10**400),
        ranksvm.SOLARRanker(C=10**400),
    ],
    ids=lambda model: type(model).__name__,
)
def test_options_that_are_too_large_for_any_number(model):
    X, y, qid = np.random.default_rng(0).normal(size=(40, 3)), np.arange(40) % 3, np.repeat(np.arange(8), 5)
    with pytest.raises(OptionError, match="must be"):
        model.fit(X, y, qid=qid)
