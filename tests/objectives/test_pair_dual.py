"""The dual over listed pairs, against explicit pairs in NumPy."""

from functools import partial

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

from oracle import ExplicitPairs
from ranksvm import RankSVM, regularization_path
from ranksvm.data import ComparablePairs, Queries, as_design_matrix
from ranksvm.fits.linear import choose_solver
from ranksvm.losses import LossSpec
from ranksvm.objectives import DualSize, PairDual, pair_dual
from ranksvm.solvers.cone import SignCone
from ranksvm.terms.host import ThreadedTerm

LOSSES = ("squared_hinge", "hinge", "huber")
WIDTH = 0.6


def wide(n_rows=60, n_features=400, seed=0, ties=True):
    """Few rows of many features: queries of 1 to 12 documents, one without a pair, two equal documents."""
    random = np.random.default_rng(seed)
    qid = np.sort(random.integers(0, 9, n_rows))
    X = scipy.sparse.random(n_rows, n_features, 0.05, "csr", random_state=seed, dtype=np.float64).toarray()
    y = random.integers(0, 3 if ties else 50, n_rows).astype(float)
    y[qid == qid[0]] = 1.0  # no pair
    X[-1] = X[-2]
    y[-2:] = 0.0, 1.0
    qid[-2:] = qid[-1]
    return X, y, qid


def primal_value(X, y, qid, w, C, loss, **weights):
    """The objective over explicit pairs."""
    pairs = ExplicitPairs(y, qid, X, **weights)
    hinge = np.maximum(0.0, 1.0 - (X[pairs.upper] - X[pairs.lower]) @ w)
    values = {
        "squared_hinge": hinge**2,
        "hinge": hinge,
        "huber": np.where(hinge < WIDTH, hinge**2 / (2 * WIDTH), hinge - WIDTH / 2),
    }[loss]
    return 0.5 * w @ w + C * pairs.weight @ values


def least_value_over_the_cone(X, y, qid, C):
    """The least value of the squared hinge with nonnegative weights, by L-BFGS-B on explicit pairs."""
    pairs = ExplicitPairs(y, qid, X)
    D = pairs.X[pairs.upper] - pairs.X[pairs.lower]

    def f(w):
        hinge = np.maximum(0.0, 1.0 - D @ w)
        return 0.5 * w @ w + C * hinge @ hinge, w - 2 * C * (hinge @ D)

    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-11}
    bounds = [(0.0, None)] * D.shape[1]
    return scipy.optimize.minimize(f, np.zeros(len(bounds)), jac=True, bounds=bounds, options=options).fun


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
def test_agrees_with_tron_and_explicit_pairs(loss, C):
    X, y, qid = wide()
    # the hinge is reached by smoothing there: its certificate is met less far
    tols = {"dual": 1e-7, "tron": 1e-4 if loss == "hinge" else 1e-7}
    fits = [
        RankSVM(C=C, loss=loss, huber_width=WIDTH, solver=solver, tol=tol, max_iter=5000).fit(X, y, qid=qid)
        for solver, tol in tols.items()
    ]
    for fit in fits:
        assert fit.converged_
        assert fit.objective_ == pytest.approx(primal_value(X, y, qid, fit.coef_, C, loss), rel=1e-12)
    dual, tron = fits
    assert dual.objective_ <= tron.objective_ + 1e-7 * tron.objective_
    assert dual.objective_ >= tron.objective_ - tron.duality_gap_ - 1e-12 * tron.objective_


@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "csr"])
def test_the_bits_do_not_depend_on_threads(make, monkeypatch):
    monkeypatch.setattr(pair_dual, "SHARED_ROWS", 7)
    X, y, qid = wide()
    fits = [RankSVM(solver="dual", n_jobs=n_jobs, tol=1e-6).fit(make(X), y, qid=qid) for n_jobs in (1, 3)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].duality_gap_ == fits[1].duality_gap_


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("make", [np.asarray, np.float32, scipy.sparse.csr_matrix], ids=["f64", "f32", "csr"])
def test_weights_and_storage(loss, make):
    X, y, qid = wide(seed=1)
    X = X.astype(np.float32).astype(np.float64)
    random = np.random.default_rng(2)
    weights = {
        "sample_weight": random.integers(0, 3, len(y)).astype(float),
        "propensity": random.uniform(0.3, 1.0, len(y)),
    }
    fit = RankSVM(loss=loss, huber_width=WIDTH, solver="dual", tol=1e-6, max_iter=5000)
    fit.fit(make(X), y, qid=qid, **weights)
    assert fit.converged_
    assert fit.objective_ == pytest.approx(primal_value(X, y, qid, fit.coef_, 1.0, loss, **weights), rel=1e-10)
    other = RankSVM(loss=loss, huber_width=WIDTH, solver="tron", tol=1e-4, max_iter=5000).fit(X, y, qid=qid, **weights)
    assert abs(fit.objective_ - other.objective_) <= 1e-4 * other.objective_


