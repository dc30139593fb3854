"""The path along C and RankSVMCV: the same as separate fits and loops, in fewer passes."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

from ranksvm import QueryKFold, QueryShuffleSplit, RankSVM, RankSVMCV, make_ranking, regularization_path
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError
from ranksvm.fits.linear import LinearProblem
from ranksvm.metrics import evaluate

C15 = 2.0 ** np.arange(-12, 3)
SOLVERS = pytest.mark.parametrize("solver", ["newton", "tron"])


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=60, n_docs=(5, 30), n_features=8, random_state=0)


@pytest.fixture(scope="module")
def validation():
    return make_ranking(n_queries=30, n_docs=(5, 30), n_features=8, random_state=1)


@SOLVERS
def test_the_path_is_a_fit_for_each_C(solver, data):
    path = regularization_path(data.X, data.y, qid=data.qid, Cs=[1.0, 1e-4, 0.01], solver=solver, tol=1e-9)
    assert path.Cs.tolist() == [1e-4, 0.01, 1.0]
    assert path.converged.all()
    for C, w, f, gap in zip(path.Cs, path.coefs, path.objectives, path.duality_gaps, strict=True):
        fit = RankSVM(C=C, solver=solver, tol=1e-9).fit(data.X, data.y, qid=data.qid)
        assert f == pytest.approx(fit.objective_, rel=1e-8)
        assert gap <= 1e-9 * f
        assert np.linalg.norm(w - fit.coef_) <= np.sqrt(2 * gap) + np.sqrt(2 * fit.duality_gap_)


def test_default_Cs_weights_and_groups(data):
    path = regularization_path(data.X, data.y, qid=data.qid)
    assert path.Cs.tolist() == [2.0**k for k in range(-15, 6)]
    assert path.coefs.shape == (21, 8)
    weight = 1.0 + data.qid % 3
    by_qid = regularization_path(data.X, data.y, qid=data.qid, Cs=0.1, query_weight=weight, tol=1e-10)
    group = np.unique(data.qid, return_counts=True)[1]
    by_group = regularization_path(data.X, data.y, group=group, Cs=0.1, query_weight=weight, tol=1e-10)
    np.testing.assert_allclose(by_qid.coefs, by_group.coefs, rtol=1e-9)
    fit = RankSVM(C=0.1, tol=1e-10).fit(data.X, data.y, qid=data.qid, query_weight=weight)
    assert by_qid.objectives[0] == pytest.approx(fit.objective_, rel=1e-9)


@SOLVERS
def test_fifteen_Cs_cost_less_than_five_fits(solver, monkeypatch):
    """Counted in passes over X (a product with the Hessian is one as an evaluation is), not in seconds."""
    data = make_ranking(n_queries=400, n_docs=(20, 60), n_features=25, random_state=2)
    passes = []
    original = LinearProblem.solve

    def solve(problem, C, *args, **kwargs):
        result = original(problem, C, *args, **kwargs)
        passes.append(result.history.evaluations[-1] + result.history.hessian_products[-1])
        return result

    monkeypatch.setattr(LinearProblem, "solve", solve)
    regularization_path(data.X, data.y, qid=data.qid, Cs=C15, solver=solver)
    along = sum(passes)
    passes.clear()
    for C in C15:
        RankSVM(C=C, solver=solver).fit(data.X, data.y, qid=data.qid)
    separate = sum(passes)
    assert along < 5 * separate / 15


def test_the_path_warns_where_it_stops_early(data):
    with pytest.warns(ConvergenceWarning, match=r"C = 1: Stopped at max_iter"):
        path = regularization_path(data.X, data.y, qid=data.qid, Cs=[1.0], solver="tron", tol=1e-12, max_iter=2)
    assert not path.converged[0]
    assert path.n_iter[0] == 2


@pytest.mark.parametrize(
    ("Cs", "message"),
    [
        ([1, -1], "Cs must be a positive, finite number, got -1"),
        ([], "Cs must be a list of numbers"),
        ([[1]], "Cs must be a list of numbers"),
        (["x"], "Cs must be positive, finite numbers"),
        (["1e-3"], "Cs must be positive, finite numbers"),
        ([0.1, True], "Cs must be positive, finite numbers"),
        (np.array([True]), "Cs must be positive, finite numbers"),
        ([0.1, 10**400], "Cs must be positive, finite numbers"),
    ],
)
def test_Cs_that_cannot_be(Cs, message, data):
    for call in (
        lambda: regularization_path(data.X, data.y, qid=data.qid, Cs=Cs),
        lambda: RankSVMCV(Cs=Cs).fit(data.X, data.y, qid=data.qid),
    ):
        with pytest.raises(OptionError, match=message):
            call()


@SOLVERS
@pytest.mark.parametrize("metric", ["ndcg@10", "map", "pairwise_accuracy"])
def test_a_choice_on_validation_data_is_that_of_the_loop(solver, metric, data, validation):
    Cs = [1.0, 1e-5, 1e-3, 0.1]
    model = RankSVMCV(Cs=Cs, metric=metric, solver=solver, tol=1e-9, convention="letor")
    model.fit(data.X, data.y, qid=data.qid, eval_set=(validation.X, validation.y), eval_qid=validation.qid)
    expected = []
    for C in sorted(Cs):
        fit = RankSVM(C=C, solver=solver, tol=1e-9).fit(data.X, data.y, qid=data.qid)
        scores = fit.predict(validation.X)
        expected.append(evaluate(validation.y, scores, validation.qid, [metric], convention="letor").means[metric])
    np.testing.assert_allclose(model.scores_[:, 0], expected, atol=2e-3)
    best = int(np.argmax(model.scores_[:, 0]))
    assert (model.C_, model.best_score_) == (sorted(Cs)[best], model.scores_[best, 0])
    fit = RankSVM(C=model.C_, solver=solver, tol=1e-9).fit(data.X, data.y, qid=data.qid)
    assert model.objective_ == pytest.approx(fit.objective_, rel=1e-8)
    assert np.linalg.norm(model.coef_ - fit.coef_) <= np.sqrt(2 * model.duality_gap_) + np.sqrt(2 * fit.duality_gap_)
    scores = model.predict(validation.X)
    assert evaluate(validation.y, scores, validation.qid, [metric], convention="letor").means[metric] == pytest.approx(
        model.best_score_, abs=1e-12
    )


@pytest.mark.parametrize("cv", [3, QueryKFold(4), QueryShuffleSplit(3, random_state=0)])
def test_a_choice_by_folds_is_that_of_the_loop(cv, data):
    Cs, weight = [1e-4, 1e-2, 1.0], 1.0 + data.qid % 2
    order = np.random.default_rng(0).permutation(len(data.y))
    X, y, qid, weight = data.X[order], data.y[order], data.qid[order], weight[order]
    model = RankSVMCV(Cs=Cs, cv=cv, tol=1e-10).fit(X, y, qid=qid, query_weight=weight)
    splitter = QueryKFold(cv) if isinstance(cv, int) else cv
    number = np.unique(qid, return_inverse=True)[1]
    first = {n: place for place, n in reversed(list(enumerate(number)))}
    groups = np.array([sorted(first, key=first.get).index(n) for n in range(60)])[number]
    expected = []
    for train, test in splitter.split(X, y, groups=groups):
        expected.append([])
        for C in Cs:
            fit = RankSVM(C=C, tol=1e-10).fit(X[train], y[train], qid=qid[train], query_weight=weight[train])
            expected[-1].append(fit.score(X[test], y[test], qid=qid[test]))
    np.testing.assert_allclose(model.scores_, np.array(expected).T, atol=1e-3)
    assert Cs[int(np.argmax(model.scores_.mean(axis=1)))] == model.C_
    fit = RankSVM(C=model.C_, tol=1e-10).fit(X, y, qid=qid, query_weight=weight)
    assert model.objective_ == pytest.approx(fit.objective_, rel=1e-9)
    assert model.n_pairs_ == fit.n_pairs_


def test_of_equally_good_values_the_smallest_is_taken():
    X, y, qid = np.array([[0.0], [1.0]] * 4), [0, 1] * 4, np.repeat(range(4), 2)
    model = RankSVMCV(Cs=[10.0, 0.1, 1.0], cv=2).fit(X, y, qid=qid)
    assert (model.scores_ == 1.0).all()
    assert model.C_ == 0.1


def test_the_kind_of_container_does_not_matter(data, validation):
    options = {"Cs": [1e-3, 1.0], "cv": 3}
    plain = RankSVMCV(**options).fit(data.X, data.y, qid=data.qid)
    for X in (pd.DataFrame(data.X), sp.csr_array(data.X), sp.csc_matrix(data.X), np.asfortranarray(data.X)):
        model = RankSVMCV(**options).fit(X, pd.Series(data.y), qid=pd.Series(data.qid))
        np.testing.assert_allclose(model.scores_, plain.scores_, atol=1e-6)
    as_list = [(validation.X, validation.y)]
    group = np.unique(validation.qid, return_counts=True)[1]
    model = RankSVMCV(Cs=[0.01]).fit(data.X, data.y, qid=data.qid, eval_set=as_list, eval_group=group)
    assert model.scores_.shape == (1, 1)


def test_errors(data, validation):
    with pytest.raises(DataError, match="without eval_set"):
        RankSVMCV().fit(data.X, data.y, qid=data.qid, eval_qid=validation.qid)
    with pytest.raises(DataError, match="eval_set must be a list of tuples"):
        RankSVMCV().fit(data.X, data.y, qid=data.qid, eval_set=validation.X)
    with pytest.raises(DataError, match="rows"):
        RankSVMCV().fit(data.X, data.y, qid=data.qid, eval_set=(validation.X, validation.y), eval_qid=[1, 2])
    with pytest.raises(OptionError, match="ndgc"):
        RankSVMCV(metric="ndgc@10").fit(data.X, data.y, qid=data.qid)
    y = np.where(data.qid == data.qid[0], data.y, 1.0)
    with pytest.raises(NoComparablePairsError, match="training part of fold"):
        RankSVMCV(cv=2).fit(data.X, y, qid=data.qid)
