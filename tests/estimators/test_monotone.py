"""Weights of given signs against a general minimizer over explicit pairs, in every entry point."""

import itertools

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from sklearn.base import clone

import ranksvm
from oracle import ExplicitPairs
from ranksvm import RankSVM, RankSVMCV, make_ranking, regularization_path
from ranksvm.estimators.rank_svm import RankSVMCore
from ranksvm.exceptions import OptionError

SIGNS = np.array([1, -1, 0, 1, -1, 1])
# the signs of nothing but one weight are right at the free solution
AGAINST = np.array([-1, 1, 0, -1, 1, 1])


def make_data(seed=0, n=90):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    X[:, 3] = np.round(X[:, 3])  # ties
    qid = rng.integers(0, 6, n)
    y = np.clip(np.round(X[:, 0] - X[:, 1] + X[:, 2] + rng.normal(size=n) + 2), 0, 4)
    return X, y, qid, rng


def optimum(oracle, C, signs, hinge=False):
    """The least value over the cone: L-BFGS-B on explicit pairs; for the hinge, its dual by the same."""
    D = oracle.X[oracle.upper] - oracle.X[oracle.lower]
    options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 100_000, "maxfun": 1_000_000}
    lower, upper = np.where(signs > 0, 0.0, -np.inf), np.where(signs < 0, 0.0, np.inf)
    if not hinge:
        found = scipy.optimize.minimize(
            lambda w: (oracle.value(w, C), oracle.gradient(w, C)),
            np.zeros(len(signs)),
            jac=True,
            bounds=np.transpose([lower, upper]),
            method="L-BFGS-B",
            options=options,
        )
        return found.fun

    def minus_dual(alpha):
        w = np.clip(D.T @ alpha, lower, upper)
        return 0.5 * w @ w - alpha.sum(), D @ w - 1.0

    bounds = [(0.0, C * weight) for weight in oracle.weight]
    start = np.zeros(len(D))
    return -scipy.optimize.minimize(minus_dual, start, jac=True, bounds=bounds, method="L-BFGS-B", options=options).fun


def check(model, oracle, C, signs, least=None, hinge=False):
    """The signs are right, the value is that over explicit pairs, and the certificate holds and is small."""
    w = model.coef_
    assert (signs * w >= 0.0).all()
    value = oracle.hinge_value(w, C) if hinge else oracle.value(w, C)
    assert model.converged_
    assert model.objective_ == pytest.approx(value, rel=1e-11)
    least = optimum(oracle, C, signs, hinge) if least is None else least
    assert -1e-9 * least <= model.objective_ - least <= model.duality_gap_ + 1e-9 * least
    np.testing.assert_array_equal(model.monotone_, signs)


@pytest.mark.parametrize("loss", ["squared_hinge", "huber", "hinge"])
@pytest.mark.parametrize("signs", [SIGNS, AGAINST], ids=["along", "against"])
@pytest.mark.parametrize("C", [1e-3, 0.1, 2.0])
def test_the_optimum(loss, signs, C):
    X, y, qid, _ = make_data()
    oracle = ExplicitPairs(y, qid, X, width={"huber": 0.5}.get(loss))
    least = optimum(oracle, C, signs, hinge=loss == "hinge")
    for solver in ("auto", "newton", "tron"):
        tol = 1e-5 if loss == "hinge" else 1e-8
        model = RankSVM(C, loss=loss, huber_width=0.5, monotone=signs, solver=solver, tol=tol).fit(X, y, qid=qid)
        check(model, oracle, C, signs, least, hinge=loss == "hinge")


