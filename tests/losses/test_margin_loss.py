"""The losses of the margin, by sweep and over lists of pairs, against every pair written out."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from oracle import ExplicitPairs
from ranksvm.data import ComparablePairs, PairList, Queries
from ranksvm.losses import Hinge, HuberHinge, LossSums, SquaredHinge
from sweep_checks import (
    FUNCTIONS,
    LOSSES,
    SWEEPS,
    WAYS,
    WIDTH,
    AtWidth,
    check_against_pairs,
    evaluate,
    make_loss,
    make_pairs,
    product,
)

ulp = np.spacing(1.0)
NAMES = st.sampled_from(sorted(LOSSES))
NEAR_MARGIN = [
    0.0,
    1.0 - ulp / 2,
    1.0,
    1.0 + ulp,
    2.0,
    2.0 - ulp,
    -1.0,
    0.5,
    1.5,
    -1.0 + ulp,
    0.1,
    1.1,
    WIDTH,
    1.0 - WIDTH,
]


@st.composite
def problems(draw):
    """Labels, unsorted qid, scores and everything that weighs and selects pairs, small enough to write these out."""
    n = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    qid = rng.integers(0, draw(st.integers(1, 6)), n)
    labels = draw(st.sampled_from(["few", "many", "distinct", "real"]))
    y = {
        "few": lambda: rng.integers(0, 3, n),
        "many": lambda: rng.integers(-9, 9, n),
        "distinct": lambda: rng.permutation(n),
        "real": lambda: rng.choice(rng.normal(size=n), n),
    }[labels]().astype(float)
    y[:2], qid[:2] = (0, 1), qid[0]  # a pair at least
    kind = draw(st.sampled_from(["near the margin", "any", "equal in each query"]))
    if kind == "near the margin":
        scores = np.array(draw(st.lists(st.sampled_from(NEAR_MARGIN), min_size=n, max_size=n)))
    else:
        scores = rng.normal(size=n if kind == "any" else 6) * 10.0 ** draw(st.integers(-3, 3))
        scores = scores if kind == "any" else scores[qid]
    scores = scores + draw(st.sampled_from([0.0, 0.0, 1.0, -3e3, 1e6]))
    if draw(st.booleans()):
        scores = scores.astype(np.float32).astype(np.float64)  # ties
    weights = {}
    if draw(st.booleans()):
        weights["sample_weight"] = rng.choice([0.0, 0.1, 1.0, 2.0, 7.5], n)
        weights["sample_weight"][:2] = 1.0
    if draw(st.booleans()):
        weights["query_weight"] = rng.choice([0.5, 1.0, 3.0], 6)[qid]
    if draw(st.booleans()):
        weights["propensity"] = rng.choice([0.05, 0.5, 1.0], n)
    weights["weighting"] = draw(st.sampled_from(["uniform", "uniform", "per_query", "label_gap", "gain_gap"]))
    weights["selection"] = draw(st.sampled_from(["all", "all", "adjacent"]))
    return y, qid, scores, weights


@settings(max_examples=600, deadline=None)
@given(problems(), st.sampled_from([None, *WAYS]), NAMES)
def test_equals_the_sums_over_explicit_pairs(problem, way, name):
    y, qid, scores, weights = problem
    check_against_pairs(y, qid, scores, way, name=name, **weights)


@settings(max_examples=200, deadline=None)
@given(problems(), NAMES, st.integers(0, 2**32))
def test_equals_the_sums_over_the_pairs_of_a_list(problem, name, seed):
    y, qid, scores, weights = problem
    weights.pop("selection")
    if weights["weighting"] not in ("uniform", "per_query"):
        weights["weighting"] = "uniform"
    rng = np.random.default_rng(seed)
    candidates = np.argwhere((qid[:, None] == qid) & ~np.eye(len(y), dtype=bool))
    pairs = np.vstack([[0, 1], candidates[rng.integers(0, len(candidates), rng.integers(0, 60))]])
    if rng.random() < 0.5:
        weights["pair_weight"] = rng.choice([0.5, 1.0, 4.0], len(pairs))
    scores = scores - np.median(scores)
    check_against_pairs(y, qid, scores, name=name, pairs=pairs, **weights)


@settings(max_examples=100, deadline=None)
@given(problems(), st.sampled_from(SWEEPS), st.integers(0, 2**32), st.sampled_from(sorted(LOSSES.keys() - FUNCTIONS)))
def test_any_order_to_begin_with_gives_the_same(problem, way, seed, name):
    y, qid, scores, weights = problem
    loss = make_loss(y, qid, way, name=name, **weights)
    if loss.pairs.rows is not None:
        scores = scores[loss.pairs.rows]
    value, gradient, state = evaluate(loss, scores)
    rng = np.random.default_rng(seed)
    other = loss.new_state()
    for a, b in zip(loss.pairs.pointers[:-1], loss.pairs.pointers[1:], strict=True):
        other.order[a:b] = rng.permutation(b - a)
    value2, gradient2, _ = evaluate(loss, scores, other)
    size = (1.0 + float(np.ptp(scores))) * len(y) * (1.0 + loss.pairs.weight) * max(1.0, 1.0 / (LOSSES[name][1] or 1.0))
    assert value2 == pytest.approx(value, rel=1e-12, abs=1e-14 * size * size)
    np.testing.assert_allclose(gradient2, gradient, rtol=1e-12, atol=1e-14 * size)
    np.testing.assert_allclose(other.degrees, state.degrees, rtol=1e-12, atol=1e-12)
    near = loss.new_state(state)
    assert near.order is not state.order
    assert evaluate(loss, scores, near)[0] == pytest.approx(value, rel=1e-12)


@settings(max_examples=300, deadline=None)
@given(problems(), NAMES)
def test_all_ways_take_the_same_pairs(problem, name):
    """One predicate on the same numbers: not one pair at the margin is in by one way and out by another."""
    y, qid, scores, weights = problem
    degrees = []
    for way in WAYS:
        loss = make_loss(y, qid, way, name=name, **weights)
        _, _, state = evaluate(loss, scores if loss.pairs.rows is None else scores[loss.pairs.rows])
        degrees.append(state.degrees)
        if weights["weighting"] == "uniform" and len(weights) == 2:
            np.testing.assert_array_equal(degrees[-1], degrees[0])
        np.testing.assert_allclose(degrees[-1], degrees[0], rtol=1e-12, atol=1e-13 * loss.pairs.weight)


@settings(max_examples=150, deadline=None)
@given(problems(), st.sampled_from(sorted(WAYS)), NAMES)
def test_the_laplacian_is_symmetric_whatever_the_margins(problem, way, name):
    """Both sides of a pair are decided by one predicate: no round-off puts it on one side only."""
    y, qid, scores, weights = problem
    loss = make_loss(y, qid, way, name=name, **weights)
    if loss.pairs.rows is not None:
        scores = scores[loss.pairs.rows]
    _, _, state = evaluate(loss, scores)
    n = loss.pairs.n_rows  # without those of weight 0
    H = np.array([product(loss, state, e) for e in np.eye(n)])
    bound = 1e-13 * (1.0 + loss.pairs.weight) * max(2.0, state.curvature)
    np.testing.assert_allclose(H, H.T, atol=bound)
    np.testing.assert_allclose(H.sum(axis=1), 0.0, atol=bound * n)
    np.testing.assert_allclose(np.diagonal(H), loss.curvature_diagonal(state, 0, n), atol=bound)
    assert np.linalg.eigvalsh(H).min() >= -bound * n


@pytest.mark.parametrize("n_levels", [2, 5, 40, 700])
@pytest.mark.parametrize("spread", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("weighting", ["uniform", "gain_gap"])
@pytest.mark.parametrize("way", ["all pairs", None])
def test_queries_of_hundreds_of_documents(n_levels, spread, name, weighting, way):
    rng = np.random.default_rng(n_levels)
    y, qid = rng.integers(0, n_levels, 500), rng.integers(0, 2, 500)
    scores = rng.normal(size=500) * spread
    check_against_pairs(y, qid, scores, way, name=name, weighting=weighting)


def test_a_query_longer_than_the_direct_form_takes():
    rng = np.random.default_rng(1)
    n = 4500
    y, scores = rng.integers(0, 3, n).astype(float), rng.normal(size=n)
    loss = make_loss(y, np.zeros(n), "direct sweep")
    value, gradient, state = evaluate(loss, scores)
    z = scores - np.sort(scores)[n // 2]
    margin = z[:, None] - z[None, :]
    hinge = np.where(y[:, None] > y[None, :], np.maximum(0.0, 1.0 - margin), 0.0)
    assert value == pytest.approx((hinge**2).sum(), rel=1e-12)
    np.testing.assert_allclose(gradient, 2.0 * (hinge.sum(axis=0) - hinge.sum(axis=1)), rtol=1e-10, atol=1e-8)
    edges = (hinge > 0).astype(float)
    edges += edges.T
    v = rng.normal(size=n)
    expected = 2.0 * (edges.sum(axis=1) * v - edges @ v)
    np.testing.assert_allclose(product(loss, state, v), expected, rtol=1e-10, atol=1e-8)


def test_both_forms_agree_on_a_long_list_and_many_levels():
    rng = np.random.default_rng(2)
    n = 4000
    y, qid, scores = rng.integers(0, 300, n), np.zeros(n), rng.normal(size=n)
    weights = {"sample_weight": rng.random(n)}
    direct, tree = (make_loss(y, qid, way, **weights) for way in SWEEPS)
    (value, gradient, state), (value2, gradient2, state2) = evaluate(direct, scores), evaluate(tree, scores)
    assert value == pytest.approx(value2, rel=1e-12)
    np.testing.assert_allclose(gradient, gradient2, rtol=1e-9, atol=1e-8)
    np.testing.assert_array_equal(state.outer, state2.outer)
    v = rng.normal(size=n)
    np.testing.assert_allclose(product(direct, state, v), product(tree, state2, v), rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("way", WAYS)
def test_a_range_of_queries_touches_no_other(way):
    rng = np.random.default_rng(3)
    y, qid, scores = rng.integers(0, 3, 60), np.repeat(np.arange(6), 10), rng.normal(size=60)
    loss = make_loss(y, qid, way)
    whole, gradient, state = evaluate(loss, scores)
    part_state, total = loss.new_state(), 0.0
    kept = "scores" if way == "all pairs" else "outer"
    getattr(part_state, kept)[:], part_state.degrees[:] = -1, -1.0
    for first, last in [(2, 4), (0, 2), (4, 6)]:
        part = np.empty(10 * (last - first))
        total += loss.evaluate(scores, part_state, first, last, part).value
        np.testing.assert_array_equal(part, gradient[10 * first : 10 * last])
        if first == 2:
            assert (getattr(part_state, kept)[:20] == -1).all()
            assert (part_state.degrees[40:] == -1.0).all()
    assert total == pytest.approx(whole, rel=1e-14)
    np.testing.assert_array_equal(getattr(part_state, kept), getattr(state, kept))


def test_queries_without_a_pair_or_a_document_count_nothing():
    y = np.array([1.0, 0.0, 2.0, 2.0, 5.0])
    pairs = ComparablePairs.from_labels(Queries.from_group([0, 2, 0, 2, 1, 0], 5), y)
    loss = AtWidth(SquaredHinge(pairs))
    value, gradient, state = evaluate(loss, np.array([0.0, 0.0, 3.0, -3.0, np.nan]))
    assert value == 1.0
    np.testing.assert_array_equal(gradient, [-2.0, 2.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(product(loss, state, np.arange(5.0)), [-2.0, 2.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("weighting", ["uniform", "per_query", "gain_gap"])
def test_a_long_query_before_a_short_one(way, name, weighting):
    """What a query leaves in the memory of a thread is nothing to the next one."""
    rng = np.random.default_rng(7)
    sizes = [2, 37, 5, 1, 3, 8, 21]
    y, qid = rng.integers(0, 4, sum(sizes)).astype(float), np.repeat(np.arange(len(sizes)), sizes)
    y[:2] = 0, 1
    scores = rng.normal(size=len(y))
    scores[2:39] = np.nan
    loss = make_loss(y, qid, way, name=name, weighting=weighting)
    value, gradient, state = evaluate(loss, scores)
    assert np.isnan(value)
    assert np.isnan(gradient[2:39]).all()
    v, X = rng.normal(size=len(y)), rng.normal(size=(len(y), 3))
    v[2:39] = np.nan
    out = product(loss, state, v)
    rest = np.delete(np.arange(len(y)), np.arange(2, 39))
    oracle = ExplicitPairs(y, qid, width=LOSSES[name][1], function=FUNCTIONS.get(name), weighting=weighting)
    H = oracle.loss_hessian(np.nan_to_num(scores))
    np.testing.assert_allclose(out[rest], (H @ np.nan_to_num(v))[rest], atol=1e-9)
    Z = np.empty((2 * len(X), 3))
    assert loss.hessian_rows(state, 0, len(sizes), X, Z) is None
    assert np.isfinite(Z[rest]).all()
    assert np.isnan(Z[2:39]).all()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_scores_that_are_not_finite_spoil_the_value_and_nothing_else(bad, way):
    rng = np.random.default_rng(4)
    for place in range(12):
        y, scores = rng.integers(0, 3, 12).astype(float), rng.normal(size=12)
        y[:2] = 0, 1
        scores[place] = bad
        loss = make_loss(y, np.zeros(12), way)
        value, _, state = evaluate(loss, scores)
        assert not np.isfinite(value) or np.isfinite(ExplicitPairs(y, np.zeros(12)).loss(scores))
        if np.isnan(bad):
            assert np.isnan(value)
        product(loss, state, np.ones(12))  # does not crash
        assert state.order is None or sorted(state.order) == list(range(12))


@pytest.mark.parametrize("name", ["squared_hinge", "huber", "wide huber"])
def test_the_gradient_is_the_derivative(name):
    """Five-point stencil, exact for a piecewise quadratic but for round-off where no margin is crossed."""
    rng = np.random.default_rng(5)
    y, qid, scores = rng.integers(0, 4, 20), rng.integers(0, 3, 20), rng.normal(size=20)
    loss = make_loss(np.sort(y), np.sort(qid), name=name)
    _, gradient, _ = evaluate(loss, scores)
    h = 1e-4
    for i, e in enumerate(np.eye(20)):
        f = [evaluate(loss, scores + k * h * e)[0] for k in (-2, -1, 1, 2)]
        assert (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h) == pytest.approx(gradient[i], rel=1e-6, abs=1e-6)


def test_a_ring_of_any_width_keeps_its_digits():
    """As the difference of two sums over more pairs, a ring of width 1e-9 would keep none beside an outlying score."""
    rng = np.random.default_rng(6)
    n, width = 300, 2.0**-30
    z = rng.integers(-50, 50, n) / 8.0 + rng.integers(-8, 9, n) * width / 8.0  # exact, many margins in the ring
    z[0] = -(2.0**20)
    y = rng.integers(0, 3, n).astype(float)
    oracle = ExplicitPairs(y, np.zeros(n), width=width)
    in_ring = oracle.curved(z)[0]
    assert in_ring.sum() > 100
    for way in WAYS:
        pairs = make_loss(y, np.zeros(n), way).pairs
        value, gradient, _ = evaluate(AtWidth(HuberHinge(pairs), width), z)
        assert value == pytest.approx(oracle.loss(z), rel=1e-14)
        np.testing.assert_allclose(gradient, oracle.loss_gradient(z), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("kind", "width"), [(SquaredHinge, None), (HuberHinge, 0.01), (Hinge, 0.01)])
@pytest.mark.parametrize("tight", [False, True])
def test_a_sum_that_round_off_makes_negative_has_finite_bounds(kind, width, tight):
    """Raw counts of words at C = 128: nearly all pairs met their margins, and the certificate was infinite."""
    n = 600
    y = np.arange(n) % 2
    loss = kind(ComparablePairs.from_labels(Queries.from_qid(np.zeros(n), n), y.astype(float)))
    assert loss.sums.lengths.swept == n
    bounds = loss.round_off(y - 0.5 * y[::-1] * 1e-9, LossSums(-1e-9), width, 1e-13, tight)
    assert np.isfinite(bounds).all()
    # a loss as large as the bound of its error has pulls that large
    least = 2.0 * bounds.value if kind is SquaredHinge else 0.0
    assert bounds.pulls_bound**2 >= least * loss._weight_below(y.astype(float), 1.0) * (1.0 - 1e-9)


@pytest.mark.parametrize("way", [None, *WAYS, "list"])
@pytest.mark.parametrize("weighting", ["uniform", "gain_gap"])
@pytest.mark.parametrize("width", [0.5, 1.0])
def test_parabolas_of_another_width_have_the_same_pairs_in_the_ring(way, weighting, width):
    rng, n, narrower = np.random.default_rng(7), 60, 0.2 * width
    y, qid, scores = rng.integers(0, 4, n).astype(float), np.sort(rng.integers(0, 3, n)), 0.6 * rng.normal(size=n)
    oracle = ExplicitPairs(y, qid, weighting=weighting)
    if way == "list":
        listed, weights = np.column_stack([oracle.upper, oracle.lower]), oracle.weight
        loss = Hinge(PairList.from_pairs(Queries.from_qid(qid, n), listed, pair_weight=weights))
    else:
        loss = Hinge(make_pairs(y, qid, way, weighting=weighting))
    h, a, D = 1.0 - oracle.margins(scores), oracle.weight, np.eye(n)[oracle.upper] - np.eye(n)[oracle.lower]
    ring = (h > 0.0) & (h <= width)
    assert 20 < ring.sum() < (h > 0.0).sum()
    state, change = loss.narrowed(scores, width, narrower)
    np.testing.assert_allclose(change, -D.T @ (a * ring * h * (1.0 / narrower - 1.0 / width)), atol=1e-12)
    v = rng.normal(size=n)
    np.testing.assert_allclose(product(loss, state, v), D.T @ (a * ring / narrower * (D @ v)), atol=1e-11)
