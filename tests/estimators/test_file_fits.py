"""Fits of files that stay on disk: the models, certificates and errors of fits in memory, in few readings."""

import gc
import os
import signal
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from counted_rounds import CountedRounds
from ranksvm import AdditiveRankSVM, QueryKFold, RankingData, RankSVM, RankSVMCV, make_ranking, regularization_path
from ranksvm._util import memory
from ranksvm.datasets import file_data, write_data
from ranksvm.datasets.cache import reader
from ranksvm.exceptions import DataError, NoComparablePairsError, OneQueryWarning, OptionError
from ranksvm.fits import file_training_set
from ranksvm.terms.parts import file_backend
from ranksvm.terms.parts.file_backend import FileBackend


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    """All data stay in their files, and are read in blocks of a few queries."""
    monkeypatch.setattr(file_data, "in_file", lambda path, limit: True)
    monkeypatch.setattr(file_backend, "BLOCK_BYTES", 4000)
    monkeypatch.setattr(reader, "_ROWS", 100)


@pytest.fixture
def readings(monkeypatch):
    """The number of readings of X, by backend."""
    backends = []
    before = FileBackend.__init__

    def noted(self, *arguments, **options):
        backends.append(self)
        before(self, *arguments, **options)

    monkeypatch.setattr(FileBackend, "__init__", noted)
    return lambda: [backend.n_reads for backend in backends]


def made(tmp_path, kind="dense", n_queries=60):
    data = make_ranking(n_queries=n_queries, n_docs=15, n_features=8, random_state=0)
    X = data.X.astype(np.float32)
    if kind == "sparse":
        X = sp.csr_matrix(X * (np.random.default_rng(0).random(X.shape) < 0.4))
    if kind == "integers":
        X = np.round(100 * X).astype(np.int16)
    order = np.random.default_rng(1).permutation(data.n_rows) if kind == "any order" else np.arange(data.n_rows)
    data = RankingData(X, data.y, data.qid).select(order)
    data.save(tmp_path / "data.rsd")
    return RankingData.load(tmp_path / "data.rsd")


def same(found, expected, rel=1e-9):
    assert found.objective_ == pytest.approx(expected.objective_, rel=rel)
    assert found.converged_
    assert found.duality_gap_ <= found.tol * found.objective_
    assert (found.n_pairs_, found.n_queries_) == (expected.n_pairs_, expected.n_queries_)
    assert found.n_features_in_ == expected.n_features_in_


OPTIONS = [
    {},
    {"loss": "hinge", "tol": 1e-7},
    {"loss": "huber", "huber_width": 0.5},
    {"pair_weighting": "per_query"},
    {"pair_weighting": "gain_gap"},
    {"pair_weighting": "label_gap", "pair_selection": "adjacent"},
    {"monotone": "increasing"},
    {"monotone": {0: 1, 3: -1}, "solver": "tron"},
    {"solver": "tron"},
    {"solver": "tron", "stopping": "gradient", "tol": 1e-8},
    {"solver": "newton", "n_jobs": 2},
]


@pytest.mark.parametrize("kind", ["dense", "sparse"])
@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(map(str, options.values())) or "default")
def test_fits_are_those_of_rows_in_memory(tmp_path, options, kind):
    data = made(tmp_path, kind)
    options = {"C": 0.05, "tol": 1e-9, **options}
    found = RankSVM(**options).fit(data)
    expected = RankSVM(**options).fit(data.X, data.y, qid=data.qid)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2 * options["tol"])
    assert found.converged_
    assert (found.n_pairs_, found.n_queries_) == (expected.n_pairs_, expected.n_queries_)
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=1e-3)


@pytest.mark.parametrize("kind", ["any order", "integers"])
def test_any_order_of_rows_and_other_types(tmp_path, kind):
    data = made(tmp_path, kind)
    same(RankSVM(C=0.05, tol=1e-9).fit(data), RankSVM(C=0.05, tol=1e-9).fit(data.X, data.y, qid=data.qid))


