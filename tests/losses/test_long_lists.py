"""Lists so long that several threads share them: the same as every pair visited, whatever the number of threads."""

import numpy as np
import pytest

from ranksvm.data import Queries
from sweep_checks import evaluate, make_loss, make_pairs, product

N = 40_000


def labels(kind, rng):
    if kind == "distinct":
        return rng.permutation(N).astype(float)
    if kind == "skewed":  # most of the list in few of many levels
        return np.floor(60.0 * rng.random(N) ** 12)
    return rng.integers(0, int(kind), N).astype(float)


def scores_of(y, rng, scale=1.0):
    return scale * (rng.normal(size=N) + y / (1.0 + y.max()))


CASES = {
    "five levels": ("5", "squared_hinge", {}),
    "few levels, weights": ("3", "huber", {"sample_weight": True}),
    "distinct": ("distinct", "squared_hinge", {}),
    "distinct, huber": ("distinct", "huber", {}),
    "distinct, narrow ring": ("distinct", "hinge", {}),
    "distinct, weights": ("distinct", "squared_hinge", {"sample_weight": True}),
    "gaps": ("40", "squared_hinge", {"weighting": "label_gap"}),
    "wide huber": ("40", "wide huber", {}),
    "skewed": ("skewed", "squared_hinge", {}),
    "adjacent": ("40", "squared_hinge", {"selection": "adjacent"}),
    "adjacent, huber": ("distinct", "huber", {"selection": "adjacent"}),
}


@pytest.mark.parametrize("case", CASES)
def test_any_number_of_threads_gives_what_visiting_every_pair_gives(case):
    kind, name, options = CASES[case]
    rng = np.random.default_rng(5)
    y, qid, v = labels(kind, rng), np.zeros(N), rng.normal(size=N)
    if "sample_weight" in options:
        options = {"sample_weight": rng.random(N) + (rng.random(N) < 0.5)}
    # ties: a third of the scores are rounded
    scores = np.where(rng.random(N) < 0.3, np.round(scores_of(y, rng), 1), scores_of(y, rng))
    visited = make_loss(y, qid, "all pairs", name=name, **options)
    value, gradient, state = evaluate(visited, scores)
    expected = product(visited, state, v)
    swept = make_loss(y, qid, "parting sweep", name=name, **options)
    one = None
    for n_threads in (1, 2, 3, 4):
        state_of = swept.new_state(None, n_threads)
        evaluate(swept, scores_of(y, rng), state_of)  # leaves another order
        state_of.order[:] = np.arange(N)
        found = *evaluate(swept, scores, state_of)[:2], state_of.degrees.copy(), product(swept, state_of, v)
        one = found if one is None else one
        for a, b in zip(found, one, strict=True):
            np.testing.assert_array_equal(a, b)
    narrow = 1e-2 if name == "hinge" else 1e-9
    assert one[0] == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(one[1], gradient, rtol=1e-9, atol=narrow * np.abs(gradient).max())
    np.testing.assert_allclose(one[2], state.degrees, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(one[3], expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_explicit_pairs_of_a_list_that_is_shared():
    rng = np.random.default_rng(6)
    y = labels("5", rng)
    scores = scores_of(y, rng)
    loss = make_loss(y, np.zeros(N), "parting sweep")
    _, gradient, state = evaluate(loss, scores, loss.new_state(None, 2))
    some = rng.choice(N, 200, replace=False)
    margin = scores[some, None] - scores
    as_preferred = np.where(y[some, None] > y, np.maximum(0.0, 1.0 - margin), 0.0).sum(axis=1)
    as_other = np.where(y[some, None] < y, np.maximum(0.0, 1.0 + margin), 0.0).sum(axis=1)
    np.testing.assert_allclose(gradient[some], 2.0 * (as_other - as_preferred), rtol=1e-9, atol=1e-6)
    near = ((y[some, None] > y) & (margin < 1.0)) | ((y[some, None] < y) & (-margin < 1.0))
    np.testing.assert_array_equal(state.degrees[some], near.sum(axis=1))


@pytest.mark.parametrize(
    "scores",
    [np.zeros(N), np.repeat([1.0, -1.0], N // 2), np.arange(N, 0.0, -1.0), np.geomspace(1e-300, 1e300, N)[::-1].copy()],
    ids=["equal", "two values", "descending", "of every size"],
)
def test_scores_that_do_not_spread(scores):
    y = np.random.default_rng(7).integers(0, 12, N).astype(float)
    loss, visited = (make_loss(y, np.zeros(N), way) for way in ("parting sweep", "all pairs"))
    value, gradient, state = evaluate(loss, scores, loss.new_state(None, 3))
    assert np.all(np.diff(scores[state.order]) >= 0.0)
    assert sorted(state.order) == list(range(N))
    if np.abs(scores).max() < 1e9:
        expected, expected_gradient, _ = evaluate(visited, scores)
        # of as many large terms one after the other the last digits are lost: the sweep is right to 3e-15 here
        assert value == pytest.approx(expected, rel=1e-8)
        np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-8, atol=1e-9 * np.abs(expected_gradient).max())


@pytest.mark.parametrize("place", [0, N // 64, N - 1])
def test_a_score_that_is_no_number(place):
    rng = np.random.default_rng(8)
    loss = make_loss(labels("5", rng), np.zeros(N))
    scores = rng.normal(size=N)
    scores[place] = np.nan
    value, gradient, state = evaluate(loss, scores, loss.new_state(None, 2))
    assert np.isnan(value)
    assert np.isnan(gradient).all()
    assert np.isnan(state.degrees).all()


def test_parts_of_a_list_that_are_shared_themselves():
    """The lowest eighth of the levels has most of the documents, too many for a part that one thread completes."""
    n, rng = 270_000, np.random.default_rng(10)
    y, v = np.floor(n * rng.random(n) ** 4), rng.normal(size=n)
    scores = rng.normal(size=n) + y / n
    loss = make_loss(y, np.zeros(n))
    found = []
    for n_threads in (1, 3):
        _, gradient, state = evaluate(loss, scores, loss.new_state(None, n_threads))
        found.append((gradient, product(loss, state, v)))
    for one, several in zip(*found, strict=True):
        np.testing.assert_array_equal(one, several)
    some = rng.choice(n, 20, replace=False)
    sign = np.sign(y[some, None] - y)  # 1 if the row of `some` is preferred
    slack = np.maximum(0.0, 1.0 - sign * (scores[some, None] - scores))
    np.testing.assert_allclose(found[0][0][some], (-2.0 * sign * slack).sum(axis=1), rtol=1e-9)
    curved = 2.0 * np.abs(sign) * (slack > 0.0)
    expected = curved.sum(axis=1) * v[some] - curved @ v
    np.testing.assert_allclose(found[0][1][some], expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_labels_of_a_long_list_are_ranked_by_all_threads(monkeypatch):
    monkeypatch.setattr("ranksvm.data.pairs.PARALLEL_ROWS", N)
    rng = np.random.default_rng(9)
    y = np.round(rng.normal(size=N), 3)
    one, several = (
        type(make_pairs(y[:5], np.zeros(5))).from_labels(Queries.from_qid(np.zeros(N), N), y, n_threads=n)
        for n in (1, 3)
    )
    np.testing.assert_array_equal(one.levels, np.unique(y, return_inverse=True)[1])
    np.testing.assert_array_equal(one.levels, several.levels)