@pytest.mark.parametrize(
    ("selection", "weighting"),
    list(itertools.product(["all", "adjacent"], ["uniform", "per_query", "label_gap", "gain_gap"])),
)
def test_weights_and_choices_of_pairs_on_sparse_rows_and_threads(selection, weighting):
    X, y, qid, rng = make_data(1)
    X = np.where(rng.random(X.shape) < 0.6, X, 0.0)
    weights = {"sample_weight": rng.choice([0.0, 0.5, 2.0], len(y)), "propensity": rng.choice([0.1, 1.0], len(y))}
    options = {"pair_selection": selection, "pair_weighting": weighting, "monotone": SIGNS, "tol": 1e-9}
    oracle = ExplicitPairs(y, qid, X, selection=selection, weighting=weighting, **weights)
    fits = [
        RankSVM(0.3, n_jobs=n_jobs, **options).fit(stored, y, qid=qid, **weights)
        for stored in (X, scipy.sparse.csr_array(X), X.astype(np.float32).astype(np.float64))
        for n_jobs in (1, 3)
    ]
    for model in fits[:4]:
        check(model, oracle, 0.3, SIGNS)
        np.testing.assert_allclose(model.coef_, fits[0].coef_, atol=1e-4)


def test_listed_pairs_and_a_loss_of_the_user():
    class Logistic:
        def value(self, margins):
            return np.logaddexp(0.0, -margins)

        def derivative(self, margins):
            return -1.0 / (1.0 + np.exp(margins))

        def curvature(self, margins):
            return 1.0 / (2.0 + np.exp(margins) + np.exp(-margins))

    X, y, qid, _ = make_data(2)
    oracle = ExplicitPairs(y, qid, X)
    listed = np.column_stack((oracle.upper, oracle.lower))
    by_pairs = RankSVM(0.3, monotone=SIGNS, tol=1e-9).fit(X, qid=qid, pairs=listed)
    check(by_pairs, oracle, 0.3, SIGNS)
    own = RankSVM(0.3, monotone=AGAINST, loss=Logistic(), tol=1e-9).fit(X, y, qid=qid)
    D = X[oracle.upper] - X[oracle.lower]

    def f(w):
        margins = D @ w
        value = 0.5 * w @ w + 0.3 * Logistic().value(margins).sum()
        return value, w + 0.3 * D.T @ Logistic().derivative(margins)

    bounds = [(0, None) if s > 0 else (None, 0) if s < 0 else (None, None) for s in AGAINST]
    options = {"ftol": 1e-16, "gtol": 1e-12}
    least = scipy.optimize.minimize(f, np.zeros(6), jac=True, bounds=bounds, method="L-BFGS-B", options=options).fun
    assert -1e-9 * least <= own.objective_ - least <= own.duality_gap_ + 1e-9 * least


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
@pytest.mark.parametrize("max_iter", [1, 2, 3])
@pytest.mark.filterwarnings("ignore:Stopped")
def test_the_certificate_of_an_unfinished_fit_is_honest(loss, max_iter):
    for seed, solver, C in itertools.product(range(2), ["newton", "tron"], [1e-2, 10.0]):
        X, y, qid, rng = make_data(seed)
        X = X * 10.0 ** rng.integers(-2, 3, 6)
        model = RankSVM(C, loss=loss, monotone=AGAINST, solver=solver, tol=1e-12, max_iter=max_iter).fit(X, y, qid=qid)
        oracle = ExplicitPairs(y, qid, X)
        least = optimum(oracle, C, AGAINST) if loss == "squared_hinge" else None
        if least is None:  # any dual point is below the optimum, and so the certificate has to be below the value
            oracle = ExplicitPairs(y, qid, X, width=model.width_)
            alpha = C * oracle.weight * oracle.pulls(X @ model.coef_)
            z = (X[oracle.upper] - X[oracle.lower]).T @ alpha
            dual = alpha.sum() - 0.5 * np.sum(np.where(AGAINST * z >= 0.0, z, 0.0) ** 2)
            proven = model.objective_ - model.duality_gap_  # lower than the dual by what round-off may hide
            assert proven <= dual + 1e-9 * abs(dual)
            assert proven == pytest.approx(dual, rel=1e-6, abs=1e-6 * model.objective_)
        else:
            assert model.objective_ - model.duality_gap_ <= least * (1 + 1e-9)


