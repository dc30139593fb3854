"""A loss of the user's own: logistic, as RankNet has it, and others, against general minimizers and duals."""

import pickle

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
import scipy.special
from sklearn.base import clone

from oracle import ExplicitPairs, LogisticFunction as Logistic
from ranksvm import KernelRankSVM, KernelRankSVMCV, RankSVM, RankSVMCV, regularization_path
from ranksvm.exceptions import OptionError
from sweep_checks import SquaredHingeFunction


class SmoothHinge:
    """``sqrt(1 + h^2) + h`` of ``h = 1 - m``: curved everywhere, and nearly straight far below."""

    def value(self, margins):
        h = 1.0 - margins
        return np.sqrt(1.0 + h * h) + h

    def derivative(self, margins):
        h = 1.0 - margins
        return -h / np.sqrt(1.0 + h * h) - 1.0

    def curvature(self, margins):
        return (1.0 + (1.0 - margins) ** 2) ** -1.5


def problem(seed=0, n=120, **weights):
    rng = np.random.default_rng(seed)
    X, qid = rng.normal(size=(n, 5)), rng.integers(0, 8, n)
    y = np.digitize(X[:, 0] + rng.normal(size=n), [-1.0, 0.0, 1.0]).astype(float)
    return X, y, qid, ExplicitPairs(y, qid, X, **weights)


def optimum(function, oracle, C):
    D = oracle.X[oracle.upper] - oracle.X[oracle.lower]

    def f(w):
        m = D @ w
        value = 0.5 * w @ w + C * oracle.weight @ function.value(m)
        return value, w + C * D.T @ (oracle.weight * function.derivative(m))

    options = {"ftol": 1e-15, "gtol": 1e-11, "maxiter": 10_000}
    return scipy.optimize.minimize(f, np.zeros(D.shape[1]), jac=True, method="L-BFGS-B", options=options).fun


@pytest.mark.parametrize(
    "function", [Logistic(), SmoothHinge(), SquaredHingeFunction()], ids=lambda f: type(f).__name__
)
@pytest.mark.parametrize("solver", ["newton", "tron"])
@pytest.mark.parametrize("C", [1e-2, 1.0])
def test_the_optimum(function, solver, C):
    X, y, qid, oracle = problem()
    model = RankSVM(C, loss=function, solver=solver, tol=1e-7).fit(X, y, qid=qid)
    assert model.converged_
    least = optimum(function, oracle, C)
    assert -1e-9 * least <= model.objective_ - least <= model.duality_gap_ + 1e-9 * least
    assert model.width_ is None


@pytest.mark.parametrize("weighting", ["uniform", "per_query", "label_gap", "gain_gap"])
@pytest.mark.parametrize("selection", ["all", "adjacent"])
def test_every_weighting(weighting, selection):
    weight = np.random.default_rng(3).integers(0, 3, 120).astype(float)
    X, y, qid, oracle = problem(sample_weight=weight, weighting=weighting, selection=selection)
    model = RankSVM(0.3, loss=Logistic(), pair_weighting=weighting, pair_selection=selection, tol=1e-7)
    model.fit(scipy.sparse.csr_array(X), y, qid=qid, sample_weight=weight)
    assert model.objective_ == pytest.approx(optimum(Logistic(), oracle, 0.3), rel=2e-7)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_certificate_is_primal_less_dual(weighted):
    """``1/2 |grad f|^2`` is f(w) less the dual at ``alpha = -C a loss'``, by Fenchel's equality, pair by pair."""
    weights = {"weighting": "label_gap"} if weighted else {}
    X, y, qid, oracle = problem(**weights)
    options = {"pair_weighting": "label_gap"} if weighted else {}
    for tol in (1e-1, 1e-3):
        model = RankSVM(0.2, loss=Logistic(), tol=tol, **options).fit(X, y, qid=qid)
        D = X[oracle.upper] - X[oracle.lower]
        u = Logistic().derivative(D @ model.coef_)
        alpha = -0.2 * oracle.weight * u
        v = D.T @ alpha
        dual = -0.2 * oracle.weight @ Logistic().conjugate(u) - 0.5 * v @ v
        assert model.duality_gap_ == pytest.approx(model.objective_ - dual, rel=1e-6, abs=1e-9)
        found = model.dual_coef(X, y, qid)
        np.testing.assert_allclose(X.T @ found.per_document(), v, atol=1e-9)


