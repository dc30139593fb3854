"""KernelRankSVMCV: what it chooses by, one kernel matrix for each gamma, and what it keeps."""

import os
import signal

import numpy as np
import pytest

from _problems import kernel_problem_of
from ranksvm import KernelRankSVM, KernelRankSVMCV, QueryKFold, load, make_ranking
from ranksvm.estimators.path import solve_along
from ranksvm.exceptions import DataError, OptionError
from ranksvm.fits import kernel
from ranksvm.metrics import evaluate
from ranksvm.objectives import KernelObjective

CS = [1e-3, 1e-1, 10.0]
GAMMAS = [0.01, 0.1, 0.5]


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=20, n_docs=(5, 12), n_features=6, random_state=0)


@pytest.fixture(scope="module")
def validation():
    return make_ranking(n_queries=10, n_docs=(5, 12), n_features=6, random_state=1)


@pytest.fixture
def matrices(monkeypatch):
    """The kernel matrices made, and whether one was made while another one was held."""
    made = []
    original = kernel.kernel_matrix

    def kernel_matrix(kernel, X, **options):
        made.append(kernel.parameters.get("gamma"))
        return original(kernel, X, **options)

    monkeypatch.setattr(kernel, "kernel_matrix", kernel_matrix)
    return made


def test_on_validation_data(data, validation, matrices, tmp_path):
    held_out = {"eval_set": [(validation.X, validation.y), (data.X, data.y)], "eval_qid": [validation.qid, data.qid]}
    model = KernelRankSVMCV(CS, GAMMAS[::-1]).fit(data.X, data.y, qid=data.qid, **held_out)
    assert matrices == GAMMAS
    assert model.scores_.shape == (3, 3, 1)
    assert model.mean_scores_.shape == model.standard_errors_.shape == (3, 3)
    np.testing.assert_array_equal(model.Cs_, CS)
    np.testing.assert_array_equal(model.gammas_, GAMMAS)
    for row, gamma in enumerate(GAMMAS):
        for column, C in enumerate(CS):
            one = KernelRankSVM(C, gamma=gamma).fit(data.X, data.y, qid=data.qid)
            assert model.scores_[row, column, 0] == pytest.approx(
                one.score(validation.X, validation.y, qid=validation.qid), abs=0.02
            )
    assert len(model.evals_result_["valid_1"]["ndcg@10"]) == 9
    np.testing.assert_array_equal(model.evals_result_["valid_0"]["ndcg@10"], model.scores_.ravel())
    assert model.best_score_ == model.mean_scores_.max()
    row, column = np.argwhere(model.mean_scores_ == model.best_score_)[0]
    assert (
        model.best_score_
        == evaluate(validation.y, model.predict(validation.X), validation.qid, ["ndcg@10"]).means["ndcg@10"]
    )
    assert model.gamma_ in GAMMAS
    assert model.C_ in CS
    chosen = KernelRankSVM(model.C_, gamma=model.gamma_).fit(data.X, data.y, qid=data.qid)
    assert model.objective_ == pytest.approx(chosen.objective_, rel=2e-4)
    beta = model.dual_coef(data.X, data.y, data.qid).per_document()
    assert np.abs(beta).max() > 0.0
    model.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(validation.X), model.predict(validation.X))
    np.testing.assert_array_equal(loaded.scores_, model.scores_)


def test_of_equally_good_ones_the_smallest_C_then_the_smallest_gamma(data):
    model = KernelRankSVMCV(CS, GAMMAS, metric="r@1000").fit(
        data.X, data.y, qid=data.qid, eval_set=(data.X, data.y), eval_qid=data.qid
    )
    assert (model.mean_scores_ == model.best_score_).all()
    assert (model.C_, model.gamma_) == (CS[0], GAMMAS[0])


def test_one_standard_error(data):
    model = KernelRankSVMCV(CS, GAMMAS, cv=4, rule="one_standard_error").fit(data.X, data.y, qid=data.qid)
    best = np.unravel_index(np.argmax(model.mean_scores_), (3, 3))
    within = model.mean_scores_ >= model.mean_scores_[best] - model.standard_errors_[best]
    column = np.flatnonzero(within.any(axis=0))[0]
    assert CS[column] == model.C_
    assert model.gamma_ == GAMMAS[np.flatnonzero(within[:, column])[0]]
    np.testing.assert_allclose(model.standard_errors_, model.scores_.std(axis=2, ddof=1) / 2)


def test_by_folds(data, matrices):
    # in float64 from the start: with gamma = 0.01, C = 10, float32 is too coarse for this tol
    how = {"tol": 1e-6, "kernel_dtype": "float64"}
    model = KernelRankSVMCV(CS, GAMMAS, cv=3, **how).fit(data.X, data.y, qid=data.qid)
    assert matrices == [*GAMMAS * 3, model.gamma_]
    for place, (train, test) in enumerate(QueryKFold(3).split(data.X, qid=data.qid)):
        one = KernelRankSVM(CS[1], gamma=GAMMAS[1], **how).fit(data.X[train], data.y[train], qid=data.qid[train])
        expected = one.score(data.X[test], data.y[test], qid=data.qid[test])
        assert model.scores_[1, 1, place] == pytest.approx(expected, abs=1e-3)
    whole = KernelRankSVM(model.C_, gamma=model.gamma_, **how).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(model.predict(data.X), whole.predict(data.X), atol=0.01)
    assert model.n_kernel_products_ == whole.n_kernel_products_