def test_a_large_problem_begins_with_a_sample():
    data = make_ranking(n_queries=600, n_docs=60, n_features=40, random_state=0)
    signs = np.resize([1, -1], 40)
    model = RankSVM(0.01, monotone=signs, solver="newton", tol=1e-8).fit(data.X, data.y, qid=data.qid)
    other = RankSVM(0.01, monotone=signs, solver="tron", tol=1e-8).fit(data.X, data.y, qid=data.qid)
    assert model.n_iter_ <= 6
    assert abs(model.objective_ - other.objective_) <= model.duality_gap_ + other.duality_gap_
    np.testing.assert_allclose(model.coef_, other.coef_, atol=2 * np.sqrt(2e-8 * model.objective_))


def test_more_features_than_rows():
    rng = np.random.default_rng(0)
    X = scipy.sparse.random(60, 3000, 0.02, "csr", random_state=0)
    y, qid = rng.integers(0, 3, 60).astype(float), np.repeat(np.arange(6), 10)
    signs = rng.choice([-1, 0, 1], 3000)
    for loss, C in (("squared_hinge", 1.0), ("hinge", 0.1)):
        tol = 1e-4 if loss == "hinge" else 1e-8
        model = RankSVM(C, loss=loss, monotone=signs, solver="tron", tol=tol).fit(X, y, qid=qid)
        check(model, ExplicitPairs(y, qid, X), C, signs, hinge=loss == "hinge")


def test_no_signs_are_no_constraint_bit_for_bit():
    X, y, qid, _ = make_data()
    free = RankSVM(0.1).fit(X, y, qid=qid)
    for monotone in (None, {}, np.zeros(6, dtype=int), {2: 0}):
        model = RankSVM(0.1, monotone=monotone).fit(X, y, qid=qid)
        assert model.monotone_ is None
        assert model.coef_.tobytes() == free.coef_.tobytes()
        assert model.history_ == free.history_


def test_every_way_to_say_it():
    pd = pytest.importorskip("pandas")
    X, y, qid, _ = make_data()
    named = pd.DataFrame(X, columns=list("abcdef")).assign(query=qid)
    reference = RankSVM(0.1, monotone=[1, 0, 0, -1, 0, 0]).fit(X, y, qid=qid)
    for monotone in (
        (1, 0, 0, -1, 0, 0),
        np.array([1.0, 0, 0, -1, 0, 0]),
        {0: 1, 3: -1},
        {np.int64(0): "increasing", 3: "decreasing", 4: 0},
        ["increasing", 0, 0, "decreasing", 0, 0],
    ):
        np.testing.assert_array_equal(RankSVM(0.1, monotone=monotone).fit(X, y, qid=qid).coef_, reference.coef_)
    for monotone in ({"a": 1, "d": -1}, {"a": "increasing", 3: "decreasing"}):
        model = RankSVM(0.1, monotone=monotone).fit(named, y, qid="query")
        np.testing.assert_array_equal(model.coef_, reference.coef_)
    assert (RankSVM(0.1, monotone="increasing").fit(X, y, qid=qid).coef_ >= 0.0).all()
    assert (RankSVM(0.1, monotone="decreasing").fit(X, y, qid=qid).coef_ <= 0.0).all()


@pytest.mark.parametrize(
    ("monotone", "message"),
    [
        ("up", "'increasing', 'decreasing', an array"),
        ([1, 0], "2 entries, but X has 6 features"),
        ([1, 2, 0, 0, 0, 0], "of feature 1 must be 1"),
        ([1, True, 0, 0, 0, 0], "of feature 1 must be 1"),
        ([[1, 0, 0, 0, 0, 0]], "an array of -1, 0 and 1"),
        (1, "an array of -1, 0 and 1"),
        ({"a": 1}, "no feature names: give numbers from 0"),
        ({6: 1}, "the feature 6, but X has 6"),
        ({-1: 1}, "give its name, or its number from 0"),
        ({1.5: 1}, "give its name, or its number from 0"),
        ({2: 0.5}, "of feature 2 must be 1"),
        ({2: "up"}, "of feature 2 must be 1"),
        ({2: None}, "of feature 2 must be 1"),
    ],
)
def test_bad_signs_are_refused(monotone, message):
    X, y, qid, _ = make_data()
    for model in (RankSVM(monotone=monotone), RankSVMCV(monotone=monotone, Cs=[1.0], cv=2)):
        with pytest.raises(OptionError, match="monotone") as error:
            model.fit(X, y, qid=qid)
        assert message in str(error.value)
        assert not hasattr(model, "coef_")


