"""Spectra of dual variables: against NumPy's SVD of blocks made by hand, and numbers worked out by hand."""

import json

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from ranksvm import (
    FactorizedRankSVM,
    KernelRankSVM,
    QueryMinMaxScaler,
    RankSVM,
    RankSVMCV,
    RegularizedRankSVM,
    make_ranking,
)
from ranksvm.analysis import (
    DualBlock,
    DualSpectra,
    compare_ranks,
    dual_coef,
    dual_spectra,
    duals,
    low_rank_coef,
)
from ranksvm.datasets import read_letor
from ranksvm.exceptions import DataError, OptionError


def block(query, alpha, weights=None):
    """A block of any matrix: its rows are documents 0, 1, ..., its columns the documents after them."""
    alpha = np.array(alpha, dtype=float)
    weights = np.ones_like(alpha) if weights is None else np.array(weights, dtype=float)
    rows, others = alpha.shape
    return DualBlock(query, np.arange(rows), rows + np.arange(others), alpha, weights)


def with_values(query, values, shape, seed=0):
    """A block of given singular values."""
    rng = np.random.default_rng(seed)
    n = min(shape)
    left, right = (np.linalg.qr(rng.normal(size=(side, n)))[0] for side in shape)
    return block(query, left * values @ right.T)


@pytest.fixture
def by_hand():
    """Energies 9 + 1; 16 + 4 + 4 + 1 in 5 dimensions; 1 + 1 + 1 + 1. Then alpha = 0, and a query without pairs."""
    return [
        block("a", [[3, 0, 0], [0, 1, 0]]),
        with_values("b", [4.0, 2.0, 2.0, 1.0, 0.0], (7, 5)),
        block("c", np.eye(4)),
        block("zero", np.zeros((2, 3))),
        block("none", np.zeros((0, 0))),
    ]


def test_worked_out_by_hand(by_hand):
    spectra = dual_spectra(by_hand)
    assert spectra.ids.tolist() == ["a", "b", "c", "zero", "none"]
    assert spectra.n_documents.tolist() == [5, 12, 8, 5, 0]
    assert spectra.n_pairs.tolist() == [6, 35, 16, 6, 0]
    assert spectra.shapes.tolist() == [[2, 3], [7, 5], [4, 4], [2, 3], [0, 0]]
    assert spectra.nbytes.tolist() == [48, 280, 128, 48, 0]
    assert spectra.rank.tolist() == [2, 4, 4, 0, 0]
    assert spectra.counted.tolist() == [True, True, True, False, False]
    # 9 of 10; 16 + 4 + 4 of 25; all four
    assert spectra.dimensions(0.9).tolist() == [1, 3, 4, 0, 0]
    assert spectra.dimensions(0.5).tolist() == [1, 1, 2, 0, 0]
    assert spectra.dimensions(0.8).tolist() == [1, 2, 4, 0, 0]
    assert spectra.dimensions(0.96).tolist() == [2, 3, 4, 0, 0]
    assert spectra.dimensions(1.0).tolist() == spectra.rank.tolist()
    np.testing.assert_array_equal(spectra.dimension_ratio(0.9), [0.5, 0.6, 1.0, np.nan, np.nan])
    np.testing.assert_array_equal(spectra.dimension_ratio(1), [1.0, 0.8, 1.0, np.nan, np.nan])
    counts, edges = spectra.histogram(0.9, bins=5)
    # each part holds its lower end: 0.6 is in [0.6, 0.8)
    assert counts.tolist() == [0, 0, 1, 1, 1]
    np.testing.assert_allclose(edges, [0, 0.2, 0.4, 0.6, 0.8, 1])
    assert spectra.share_below(0.6, 0.9) == pytest.approx(1 / 3)
    assert spectra.share_below(1.0, 0.9) == pytest.approx(2 / 3)
    np.testing.assert_allclose(spectra.energy_curve("b"), [0, 0.64, 0.8, 0.96, 1, 1])
    np.testing.assert_array_equal(spectra.energy_curve("zero"), [0, 0, 0])
    np.testing.assert_array_equal(spectra.energy_curve("none"), [0])


