"""Additive models of files that stay on disk: the levels, models and choices of fits in memory."""

import numpy as np
import pytest
import scipy.sparse as sp

from ranksvm import AdditiveRankSVM, AdditiveRankSVMCV, RankingData, make_ranking
from ranksvm._util import memory
from ranksvm.additive import bins
from ranksvm.datasets import file_data
from ranksvm.datasets.cache import reader
from ranksvm.exceptions import DataError, NoComparablePairsError
from ranksvm.fits import additive_file, file_training_set
from ranksvm.terms.parts import file_backend
from ranksvm.terms.parts.file_backend import FileBackend


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """All data stay in their files, and are read in blocks of a few queries."""
    monkeypatch.setattr(file_data, "in_file", lambda path, limit: True)
    monkeypatch.setattr(file_backend, "BLOCK_BYTES", 4000)
    monkeypatch.setattr(reader, "_ROWS", 100)


def made(tmp_path, kind="dense", n_queries=60):
    data = make_ranking(n_queries=n_queries, n_docs=15, n_features=8, random_state=0)
    random = np.random.default_rng(1)
    X = data.X.astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    if kind == "sparse":
        X = sp.csr_matrix(X * (random.random(X.shape) < 0.4))
    elif kind == "integers":
        X = np.round(100 * X).astype(np.int16)
    else:
        X[random.random(X.shape) < 0.05] = np.nan
        X[0, 5] = np.nan
    order = random.permutation(data.n_rows) if kind == "any order" else np.arange(data.n_rows)
    RankingData(X, data.y, data.qid).select(order).save(tmp_path / "data.rsd")
    return RankingData.load(tmp_path / "data.rsd")


def same_levels(found, expected):
    for name in ("cuts_", "n_cuts_", "fill_", "has_missing_", "ranges_", "level_means_", "interactions_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.level_shares_, expected.level_shares_, rtol=1e-12)
    np.testing.assert_allclose(found.cell_shares_, expected.cell_shares_, rtol=1e-12)


def same(found, expected, tol=1e-9):
    same_levels(found, expected)
    assert found.converged_
    assert found.objective_ == pytest.approx(expected.objective_, rel=2 * tol)
    assert (found.n_pairs_, found.n_queries_) == (expected.n_pairs_, expected.n_queries_)
    np.testing.assert_allclose(found.shape_values_, expected.shape_values_, atol=2e-4)
    np.testing.assert_allclose(found.linear_coef_, expected.linear_coef_, atol=2e-4)
    if expected.interaction_bounds_ is not None:
        np.testing.assert_allclose(found.candidate_bounds_, expected.candidate_bounds_, rtol=1e-3)
        np.testing.assert_allclose(found.interaction_values_, expected.interaction_values_, atol=2e-4)


OPTIONS = [
    {},
    {"linear": False, "max_bins": 5},
    {"loss": "hinge", "tol": 1e-7},
    {"loss": "logistic", "pair_weighting": "gain_gap"},
    {"interactions": 3},
    {"interactions": [(0, 5)], "categorical": [3]},
    {"monotone": "increasing", "interactions": 1},
    {"solver": "tron", "n_jobs": 2},
]


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        *((options, "dense") for options in OPTIONS),
        *((options, kind) for options in OPTIONS[:2] for kind in ("sparse", "any order")),
        *(
            pytest.param(options, kind, marks=pytest.mark.slow)
            for options in OPTIONS[2:]
            for kind in ("sparse", "any order")
        ),
    ],
    ids=str,
)
def test_models_are_those_of_rows_in_memory(tmp_path, options, kind):
    data = made(tmp_path, kind)
    options = {"C": 0.05, "tol": 1e-9, **options}
    found = AdditiveRankSVM(**options).fit(data)
    same(found, AdditiveRankSVM(**options).fit(data.X, data.y, qid=data.qid), options["tol"])


@pytest.mark.parametrize("loss", ["squared_hinge", pytest.param("hinge", marks=pytest.mark.slow)])
def test_a_small_sample_of_the_rows_preconditions(tmp_path, monkeypatch, loss):
    monkeypatch.setattr(additive_file, "SAMPLE_ROWS", 100)
    data = made(tmp_path)
    options = {"C": 0.05, "tol": 1e-7, "loss": loss}
    found = AdditiveRankSVM(**options).fit(data)
    same(found, AdditiveRankSVM(**options).fit(data.X, data.y, qid=data.qid), 1e-7)


def test_integers_and_weights(tmp_path):
    data = made(tmp_path, "integers")
    weights = {"sample_weight": np.random.default_rng(0).integers(0, 4, data.n_rows)}
    options = {"C": 0.05, "tol": 1e-9, "interactions": 2}
    for given in ({}, weights):
        found = AdditiveRankSVM(**options).fit(data, **given)
        same(found, AdditiveRankSVM(**options).fit(data.X, data.y, qid=data.qid, **given))


