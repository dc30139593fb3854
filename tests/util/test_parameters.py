"""The table of hyper-parameters agrees with the estimators and with the lists that other modules hold."""

import inspect

import pytest

import ranksvm
from ranksvm._util import checks
from ranksvm._util.parameters import PARAMETERS, OneOf, parameters_of
from ranksvm.exceptions import OptionError
from ranksvm.kernels import KERNELS, LANDMARK_METHODS

ESTIMATORS = {
    "linear": ranksvm.RankSVM,
    "additive": ranksvm.AdditiveRankSVM,
    "kernel": ranksvm.KernelRankSVM,
    "factorized": ranksvm.FactorizedRankSVM,
    "regularized": ranksvm.RegularizedRankSVM,
    "online": ranksvm.PairwisePerceptronRanker,
    "committee": ranksvm.PerceptronCommitteeRanker,
    "solar": ranksvm.SOLARRanker,
}


def names_of(model, name):
    return next(each.constraint.names for each in parameters_of(model) if each.name == name)


def test_every_model_is_an_estimator():
    assert {model for each in PARAMETERS for model in each.models} == set(ESTIMATORS)


@pytest.mark.parametrize("model", ESTIMATORS)
def test_rows_are_parameters_of_the_estimator_once(model):
    names = [each.name for each in parameters_of(model)]
    assert len(names) == len(set(names))
    assert set(names) <= set(inspect.signature(ESTIMATORS[model]).parameters)


@pytest.mark.parametrize("model", ESTIMATORS)
def test_the_defaults_of_the_estimator_are_valid(model):
    defaults = {name: each.default for name, each in inspect.signature(ESTIMATORS[model]).parameters.items()}
    # the memory limit, the device and others are checked by the library
    checks.check_parameters(model, defaults, random_state=checks.seed)
    for each in parameters_of(model):
        if isinstance(each.constraint, OneOf):
            with pytest.raises(OptionError, match=f"^{each.name} must be .*'absent'"):
                checks.check_parameters(model, {each.name: "absent"})


@pytest.mark.parametrize(
    ("name", "value"),
    [("warm_start", "False"), ("keep_on_interrupt", 1), ("verbose", "no"), ("verbose", -1), ("random_state", -1)],
)
@pytest.mark.parametrize("model", ESTIMATORS)
def test_invalid_values_are_refused_by_name(model, name, value):
    data = ranksvm.make_ranking(n_queries=4, n_docs=4, n_features=2, random_state=0)
    ranker = ESTIMATORS[model]()
    if name in ranker.get_params():
        with pytest.raises(OptionError, match=f"^{name} must be .*{value!r}"):
            ranker.set_params(**{name: value}).fit(data.X, data.y, qid=data.qid)


def test_verbose_may_be_a_bool():
    checks.check_parameters("linear", {"verbose": True})


def test_the_names_are_those_of_the_library():
    assert names_of("kernel", "kernel") == (*KERNELS, "precomputed")
    assert names_of("kernel", "landmarks") == tuple(LANDMARK_METHODS)
