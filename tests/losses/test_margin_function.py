"""Losses that are functions of a user's own: every pair visited, against every pair written out."""

import re

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ranksvm.data import ComparablePairs, PairList, Queries
from ranksvm.losses import FunctionLoss, LossSpec, SquaredHinge, margin_function
from ranksvm.losses.margin_function import complaint_about
from sweep_checks import AtWidth, SquaredHingeFunction, check_against_pairs, evaluate, product


class Function(SquaredHingeFunction):
    """The squared hinge, a method of which may be another one."""

    def __init__(self, **methods):
        vars(self).update(methods)


@st.composite
def problems(draw):
    n = draw(st.integers(2, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    qid = rng.integers(0, draw(st.integers(1, 6)), n)
    y = rng.integers(0, draw(st.sampled_from([2, 3, 20])), n).astype(float)
    y[:2], qid[:2] = (0, 1), qid[0]
    weights = {
        "weighting": draw(st.sampled_from(["uniform", "per_query", "label_gap", "gain_gap"])),
        "selection": draw(st.sampled_from(["all", "adjacent"])),
    }
    if draw(st.booleans()):
        weights["sample_weight"] = rng.choice([0.0, 0.1, 1.0, 7.5], n)
        weights["sample_weight"][:2] = 1.0
    return y, qid, rng.normal(size=n), weights


@settings(max_examples=60, deadline=None)
@given(problems(), st.sampled_from([1, 5, 1 << 17]), st.sampled_from([0, 1 << 22]))
def test_equals_the_sums_over_explicit_pairs(problem, chunk, kept):
    y, qid, scores, weights = problem
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(margin_function, "CHUNK_PAIRS", chunk)
        patch.setattr(margin_function, "KEPT_PAIRS", kept)
        check_against_pairs(y, qid, scores, name="function", **weights)


@pytest.mark.parametrize("chunk", [1, 7, 1 << 17])
def test_equals_the_sums_over_the_pairs_of_a_list(chunk, monkeypatch):
    monkeypatch.setattr(margin_function, "CHUNK_PAIRS", chunk)
    rng = np.random.default_rng(0)
    qid = rng.integers(0, 4, 40)
    candidates = np.argwhere((qid[:, None] == qid) & ~np.eye(40, dtype=bool))
    pairs = candidates[rng.integers(0, len(candidates), 90)]
    weight = rng.choice([0.5, 1.0, 4.0], 90)
    y = np.zeros(40)
    check_against_pairs(y, qid, rng.normal(size=40), name="function", pairs=pairs, pair_weight=weight)


@settings(max_examples=40, deadline=None)
@given(problems(), st.integers(1, 60))
def test_chunks_are_all_pairs_once(problem, limit):
    y, qid, _, weights = problem
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, len(y)), y, **weights)
    for first, last in ((0, pairs.n_queries), (0, 1), (pairs.n_queries - 1, pairs.n_queries)):
        found = list(pairs.chunks(first, last, limit))
        expected = [pairs.explicit(query) for query in range(first, last)]
        i, j, weight = (np.concatenate([part[k] for part in found] or [np.zeros(0)]) for k in range(3))
        i2, j2, weight2 = (np.concatenate(part) for part in zip(*expected, strict=True))
        assert sorted(zip(i, j, weight, strict=True)) == sorted(zip(i2, j2, weight2, strict=True))
        longest = np.diff(pairs.pointers).max(initial=0)
        assert all(len(part[0]) <= max(limit, longest) for part in found)
        for together, by_query in zip(pairs.explicit(first, last), (i2, j2, weight2), strict=True):
            np.testing.assert_array_equal(together, by_query)
        assert list(zip(i2, j2, strict=True)) == sorted(zip(i2, j2, strict=True))