def test_rank_and_its_tolerance(by_hand):
    assert dual_spectra(by_hand, tol=0.3).rank.tolist() == [2, 3, 4, 0, 0]
    assert dual_spectra(by_hand, tol=0.3).dimensions(0.99).tolist() == [2, 3, 4, 0, 0]
    for matrix, rank in [(by_hand[1].alpha, 4), (np.outer(np.arange(1, 9), np.linspace(1, 2, 6)), 1)]:
        assert dual_spectra([block(0, matrix)]).rank.tolist() == [np.linalg.matrix_rank(matrix)] == [rank]
    tiny = dual_spectra([block(0, 1e-200 * by_hand[1].alpha)])
    assert tiny.dimensions(0.9).tolist() == [3]


def test_tables(by_hand):
    spectra = dual_spectra(by_hand, energy=(0.5, 1.0))
    table = spectra.table(["c", "a"])
    names = ("query", "documents", "pairs", "preferred", "other", "bytes", "rank")
    assert table.dtype.names == (*names, "dimensions_0.5", "ratio_0.5", "dimensions_1", "ratio_1")
    assert table.tolist() == [("c", 8, 16, 4, 4, 128, 4, 2, 0.5, 4, 1.0), ("a", 5, 6, 2, 3, 48, 2, 1, 0.5, 2, 1.0)]
    assert spectra.table()["query"].tolist() == spectra.ids.tolist()
    other = dual_spectra([block(query, np.ones((2, 3))) for query in ("none", "zero", "c", "b", "a")])
    ranks = compare_ranks({"plain": spectra, "low": other}, queries=["a", "c"])
    assert ranks.dtype.names == ("query", "documents", "pairs", "plain", "low")
    assert ranks.tolist() == [("a", 5, 6, 2, 1), ("c", 8, 16, 4, 1)]
    assert compare_ranks({"plain": spectra, "low": other}, t=0.8)["plain"].tolist() == [1, 2, 4, 0, 0]
    document = json.loads(json.dumps(spectra.to_dict(bins=4), allow_nan=False))
    assert (document["n_queries"], document["n_counted"], document["n_pairs"]) == (5, 3, 63)
    half = document["energy"][0]
    assert (half["t"], half["median_dimensions"], half["median_ratio"]) == (0.5, 1.0, 0.5)
    assert half["share_below_0.3"] == pytest.approx(1 / 3)
    assert half["histogram"]["counts"] == [1, 0, 2, 0]
    assert document["per_query"][3]["ratio_0.5"] is None
    assert "5 queries, 63 pairs; medians: 50 % of the energy in 50% of the dimensions" in repr(spectra)


def test_no_query_with_energy():
    spectra = dual_spectra([block(1, np.zeros((0, 0)))])
    assert np.isnan(spectra.share_below())
    assert spectra.histogram(0.9)[0].sum() == 0
    assert spectra.to_dict()["energy"][0]["median_ratio"] is None
    assert repr(spectra) == "DualSpectra(1 queries, 0 pairs)"


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 6), st.integers(1, 6), st.sampled_from([0.1, 0.5, 0.9, 0.99, 1.0]))
def test_against_the_best_approximation(seed, rows, others, t):
    """k_l(t) is the least rank of a matrix that is within sqrt(1 - t) of the block (Eckart and Young)."""
    alpha = np.random.default_rng(seed).integers(0, 3, (rows, others)).astype(float)
    found = dual_spectra([block(0, alpha)]).dimensions(t)[0]
    if not alpha.any():
        assert found == 0
        return
    u, s, v = np.linalg.svd(alpha, full_matrices=False)
    near = [
        np.linalg.norm(alpha - (u[:, :k] * s[:k]) @ v[:k]) ** 2 <= (1 - t + 1e-10) * np.linalg.norm(alpha) ** 2
        for k in range(len(s) + 1)
    ]
    assert found == near.index(True)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_duals_of_rankers(n_jobs):
    data = make_ranking(12, (3, 30), 6, n_levels=4, random_state=0)
    order = np.random.default_rng(0).permutation(len(data.y))
    X, y, qid = data.X[order], data.y[order].copy(), data.qid[order]
    y[qid == 3] = 1.0  # a query without pairs
    rankers = [
        RankSVM(C=0.1, loss="hinge"),
        RankSVMCV(Cs=[0.01, 0.1], cv=2),
        KernelRankSVM(C=0.1, kernel="rbf"),
    ]
    for ranker in rankers:
        dual = ranker.fit(X, y, qid=qid).dual_coef(X, y, qid)
        spectra = dual_spectra(dual, n_jobs=n_jobs)
        assert len(spectra) == 12
        assert spectra.n_pairs.tolist() == dual.pairs_per_query.tolist()
        for number, one in enumerate(dual):
            assert spectra.ids[number] == one.query
            expected = np.linalg.svd(one.alpha, compute_uv=False) if one.alpha.size else []
            np.testing.assert_allclose(spectra.singular_values[number], expected, atol=1e-14)
            with_pairs = np.unique(y[qid == one.query]).size > 1
            assert spectra.n_documents[number] == with_pairs * np.count_nonzero(qid == one.query)
        assert spectra.rank[spectra.ids == 3] == 0