def many_pairs(n_queries, n_documents, n_features, seed=0, levels=5):
    """Independent normal features, and queries that get Newton steps, because documents have many pairs."""
    random = np.random.default_rng(seed)
    n_rows = n_queries * n_documents
    X = random.normal(size=(n_rows, n_features)) / np.sqrt(n_features)
    return X, random.integers(0, levels, n_rows).astype(float), np.repeat(np.arange(n_queries), n_documents)


@pytest.mark.parametrize("loss", ["squared_hinge", "huber"])
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 1e3, 1e8])
@pytest.mark.parametrize("levels", [2, 5])
@pytest.mark.parametrize("n_features", [3, 50])
def test_a_few_visits_solve_the_problem_of_a_query(loss, C, levels, n_features):
    X, y, qid = many_pairs(1, 25, n_features, levels=levels)
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), y)
    dual = PairDual(as_design_matrix(X), pairs, loss, WIDTH, C)
    point = dual.evaluate()
    dual.ascend(point, 4 if C <= 1.0 else 20)
    value, gap = dual.certificate(point)
    assert gap <= 1e-6 * value
    assert value == pytest.approx(primal_value(X, y, qid, point.w, C, loss), rel=1e-12)


@pytest.mark.parametrize("loss", ["squared_hinge", "huber"])
@pytest.mark.parametrize("n_documents", [20, 60])
@pytest.mark.parametrize("weighted", [False, True])
def test_alpha_do_not_crawl_along_cycles_of_pairs(loss, n_documents, weighted):
    X, y, qid = many_pairs(10, n_documents, 1800)
    weights = np.array([1e-200, 1.0, 2.0])[np.random.default_rng(1).integers(0, 3, len(y))] if weighted else None
    fit = RankSVM(1800.0, loss=loss, solver="dual").fit(X, y, qid=qid, sample_weight=weights)
    assert fit.converged_
    assert fit.history_["evaluations"][-1] <= 50  # with steps of single pairs, at least 169


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("shape", "levels", "equal", "C", "most"),
    [((1, 120, 300), 2, False, 1e2, 3), ((1, 60, 300), 5, True, 1e5, 4), ((3, 40, 200), 2, False, 1e5, 80)],
    ids=["many kinks", "equal documents", "alpha at its bounds"],
)
def test_newton_steps_pass_many_kinks(shape, levels, equal, C, most, seed):
    """The limits are small: a flaw of the first step, the halving or the test of the gain takes more visits."""
    X, y, qid = many_pairs(*shape, seed, levels)
    if equal:
        X[1::3] = X[::3]
    fit = RankSVM(C, loss="huber", huber_width=WIDTH, solver="dual").fit(X, y, qid=qid)
    assert fit.converged_
    assert fit.history_["evaluations"][-1] <= most


def test_newton_steps_pause_after_they_failed():
    X, _, qid = many_pairs(2, 60, 300)
    X[::2] = X[1::2]  # equal documents
    y = np.random.default_rng(0).normal(size=len(X))
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), y)
    dual = PairDual(as_design_matrix(X), pairs, "huber", 0.01, 1e4)
    point, pauses = dual.evaluate(), dual._arrays.pauses
    longest = []
    for _ in range(150):
        dual.ascend(point, 1)
        longest.append(pauses[:, 1].max())
    assert [longest.count(n) for n in (1, 2, 4, 8, 16, 32)] == [2, 3, 5, 9, 17, 33]  # a visit with steps, and the pause
    assert longest[-1] == 64
    dual.reweight(1.0)
    assert not pauses.any()
    dual.ascend(dual.evaluate(), 1)
    assert not pauses.any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("loss", ["squared_hinge", "huber"])