def test_quantiles_of_many_rows_and_little_memory(tmp_path, monkeypatch):
    """The same evenly spaced rows as in memory, some features at a time."""
    monkeypatch.setattr(bins, "QUANTILE_ROWS", 300)
    monkeypatch.setattr(additive_file, "QUANTILE_ROWS", 300)
    readings, each = [], FileBackend.each
    monkeypatch.setattr(FileBackend, "each", lambda self, work: readings.append(1) or each(self, work))
    data = made(tmp_path, "any order")
    expected = AdditiveRankSVM(C=0.05, max_bins=8).fit(data.X, data.y, qid=data.qid)
    for share, n_readings in ((0.3, 2), (0.0, 9)):
        monkeypatch.setattr(additive_file, "QUANTILE_SHARE", share)
        readings.clear()
        same_levels(AdditiveRankSVM(C=0.05, max_bins=8).fit(data), expected)
        assert len(readings) == n_readings


@pytest.mark.parametrize("options", [{}, {"monotone": "increasing"}, {"interactions": 2}], ids=str)
def test_bits_follow_from_data_and_options(tmp_path, monkeypatch, options):
    """Neither from the memory that is free or taken, nor from the number of threads."""
    monkeypatch.setattr(file_backend, "BLOCK_BYTES", 16 << 20)
    data = make_ranking(n_queries=400, n_docs=15, n_features=12, random_state=0)
    data.save(tmp_path / "data.rsd")
    data = RankingData.load(tmp_path / "data.rsd")
    found = set()
    for limit, used, n_jobs in (("60MB", 0, 1), ("60MB", 20_000_000, 2), ("60MB", 30_000_000, 3)):
        monkeypatch.setattr(file_training_set, "used_memory", lambda used=used: used)
        ranker = AdditiveRankSVM(C=0.01, memory_limit=limit, n_jobs=n_jobs, **options).fit(data)
        found.add((ranker.shape_values_.tobytes(), ranker.objective_, ranker.duality_gap_))
    assert len(found) == 1
    found = set()
    monkeypatch.setattr(file_training_set, "used_memory", lambda: 0)
    for free in (200 << 20, 8 << 30):
        monkeypatch.setattr(memory, "free_memory", lambda free=free: free)
        found.add(AdditiveRankSVM(C=0.01, **options).fit(data).shape_values_.tobytes())
    assert len(found) == 1


def test_choices_are_those_of_rows_in_memory(tmp_path):
    data = made(tmp_path)
    options = {"Cs": [1e-3, 1e-2, 0.1], "cv": 3, "tol": 1e-7, "interactions": [0, 2]}
    found = AdditiveRankSVMCV(**options).fit(data)
    expected = AdditiveRankSVMCV(**options).fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-12)
    assert (found.C_, found.step_weight_) == (expected.C_, expected.step_weight_)
    same(found, expected, 1e-7)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_a_value_that_is_missing_in_one_test_part_only(tmp_path, kind):
    data = made(tmp_path, kind)
    X = data.X.copy()
    if kind == "dense":
        X[np.isnan(X)] = 0.0
        X[7, 3] = X[100, 5] = np.nan
    else:
        X.data[[3, 400]] = np.nan
    RankingData(X, data.y, data.qid).save(tmp_path / "few.rsd")
    few = RankingData.load(tmp_path / "few.rsd")
    options = {"Cs": [1e-2, 0.1], "cv": 3, "tol": 1e-7, "interactions": [0, 1], "step_weights": [1.0]}
    found = AdditiveRankSVMCV(**options).fit(few)
    expected = AdditiveRankSVMCV(**options).fit(X, data.y, qid=data.qid)
    assert expected.has_missing_.sum() == 2
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-12)
    same(found, expected, 1e-7)


def test_the_number_of_interactions_is_chosen_on_an_evaluation_set(tmp_path):
    data = made(tmp_path)
    options = {"C": 0.05, "tol": 1e-7, "interactions": "auto"}
    sets = {"eval_set": (data.X[:300], data.y[:300]), "eval_qid": data.qid[:300]}
    found = AdditiveRankSVM(**options).fit(data, **sets)
    same(found, AdditiveRankSVM(**options).fit(data.X, data.y, qid=data.qid, **sets), 1e-7)


def test_infinite_values_are_refused_with_their_place(tmp_path):
    data = made(tmp_path)
    X = np.array(data.X)
    X[431, 2] = np.inf
    RankingData(X, data.y, data.qid).save(tmp_path / "infinite.rsd")
    with pytest.raises(DataError, match=r"infinite.rsd contains infinity at X\[431, 2\]"):
        AdditiveRankSVM().fit(RankingData.load(tmp_path / "infinite.rsd"))


def test_rows_without_pairs_are_refused_before_x_is_read(tmp_path, monkeypatch):
    data = made(tmp_path)
    monkeypatch.setattr(FileBackend, "each", None)
    for given in ({"y": np.zeros(data.n_rows)}, {"sample_weight": np.zeros(data.n_rows)}):
        with pytest.raises(NoComparablePairsError):
            AdditiveRankSVM().fit(data, **given)


def test_a_warm_start_takes_no_steps(tmp_path):
    data = made(tmp_path)
    ranker = AdditiveRankSVM(C=0.05, warm_start=True).fit(data)
    assert ranker.fit(data).n_iter_ == 0