def test_dual_of_a_pipeline():
    from sklearn import config_context
    from sklearn.pipeline import Pipeline

    data = make_ranking(6, 10, 4, random_state=0)
    scaler = QueryMinMaxScaler().fit(data.X, qid=data.qid)
    scaled = scaler.transform(data.X, qid=data.qid)
    ranker = RankSVM(C=0.1).fit(scaled, data.y, qid=data.qid)
    with config_context(enable_metadata_routing=True):
        model = Pipeline([("scaler", scaler.set_transform_request(qid=True)), ("ranker", ranker)])
        dual = dual_coef(model, data.X, data.y, data.qid)
    expected = ranker.dual_coef(scaled, data.y, data.qid)
    for found, wanted in zip(dual, expected, strict=True):
        np.testing.assert_array_equal(found.alpha, wanted.alpha)
    np.testing.assert_array_equal(dual_coef(ranker, scaled, data.y, data.qid)[0].alpha, expected[0].alpha)
    with pytest.raises(OptionError, match="a ranker with dual variables"):
        dual_coef(scaler, data.X, data.y, data.qid)
    with pytest.raises(OptionError, match="a FactorizedRankSVM or RegularizedRankSVM is needed"):
        low_rank_coef(model, data.X, data.y, data.qid)


def test_low_rank_matrices_of_a_pipeline():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    data = make_ranking(6, 10, 4, n_levels=3, random_state=0)
    scaler = StandardScaler().fit(data.X)
    scaled, group = scaler.transform(data.X), [10] * 6
    for ranker in (FactorizedRankSVM(C=0.1, n_components=2, random_state=0), RegularizedRankSVM(C=0.1, gamma=0.1)):
        ranker.fit(scaled, data.y, qid=data.qid)
        found = low_rank_coef(make_pipeline(scaler, ranker), data.X, data.y, group=group)
        for block, expected in zip(found, ranker.low_rank_coef(scaled, data.y, data.qid), strict=True):
            np.testing.assert_array_equal(block.alpha, expected.alpha)


class Refusing:
    """Blocks that no memory holds."""

    def __init__(self, pairs_per_query):
        self.pairs_per_query = self.entries_per_query = np.array(pairs_per_query)

    def __len__(self):
        return len(self.pairs_per_query)

    def __getitem__(self, number):
        if self.pairs_per_query[number] == 7:
            raise MemoryError("cannot allocate 7 TiB")
        assert self.pairs_per_query[number] < 10**9, "asked for although it cannot fit"
        return block(number, np.ones((2, 2)))


