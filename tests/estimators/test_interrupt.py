"""Ctrl-C while `fit` runs: a real signal to this process."""

import signal

import numpy as np
import pytest

from ranksvm import AdditiveRankSVMCV, RankSVM, RankSVMCV, make_ranking
from ranksvm.objectives import LinearObjective
from ranksvm.solvers import newton_cg


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=100, n_docs=30, n_features=20, random_state=0)


@pytest.mark.parametrize("solver", ["newton", "tron"])
def test_the_best_model_so_far_is_kept_if_asked_for(solver, data, interrupt_at):
    handler = signal.getsignal(signal.SIGINT)
    whole = RankSVM(C=0.1, solver=solver, tol=1e-8).fit(data.X, data.y, qid=data.qid)
    assert whole.n_iter_ >= 3
    interrupt_at(3)
    model = RankSVM(C=0.1, solver=solver, tol=1e-8, keep_on_interrupt=True).fit(data.X, data.y, qid=data.qid)
    assert signal.getsignal(signal.SIGINT) is handler
    assert not model.converged_
    assert model.status_.startswith("Interrupted")
    assert model.n_iter_ == 2
    np.testing.assert_allclose(model.history_["objective"], whole.history_["objective"][:3], rtol=1e-9)
    assert model.objective_ - whole.objective_ <= model.duality_gap_
    assert model.predict(data.X).shape == (3000,)
    model.set_params(warm_start=True).fit(data.X, data.y, qid=data.qid)
    assert model.objective_ == pytest.approx(whole.objective_, rel=1e-7)


def test_without_it_fit_is_interrupted(data, interrupt_at):
    interrupt_at(2)
    model = RankSVM(C=0.1, tol=1e-8)
    with pytest.raises(KeyboardInterrupt):
        model.fit(data.X, data.y, qid=data.qid)
    assert not hasattr(model, "coef_")
    model.fit(data.X, data.y, qid=data.qid)  # nothing is left broken
    assert model.converged_


@pytest.mark.parametrize(("n_queries", "C", "solver"), [(1, 1e4, "tron"), (20, 1.0, "dual")])
def test_the_best_model_may_be_that_of_the_solver_before(n_queries, C, solver, monkeypatch):
    monkeypatch.setattr("ranksvm.fits.linear.MAX_EPOCHS", 5)
    monkeypatch.setattr("ranksvm.fits.linear.DIRECT_SHARE", np.inf)  # direct steps do not begin
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 300))
    y, qid = np.digitize(X @ random.normal(size=300), [-15.0, 0.0, 15.0]), np.sort(random.integers(0, n_queries, 80))
    options = {"C": C, "tol": 1e-6, "keep_on_interrupt": True}
    assert RankSVM(**options).fit(X, y, qid=qid).solver_ == "direct"

    def interrupted(*args, **options):
        signal.raise_signal(signal.SIGINT)
        return newton_cg(*args, **options)

    monkeypatch.setattr("ranksvm.fits.linear.newton_cg", interrupted)
    model = RankSVM(**options).fit(X, y, qid=qid)
    assert model.status_.startswith("Interrupted")
    assert model.solver_ == solver
    assert model.objective_ == model.history_["objective"][-1] < 0.5 * model.history_["objective"][0]


def test_a_choice_of_C_ends_with_the_values_tried_so_far(data, interrupt_at):
    interrupt_at(12)
    model = RankSVMCV(Cs=[1e-6, 1e-4, 1e-2, 1.0], solver="tron", tol=1e-8, keep_on_interrupt=True)
    model.fit(data.X, data.y, qid=data.qid, eval_set=(data.X, data.y), eval_qid=data.qid)
    assert 1 <= len(model.Cs_) < 4
    assert model.scores_.shape == (len(model.Cs_), 1)
    assert model.C_ in model.Cs_
    assert model.best_score_ == model.scores_.max()
    assert model.duality_gap_ <= 1e-8 * model.objective_  # the solution that was cut short is not compared


def test_a_choice_is_kept_if_the_bounds_of_interactions_are_interrupted(data, interrupt_at, monkeypatch):
    options = {"Cs": [0.1], "step_weights": [1.0], "interactions": [2], "max_bins": 8, "keep_on_interrupt": True}
    sets = {"eval_set": (data.X, data.y), "eval_qid": data.qid}
    evaluations = []
    with monkeypatch.context() as patch:
        original = LinearObjective.evaluate
        patch.setattr(LinearObjective, "evaluate", lambda *arguments: evaluations.append(0) or original(*arguments))
        whole = AdditiveRankSVMCV(**options).fit(data.X, data.y, qid=data.qid, **sets)
    interrupt_at(len(evaluations) - 1)  # the last solve is without interactions
    model = AdditiveRankSVMCV(**options).fit(data.X, data.y, qid=data.qid, **sets)
    np.testing.assert_array_equal(model.shape_values_, whole.shape_values_)
    assert model.converged_