def test_pairs_listed_are_the_same_problem():
    X, y, qid, oracle = problem()
    implied = RankSVM(0.1, loss=Logistic(), tol=1e-9).fit(X, y, qid=qid)
    listed = RankSVM(0.1, loss=Logistic(), tol=1e-9).fit(X, pairs=np.column_stack([oracle.upper, oracle.lower]))
    assert listed.objective_ == pytest.approx(implied.objective_, rel=1e-9)
    np.testing.assert_allclose(listed.coef_, implied.coef_, atol=1e-4)


def test_the_squared_hinge_written_by_a_user_is_the_same_as_ours():
    X, y, qid, _ = problem()
    own = RankSVM(0.1, loss=SquaredHingeFunction(), tol=1e-8).fit(X, y, qid=qid)
    ours = RankSVM(0.1, tol=1e-8).fit(X, y, qid=qid)
    assert own.n_iter_ == ours.n_iter_
    np.testing.assert_allclose(own.coef_, ours.coef_, rtol=1e-9)


def test_a_kernel_model():
    X, y, qid, oracle = problem(n=80)
    model = KernelRankSVM(0.1, kernel="linear", loss=Logistic(), kernel_dtype="float64", tol=1e-8).fit(X, y, qid=qid)
    assert model.objective_ == pytest.approx(optimum(Logistic(), oracle, 0.1), rel=1e-7)


def test_the_choice_of_C_and_the_path():
    X, y, qid, oracle = problem()
    Cs = [1e-3, 1e-2, 1e-1]
    path = regularization_path(X, y, qid=qid, Cs=Cs, loss=Logistic(), tol=1e-7)
    for C, value in zip(Cs, path.objectives, strict=True):
        assert value == pytest.approx(optimum(Logistic(), oracle, C), rel=1e-6)
    chosen = RankSVMCV(Cs=Cs, cv=3, loss=Logistic(), tol=1e-7).fit(X, y, qid=qid)
    assert chosen.objective_ == pytest.approx(optimum(Logistic(), oracle, chosen.C_), rel=1e-6)


def test_warm_starts_copies_and_pickles():
    X, y, qid, _ = problem()
    model = RankSVM(0.1, loss=Logistic(), warm_start=True).fit(X, y, qid=qid)
    assert model.fit(X, y, qid=qid).n_iter_ == 0
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert isinstance(clone(model).loss, Logistic)


def test_a_model_file_cannot_hold_it(tmp_path):
    X, y, qid, _ = problem()
    model = RankSVM(0.1, loss=Logistic()).fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="parameter 'loss' of RankSVM is Logistic"):
        model.save(tmp_path / "model.rsvm")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("loss", "message"),
    [
        (Logistic, "loss is the class Logistic"),
        (object(), "loss must be one of 'squared_hinge', 'hinge', 'huber', 'logistic'"),
        ("exponential", "loss must be one of 'squared_hinge', 'hinge', 'huber', 'logistic'"),
        (np.sin, "loss must be one of"),
    ],
)
@pytest.mark.parametrize("estimator", [RankSVM, RankSVMCV, KernelRankSVM, KernelRankSVMCV])
def test_what_is_no_loss_is_said_before_any_work(estimator, loss, message):
    X, y, qid, _ = problem()
    with pytest.raises(OptionError, match=message):
        estimator(loss=loss).fit(X, y, qid=qid)


def test_a_loss_that_overflows_is_said_so():
    class Exponential:
        value = curvature = staticmethod(lambda m: np.exp(-m))
        derivative = staticmethod(lambda m: -np.exp(-m))

    X, y, qid, oracle = problem()
    model = RankSVM(1e-3, loss=Exponential(), tol=1e-6).fit(X, y, qid=qid)
    assert model.objective_ == pytest.approx(optimum(Exponential(), oracle, 1e-3), rel=1e-5)
