"""The logistic loss: its function to the last digits, extreme margins, long queries on threads, and its certificate."""

import numpy as np
import pytest
import ranksvm._compiled.pair_list as pair_list
import ranksvm._compiled.sweep as sweep

from oracle import ExplicitPairs, LogisticFunction
from ranksvm import KernelRankSVM, RankSVM
from ranksvm.data import ComparablePairs, PairList, Queries
from ranksvm.losses import Logistic
from ranksvm.losses.margin_loss import SmoothLoss
from ranksvm.losses.named_losses import CLASSES
from sweep_checks import AtWidth, check_against_pairs, evaluate, product

# relative, of a few operations
ULPS = 8 * 2.0**-53
EXTREME = [0.0, 1e-300, 36.0, 707.0, 709.0, 745.0, 1e4, 1e300]


def at_margins(margins):
    """Value, minus the derivative and the second derivative of each margin, from a list of pairs of two documents."""
    n = len(margins)
    scores = np.zeros(2 * n)
    scores[::2] = margins
    pairs = PairList.from_pairs(Queries.from_qid(np.arange(2 * n) // 2, 2 * n), np.arange(2 * n).reshape(n, 2))
    loss = AtWidth(Logistic(pairs))
    state, gradient = loss.new_state(), np.empty(2 * n)
    values = [loss.evaluate(scores, state, i, i + 1, np.empty(2)).value for i in range(n)]
    loss.evaluate(scores, state, 0, n, gradient)
    return np.array(values), -gradient[::2], state.active


def test_the_function_is_exact_to_a_few_units_in_the_last_place():
    margins = np.concatenate(
        [np.linspace(-700.0, 700.0, 2001), np.linspace(-3.0, 3.0, 2001), np.geomspace(1e-20, 40, 99)]
    )
    m = margins.astype(np.longdouble)
    right, wrong = 1 / (1 + np.exp(-m)), 1 / (1 + np.exp(m))
    value, pull, bend = at_margins(margins)
    np.testing.assert_allclose(value, np.where(m < 0, -m, 0) + np.log1p(np.exp(-np.abs(m))), rtol=ULPS)
    np.testing.assert_allclose(pull, wrong, rtol=ULPS)
    np.testing.assert_allclose(bend, right * wrong, rtol=ULPS)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_extreme_margins_are_finite(sign):
    margins = sign * np.array(EXTREME)
    value, pull, bend = at_margins(margins)
    np.testing.assert_allclose(value, np.logaddexp(0.0, -margins), rtol=1e-14, atol=1e-300)
    np.testing.assert_allclose(pull, -LogisticFunction().derivative(margins), rtol=1e-14, atol=1e-300)
    assert np.isfinite(bend).all()
    assert (bend >= 0.0).all()


def test_a_margin_that_is_no_number_is_seen():
    value, pull, _ = at_margins(np.array([np.nan]))
    assert np.isnan(value).all()
    assert np.isnan(pull).all()


@pytest.mark.parametrize("weighting", ["uniform", "per_query", "gain_gap"])
def test_a_query_that_is_shared_out_is_every_pair(weighting):
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 5, 1100).astype(float), rng.normal(size=1100)
    check_against_pairs(y, np.zeros(1100), scores, name="logistic", weighting=weighting)


@pytest.mark.parametrize("selection", ["all", "adjacent"])
def test_any_number_of_threads_gives_the_same_bits(selection):
    rng = np.random.default_rng(1)
    y, scores, v = rng.integers(0, 9, 5000).astype(float), rng.normal(size=5000), rng.normal(size=5000)
    pairs = ComparablePairs.from_labels(Queries.from_qid(None, 5000), y, selection=selection)
    loss = AtWidth(Logistic(pairs))
    found = []
    for n_threads in (1, 2, 5):
        value, gradient, state = evaluate(loss, scores, loss.new_state(n_threads=n_threads))
        found.append([value, gradient, state.degrees, product(loss, state, v)])
    for other in found[1:]:
        for a, b in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_an_operator_needs_a_function():
    pairs = ComparablePairs.from_labels(Queries.from_qid(None, 2), np.array([0.0, 1.0]))
    state = Logistic(pairs).new_state()
    with pytest.raises(ValueError, match="no function"):
        sweep.smooth(pairs.arrays, sweep.StateArrays(None, None, None, state.scores, state.degrees, False))
    listed = PairList.from_pairs(Queries.from_qid(None, 2), [[1, 0]])
    with pytest.raises(ValueError, match="no number"):
        pair_list.smooth(listed.arrays, 0, np.empty(1), np.empty(2))


def test_each_function_has_a_number_of_its_own():
    smooth = [loss.function for loss in CLASSES.values() if issubclass(loss, SmoothLoss)]
    assert sorted(smooth) == list(range(1, len(smooth) + 1))


def problem(seed=0, n=120, **weights):
    rng = np.random.default_rng(seed)
    X, qid = rng.normal(size=(n, 5)), rng.integers(0, 8, n)
    y = np.digitize(X[:, 0] + rng.normal(size=n), [-1.0, 0.0, 1.0]).astype(float)
    return X, y, qid, ExplicitPairs(y, qid, X, function=LogisticFunction(), **weights)


@pytest.mark.parametrize("weighting", ["uniform", "per_query", "label_gap", "gain_gap"])
@pytest.mark.parametrize("selection", ["all", "adjacent"])
def test_it_is_the_loss_that_a_user_would_write(weighting, selection):
    X, y, qid, _ = problem()
    options = {"pair_weighting": weighting, "pair_selection": selection, "tol": 1e-11}
    ours, own = (RankSVM(0.3, loss=loss, **options).fit(X, y, qid=qid) for loss in ("logistic", LogisticFunction()))
    assert ours.objective_ == pytest.approx(own.objective_, rel=1e-9)
    assert ours.width_ is None
    np.testing.assert_allclose(ours.coef_, own.coef_, atol=1e-5)


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_so_it_is_with_kernels(kernel):
    X, y, qid, _ = problem()
    options = {"kernel": kernel, "tol": 1e-11}
    ours, own = (
        KernelRankSVM(0.3, loss=loss, **options).fit(X, y, qid=qid) for loss in ("logistic", LogisticFunction())
    )
    assert ours.objective_ == pytest.approx(own.objective_, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_the_certificate_is_primal_less_dual(weighted):
    """``1/2 |grad f|^2`` is f(w) less the entropy dual at ``alpha = C a sigma(-m)``."""
    X, y, qid, oracle = problem(**({"weighting": "label_gap"} if weighted else {}))
    options = {"pair_weighting": "label_gap"} if weighted else {}
    for tol in (1e-1, 1e-3):
        model = RankSVM(0.2, loss="logistic", tol=tol, **options).fit(X, y, qid=qid)
        D = X[oracle.upper] - X[oracle.lower]
        u = oracle.pulls(X @ model.coef_)
        alpha = 0.2 * oracle.weight * u
        v = D.T @ alpha
        dual = -0.2 * oracle.weight @ LogisticFunction().conjugate(-u) - 0.5 * v @ v
        assert model.objective_ == pytest.approx(oracle.value(model.coef_, 0.2), rel=1e-12)
        assert model.duality_gap_ == pytest.approx(model.objective_ - dual, rel=1e-6, abs=1e-9)
        np.testing.assert_allclose(X.T @ model.dual_coef(X, y, qid).per_document(), v, atol=1e-9)


@pytest.mark.parametrize(("C", "scale"), [(1e-6, 1e4), (1e6, 1e-4), (1e6, 1e4)])
def test_fits_of_any_scale_are_certified(C, scale):
    X, y, qid, _ = problem()
    model = RankSVM(C, loss="logistic").fit(scale * X, y, qid=qid)
    assert model.converged_
    assert np.isfinite(model.coef_).all()
    assert model.duality_gap_ <= model.tol * model.objective_


@pytest.mark.parametrize("margin_error", [1e-12, 0.3, 2.0])
@pytest.mark.parametrize("weighting", ["uniform", "gain_gap"])
def test_bounds_of_round_off_hold_what_margins_may_change(margin_error, weighting):
    _, y, qid, oracle = problem(weighting=weighting)
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), y, weighting=weighting)
    rng, function = np.random.default_rng(2), LogisticFunction()
    scores = 3.0 * rng.normal(size=len(y))
    loss = AtWidth(Logistic(pairs))
    in_order = scores[pairs.rows]
    sums = loss.evaluate(in_order, loss.new_state(), 0, pairs.n_queries, np.empty(len(y)))
    m = oracle.margins(scores)
    for tight in (False, True):
        bounds = loss.round_off(in_order, sums, None, margin_error, tight)
        for moved in (m - margin_error, m + margin_error, m + margin_error * rng.uniform(-1, 1, len(m))):
            assert oracle.weight @ -function.derivative(moved) <= bounds.pulls_bound * (1 + 1e-12)
            tangent = function.value(m) + function.derivative(m) * (moved - m)
            assert oracle.weight @ (function.value(moved) - tangent) <= bounds.excess_bound * (1 + 1e-9) + 1e-13
        assert abs(sums.value - oracle.loss(scores)) <= bounds.value
        assert bounds.slack == 0.0
