"""Rankers without scikit-learn: the same fits, files and scores as those of the estimators."""

import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator

import ranksvm
from ranksvm.estimators import ONLINE_CHOICES
from ranksvm.estimators.base.linear_ranker import (
    SAVED_LINEAR_RANKERS,
    SAVED_ONLINE_RANKERS,
    LinearRanker,
    SavedLinearRanker,
    SavedOnlineRanker,
)
from ranksvm.estimators.base.online_ranker import OnlineRanker
from ranksvm.estimators.rank_svm import RankSVMCore
from ranksvm.model_files.persistence import load_as
from ranksvm.model_files.registry import STORABLE

LINEAR = [
    ranksvm.RankSVM(C=0.1),
    ranksvm.RankSVMCV(Cs=[0.01, 0.1], cv=3),
    ranksvm.FactorizedRankSVM(C=0.1),
    ranksvm.RegularizedRankSVM(C=0.1),
]
OTHERS = [
    ranksvm.KernelRankSVM(C=0.1, kernel="linear"),
    ranksvm.SOLARRanker(),
    ranksvm.PRanker(),
    ranksvm.PairwisePerceptronRanker(),
    ranksvm.PerceptronCommitteeRanker(),
]


@pytest.fixture(scope="module")
def ranking():
    return ranksvm.make_ranking(n_queries=20, n_docs=10, n_features=4, random_state=0)


def saved(ranker, path):
    ranker.save(path)
    return path.read_bytes()


def test_the_parameters_are_defined_once():
    assert "__init__" not in vars(ranksvm.RankSVM)
    assert "fit" not in vars(ranksvm.RankSVM)
    assert inspect.signature(ranksvm.RankSVM) == inspect.signature(RankSVMCore)
    assert not issubclass(RankSVMCore, BaseEstimator)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix, sp.csr_array, np.asfortranarray, pd.DataFrame])
@pytest.mark.parametrize("options", [{}, {"loss": "hinge", "pair_selection": "adjacent"}, {"solver": "dual"}])
def test_the_fit_and_the_file_are_those_of_the_estimator(form, options, ranking, tmp_path):
    X = form(ranking.X)
    rankers = [
        kind(C=0.1, n_jobs=1, **options).fit(X, ranking.y, qid=ranking.qid) for kind in (RankSVMCore, ranksvm.RankSVM)
    ]
    files = [saved(ranker, tmp_path / f"{number}") for number, ranker in enumerate(rankers)]
    assert files[0] == files[1]
    loaded = ranksvm.load(tmp_path / "0")
    assert type(loaded) is ranksvm.RankSVM
    np.testing.assert_array_equal(loaded.predict(X), rankers[0].predict(X))


@pytest.mark.parametrize("estimator", LINEAR, ids=lambda estimator: type(estimator).__name__)
def test_a_saved_linear_ranker_scores_and_ranks(estimator, ranking, tmp_path):
    with np.errstate(all="raise"):
        estimator.fit(ranking.X, ranking.y, qid=ranking.qid)
    estimator.save(tmp_path / "model")
    found = load_as(tmp_path / "model", SAVED_LINEAR_RANKERS)
    assert isinstance(found, SavedLinearRanker)
    assert type(found).__name__ == type(estimator).__name__
    np.testing.assert_array_equal(found.predict(ranking.X), estimator.predict(ranking.X))
    order, expected = (each.rank(ranking.X, ranking.qid) for each in (found, estimator))
    for query, rows in expected.items():
        np.testing.assert_array_equal(order[query], rows)


def test_the_rankers_that_need_only_their_weights_are_listed(ranking):
    fitted = [estimator.fit(ranking.X, ranking.y, qid=ranking.qid) for estimator in [*LINEAR, *OTHERS]]
    stored = {type(each).__name__ for each in fitted if isinstance(each, LinearRanker) and "coef_" in vars(each)}
    assert stored | {"ImportedRanker"} == set(SAVED_LINEAR_RANKERS)  # which is not fitted


@pytest.mark.parametrize("choice", ONLINE_CHOICES.values(), ids=ONLINE_CHOICES)
def test_a_saved_online_ranker_scores(choice, ranking, tmp_path):
    ranker = getattr(ranksvm, choice.estimator)(**choice.fixed_params, random_state=0)
    ranker.fit(ranking.X, ranking.y, qid=ranking.qid).save(tmp_path / "model")
    found = load_as(tmp_path / "model", SAVED_ONLINE_RANKERS)
    assert isinstance(found, SavedOnlineRanker) == choice.linear
    np.testing.assert_array_equal(found.predict(ranking.X), ranker.predict(ranking.X))


def test_every_online_ranker_is_a_choice():
    online = {name for name, cls in STORABLE.items() if issubclass(cls, OnlineRanker)}
    assert online == {choice.estimator for choice in ONLINE_CHOICES.values()}


def test_messages_show_the_name_of_the_saved_class(ranking, tmp_path):
    ranksvm.RankSVM(C=0.1).fit(pd.DataFrame(ranking.X).add_prefix("f"), ranking.y, qid=ranking.qid).save(tmp_path / "m")
    found = load_as(tmp_path / "m", SAVED_LINEAR_RANKERS)
    with pytest.warns(UserWarning, match="X does not have valid feature names, but RankSVM was fitted"):
        found.predict(ranking.X)
    with pytest.raises(ranksvm.exceptions.DataError, match="but RankSVM is expecting 4 features"):
        found.predict(ranking.X[:, :3].copy())


def test_a_ranker_that_is_not_fitted_says_so(ranking, tmp_path):
    for ranker in (RankSVMCore(), ranksvm.RankSVM()):
        for use in (lambda r: r.predict(ranking.X), lambda r: r.save(tmp_path / "model"), lambda r: r.coef_table()):
            with pytest.raises(ValueError, match="This RankSVM instance is not fitted yet"):
                use(ranker)


def test_type_errors_name_the_public_class():
    for call in (
        lambda: ranksvm.RankSVM(c=1.0),
        lambda: ranksvm.RankSVM().fit(),
        lambda: ranksvm.RankSVM().fit([], x=1),
    ):
        with pytest.raises(TypeError, match=r"^RankSVM\.(__init__|fit)\(\) "):
            call()
