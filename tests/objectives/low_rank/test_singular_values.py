"""Singular-value thresholding against the full decomposition, whichever way it is computed."""

import numpy as np
import pytest

from ranksvm.objectives.low_rank.singular_values import soft_threshold

SHAPES = [(1, 1), (1, 9), (9, 1), (2, 2), (5, 4), (4, 5), (30, 30), (40, 90), (90, 40), (3, 400), (400, 3)]
# Thresholds as shares of the largest singular value.
SHARES = [0.0, 1e-14, 1e-9, 1e-6, 1e-5, 1e-4, 1e-2, 0.3, 0.9, 1.0, 1.5]
ACCURACY = 1e-10


def by_full_decomposition(block, threshold):
    left, values, right = np.linalg.svd(block, full_matrices=False)
    return (left * np.maximum(values - threshold, 0.0)) @ right


def random_orthonormal(rng, n, k):
    return np.linalg.qr(rng.standard_normal((n, k)))[0]


def with_singular_values(values, m, n, seed=0):
    rng = np.random.default_rng(seed)
    return (random_orthonormal(rng, m, len(values)) * values) @ random_orthonormal(rng, n, len(values)).T


def random_block(m, n, rank=None, seed=0):
    rng = np.random.default_rng(seed)
    if rank is None:
        return rng.standard_normal((m, n))
    return rng.standard_normal((m, rank)) @ rng.standard_normal((rank, n))


def check(block, threshold):
    found = soft_threshold(block, threshold)
    largest = np.linalg.norm(block, 2)
    error = np.linalg.norm(found.dense() - by_full_decomposition(block, threshold), 2)
    assert error <= ACCURACY * largest
    assert found.shape == block.shape
    assert found.rank == len(found.values)
    assert found.left.shape == (block.shape[0], found.rank)
    assert found.right.shape == (found.rank, block.shape[1])
    assert np.all(found.values > 0.0)
    assert np.all(np.diff(found.values) <= ACCURACY * largest)
    return found


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_is_the_shrunk_full_decomposition(shape, share):
    block = random_block(*shape)
    check(block, share * np.linalg.norm(block, 2))


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("rank", [1, 3, 12])
def test_of_blocks_of_low_rank(rank, share):
    block = random_block(40, 25, rank)
    found = check(block, share * np.linalg.norm(block, 2))
    assert found.rank <= rank


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("shape", [(30, 50), (50, 30)], ids=str)
def test_of_values_over_sixteen_decades(shape, share):
    check(with_singular_values(np.geomspace(1.0, 1e-16, 30), *shape), share)


@pytest.mark.parametrize("scale", [1e-150, 1e-8, 1e8, 1e120])
def test_of_very_small_and_very_large_values(scale):
    block = random_block(20, 30)
    np.testing.assert_allclose(
        soft_threshold(scale * block, scale * 3.0).dense() / scale, soft_threshold(block, 3.0).dense(), atol=1e-13
    )


@pytest.mark.parametrize("threshold", [0.5, 1.0 - 1e-13, 1.0, 2.0, 3.0 - 1e-12])
def test_of_repeated_singular_values(threshold):
    values = np.repeat([3.0, 1.0, 0.25], [4, 6, 5])
    check(with_singular_values(values, 30, 20), threshold)


@pytest.mark.parametrize(
    "block", [np.eye(6), np.ones((5, 8)), -np.ones((8, 5)), np.diag([2.0, 1.0, 0.0, 0.0])], ids=str
)
@pytest.mark.parametrize("threshold", [0.0, 0.5, 1.0, 1.5])
def test_of_plain_matrices(block, threshold):
    check(block, threshold)


@pytest.mark.parametrize("shape", [(1, 1), (1, 7), (7, 1), (4, 6)], ids=str)
@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_zero_stays_zero(shape, threshold):
    found = check(np.zeros(shape), threshold)
    assert found.rank == 0
    assert found.nuclear_norm == 0.0
    np.testing.assert_array_equal(found.dense(), np.zeros(shape))