def test_gammas_around_that_of_scale(data):
    model = KernelRankSVMCV([0.1], cv=2).fit(data.X, data.y, qid=data.qid)
    scale = KernelRankSVM().fit(data.X, data.y, qid=data.qid).gamma_
    np.testing.assert_allclose(model.gammas_, scale * np.array([1 / 16, 1 / 4, 1, 4]))


@pytest.mark.parametrize("kernel", ["precomputed", "linear"])
def test_kernels_without_a_gamma(kernel, data):
    K = np.exp(-0.1 * ((data.X[:, None] - data.X) ** 2).sum(axis=2)) if kernel == "precomputed" else data.X
    model = KernelRankSVMCV(CS, kernel=kernel, cv=3, tol=1e-6).fit(K, data.y, qid=data.qid)
    assert model.gamma_ is None
    assert model.gammas_.shape == (0,)
    assert model.scores_.shape == (1, 3, 3)
    if kernel == "precomputed":
        features = KernelRankSVMCV(CS, [0.1], cv=3, tol=1e-6).fit(data.X, data.y, qid=data.qid)
        np.testing.assert_allclose(model.scores_, features.scores_, atol=1e-3)


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_approximations(approximation, data):
    options = {"approximation": approximation, "n_components": 30, "random_state": 0}
    model = KernelRankSVMCV(CS, GAMMAS, cv=3, **options).fit(data.X, data.y, qid=data.qid)
    one = KernelRankSVM(model.C_, gamma=model.gamma_, **options).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(model.predict(data.X), one.predict(data.X), atol=1e-9)


def test_weights_are_divided_with_the_rows(data):
    weight = 1.0 + data.qid % 3
    weighted = KernelRankSVMCV(CS, [0.1], cv=3).fit(data.X, data.y, qid=data.qid, sample_weight=weight)
    plain = KernelRankSVMCV(CS, [0.1], cv=3).fit(data.X, data.y, qid=data.qid)
    assert not np.array_equal(weighted.scores_, plain.scores_)


def test_an_interrupt_keeps_the_best_so_far(data, monkeypatch):
    original, count = KernelObjective.evaluate, 0

    def evaluate(self, w, near=None):
        nonlocal count
        count += 1
        if count == 10:
            os.kill(os.getpid(), signal.SIGINT)
        return original(self, w, near)

    monkeypatch.setattr(KernelObjective, "evaluate", evaluate)
    model = KernelRankSVMCV(CS, GAMMAS, tol=1e-8, keep_on_interrupt=True)
    model.fit(data.X, data.y, qid=data.qid, eval_set=(data.X, data.y), eval_qid=data.qid)
    assert 1 <= len(model.gammas_) < 3 or np.isnan(model.mean_scores_).any() or len(model.Cs_) < 3
    assert model.status_.startswith("Interrupted")
    assert model.predict(data.X).shape == data.y.shape


def test_errors(data):
    for gammas, message in [
        ([], "gammas must be a list of numbers"),
        ([-1.0], "gammas must be a positive"),
        (["x"], "gammas must be positive, finite numbers"),
        (["0.1"], "gammas must be positive, finite numbers"),
        ([True], "gammas must be positive, finite numbers"),
    ]:
        with pytest.raises(OptionError, match=message):
            KernelRankSVMCV(CS, gammas).fit(data.X, data.y, qid=data.qid)
    with pytest.raises(OptionError, match="kernel must be one of"):
        KernelRankSVMCV(CS, kernel="sigmoid").fit(data.X, data.y, qid=data.qid)
    with pytest.raises(DataError, match="n_splits is 5 but there is only 1 query"):
        KernelRankSVMCV(CS).fit(data.X, qid=data.qid, pairs=[[0, 1]])


def test_gammas_by_name(data):
    """They were no numbers."""
    search = KernelRankSVMCV(Cs=[0.1], gammas=["scale", 0.01, "auto"], cv=2).fit(data.X, data.y, qid=data.qid)
    scale = 1.0 / (6 * data.X.var())
    np.testing.assert_allclose(search.gammas_, np.sort([0.01, 1.0 / 6.0, scale]))
    alone = KernelRankSVMCV(Cs=[0.1], gammas="scale", cv=2).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(alone.gammas_, [scale])
    with pytest.raises(OptionError, match="gammas must be positive, finite numbers, got"):
        KernelRankSVMCV(gammas=["wide"]).fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize("after_many_steps", [False, True])
def test_the_hinge_along_C_starts_with_more_smoothing(data, monkeypatch, after_many_steps):
    monkeypatch.setattr(kernel, "MANY_STEPS", 0 if after_many_steps else 1000)
    multiple = kernel.WIDEN_MORE if after_many_steps else kernel.WIDEN
    options = {"loss": "hinge", "tol": 1e-6, "kernel_dtype": "float64"}
    problem, width, widths = kernel_problem_of(KernelRankSVM(**options), data, 0.5), None, []
    for C, result in solve_along(problem, np.array([0.1, 1.0, 100.0])):
        alone = KernelRankSVM(C, gamma=0.5, **options).fit(data.X, data.y, qid=data.qid)
        assert result.value == pytest.approx(alone.objective_, rel=1e-6)
        assert result.relative_gap <= 1e-6
        if width is not None:
            assert widths[0] == pytest.approx(min(1.0, multiple * width))
        width, widths = result.width, []
        evaluate_at = problem.objective.evaluate
        problem.objective.evaluate = lambda w, near=None, at=evaluate_at, seen=widths: (
            seen.append(problem.objective.width) or at(w, near)
        )