def test_newton_steps_that_overflow_are_not_taken(loss):
    for seed in range(30):
        random = np.random.default_rng(seed)
        X = random.normal(size=(6, 4)) @ random.normal(size=(4, 10))
        fit = RankSVM(C=1e200, loss=loss, solver="dual", max_iter=20).fit(X, random.permutation(6), group=[6])
        assert np.isfinite([fit.objective_, fit.duality_gap_]).all()


@pytest.mark.parametrize("loss", ["squared_hinge", "huber"])
@pytest.mark.parametrize("C", [1e-12, 1e-3, 1.0, 1e3, 1e12])
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_newton_steps_never_lower_the_dual(loss, C, scale):
    """Also with pairs of weight 0, equal documents, and alpha at its bounds."""
    X, y, qid = many_pairs(4, 15, 30, seed=1)
    X *= scale
    X[1::15] = X[::15]
    # the product of the smallest ones is 0
    weights = np.array([1e-200, 1.0, 2.0])[np.random.default_rng(2).integers(0, 3, len(y))]
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), y, sample_weight=weights)
    without_weight = pairs.explicit(0, pairs.n_queries)[2] == 0.0
    assert without_weight[pairs.n_pairs // 2 :].any()
    dual = PairDual(as_design_matrix(X), pairs, loss, WIDTH, C)
    for start in (None, np.inf, "random"):
        alpha = np.zeros(pairs.n_pairs) if start is None else np.full(pairs.n_pairs, 10.0 * C)
        if start == "random":
            alpha *= np.random.default_rng(3).uniform(size=len(alpha))
        point, before = dual.evaluate(alpha), -np.inf
        for _ in range(8):
            value, gap = dual.certificate(point)
            assert value == pytest.approx(
                primal_value(X, y, qid, point.w, C, loss, sample_weight=weights), rel=1e-9, abs=1e-300
            )
            assert value - gap >= before - dual.round_off(point, 1e-4)
            assert not point.alpha[without_weight].any()
            before = value - gap
            dual.ascend(point, 1)
        again = dual.evaluate(point.alpha)
        np.testing.assert_allclose(again.w, point.w, rtol=0, atol=1e-9 * np.abs(point.w).max(initial=1e-300))


def test_certificate_is_honest_at_every_epoch():
    X, y, qid = wide(seed=3)
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), y)
    for loss in LOSSES:
        best = RankSVM(C=10.0, loss=loss, huber_width=WIDTH, solver="dual", tol=1e-9, max_iter=20000)
        best = best.fit(X, y, qid=qid).objective_
        dual = PairDual(as_design_matrix(X), pairs, loss, WIDTH, 10.0)
        point = dual.evaluate()
        for _ in range(10):
            value, gap = dual.certificate(point)
            assert value == pytest.approx(primal_value(X, y, qid, point.w, 10.0, loss), rel=1e-12)
            assert best >= value - gap - 1e-9 * value
            dual.ascend(point, 1)
        again = dual.evaluate(point.alpha)
        np.testing.assert_allclose(again.w, point.w, rtol=0, atol=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("exponent", [-300, 300])
def test_the_gap_is_true_if_squares_of_alpha_are_no_floats(loss, exponent):
    """With features c times as large and C / c^2, all objectives and alpha are 1 / c^2 times as large."""
    X, y, qid = wide(seed=4)
    options = {"loss": loss, "huber_width": WIDTH, "solver": "dual", "tol": 1e-6}
    usual = RankSVM(C=0.1, **options).fit(X, y, qid=qid)
    scaled = RankSVM(C=np.ldexp(0.1, 2 * exponent), **options).fit(np.ldexp(X, -exponent), y, qid=qid)
    assert scaled.converged_
    assert np.ldexp(scaled.objective_, -2 * exponent) == pytest.approx(usual.objective_, rel=1e-12)
    assert np.ldexp(scaled.duality_gap_, -2 * exponent) == pytest.approx(usual.duality_gap_, rel=1e-3)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("of_signs", [False, True])
def test_round_off_is_within_its_bound(loss, offset, of_signs):
    """Value and gap of alpha and w in extended precision: what rows have in common costs digits."""
    X, y, qid = wide(seed=5)
    X = X + offset * (np.arange(X.shape[1]) % 7 == 0)
    C = 10.0
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), y)
    cone = SignCone(signs_of(X.shape[1])) if of_signs else None
    dual = PairDual(as_design_matrix(X), pairs, loss, WIDTH, C, cone)
    preferred, other, _ = dual.pairs.explicit(0, dual.pairs.n_queries)
    if dual.pairs.rows is not None:
        preferred, other = dual.pairs.rows[preferred], dual.pairs.rows[other]
    differences = np.longdouble(X)[preferred] - np.longdouble(X)[other]
    point = dual.evaluate()
    for _ in range(12):
        dual.ascend(point, 3)
        value, gap = dual.certificate(point)
        bound = dual.round_off(point, 1e-4)
        alpha, w = np.longdouble(point.alpha), np.longdouble(point.w)
        hinge = np.maximum(0, 1 - differences @ w)
        losses = {
            "squared_hinge": hinge**2,
            "hinge": hinge,
            "huber": np.where(hinge < WIDTH, hinge**2 / (2 * np.longdouble(WIDTH)), hinge - np.longdouble(WIDTH) / 2),
        }[loss]
        primal = w @ w / 2 + C * losses.sum()
        z = alpha @ differences
        z = z if cone is None else np.where(cone.signs * z < 0, 0, z)
        ridge = {"squared_hinge": 0.5, "hinge": 0.0, "huber": WIDTH}[loss] / np.longdouble(C)
        exact = primal - (alpha.sum() - ridge / 2 * (alpha @ alpha) - z @ z / 2)
        assert abs(primal - value) <= bound
        assert exact - gap <= bound
        assert bound <= 1e-9 * (1.0 + offset) * value