def test_bad_names_are_refused():
    pd = pytest.importorskip("pandas")
    X, y, qid, _ = make_data()
    named = pd.DataFrame(X, columns=list("abcdef"))
    with pytest.raises(OptionError, match=r"names the feature 'bm25', but X has the features 'a', 'b', .* and 1 more"):
        RankSVM(monotone={"bm25": 1}).fit(named, y, qid=qid)
    with pytest.raises(OptionError, match="feature 1 twice"):
        RankSVM(monotone={"b": 1, 1: 1}).fit(named, y, qid=qid)


def test_the_published_stopping_rule_is_for_free_weights():
    X, y, qid, _ = make_data()
    with pytest.raises(OptionError, match="stopping='gradient' is the published rule for weights of any sign"):
        RankSVM(monotone="increasing", solver="tron", stopping="gradient").fit(X, y, qid=qid)


@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_dual_coef_gives_the_weights_by_projection(loss):
    X, y, qid, _ = make_data()
    model = RankSVM(0.1, loss=loss, monotone=AGAINST, tol=1e-8).fit(X, y, qid=qid)
    z = X.T @ model.dual_coef(X, y, qid).per_document()
    projected = np.where(AGAINST * z >= 0.0, z, 0.0)
    assert np.linalg.norm(model.coef_ - projected) <= np.sqrt(2 * model.duality_gap_) + 1e-12
    assert np.linalg.norm(model.coef_ - z) > 0.1  # and not without it


def test_the_path_and_a_warm_start_from_an_infeasible_model():
    X, y, qid, _ = make_data()
    path = regularization_path(X, y, qid=qid, Cs=[0.01, 0.1, 1.0], monotone=AGAINST, tol=1e-8)
    assert path.converged.all()
    for C, coef, value, gap in zip(path.Cs, path.coefs, path.objectives, path.duality_gaps, strict=True):
        least = optimum(ExplicitPairs(y, qid, X), C, AGAINST)
        assert (AGAINST * coef >= 0.0).all()
        assert -1e-9 * least <= value - least <= gap + 1e-9 * least
    model = RankSVM(0.1, warm_start=True, tol=1e-8).fit(X, y, qid=qid)
    assert (AGAINST * model.coef_ < 0.0).any()
    model.set_params(monotone=AGAINST).fit(X, y, qid=qid)
    check(model, ExplicitPairs(y, qid, X), 0.1, AGAINST)
    cold_iterations = model.n_iter_
    model.fit(X, y, qid=qid)
    assert model.n_iter_ == 0 < cold_iterations


def test_choosing_c_keeps_the_signs():
    X, y, qid, _ = make_data()
    model = RankSVMCV(Cs=[0.01, 0.1], cv=3, monotone=AGAINST).fit(X, y, qid=qid)
    assert (AGAINST * model.coef_ >= 0.0).all()
    np.testing.assert_array_equal(model.monotone_, AGAINST)


def test_clone_save_and_load(tmp_path):
    X, y, qid, _ = make_data()
    models = [RankSVM(0.1, monotone=m).fit(X, y, qid=qid) for m in (AGAINST, {0: -1}, "increasing", None)]
    models.append(RankSVMCV(Cs=[0.1], cv=2, monotone=list(SIGNS)).fit(X, y, qid=qid))
    for model in models:
        model.save(tmp_path / "model.rsvm")
        loaded = ranksvm.load(tmp_path / "model.rsvm")
        np.testing.assert_array_equal(loaded.monotone_, model.monotone_)
        assert repr(loaded.monotone) == repr(model.monotone)
        np.testing.assert_array_equal(clone(loaded).fit(X, y, qid=qid).coef_, model.coef_)


def test_without_scikit_learn():
    X, y, qid, _ = make_data()
    model = RankSVMCore(0.1, monotone=AGAINST).fit(X, y, qid=qid)
    np.testing.assert_array_equal(model.coef_, RankSVM(0.1, monotone=AGAINST).fit(X, y, qid=qid).coef_)