def test_labels_queries_and_weights_may_be_given(tmp_path):
    data = made(tmp_path)
    rng = np.random.default_rng(0)
    y, qid = rng.integers(0, 3, data.n_rows), rng.integers(0, 50, data.n_rows)
    weights = {"sample_weight": rng.uniform(0, 2, data.n_rows), "propensity": rng.uniform(0.2, 1, data.n_rows)}
    ranker = RankSVM(C=0.05, tol=1e-9)
    same(RankSVM(C=0.05, tol=1e-9).fit(data, y, qid=qid, **weights), ranker.fit(data.X, y, qid=qid, **weights))
    group = [100] * 9
    same(RankSVM(C=0.05, tol=1e-9).fit(data, group=group), ranker.fit(data.X, data.y, group=group))
    event = rng.random(data.n_rows) < 0.7
    times = rng.uniform(size=data.n_rows)
    same(RankSVM(C=0.05, tol=1e-9).fit(data, times, event=event), ranker.fit(data.X, times, qid=data.qid, event=event))
    data.y = y.astype(float)
    same(RankSVM(C=0.05, tol=1e-9).fit(data), ranker.fit(data.X, y, qid=data.qid))
    data.qid = qid
    same(RankSVM(C=0.05, tol=1e-9).fit(data), ranker.fit(data.X, y, qid=qid))


def test_gains_are_relative_to_the_largest_label_of_positive_weight(tmp_path):
    data = made(tmp_path)
    options = {"C": 0.05, "tol": 1e-9, "pair_weighting": "gain_gap"}
    weight = (data.y < data.y.max()).astype(float)
    expected = RankSVM(**options).fit(data.X, data.y, qid=data.qid, sample_weight=weight)
    same(RankSVM(**options).fit(data, sample_weight=weight), expected)
    with pytest.raises(NoComparablePairsError):
        RankSVM(**options).fit(data, sample_weight=np.zeros(data.n_rows))


BITS = [{}, {"loss": "hinge"}, {"solver": "tron"}, {"monotone": "increasing"}]


@pytest.mark.parametrize("options", BITS, ids=lambda options: ",".join(map(str, options.values())) or "default")
def test_bits_follow_from_data_and_options(tmp_path, monkeypatch, options):
    """Neither from the memory that is free or taken, nor from the number of threads."""
    monkeypatch.setattr(file_backend, "BLOCK_BYTES", 16 << 20)
    data = make_ranking(n_queries=2000, n_docs=15, n_features=48, random_state=0)
    data.save(tmp_path / "data.rsd")
    data = RankingData.load(tmp_path / "data.rsd")
    found = set()
    for limit, used, n_jobs in (("60MB", 0, 1), ("60MB", 20_000_000, 2), ("60MB", 30_000_000, 3)):
        monkeypatch.setattr(file_training_set, "used_memory", lambda used=used: used)
        ranker = RankSVM(C=0.01, memory_limit=limit, n_jobs=n_jobs, **options).fit(data)
        found.add((ranker.coef_.tobytes(), ranker.objective_, ranker.duality_gap_))
    assert len(found) == 1
    found = set()
    monkeypatch.setattr(file_training_set, "used_memory", lambda: 0)
    for free in (200 << 20, 8 << 30):
        monkeypatch.setattr(memory, "free_memory", lambda free=free: free)
        found.add(RankSVM(C=0.01, **options).fit(data).coef_.tobytes())
    assert len(found) == 1


def test_a_sample_that_memory_does_not_hold_is_refused(tmp_path, monkeypatch):
    """A smaller one would give another model than with more memory."""
    data = made(tmp_path)
    monkeypatch.setattr(file_training_set, "used_memory", lambda: 0)
    monkeypatch.setattr(file_training_set, "MIN_MEMORY", 0)
    RankSVM(memory_limit="60KB").fit(data)
    monkeypatch.setattr(file_training_set, "used_memory", lambda: 41_000)
    with pytest.raises(OptionError, match=r"the sample of the file has .* 5.7 KB are left for it: raise memory_limit"):
        RankSVM(memory_limit="60KB").fit(data)
    monkeypatch.setattr(memory, "free_memory", lambda: 38_000)
    with pytest.raises(OptionError, match=r"the sample of the file has .* 5.7 KB are left for it: give a memory_limit"):
        RankSVM().fit(data)


