"""``KernelRankSVM(stopping="gradient")``: the published rule, in the coefficients."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import ranksvm
from oracle import ExplicitPairs
from ranksvm import KernelRankSVM, RankSVM, make_ranking
from ranksvm.exceptions import OptionError

C, GAMMA = 10.0, 0.1


@pytest.fixture(scope="module")
def data():
    return make_ranking(12, (2, 20), 6, n_levels=4, dtype=np.float64, random_state=0)


def fitted(data, **options):
    options = {"gamma": GAMMA, "kernel_dtype": "float64", "solver": "tron", "stopping": "gradient"} | options
    return KernelRankSVM(C, **options).fit(data.X, data.y, qid=data.qid)


def kernel(X):
    return np.exp(-GAMMA * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def coefficients(model, n_rows):
    b = np.zeros(n_rows)
    b[model.support_] = model.dual_coef_
    return b


@pytest.mark.parametrize("tol", [1e-1, 1e-3])
def test_it_stops_at_the_first_step_whose_gradient_over_explicit_pairs_is_small_enough(data, tol):
    Q, model = kernel(data.X), fitted(data, tol=tol)
    # with Q as features and the coefficients as weights, the loss is that of a linear model
    oracle = ExplicitPairs(data.y, data.qid, Q)

    def gradient(model):
        b = np.zeros(len(Q)) if model is None else coefficients(model, len(Q))
        return np.linalg.norm(Q @ b + oracle.gradient(b, C) - b)

    with pytest.warns(ConvergenceWarning, match="max_iter"):
        before = fitted(data, tol=tol, max_iter=model.n_iter_ - 1)
    assert gradient(model) <= tol * gradient(None) < gradient(before)
    assert model.converged_
    assert "|gradient| <= tol" in model.status_


def test_the_certificate_says_what_the_rule_leaves(data):
    optimum = fitted(data, solver="newton", stopping="gap", tol=1e-10).objective_
    model = fitted(data, tol=1e-2)
    assert optimum * (1 - 1e-9) <= model.objective_ <= optimum + model.duality_gap_
    assert model.duality_gap_ > 1e-4 * model.objective_


@pytest.mark.parametrize("approximation", ["nystroem", "fourier"])
def test_features_of_an_approximation_have_the_rule_of_the_linear_model(data, approximation):
    model = fitted(data, approximation=approximation, n_components=20, random_state=0, tol=1e-2)
    assert model.converged_
    assert "|gradient| <= tol" in model.status_


def test_others_are_refused(data):
    for solver in ("auto", "newton"):
        with pytest.raises(OptionError, match=f"published rule of solver='tron', not of solver='{solver}'"):
            fitted(data, solver=solver)
    with pytest.raises(OptionError, match="the hinge has none"):
        fitted(data, loss="hinge")
    with pytest.raises(OptionError, match="stopping must be one of 'gap', 'gradient', got 'grad'"):
        fitted(data, stopping="grad")


def test_saved_and_loaded(data, tmp_path):
    model = fitted(data)
    model.save(tmp_path / "model")
    assert ranksvm.load(tmp_path / "model").stopping == "gradient"


def test_a_linear_kernel_gives_the_linear_model(data):
    optimum = RankSVM(C, tol=1e-10).fit(data.X, data.y, qid=data.qid).objective_
    assert fitted(data, kernel="linear", tol=1e-6).objective_ == pytest.approx(optimum, rel=1e-6)
