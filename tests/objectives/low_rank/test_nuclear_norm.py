"""The nuclear-norm objective and its certificates, against dense matrices."""

import numpy as np
import pytest

from ranksvm import Queries, make_ranking
from ranksvm.data import ComparablePairs, PairBlocks, as_design_matrix
from ranksvm.objectives.low_rank.nuclear_norm import NuclearNormObjective, required_bytes
from ranksvm.solvers import newton


def make_objective(C=0.3, gamma=0.4, lam=0.7, n_levels=3, n_threads=1):
    data = make_ranking(5, 12, 4, n_levels=n_levels, random_state=0)
    pairs = ComparablePairs.from_labels(Queries.from_qid(data.qid, len(data.y)), data.y.astype(float))
    blocks = PairBlocks(pairs)

    def minimize(objective, w, tolerance, interrupted):
        return newton(objective, w, tol=1e-14, warm_start=True)

    return NuclearNormObjective(as_design_matrix(data.X), pairs, blocks, C, gamma, lam, minimize, n_threads)


def alphas(objective, w):
    """Dual variables for the present target."""
    scores = objective.linear.term.design.X @ w
    return [objective.loss.alpha(scores, query) for query in range(objective.blocks.n_queries)]


def primal(objective, alpha, matrices):
    """The objective (15) for dual variables and matrices, dense."""
    beta, value = np.zeros(objective.pairs.n_rows), 0.0
    for query, (a, A) in enumerate(zip(alpha, matrices, strict=True)):
        preferred, other = objective.blocks.documents(query)
        beta[preferred] += a.sum(axis=1)
        beta[other] -= a.sum(axis=0)
        value += -a.sum() + objective.lam * ((a - A) ** 2).sum()
        value += objective.gamma * np.linalg.norm(A, "nuc") if A.size else 0.0
    w = objective.linear.term.design.X.T @ beta
    return 0.5 * w @ w + value


def bound(objective, w, Y):
    """The lower bound of the docstring for weights and matrices of spectral norm at most gamma."""
    scores, value = objective.linear.term.design.X @ w, -0.5 * w @ w
    for query, own in enumerate(Y):
        preferred, other = objective.blocks.documents(query)
        hinge = np.maximum(0.0, 1.0 - (scores[preferred][:, None] - scores[other]) - own)
        value -= objective.C * hinge[objective.blocks.is_pair(query)].sum() + (own**2).sum() / (4.0 * objective.lam)
    return value


def shrunk(matrix, threshold):
    U, s, V = np.linalg.svd(matrix, full_matrices=False)
    return (U * np.maximum(s - threshold, 0.0)) @ V


def multipliers(objective):
    reflections = blocks_of(objective, objective.loss.target)
    variables = blocks_of(objective, objective._variables)
    return [(z - own) / (2.0 * objective._length) for z, own in zip(variables, reflections, strict=True)]


def blocks_of(objective, entries):
    return [objective.blocks.block(entries, query).copy() for query in range(objective.blocks.n_queries)]


