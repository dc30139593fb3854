"""RegularizedRankSVM(solver="alternating"): Algorithm 2 as published, with its certificate."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning

import ranksvm
from ranksvm import RegularizedRankSVM, make_ranking
from ranksvm.exceptions import ModelFileError, OptionError

PARAMETERS = [(0.3, 0.5, 1.0), (1.0, 0.05, 0.2), (0.05, 0.0, 2.0)]
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def make_data(n_levels=3, seed=0):
    data = make_ranking(5, 12, 4, n_levels=n_levels, random_state=seed)
    order = np.random.default_rng(seed).permutation(len(data.y))
    return data.X[order].astype(np.float64), data.y[order], data.qid[order]


def fitted(X, y, qid, C=0.3, **options):
    return RegularizedRankSVM(C, solver="alternating", **options).fit(X, y, qid=qid)


def algorithm_2(X, y, qid, C, gamma, lam, step, n_rounds):
    """Objective (15) after every round and w, from whole matrices of documents by documents."""
    queries = [np.flatnonzero(qid == q) for q in np.unique(qid)]
    masks = [y[rows][:, None] > y[rows][None, :] for rows in queries]
    alpha, low_rank = [mask * 0.0 for mask in masks], [mask * 0.0 for mask in masks]
    w, values = np.zeros(X.shape[1]), []
    for _ in range(n_rounds):
        nuclear, new = 0.0, np.zeros_like(w)
        for q, (rows, mask) in enumerate(zip(queries, masks, strict=True)):
            s = X[rows] @ w
            slope = s[:, None] - s[None, :] - 1.0 + 2 * lam * (alpha[q] - low_rank[q])
            alpha[q] = mask * np.clip(alpha[q] - step * slope, 0.0, C)
            new += X[rows].T @ (alpha[q].sum(axis=1) - alpha[q].sum(axis=0))
            left, singular, right = np.linalg.svd(alpha[q])
            singular = np.maximum(0.0, singular - 0.5 * gamma / lam)
            low_rank[q] = (left * singular) @ right
            nuclear += singular.sum()
        w = new
        apart = sum(((a - b) ** 2).sum() for a, b in zip(alpha, low_rank, strict=True))
        values.append(0.5 * w @ w - sum(a.sum() for a in alpha) + lam * apart + gamma * nuclear)
    return values, w


@pytest.mark.parametrize(("C", "gamma", "lam"), PARAMETERS)
@pytest.mark.parametrize("n_levels", [2, 3, 12])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array])
def test_its_steps_are_those_of_algorithm_2(C, gamma, lam, n_levels, storage):
    X, y, qid = make_data(n_levels)
    values, w = algorithm_2(X, y, qid, C, gamma, lam, 1e-3, 20)
    model = fitted(storage(X), y, qid, C, gamma=gamma, lam=lam, learning_rate=1e-3, max_iter=20, tol=1e-12)
    assert model.n_iter_ == 20
    np.testing.assert_allclose(model.history_["objective"], values, rtol=1e-9)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("C", "gamma", "lam"), PARAMETERS)
@pytest.mark.parametrize("n_levels", [2, pytest.param(3, marks=pytest.mark.slow)])
def test_the_certificate_holds_at_any_step_and_tightens(C, gamma, lam, n_levels):
    X, y, qid = make_data(n_levels)
    options = {"gamma": gamma, "lam": lam}
    exact = RegularizedRankSVM(C, **options, tol=1e-6, max_iter=5000).fit(X, y, qid=qid)
    optimum, precision = exact.objective_, 1e-6 * abs(exact.objective_)
    for max_iter in (1, 10, 100):
        model = fitted(X, y, qid, C, **options, max_iter=max_iter, tol=1e-12)
        assert optimum - precision <= model.objective_ <= optimum + model.duality_gap_ + precision
    model = fitted(X, y, qid, C, **options, max_iter=20_000, tol=1e-3)
    assert model.converged_
    assert model.duality_gap_ <= 1e-3 * abs(model.objective_)
    assert (np.diff(model.history_["objective"]) <= 1e-9 * abs(optimum)).all()


@pytest.mark.parametrize("n_levels", [2, 4])
def test_dual_variables_make_weights_and_objective(n_levels):
    X, y, qid = make_data(n_levels)
    model = fitted(X, y, qid, gamma=0.5, lam=0.7, max_iter=30)
    value, beta = 0.0, np.zeros(len(y))
    blocks, matrices = model.dual_coef(X, y, qid), model.low_rank_coef(X, y, qid)
    for block, matrix in zip(blocks, matrices, strict=True):
        assert (block.alpha[block.weights == 0.0] == 0.0).all()
        assert ((block.alpha >= 0.0) & (block.alpha <= 0.3)).all()
        beta[block.preferred_rows] += block.alpha.sum(axis=1)
        beta[block.other_rows] -= block.alpha.sum(axis=0)
        value += 0.7 * ((block.alpha - matrix.alpha) ** 2).sum() - block.alpha.sum()
        value += 0.5 * np.linalg.norm(matrix.alpha, "nuc")
    w = X.T @ beta
    np.testing.assert_allclose(w, model.coef_, rtol=1e-9)
    assert 0.5 * w @ w + value == pytest.approx(model.objective_, rel=1e-9)


def test_threads_change_nothing():
    X, y, qid = make_data()
    one, three = (fitted(X, y, qid, max_iter=30, n_jobs=n_jobs) for n_jobs in (1, 3))
    np.testing.assert_allclose(one.coef_, three.coef_, rtol=1e-12)


def test_steps_that_are_too_long_let_the_objective_rise():
    X, y, qid = make_data()
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = fitted(X, y, qid, learning_rate=10.0, max_iter=20)
    assert not model.converged_
    assert (np.diff(model.history_["objective"]) > 0.0).any()
    assert model.objective_ == model.history_["objective"][-1]


def test_queries_without_pairs_and_constant_features():
    X, y, qid = make_data()
    y = np.where(qid == qid[0], 1, y)
    model = fitted(X, y, qid, max_iter=5)
    assert model.ranks_[0] == 0
    assert model.dual_coef(X, y, qid)[0].shape == (0, 0)
    np.testing.assert_allclose(fitted(np.ones_like(X), y, qid, max_iter=5).coef_, 0.0, atol=1e-12)


def test_saved_and_loaded(tmp_path):
    X, y, qid = make_data()
    model = fitted(X, y, qid, max_iter=5)
    model.save(tmp_path / "model")
    loaded = ranksvm.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.pair_alpha_, model.pair_alpha_)
    np.testing.assert_allclose(X.T @ loaded.dual_coef(X, y, qid).per_document(), model.coef_, rtol=1e-9)
    model.pair_alpha_ = model.pair_alpha_[1:]
    model.save(tmp_path / "broken")
    with pytest.raises(ModelFileError, match="pair_alpha_ has"):
        ranksvm.load(tmp_path / "broken")


def test_wrong_options_are_named():
    X, y, qid = make_data()
    with pytest.raises(OptionError, match="learning_rate is the step of solver='alternating'"):
        RegularizedRankSVM(learning_rate=0.1).fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="solver must be one of 'splitting', 'alternating'"):
        RegularizedRankSVM(solver="tron").fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="learning_rate must be 'auto' or a positive"):
        fitted(X, y, qid, learning_rate=0.0)


def test_interrupted_it_keeps_the_last_step(interrupt_at):
    X, y, qid = make_data()
    interrupt_at(8)
    model = fitted(X, y, qid, tol=1e-12, keep_on_interrupt=True)
    assert model.status_ == "Interrupted: this is the model of the last step."
    np.testing.assert_array_equal(model.coef_, fitted(X, y, qid, tol=1e-12, max_iter=model.n_iter_).coef_)