def test_a_fit_takes_few_readings(tmp_path, readings):
    """The sample's problem gives the start; then value, gradient, Hessian and bounds on round-off in each reading."""
    data = made(tmp_path, n_queries=1000)
    for C in (2.0**-20, 2.0**-12, 2.0**-6, 1.0):
        RankSVM(C=C).fit(data)
    assert max(readings()) <= 4


def test_a_path_of_twenty_shares_its_readings(tmp_path, readings):
    data = made(tmp_path, n_queries=400)
    Cs = 2.0 ** np.linspace(-15, 4, 20)
    found = regularization_path(data, Cs=Cs)
    assert readings()[0] <= 6
    expected = regularization_path(data.X, data.y, qid=data.qid, Cs=Cs, tol=1e-8)
    assert found.converged.all()
    gaps = found.duality_gaps + expected.duality_gaps
    assert (np.abs(found.objectives - expected.objectives) <= gaps).all()


def test_c_is_chosen_on_validation_data_in_few_readings(tmp_path, readings):
    data, valid = made(tmp_path), make_ranking(n_queries=30, n_docs=15, n_features=8, random_state=1)
    options = {"Cs": [1e-4, 1e-3, 1e-2, 1e-1, 1.0], "tol": 1e-8}
    given = {"eval_set": (valid.X, valid.y), "eval_qid": valid.qid}
    found = RankSVMCV(**options).fit(data, **given)
    expected = RankSVMCV(**options).fit(data.X, data.y, qid=data.qid, **given)
    assert readings()[0] <= 6
    assert found.C_ == expected.C_
    np.testing.assert_allclose(found.mean_scores_, expected.mean_scores_, atol=1e-6)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-8)


def test_an_interrupted_choice_compares_all_solutions_of_shared_readings(tmp_path, monkeypatch):
    data, valid = made(tmp_path), make_ranking(n_queries=30, n_docs=15, n_features=8, random_state=1)
    options = {"Cs": [1e-6, 1e-3, 1e-1], "tol": 1e-8, "keep_on_interrupt": True}
    given = {"eval_set": (valid.X, valid.y), "eval_qid": valid.qid}
    rounds = CountedRounds(monkeypatch, FileBackend)
    whole = RankSVMCV(**options).fit(data, **given)
    rounds.interrupt_in_the_last()
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        found = RankSVMCV(**options).fit(data, **given)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert found.status_.startswith("Interrupted")
    assert len(found.Cs_) > 1
    np.testing.assert_allclose(found.mean_scores_, whole.mean_scores_[: len(found.Cs_)], atol=1e-6)


@pytest.mark.usefixtures("host_devices")
@pytest.mark.parametrize("ranker", [RankSVM, RankSVMCV])
def test_a_device_needs_rows_in_memory(ranker, tmp_path):
    data = made(tmp_path)
    with pytest.raises(OptionError, match=r"device='host:0', but these data are read in passes"):
        ranker(device="host:0").fit(data, eval_set=(data.X, data.y), eval_qid=data.qid)


def test_auto_is_the_processor_for_a_file(tmp_path):
    data = made(tmp_path)
    assert RankSVM(device="auto").fit(data).device_ == "cpu"


@pytest.mark.parametrize("kind", ["dense", "sparse", "any order"])
def test_c_is_chosen_by_folds(tmp_path, kind, readings):
    """Folds, scores and choice are those of rows in memory; a fold's values of C share its readings."""
    data = made(tmp_path, kind)
    cv = 3 if kind == "dense" else QueryKFold(3, shuffle=True, random_state=1)
    weighting = "gain_gap" if kind == "sparse" else "uniform"
    options = {"Cs": [1e-4, 1e-2, 1.0], "tol": 1e-8, "cv": cv, "pair_weighting": weighting}
    weights = {"sample_weight": np.random.default_rng(0).uniform(0.5, 2.0, data.n_rows)}
    found = RankSVMCV(**options).fit(data, **weights)
    assert len(readings()) == 2 * 3 + 1
    assert max(readings()) <= 6 or kind == "sparse"
    expected = RankSVMCV(**options).fit(data.X, data.y, qid=data.qid, **weights)
    assert found.C_ == expected.C_
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-6)
    np.testing.assert_allclose(found.standard_errors_, expected.standard_errors_, atol=1e-6)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-8)