@pytest.mark.parametrize("n_levels", [2, 3, 12])
@pytest.mark.parametrize("n_threads", [1, 3])
def test_two_steps_against_dense_matrices(n_levels, n_threads):
    objective = make_objective(n_levels=n_levels, n_threads=n_threads)
    objective.begin()
    length, C, gamma, lam = objective._length, objective.C, objective.gamma, objective.lam
    z = blocks_of(objective, objective._variables)
    for _ in range(2):
        A = [shrunk(own, gamma * (length + 0.5 / lam)) for own in z]
        Y = [(own - matrix) / (length + 0.5 / lam) for own, matrix in zip(z, A, strict=True)]
        # the proximal point of g minimizes (x - z)^2 / (2 length) + g(x), and Y is its gradient there
        for own, y in zip(z, Y, strict=True):
            x = own - length * y
            np.testing.assert_allclose(2.0 * lam * (x - shrunk(x, 0.5 * gamma / lam)), y, atol=1e-9)
            assert np.linalg.svd(y, compute_uv=False).max(initial=0.0) <= gamma * (1 + 1e-9)
        reflection = [own - 2.0 * length * y for own, y in zip(z, Y, strict=True)]
        for found, own in zip(blocks_of(objective, objective.loss.target), reflection, strict=True):
            np.testing.assert_allclose(found, own, atol=1e-9)
        point = objective.step(0.0)
        # the dual variables for this reflection: (15) without its last terms, plus the distance over twice the length
        scores = objective.linear.term.design.X @ point.w
        alpha = []
        for query, own in enumerate(reflection):
            preferred, other = objective.blocks.documents(query)
            hinge = 1.0 - (scores[preferred][:, None] - scores[other]) + own / length
            alpha.append(np.clip(hinge * length, 0.0, C) * objective.blocks.is_pair(query))
        assert point.value == pytest.approx(primal(objective, alpha, A))
        assert point.bound == pytest.approx(bound(objective, point.w, Y))
        for matrix, own in zip(point.matrices, A, strict=True):
            np.testing.assert_allclose(matrix.dense(), own, atol=1e-9)
        np.testing.assert_array_equal(point.ranks, [np.linalg.matrix_rank(own, tol=1e-9) for own in A])
        z = [a + length * y for a, y in zip(alpha, Y, strict=True)]
        for found, own in zip(blocks_of(objective, objective._variables), z, strict=True):
            np.testing.assert_allclose(found, own, atol=1e-9)


def test_finishing_finds_the_best_dual_variables_for_the_matrices():
    objective = make_objective()
    objective.begin()
    for _ in range(3):
        point = objective.step(0.0)
    final = objective.finish(point, 0.0)
    matrices = [matrix.dense() for matrix in point.matrices]
    assert final.matrices is point.matrices
    assert final.value <= point.value
    alpha = alphas(objective, final.w)
    assert final.value == pytest.approx(primal(objective, alpha, matrices))
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = [np.clip(a + 0.1 * rng.normal(size=a.shape), 0.0, objective.C) for a in alpha]
        other = [a * objective.blocks.is_pair(query) for query, a in enumerate(other)]
        assert primal(objective, other, matrices) >= final.value
    Y = [2.0 * objective.lam * (a - shrunk(a, 0.5 * objective.gamma / objective.lam)) for a in alpha]
    assert final.bound == pytest.approx(bound(objective, final.w, Y))


def test_the_bound_holds_for_any_weights():
    objective = make_objective()
    objective.begin()
    for _ in range(100):
        point = objective.step(0.0)
    assert 0.0 <= point.value - point.bound <= 1e-6 * abs(point.value)
    rng = np.random.default_rng(0)
    for _ in range(20):
        Y = [rng.normal(size=objective.blocks.shape(query)) for query in range(objective.blocks.n_queries)]
        Y = [rng.uniform(0, objective.gamma) * own / np.linalg.norm(own, 2) for own in Y]
        assert bound(objective, point.w + 0.1 * rng.normal(size=len(point.w)), Y) <= point.value


def test_it_begins_at_given_matrices():
    objective = make_objective()
    objective.begin()
    for _ in range(100):
        point = objective.step(0.0)
    again = make_objective()
    again.begin(point.w, point.matrices)
    assert again.step(0.0).value == pytest.approx(point.value, rel=1e-6)


@pytest.mark.parametrize("factor", [1e-4, 1e4])
def test_a_bad_length_is_balanced(factor):
    objective, good = make_objective(), make_objective()
    for each in (objective, good):
        each.begin()
    objective._variables += (
        (factor - 1.0) * objective._length * np.concatenate([y.ravel() for y in multipliers(objective)])
    )
    objective._length *= factor
    objective._matrices = objective._by_query(objective._reflect)
    for _ in range(80):
        point, best = objective.step(0.0), good.step(0.0)
    assert 0.0 <= point.value - point.bound <= 1e-4 * abs(point.value)
    assert point.value == pytest.approx(best.value, rel=1e-4)


def test_memory_grows_with_the_entries():
    objective = make_objective()
    small = required_bytes(objective.blocks, 1)
    assert small >= 16 * objective.blocks.n_entries
    assert required_bytes(objective.blocks, 2) > small