def signs_of(n_features):
    """Weights that must not be negative, not be positive, and free ones."""
    return np.arange(n_features) % 3 - 1


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
@pytest.mark.parametrize("make", [np.asarray, scipy.sparse.csr_matrix], ids=["dense", "csr"])
def test_weights_of_known_signs_agree_with_tron(loss, C, make):
    X, y, qid = wide(seed=8)
    signs = signs_of(X.shape[1])
    options = {"C": C, "loss": loss, "huber_width": WIDTH, "monotone": signs, "max_iter": 5000}
    dual = RankSVM(solver="dual", tol=1e-7, **options).fit(make(X), y, qid=qid)
    tron = RankSVM(solver="tron", tol=1e-4 if loss == "hinge" else 1e-7, **options).fit(make(X), y, qid=qid)
    assert dual.solver_ == "dual"
    assert dual.converged_
    assert tron.converged_
    assert (signs * dual.coef_ >= 0.0).all()
    assert dual.objective_ == pytest.approx(primal_value(X, y, qid, dual.coef_, C, loss), rel=1e-12)
    assert dual.objective_ <= tron.objective_ + 1e-7 * tron.objective_
    assert dual.objective_ >= tron.objective_ - tron.duality_gap_ - 1e-12 * tron.objective_
    z = X.T @ dual.dual_coef(X, y, qid).per_document()
    np.testing.assert_allclose(dual.coef_, np.where(signs * z >= 0.0, z, 0.0), atol=1e-10)


def test_the_certificate_of_known_signs_is_honest_at_every_epoch():
    X, y, qid = wide(seed=9)
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), y)
    cone = SignCone(signs_of(X.shape[1]))
    for loss in LOSSES:
        best = RankSVM(
            C=10.0, loss=loss, huber_width=WIDTH, solver="dual", monotone=cone.signs, tol=1e-9, max_iter=20000
        )
        best = best.fit(X, y, qid=qid).objective_
        dual = PairDual(as_design_matrix(X), pairs, loss, WIDTH, 10.0, cone)
        point, before = dual.evaluate(), -np.inf
        for _ in range(10):
            value, gap = dual.certificate(point)
            assert value == pytest.approx(primal_value(X, y, qid, point.w, 10.0, loss), rel=1e-12)
            assert best >= value - gap - 1e-9 * value
            assert value - gap >= before - 1e-12 * value  # the dual ascends
            before = value - gap
            dual.ascend(point, 1)
        again = dual.evaluate(point.alpha)
        np.testing.assert_allclose(again.w, point.w, rtol=0, atol=1e-12)
        np.testing.assert_array_equal(point.w, cone.project(point.z))


