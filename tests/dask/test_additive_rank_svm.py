"""DaskAdditiveRankSVM against AdditiveRankSVM: the same levels, model and bounds, wherever the rows are."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import ranksvm
from ranksvm import AdditiveRankSVM
from ranksvm.additive import bins
from ranksvm.dask import DaskAdditiveRankSVM
from ranksvm.dask.backend import DaskBackend
from ranksvm.exceptions import DataError, NoComparablePairsError, OptionError

pytestmark = pytest.mark.usefixtures("client")

C, TOL = 0.05, 1e-9


@pytest.fixture(scope="module")
def values(data):
    """Features with missing values, and one of few values."""
    X = data.X.astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    return X


def cut(array, chunk=100):
    return da.from_array(array, chunks=(chunk, *np.shape(array)[1:]))


def check_same(found, expected, tol=TOL):
    for name in ("cuts_", "n_cuts_", "fill_", "has_missing_", "ranges_", "level_means_", "interactions_"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    np.testing.assert_allclose(found.level_shares_, expected.level_shares_, rtol=1e-12)
    np.testing.assert_allclose(found.cell_shares_, expected.cell_shares_, rtol=1e-12)
    assert found.objective_ == pytest.approx(expected.objective_, rel=2 * tol)
    assert found.duality_gap_ <= tol * found.objective_
    assert (found.n_pairs_, found.n_queries_) == (expected.n_pairs_, expected.n_queries_)
    np.testing.assert_allclose(found.shape_values_, expected.shape_values_, atol=2e-4)
    np.testing.assert_allclose(found.linear_coef_, expected.linear_coef_, atol=2e-4)
    if expected.interaction_bounds_ is not None:
        np.testing.assert_allclose(found.candidate_bounds_, expected.candidate_bounds_, rtol=1e-3)
        np.testing.assert_allclose(found.interaction_values_, expected.interaction_values_, atol=2e-4)


OPTIONS = [
    {},
    {"loss": "hinge", "tol": 1e-7},
    {"pair_weighting": "gain_gap", "linear": False},
    {"interactions": 3, "categorical": [3]},
    {"interactions": [(0, 5)], "monotone": "increasing"},
    {"solver": "tron", "max_bins": 5},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(map(str, options)) or "default")
def test_models_are_those_of_one_process(data, values, options):
    options = {"C": C, "tol": TOL, **options}
    found = DaskAdditiveRankSVM(**options).fit(cut(values), cut(data.y), qid=cut(data.qid))
    expected = AdditiveRankSVM(**options).fit(values, data.y, qid=data.qid)
    check_same(found, expected, options["tol"])
    assert 0 < found.n_rounds_ < 200


@pytest.mark.parametrize("weighted", [False, True])
def test_quantiles_of_many_rows(client, data, values, weighted, monkeypatch):
    """Rows in any order, of which some move to others of their query: the same rows decide as in one process."""

    def few(dask_worker=None):
        bins.QUANTILE_ROWS = 250

    def all_of_them(dask_worker=None):
        bins.QUANTILE_ROWS = 1 << 16

    order = np.random.default_rng(1).permutation(data.n_rows)
    X, y, qid = values[order], data.y[order], data.qid[order]
    weights = {"sample_weight": np.random.default_rng(2).integers(0, 3, data.n_rows).astype(float)} if weighted else {}
    parts = {name: cut(weight) for name, weight in weights.items()}
    options = {"C": C, "tol": TOL, "max_bins": 8, "interactions": 1}
    monkeypatch.setattr(bins, "QUANTILE_ROWS", 250)
    client.run(few)
    try:
        found = DaskAdditiveRankSVM(**options).fit(cut(X), cut(y), qid=cut(qid), **parts)
    finally:
        client.run(all_of_them)
    check_same(found, AdditiveRankSVM(**options).fit(X, y, qid=qid, **weights))


def test_sparse_parts_and_an_empty_one(data, values):
    thinned = np.nan_to_num(values) * (np.random.default_rng(0).random(values.shape) < 0.4)
    X = cut(thinned).map_blocks(sp.csr_array, dtype=thinned.dtype)
    rows = cut(np.arange(data.n_rows))
    kept = (rows < 200) | (rows >= 300)
    where = kept.compute()
    expected = AdditiveRankSVM(C=C, tol=TOL).fit(sp.csr_array(thinned), data.y, qid=data.qid)
    check_same(DaskAdditiveRankSVM(C=C, tol=TOL).fit(X, cut(data.y), qid=cut(data.qid)), expected)
    fit = DaskAdditiveRankSVM(C=C, tol=TOL).fit(cut(values)[kept], cut(data.y)[kept], qid=cut(data.qid)[kept])
    check_same(fit, AdditiveRankSVM(C=C, tol=TOL).fit(values[where], data.y[where], qid=data.qid[where]))


def test_a_dask_dataframe_names_its_features(data, values):
    frame = pd.DataFrame(values, columns=list("abcdef")).assign(qid=data.qid)
    parts, labels = dd.from_pandas(frame, npartitions=4), dd.from_pandas(pd.Series(data.y), npartitions=4)
    options = {"C": C, "tol": TOL, "categorical": ["d"], "interactions": [("a", "f")], "monotone": {"b": 1}}
    found = DaskAdditiveRankSVM(**options).fit(parts, labels)
    expected = AdditiveRankSVM(**options).fit(frame, data.y)
    check_same(found, expected)
    np.testing.assert_allclose(found.predict(parts).compute(), expected.predict(frame), atol=1e-4)
    assert found.to_local().shapes()[1].name == "b"


def test_listed_pairs(data, values):
    pairs = np.column_stack([np.arange(0, 598), np.arange(1, 599)])
    pairs = pairs[data.qid[pairs[:, 0]] == data.qid[pairs[:, 1]]]
    found = DaskAdditiveRankSVM(C=C, tol=TOL).fit(cut(values), pairs=pairs, qid=cut(data.qid))
    check_same(found, AdditiveRankSVM(C=C, tol=TOL).fit(values, pairs=pairs, qid=data.qid))


def test_evaluation_sets_choose_the_number_of_interactions(data, values, tmp_path):
    sets = {"eval_set": (cut(values), cut(data.y)), "eval_qid": cut(data.qid)}
    options = {"C": C, "tol": TOL, "interactions": "auto"}
    found = DaskAdditiveRankSVM(**options).fit(cut(values), cut(data.y), qid=cut(data.qid), **sets)
    local = {"eval_set": (values, data.y), "eval_qid": data.qid}
    expected = AdditiveRankSVM(**options).fit(values, data.y, qid=data.qid, **local)
    check_same(found, expected)
    score = expected.evals_result_["valid_0"]["ndcg@10"]
    assert found.evals_result_["valid_0"]["ndcg@10"] == pytest.approx(score, abs=1e-9)
    assert float(found.score(cut(values), cut(data.y), qid=cut(data.qid))) == pytest.approx(score[0], abs=1e-9)
    np.testing.assert_array_equal(found.predict(cut(values)).compute(), found.to_local().predict(values))
    found.save(tmp_path / "model.rsvm")
    np.testing.assert_array_equal(ranksvm.load(tmp_path / "model.rsvm").shape_values_, found.shape_values_)
    with pytest.raises(OptionError, match="give eval_set"):
        DaskAdditiveRankSVM(interactions="auto").fit(cut(values), cut(data.y), qid=cut(data.qid))


def test_files_that_workers_read(data, values, tmp_path):
    paths = [str(tmp_path / f"part{number}.rsd") for number in range(3)]
    for path, rows in zip(paths, np.array_split(np.arange(data.n_rows), 3), strict=True):
        ranksvm.RankingData(values[rows], data.y[rows], data.qid[rows]).save(path)
    found = DaskAdditiveRankSVM(C=C, tol=TOL).fit(paths)
    check_same(found, AdditiveRankSVM(C=C, tol=TOL).fit(values, data.y, qid=data.qid))
    np.testing.assert_allclose(found.predict(paths).compute(), found.to_local().predict(values), rtol=1e-12)


def test_a_cluster_that_restarts_makes_its_data_again(client, data, values, monkeypatch):
    X, y, qid = cut(values), cut(data.y), cut(data.qid)
    undisturbed = DaskAdditiveRankSVM(C=C, n_partitions=4, interactions=2).fit(X, y, qid=qid)
    plain, n_rounds = DaskBackend._sum, []

    def with_restart(self, jobs):
        n_rounds.append(1)
        if len(n_rounds) in (2, undisturbed.n_rounds_ - 2):
            client.restart(timeout=60)
        return plain(self, jobs)

    monkeypatch.setattr(DaskBackend, "_sum", with_restart)
    fit = DaskAdditiveRankSVM(C=C, n_partitions=4, interactions=2).fit(X, y, qid=qid)
    np.testing.assert_array_equal(fit.shape_values_, undisturbed.shape_values_)
    np.testing.assert_array_equal(fit.interaction_values_, undisturbed.interaction_values_)


def test_infinite_values_name_part_and_row(data, values):
    X = values.copy()
    X[317, 4] = np.inf
    with pytest.raises(DataError, match=r"part 3: Input X contains infinity at X\[17, 4\]"):
        DaskAdditiveRankSVM().fit(cut(X), cut(data.y), qid=cut(data.qid))


def test_options(data, values):
    local = AdditiveRankSVM().get_params()
    del local["device"], local["memory_limit"]
    assert DaskAdditiveRankSVM(**local).get_params().items() >= local.items()
    with pytest.raises(OptionError, match="solver must be one of"):
        DaskAdditiveRankSVM(solver="dual").fit(cut(values), cut(data.y), qid=cut(data.qid))
    ranker = DaskAdditiveRankSVM(C=C, warm_start=True).fit(cut(values), cut(data.y), qid=cut(data.qid))
    assert ranker.fit(cut(values), cut(data.y), qid=cut(data.qid)).n_iter_ == 0


@pytest.mark.parametrize(
    "arguments",
    [
        {"y": np.zeros(600)},
        {"query_weight": np.zeros(600)},
        {"sample_weight": np.zeros(600)},
        {"event": np.zeros(600, dtype=bool)},
        {"y": None, "pairs": [[0, 1], [2, 3]], "pair_weight": [0.0, 0.0]},
    ],
    ids=["labels", "query_weight", "sample_weight", "event", "pair_weight"],
)
def test_data_without_comparable_pairs_are_refused(data, values, arguments):
    given = {"y": data.y, "qid": data.qid} | arguments
    with pytest.raises(NoComparablePairsError):
        AdditiveRankSVM().fit(values, **given)
    with pytest.raises(NoComparablePairsError, match="No comparable pair"):
        DaskAdditiveRankSVM().fit(cut(values), **given)
