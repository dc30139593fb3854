"""The cone of weights with given signs: its projection, and the duality gap against the dual written out."""

import numpy as np
import pytest

from oracle import ExplicitPairs
from ranksvm.data import ComparablePairs, Queries, as_design_matrix
from ranksvm.losses import SquaredHinge
from ranksvm.objectives import ConstrainedObjective
from ranksvm.solvers.cone import SignCone
from ranksvm.terms.host import ThreadedTerm

SIGNS = np.array([1, -1, 0, 1, -1, 0])


def test_the_projection_is_the_nearest_vector():
    cone = SignCone(SIGNS)
    v = np.array([-1.0, 2.0, -3.0, 4.0, -5.0, 6.0])
    np.testing.assert_array_equal(cone.project(v), [0, 0, -3, 4, -5, 6])
    assert not np.signbit(cone.project(-np.zeros(6))).any()


@pytest.mark.parametrize("seed", range(10))
def test_the_gap_is_that_of_the_point_that_the_definition_gives(seed):
    """``1/2 |w - v|^2 + w'(v - z)`` with ``z = w - g`` and v its projection."""
    rng = np.random.default_rng(seed)
    cone = SignCone(SIGNS)
    w, g = cone.project(rng.normal(size=6)), rng.normal(size=6)
    v = cone.project(w - g)
    gaps = cone.gaps(w, g)
    assert (gaps >= 0.0).all()
    assert gaps.sum() == pytest.approx(0.5 * (w - v) @ (w - v) + w @ (v - (w - g)), rel=1e-12)
    assert SignCone(np.zeros(6, dtype=int)).gaps(w, g).sum() == pytest.approx(0.5 * g @ g, rel=1e-15)


def test_the_gap_does_not_cancel():
    """A gradient of 1e-12 beside weights of 1e6, as near the solution at a large C."""
    cone = SignCone(np.array([1, 1, -1]))
    gaps = cone.gaps(np.array([1e6, 0.0, -1e6]), np.array([1e-12, 1e-12, -1e-12]))
    np.testing.assert_array_equal(gaps, [0.5e-24, 0.0, 0.5e-24])


@pytest.mark.parametrize("seed", range(5))
def test_primal_less_dual_over_explicit_pairs_is_the_gap(seed):
    """The dual over all pairs: ``sum alpha - sum alpha^2 / (4 C a) - 1/2 |proj_K(sum alpha_ij (x_i - x_j))|^2``."""
    rng = np.random.default_rng(seed)
    X, qid, y, C = rng.normal(size=(60, 6)), rng.integers(0, 4, 60), rng.integers(0, 4, 60).astype(float), 0.3
    pairs = ComparablePairs.from_labels(Queries.from_qid(qid, 60), y)
    objective = ConstrainedObjective(
        ThreadedTerm(as_design_matrix(X), SquaredHinge(pairs)), C, cone=(cone := SignCone(SIGNS))
    )
    point = objective.evaluate(rng.normal(size=6))
    assert (SIGNS * point.w >= 0.0).all()
    oracle = ExplicitPairs(y, qid, X)
    alpha = 2.0 * C * oracle.hinges(X @ point.w)
    z = (X[oracle.upper] - X[oracle.lower]).T @ alpha
    dual = alpha.sum() - alpha @ alpha / (4.0 * C) - 0.5 * np.sum(cone.project(z) ** 2)
    assert point.gap == pytest.approx(oracle.value(point.w, C) - dual, rel=1e-9)