def test_known_signs_take_the_dual_for_many_dense_features(monkeypatch):
    X, y, qid = wide()
    fit, newton = (
        RankSVM(C=10.0, monotone="increasing", solver=solver).fit(X, y, qid=qid) for solver in ("auto", "newton")
    )
    assert (fit.solver_, fit.converged_) == ("dual", True)
    assert abs(fit.objective_ - newton.objective_) <= fit.duality_gap_ + newton.duality_gap_
    assert RankSVM(monotone="increasing").fit(X[:, :250], y, qid=qid).solver_ == "newton"
    monkeypatch.setattr("ranksvm.fits.linear.DUAL_EPOCHS", (2, 2))
    slow = RankSVM(C=1000.0, monotone="increasing").fit(X, y, qid=qid)
    assert (slow.solver_, slow.converged_) == ("newton", True)


def test_known_signs_along_a_path_and_left_to_tron(monkeypatch):
    X, y, qid = wide(n_features=2500, seed=6)
    X, options = scipy.sparse.csr_matrix(X), {"monotone": "increasing", "tol": 1e-5}
    assert RankSVM(monotone="increasing").fit(X, y, qid=qid).solver_ == "dual"
    Cs = [0.01, 0.1, 1.0]
    path = regularization_path(X, y, qid=qid, Cs=Cs, solver="dual", **options)
    for C, objective, gap in zip(Cs, path.objectives, path.duality_gaps, strict=True):
        least = least_value_over_the_cone(X, y, qid, C)
        assert least * (1 - 1e-9) <= objective <= least * (1 + 1e-9) + gap
        if C < 1.0:  # where it takes few iterations
            fit = RankSVM(C=C, solver="tron", **options).fit(X, y, qid=qid)
            assert abs(fit.objective_ - objective) <= gap + fit.duality_gap_
    monkeypatch.setattr("ranksvm.fits.linear.DUAL_EPOCHS", (2, 2))
    fit = RankSVM(C=1000.0, monotone="increasing").fit(X, y, qid=qid)
    assert (fit.solver_, fit.converged_, fit.pair_alpha_) == ("tron", True, None)
    assert fit.coef_.min() >= 0.0


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_tron_takes_over_the_hinge_with_known_signs_later(monkeypatch):
    random = np.random.default_rng(1)
    X = scipy.sparse.random(60, 2500, density=0.005, random_state=1, format="csr")
    y, qid = random.integers(0, 3, 60), np.repeat(np.arange(6), 10)
    fit = RankSVM(loss="hinge", monotone="increasing").fit(X, y, qid=qid)
    assert (fit.solver_, fit.converged_) == ("dual", True)
    assert 60 < fit.n_iter_ < 200
    monkeypatch.setattr("ranksvm.fits.linear.MAX_EPOCHS", 2)
    assert RankSVM(loss="hinge", monotone="increasing", max_iter=10).fit(X, y, qid=qid).solver_ == "tron"


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_of_pairs_near_the_smallest_number(loss):
    X, qid = np.random.default_rng(0).normal(size=(40, 400)), np.arange(40) // 4
    y = np.linspace(0.0, 1074.0, 10)[qid] + np.arange(40) % 4
    options = {"loss": loss, "pair_weighting": "gain_gap", "tol": 1e-6}
    dual, tron = (RankSVM(solver=solver, **options).fit(X, y, qid=qid) for solver in ("dual", "tron"))
    assert dual.converged_
    assert dual.objective_ == pytest.approx(tron.objective_, rel=2e-6)


def test_explicit_pairs_and_dual_coef():
    X, y, qid = wide(seed=4)
    upper, lower = np.nonzero((qid[:, None] == qid) & (y[:, None] > y))
    pairs = np.stack([upper, lower], axis=1)
    listed = RankSVM(solver="dual", tol=1e-8).fit(X, pairs=pairs, qid=qid)
    labeled = RankSVM(solver="dual", tol=1e-8).fit(X, y, qid=qid)
    assert listed.objective_ == pytest.approx(labeled.objective_, rel=1e-7)
    for fit, how in ((listed, {"pairs": pairs}), (labeled, {"y": y})):
        dual = fit.dual_coef(X, qid=qid, **how)
        np.testing.assert_allclose(X.T @ dual.per_document(), fit.coef_, atol=1e-10)
        alpha = np.concatenate([block.alpha.ravel() for block in dual])
        value = alpha.sum() - (alpha @ alpha) / 4 - fit.coef_ @ fit.coef_ / 2
        assert value == pytest.approx(fit.objective_ - fit.duality_gap_, rel=1e-10)