def test_storage_of_the_block_does_not_matter():
    block = random_block(20, 30)
    wide = np.zeros((40, 90))
    wide[::2, ::3] = block
    for same in (np.asfortranarray(block), wide[::2, ::3]):
        np.testing.assert_allclose(soft_threshold(same, 3.0).dense(), soft_threshold(block, 3.0).dense(), atol=1e-13)


@pytest.mark.parametrize("shape", [(12, 20), (20, 12), (1, 6)], ids=str)
@pytest.mark.parametrize("share", [0.05, 0.4, 0.8])
def test_no_subgradient_points_down(shape, share):
    # A minimizes iff block - A = threshold * (U V' + W) with U'W = 0, W V = 0, |W|_2 <= 1.
    block = random_block(*shape)
    threshold = share * np.linalg.norm(block, 2)
    found = soft_threshold(block, threshold)
    rest = (block - found.dense()) / threshold - found.left @ found.right
    assert np.linalg.norm(found.left.T @ rest) < 1e-10
    assert np.linalg.norm(rest @ found.right.T) < 1e-10
    assert np.linalg.norm(rest, 2) <= 1.0 + 1e-10


@pytest.mark.parametrize("shape", [(4, 5), (6, 3)], ids=str)
@pytest.mark.parametrize("threshold", [0.5, 2.0])
def test_is_the_minimum_of_a_convex_solver(shape, threshold):
    cvxpy = pytest.importorskip("cvxpy", reason="cvxpy is not installed")
    block = random_block(*shape, seed=3)
    A = cvxpy.Variable(shape)
    objective = 0.5 * cvxpy.sum_squares(A - block) + threshold * cvxpy.normNuc(A)
    minimum = cvxpy.Problem(cvxpy.Minimize(objective)).solve(solver=cvxpy.CLARABEL)
    found = soft_threshold(block, threshold)
    value = 0.5 * np.sum((found.dense() - block) ** 2) + threshold * found.nuclear_norm
    assert value == pytest.approx(minimum, rel=1e-6)
    np.testing.assert_allclose(found.dense(), A.value, atol=1e-3)


@pytest.mark.parametrize(
    ("values", "threshold"),
    [
        (1.0 / np.arange(1, 101), 0.25 + 1e-9),
        (1.0 / np.arange(1, 101), 0.25 - 1e-9),
        (np.concatenate([[1.0, 0.9], 0.5 + 1e-3 * np.arange(20, 0, -1), np.full(78, 0.1)]), 0.5),
        (np.concatenate([[1.0, 0.9], 0.5 + 1e-9 * np.arange(10, -10, -1), np.full(78, 0.1)]), 0.5),
        (np.concatenate([[1.0, 0.9], 0.5 + 1e-13 * np.arange(10, -10, -1), np.full(78, 0.1)]), 0.5),
        (np.concatenate([[1.0], np.full(99, 0.5)]), 0.5 - 1e-6),
        (np.concatenate([[1.0], np.full(99, 0.5)]), 0.5 + 1e-6),
        (np.linspace(1.0, 0.5, 100), 0.97),
        (np.full(100, 1.0), 0.99),
    ],
    ids=[
        "slow decay, value above",
        "slow decay, value below",
        "cluster above",
        "cluster about",
        "cluster of equal values at the threshold",
        "flat above",
        "flat below",
        "hardly any decay",
        "all equal",
    ],
)
def test_of_spectra_without_a_gap_at_the_threshold(values, threshold):
    check(with_singular_values(values, 100, 130), threshold)


def test_dense_writes_where_it_is_told():
    found = soft_threshold(random_block(6, 4), 0.5)
    out = np.empty((6, 4))
    assert found.dense(out) is out
    np.testing.assert_array_equal(out, found.dense())
    assert found.nuclear_norm == pytest.approx(np.linalg.norm(out, "nuc"))