def test_folds_of_censored_times(tmp_path):
    data = made(tmp_path)
    rng = np.random.default_rng(0)
    times, event = rng.uniform(size=data.n_rows), rng.random(data.n_rows) < 0.7
    found = RankSVMCV(Cs=[1e-3, 1e-1], cv=3, tol=1e-8).fit(data, times, event=event)
    expected = RankSVMCV(Cs=[1e-3, 1e-1], cv=3, tol=1e-8).fit(data.X, times, qid=data.qid, event=event)
    np.testing.assert_allclose(found.scores_, expected.scores_, atol=1e-6)


def test_a_fold_without_pairs_is_named(tmp_path):
    data = made(tmp_path, n_queries=3)
    labels = np.where(data.qid == data.qid[0], data.y, 0)
    with pytest.raises(NoComparablePairsError, match="training part of fold 1: "):
        RankSVMCV(cv=3).fit(data, labels)


@pytest.mark.parametrize("suffix", [".parquet", ".txt", ".rsd"])
def test_the_path_of_a_file(tmp_path, monkeypatch, suffix):
    """Larger than the limit it gets a cache, which a second fit finds; smaller it is read."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    data = made(tmp_path)
    path = tmp_path / f"big{suffix}"
    write_data(data, path)
    expected = RankSVM(C=0.05, tol=1e-9).fit(data.X, data.y, qid=data.qid)
    monkeypatch.setattr(file_training_set, "used_memory", lambda: 0)
    monkeypatch.setattr(file_training_set, "MIN_MEMORY", 0)
    for _ in range(2):
        same(RankSVM(C=0.05, tol=1e-9, memory_limit="30KB").fit(path), expected, 1e-6)
        caches = list((tmp_path / "caches" / "ranksvm").glob("*")) if suffix != ".rsd" else []
        assert len(caches) == (suffix != ".rsd")
    monkeypatch.undo()
    same(RankSVM(C=0.05, tol=1e-9).fit(str(path)), expected, 1e-6)
    path.unlink()
    with pytest.raises(DataError, match=r"X is '.*big.*', but there is no such file"):
        RankSVM().fit(path)
    with pytest.raises(DataError, match="but that is no regular file"):
        RankSVM().fit(tmp_path)


@pytest.mark.parametrize("ranker", [RankSVM(C=0.05), RankSVMCV(Cs=[0.05], cv=2)])
def test_names_of_features_come_from_the_file(tmp_path, monkeypatch, ranker):
    data, path = made(tmp_path), tmp_path / "named.rsd"
    names = [f"n{number}" for number in range(data.n_features)]
    RankingData(data.X, data.y, data.qid, feature_names=names).save(path)
    monkeypatch.setattr(file_training_set, "used_memory", lambda: 0)
    monkeypatch.setattr(file_training_set, "MIN_MEMORY", 0)
    ranker.set_params(monotone={"n1": -1, "n2": 1}, memory_limit="30KB").fit(path)
    assert ranker.feature_names_in_.tolist() == names
    assert ranker.coef_[1] <= 0 <= ranker.coef_[2]


def test_a_file_that_changes(tmp_path, monkeypatch):
    """While it is read, and between loading and fitting."""
    data = made(tmp_path)
    before = FileBackend.round

    def with_change(self, jobs):
        if self.n_reads == 1:
            with open(self.rows.file.path, "r+b") as file:
                file.seek(-8, 2)
                file.write(bytes(8))
            os.utime(self.rows.file.path, ns=(0, 0))  # clocks of files may be coarse
        return before(self, jobs)

    with monkeypatch.context() as patch:
        patch.setattr(FileBackend, "round", with_change)
        with pytest.raises(DataError, match=r"data.rsd was changed while it was read: leave it alone"):
            RankSVM().fit(data)
    with pytest.raises(DataError, match=r"data.rsd has been changed since it was loaded"):
        RankSVM().fit(data)


def test_warm_start_and_sets_to_evaluate(tmp_path, readings):
    data = made(tmp_path)
    ranker = RankSVM(C=0.05, warm_start=True).fit(data, eval_set=(data.X, data.y), eval_qid=data.qid)
    assert len(ranker.evals_result_["valid_0"]["ndcg@10"]) == 1
    ranker.fit(data)
    assert readings()[1] <= 2


def test_what_needs_rows_in_memory(tmp_path):
    data = made(tmp_path)
    with pytest.raises(OptionError, match=r"solver='dual' .* rows in memory"):
        RankSVM(solver="dual").fit(data)
    pairs = np.array([[0, 1], [2, 3]])
    assert RankSVM().fit(data, pairs=pairs).n_pairs_ == 2  # in memory


def test_too_little_memory(tmp_path, monkeypatch):
    data = made(tmp_path)
    with pytest.raises(OptionError, match=r"memory_limit='1MB': the process takes .* before the fit begins"):
        RankSVM(memory_limit="1MB").fit(data)
    monkeypatch.setattr(file_training_set, "used_memory", lambda: 0)
    monkeypatch.setattr(file_training_set, "MIN_MEMORY", 0)
    with pytest.raises(OptionError, match=r"query \d+ has .* of features, more than memory_limit leaves"):
        RankSVM(memory_limit="1KB").fit(data)
    for limit in ("nonsense", 0, -1):
        with pytest.raises(OptionError, match="memory_limit must be"):
            RankSVM(memory_limit=limit).fit(data)


def test_what_the_process_takes_is_not_free(tmp_path, monkeypatch, readings):
    data = made(tmp_path)
    monkeypatch.setattr(file_training_set, "used_memory", lambda: 1 << 40)
    monkeypatch.setattr(file_training_set, "MIN_MEMORY", 20_000)
    monkeypatch.setattr(file_training_set, "PLANNED_WITHOUT_LIMIT", 60_000)
    monkeypatch.setattr(memory, "free_memory", lambda: 50_000)
    RankSVM(C=0.05).fit(data)
    assert sum(readings()) > 0
    monkeypatch.setattr(memory, "free_memory", lambda: 30_000)
    with pytest.raises(OptionError, match="half of the free memory is 15 KB, too little to read the file in parts"):
        RankSVM(C=0.05).fit(data)


def test_bad_values_are_named_by_their_row_in_the_file(tmp_path):
    for kind in ("dense", "sparse", "any order"):
        data = made(tmp_path, kind)
        X, y = data.X.copy(), data.y.copy()
        if kind == "sparse":
            row, column = int(np.searchsorted(X.indptr, 700, side="right")) - 1, X.indices[700]
            X.data[700] = np.nan
        else:
            row, column = 555, 3
            X[row, column] = np.nan
        RankingData(X, y, data.qid).save(tmp_path / "bad.rsd")
        with pytest.raises(DataError, match=rf"contains NaN at X\[{row}, {column}\] \(feature f{column + 1}\)"):
            RankSVM().fit(RankingData.load(tmp_path / "bad.rsd"))
    y[7] = np.inf
    RankingData(data.X, y, data.qid).save(tmp_path / "bad.rsd")
    with pytest.raises(DataError, match="y is inf in row 7"):
        RankSVM().fit(RankingData.load(tmp_path / "bad.rsd"))
    RankingData(data.X, np.ones(data.n_rows), data.qid).save(tmp_path / "bad.rsd")
    with pytest.raises(NoComparablePairsError):
        RankSVM().fit(RankingData.load(tmp_path / "bad.rsd"))


def test_no_features_and_values_of_other_types(tmp_path):
    path, y, qid = tmp_path / "data.rsd", np.arange(20.0) % 3, np.arange(20) // 5
    RankingData(np.zeros((20, 0)), y, qid).save(path)
    with pytest.raises(DataError, match=r"data\.rsd has no features"):
        RankSVM().fit(RankingData.load(path))
    X = np.random.default_rng(0).normal(size=(20, 2)).astype(np.float16)
    RankingData(X, y, qid).save(path)
    same(RankSVM(tol=1e-9).fit(RankingData.load(path)), RankSVM(tol=1e-9).fit(X, y, qid=qid))
    X[3, 1] = np.nan
    RankingData(X, y, qid).save(path)
    with pytest.raises(DataError, match=r"contains NaN at X\[3, 1\]"):
        RankSVM().fit(RankingData.load(path))


def test_rows_without_query_ids(tmp_path):
    data = make_ranking(n_queries=1, n_docs=200, n_features=4, random_state=0)
    RankingData(data.X, data.y).save(tmp_path / "one.rsd")
    with pytest.warns(OneQueryWarning):
        found = RankSVM(tol=1e-9).fit(RankingData.load(tmp_path / "one.rsd"))
    same(found, RankSVM(tol=1e-9).fit(data.X, data.y, group=[200]))


@pytest.mark.parametrize("name", ["empty.txt", "empty.csv", "empty.txt.gz"])
def test_an_empty_file_is_not_taken_for_a_cache(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(DataError, match=rf"{name} is empty"):
        RankSVM().fit(tmp_path / name)


@pytest.mark.parametrize("ranker", [RankSVM, AdditiveRankSVM, RankSVMCV])
@pytest.mark.parametrize("name", ["none.csv", "none.rsd"])
def test_a_file_without_rows_is_named(tmp_path, monkeypatch, name, ranker):
    monkeypatch.undo()
    (tmp_path / "none.csv").write_text("label,qid,price\n")
    RankingData(np.zeros((0, 1)), np.zeros(0), np.zeros(0, dtype=int)).save(tmp_path / "none.rsd")
    with pytest.raises(DataError, match=rf"{name} has no row of data"):
        ranker().fit(tmp_path / name)


def n_open_caches():
    gc.collect()
    return sum(type(found) is reader.CacheFile for found in gc.get_objects())


@pytest.mark.parametrize("ranker", [RankSVM, AdditiveRankSVM])
def test_a_fit_leaves_no_file_open(tmp_path, ranker):
    data = made(tmp_path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ResourceWarning)
        before = n_open_caches()
        ranker().fit(data.source)
        assert n_open_caches() == before
    assert not caught


def test_which_data_stay_in_their_file(tmp_path, monkeypatch):
    monkeypatch.undo()
    data = made(tmp_path)
    assert not file_data.in_file(data.source, None)
    assert file_data.in_file(data.source, "100KB")
    X, y, qid, _ = file_data.unpacked(data, None, None, None, None, "100KB")
    assert (X.path, y, qid) == (data.source, None, None)
    X, y, qid, _ = file_data.unpacked(data, None, None, None, None, None)
    assert (X is data.X, y is data.y, qid is data.qid) == (True, True, True)
    part = data.select(slice(100))
    assert part.source is None
    data.X = np.asarray(data.X) + 1
    assert data.source is None


def test_a_cache_is_read_if_it_fits_in_memory_and_never_copied(tmp_path, monkeypatch):
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    path = made(tmp_path).source
    assert file_data.training_file(path, None).source is None  # a mapped file must not become shorter
    assert file_data.training_file(path, "100KB").source == path
    assert not (tmp_path / "caches").exists()


def test_err_has_the_scale_of_all_labels(tmp_path):
    data = made(tmp_path)
    y = np.minimum(data.y, 1.0)
    y[0] = 4.0  # the highest grade is in one block
    RankingData(data.X, y, data.qid).save(tmp_path / "graded.rsd")
    found = RankSVMCV(Cs=[0.01], cv=3, metric="err").fit(tmp_path / "graded.rsd")
    expected = RankSVMCV(Cs=[0.01], cv=3, metric="err").fit(data.X, y, qid=data.qid)
    np.testing.assert_allclose(found.scores_, expected.scores_, rtol=1e-4)