def test_path_and_warm_start_reach_the_same_optima():
    X, y, qid = wide(seed=5)
    Cs = [0.1, 1.0, 10.0]
    for loss in LOSSES:
        path = regularization_path(X, y, qid=qid, Cs=Cs, loss=loss, solver="dual", tol=1e-6)
        for C, objective, gap in zip(Cs, path.objectives, path.duality_gaps, strict=True):
            fit = RankSVM(C=C, loss=loss, solver="dual", tol=1e-6, warm_start=True).fit(X, y, qid=qid)
            assert abs(fit.objective_ - objective) <= gap + fit.duality_gap_
            n_iter = fit.n_iter_
            assert fit.fit(X, y, qid=qid).n_iter_ <= n_iter


@pytest.mark.parametrize("signs", [None, "increasing"])
def test_a_warm_start_at_a_far_smaller_C_keeps_no_round_off_of_the_large_alpha(signs):
    X, y, qid = many_pairs(3, 20, 400)
    X[1::20] = X[::20]  # equal documents: their alpha are 2 C
    y[1::20] = y[::20] + 1.0
    ranker = RankSVM(C=1e12, solver="dual", monotone=signs, warm_start=True, max_iter=20).fit(X, y, qid=qid)
    largest = ranker.pair_alpha_.max()
    ranker.set_params(C=1.0, max_iter=1000).fit(X, y, qid=qid)
    assert largest > 1e11
    assert ranker.converged_
    assert ranker.objective_ == pytest.approx(
        RankSVM(solver="dual", monotone=signs, tol=1e-8).fit(X, y, qid=qid).objective_, rel=1e-4
    )


def test_a_point_is_refreshed_only_once_its_steps_have_left_round_off():
    X, y, qid = many_pairs(3, 20, 400)
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), y)
    dual = PairDual(as_design_matrix(X), pairs, "squared_hinge", WIDTH, 1.0)
    point = dual.evaluate()
    dual.ascend(point, 1)
    assert not dual.refresh(point)
    point = dual.evaluate(np.full(pairs.n_pairs, 1e5))
    dual.ascend(point, 5)
    before = point.w.copy()
    assert [dual.refresh(point) for _ in range(2)] == [True, False]
    assert 0.0 < np.abs(point.w - before).max() < 1e-3
    np.testing.assert_array_equal(point.w, dual.evaluate(point.alpha).w)


def test_slow_dual_is_left_to_tron(monkeypatch):
    monkeypatch.setattr("ranksvm.fits.linear.DUAL_EPOCHS", (2, 2))
    monkeypatch.setattr("ranksvm.fits.linear.DIRECT_ROWS", 0)
    X, y, qid = wide(n_features=2500, seed=6)
    fit = RankSVM(C=1000.0).fit(scipy.sparse.csr_matrix(X), y, qid=qid)
    assert fit.solver_ == "tron"
    assert fit.converged_
    assert fit.pair_alpha_ is None
    assert len(fit.history_["objective"]) == fit.n_iter_ + 1


def test_choice_is_by_counts():
    X, y, qid = wide(n_features=3000, seed=7)
    X = scipy.sparse.csr_matrix(X)
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), y)

    def choice(X, pairs, loss="squared_hinge"):
        term = ThreadedTerm(as_design_matrix(X), LossSpec(loss).with_pairs(pairs))
        return choose_solver(term, LossSpec(loss), partial(DualSize.of, pairs)).solver

    assert choice(X, pairs) == "dual"
    assert RankSVM().fit(X, y, qid=qid).solver_ == "dual"
    # more rows than features
    assert choice(X[:, :50], pairs) != "dual"
    # one list of many levels has many pairs for each row: only the hinge uses the dual
    long = ComparablePairs.from_labels(Queries.from_qid(None, 60), np.arange(60.0))
    assert choice(X, long) == "tron"
    assert choice(X, long, "hinge") == "dual"
    assert DualSize.of(long) == (60, 1770, 3600 + 6 * 1770, 1770 * 60)
    # so long a list that its Gram matrix is larger than the data
    huge = ComparablePairs.from_labels(Queries.from_qid(None, 2000), np.arange(2000.0))
    assert choice(scipy.sparse.vstack([X] * 34).tocsr()[:2000], huge, "hinge") == "tron"
    # so long a list that a cycle takes too many multiplications, although its Gram matrix is small enough
    middle = ComparablePairs.from_labels(Queries.from_qid(None, 400), np.arange(400.0))
    assert choice(np.ones((400, 600)), middle, "hinge") != "dual"
    assert choice(np.ones((400, 1600)), middle, "hinge") == "dual"