def test_a_range_of_queries_and_a_part_of_its_rows():
    rng = np.random.default_rng(1)
    y, qid, scores = rng.integers(0, 3, 60).astype(float), np.repeat(np.arange(6), 10), rng.normal(size=60)
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid), y)
    ours, exact = AtWidth(FunctionLoss(pairs, SquaredHingeFunction())), AtWidth(SquaredHinge(pairs))
    (value, gradient, state), (value2, gradient2, state2) = evaluate(ours, scores), evaluate(exact, scores)
    assert value == pytest.approx(value2, rel=1e-12)
    np.testing.assert_allclose(gradient, gradient2, rtol=1e-10, atol=1e-10)
    whole = exact.curvature_diagonal(state2, 0, 60)
    for start, stop in ((0, 60), (10, 30), (5, 27), (59, 60)):
        np.testing.assert_allclose(ours.curvature_diagonal(state, start, stop), whole[start:stop], rtol=1e-12)
    # products in other ranges than it was evaluated in
    v, out = rng.normal(size=60), np.empty(60)
    for first, last in ((0, 1), (1, 4), (4, 6)):
        part = slice(10 * first, 10 * last)
        ours.hessian(state)(first, last, v[part], out[part])
    np.testing.assert_allclose(out, product(exact, state2, v), rtol=1e-10, atol=1e-10)
    # active pairs of earlier scores are not used again
    evaluate(ours, 2.0 * scores, state)
    _, _, later = evaluate(exact, 2.0 * scores)
    np.testing.assert_allclose(product(ours, state, v), product(exact, later, v), rtol=1e-10, atol=1e-10)


def test_queries_without_pairs():
    pairs = ComparablePairs.from_labels(Queries.from_group([0, 2, 0, 2, 1, 0], 5), np.array([1.0, 0.0, 2.0, 2.0, 5.0]))
    loss = AtWidth(FunctionLoss(pairs, SquaredHingeFunction()))
    value, gradient, state = evaluate(loss, np.zeros(5))
    assert value == 1.0
    np.testing.assert_array_equal(gradient, [-2.0, 2.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(loss.curvature_diagonal(state, 0, 5), [2.0, 2.0, 0.0, 0.0, 0.0])
    assert list(pairs.of_queries(np.zeros(0, dtype=int)).chunks(0, 0, 9)) == []
    listed = PairList.from_pairs(Queries.from_qid(np.zeros(5)), [[0, 1], [3, 4]])
    assert list(listed.of_queries(np.zeros(0, dtype=int)).chunks(0, 0, 9)) == []


@pytest.mark.parametrize(
    ("function", "complaint"),
    [
        (Function(), None),
        (SquaredHingeFunction, "is the class SquaredHingeFunction: give an object"),
        (Function(curvature=None), "has no method curvature"),
        (Function(value=lambda m: 1.0), r"gives an array of shape \(\) in value"),
        (Function(derivative=lambda m: m[:-1]), r"gives an array of shape \(80,\) in derivative"),
        (Function(value=lambda m: 1.0 / 0), "failed in value.* with ZeroDivisionError"),
        (Function(derivative=lambda m: np.where(m > 5.0, np.nan, -1.0)), "gives nan in derivative"),
        (Function(curvature=lambda m: -np.ones_like(m)), "gives -1 in curvature.* must not be negative"),
        (Function(value=lambda m: -m), "gives -6 in value.* at margin 6: it must not be negative"),
        (Function(derivative=lambda m: -m), "is not convex: derivative"),
        (Function(derivative=lambda m: 2.0 * m), ".* does not fit its value"),
    ],
)
def test_what_is_wrong_is_said(function, complaint):
    found = complaint_about(function)
    if complaint is None:
        assert found is None
    else:
        assert re.match(complaint, found), found


def test_the_dual_variables_of_a_function():
    spec = LossSpec("custom", function=SquaredHingeFunction())
    margins = np.linspace(-2, 3, 11)
    np.testing.assert_array_equal(spec.alpha(margins, 3.0), LossSpec("squared_hinge").alpha(margins, 3.0))
    assert (spec.smoothed, spec.first_width, spec.warm_width) == (False, None, None)