def test_what_does_not_fit_is_refused_beforehand():
    huge = 300_000 * 299_999 // 2
    with pytest.raises(DataError, match=r"query number 1 \(of 0 to 2.* 44,999,850,000 pairs: .* takes up to 4.77 TB"):
        dual_spectra(Refusing([3, huge, 4]))
    with pytest.raises(
        DataError, match=r"has 40 pairs: .* 40 dual variables takes up to 4.24 kB, and 4 kB are allowed"
    ):
        dual_spectra(Refusing([3, 40, 4]), memory_limit="4kB")
    with pytest.raises(DataError, match=r"query number 1 .*does not fit into memory: cannot allocate 7 TiB"):
        dual_spectra(Refusing([3, 7, 4]))


def test_blocks_of_more_entries_than_pairs_are_refused_beforehand():
    y = np.ones(2000)
    y[0], y[-1] = 2.0, 0.0
    X = np.random.default_rng(0).normal(size=(2000, 2))
    dual = RankSVM(1.0, loss="hinge").fit(X, y, group=[2000]).dual_coef(X, y)
    with pytest.raises(DataError, match=r"has 3,997 pairs: its block of 3,996,001 dual variables takes up to 128 MB"):
        dual_spectra(dual, memory_limit="100MB")


@pytest.mark.parametrize("limit", ["4300", "100MB"])
def test_large_blocks_one_at_a_time(limit, monkeypatch):
    in_threads = []
    parallel_map = duals.parallel_map
    monkeypatch.setattr(
        duals, "parallel_map", lambda f, tasks, n: in_threads.extend(tasks) or parallel_map(f, tasks, n)
    )
    spectra = dual_spectra(Refusing([3, 40, 4]), memory_limit=limit, n_jobs=2)
    assert spectra.ids.tolist() == [0, 1, 2]
    assert in_threads == ([2, 0] if limit == "4300" else [1, 2, 0])


def test_bad_options(by_hand):
    spectra = dual_spectra(by_hand)
    for t in (0, 1.1, "half", True, float("nan")):
        with pytest.raises(OptionError, match="a share of the energy must be a number above 0 and at most 1"):
            spectra.dimensions(t)
    with pytest.raises(OptionError, match="at least one share"):
        dual_spectra(by_hand, energy=())
    for dual in (RankSVM(), np.eye(3)):
        with pytest.raises(OptionError, match="dual must be a sequence of blocks, such as"):
            dual_spectra(dual)
    with pytest.raises(OptionError, match="tol must be None or"):
        dual_spectra(by_hand, tol=1.0)
    with pytest.raises(OptionError, match="memory_limit must be None"):
        dual_spectra(by_hand, memory_limit="much")
    with pytest.raises(OptionError, match="bins must be a positive integer"):
        spectra.histogram(0.9, bins=0)
    with pytest.raises(DataError, match="there is no query 'x'"):
        spectra.table(["x"])
    with pytest.raises(DataError, match="no query whose dual variables"):
        dual_spectra([])
    with pytest.raises(OptionError, match="no spectra to compare"):
        compare_ranks({})
    with pytest.raises(OptionError, match="cannot be named 'pairs'"):
        compare_ranks({"pairs": spectra})
    with pytest.raises(DataError, match="there is no query 'b'"):
        compare_ranks({"all": spectra, "few": dual_spectra(by_hand[:1])})


def test_ohsumed(shared_data):
    """Documents and pairs of the three queries that Xu et al. list (Table 6), and few dimensions of much energy."""
    data = read_letor(shared_data / "OHSUMED" / "Fold1" / "train.txt.gz")
    rows = np.isin(data.qid, [49, 45, 35, 1, 2, 3])
    X, y, qid = data.X[rows], data.y[rows], data.qid[rows]
    ranker = RankSVM(C=2.0**-6, loss="hinge").fit(X, y, qid=qid)
    spectra = dual_spectra(ranker.dual_coef(X, y, qid))
    assert isinstance(spectra, DualSpectra)
    table = spectra.table([49, 45, 35])
    assert table["documents"].tolist() == [109, 205, 320]
    assert table["pairs"].tolist() == [420, 7482, 27153]
    sides = np.minimum(table["preferred"], table["other"])
    assert (2 * sides).tolist() == [8, 92, 234]
    assert (table["rank"] < sides).all()
    assert spectra.share_below(0.3, 0.9) == 1.0
