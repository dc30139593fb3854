"""DaskRankSVM against RankSVM: every loss, weighting and form of the data; errors that name part and row."""

import inspect
import pickle
import warnings

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client
from sklearn.base import clone

import ranksvm
from ranksvm import RankSVM, RankSVMCV
from ranksvm.dask import DaskRankSVM, DaskRankSVMCV
from ranksvm.exceptions import ClusterError, DataError, NoComparablePairsError, OptionError

pytestmark = pytest.mark.usefixtures("client")

C, TOL = 0.05, 1e-9


def check_same(fit, expected):
    assert fit.objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert fit.duality_gap_ <= TOL * fit.objective_
    assert (fit.n_pairs_, fit.n_queries_, fit.n_features_in_) == (
        expected.n_pairs_,
        expected.n_queries_,
        expected.n_features_in_,
    )
    np.testing.assert_allclose(fit.coef_, expected.coef_, atol=1e-4 * np.abs(expected.coef_).max())


OPTIONS = [
    {},
    {"loss": "hinge"},
    {"loss": "huber", "huber_width": 0.5, "solver": "tron"},
    {"pair_weighting": "per_query"},
    {"pair_weighting": "gain_gap"},
    {"pair_weighting": "label_gap", "pair_selection": "adjacent"},
    {"monotone": "increasing", "solver": "newton"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: ",".join(map(str, options.values())) or "default")
def test_every_loss_and_weighting(data, parts_of, options):
    options = {"C": C, "tol": TOL, **options}
    X, y, qid = parts_of(data)
    fit = DaskRankSVM(**options).fit(X, y, qid=qid)
    check_same(fit, RankSVM(**options).fit(data.X, data.y, qid=data.qid))
    assert 0 < fit.n_rounds_ < 200


def test_weights_of_rows_queries_and_clicks(data, parts_of):
    rng = np.random.default_rng(0)
    X, y, qid = parts_of(data)
    weights = {
        "sample_weight": rng.integers(0, 3, data.n_rows).astype(float),
        "query_weight": (1.0 + np.unique(data.qid, return_inverse=True)[1]),
        "propensity": rng.uniform(0.2, 1.0, data.n_rows),
    }
    expected = RankSVM(C=C, tol=TOL, pair_weighting="gain_gap").fit(data.X, data.y, qid=data.qid, **weights)
    parts = {name: da.from_array(values, chunks=100) for name, values in weights.items()}
    fit = DaskRankSVM(C=C, tol=TOL, pair_weighting="gain_gap").fit(X, y, qid=qid, **parts)
    check_same(fit, expected)


def test_censored_times(data, parts_of):
    event = np.random.default_rng(1).random(data.n_rows) < 0.6
    expected = RankSVM(C=C, tol=TOL).fit(data.X, data.y, qid=data.qid, event=event)
    X, y, qid = parts_of(data)
    fit = DaskRankSVM(C=C, tol=TOL).fit(X, y, qid=qid, event=da.from_array(event, chunks=100))
    check_same(fit, expected)
    assert fit.censored_
    score = fit.score(X, y, qid=qid, event=da.from_array(event, chunks=100))
    assert float(score) == pytest.approx(expected.score(data.X, data.y, qid=data.qid, event=event), rel=1e-12)


@pytest.mark.parametrize("with_ids", [True, False], ids=["queries", "no queries"])
def test_listed_pairs(data, parts_of, with_ids):
    """Their rows may be in several parts, and unsorted."""
    rng = np.random.default_rng(3)
    mixed = data.select(rng.permutation(data.n_rows))
    by_query = np.argsort(mixed.qid, kind="stable")
    pairs = np.column_stack([by_query[:-1], by_query[1:]])
    pairs = rng.permutation(pairs[mixed.qid[pairs[:, 0]] == mixed.qid[pairs[:, 1]]])[:300]
    weights = {"pair_weight": rng.uniform(0.5, 2.0, len(pairs)), "sample_weight": rng.uniform(0.5, 2.0, mixed.n_rows)}
    options = {"C": C, "tol": TOL, "pair_weighting": "per_query" if with_ids else "uniform"}
    given = {"qid": mixed.qid} if with_ids else {}
    expected = RankSVM(**options).fit(mixed.X, pairs=pairs, **weights, **given)
    X, _, qid = parts_of(mixed)
    ids = {"qid": qid} if with_ids else {}
    for many in (pairs, da.from_array(pairs, chunks=(80, 2))):
        fit = DaskRankSVM(n_partitions=4, **options).fit(X, pairs=many, **weights, **ids)
        assert fit.objective_ == pytest.approx(expected.objective_, rel=1e-9)
        assert fit.n_pairs_ == expected.n_pairs_ == 300
        assert fit.n_queries_ == expected.n_queries_
    frame = dd.from_pandas(pd.DataFrame(mixed.X).add_prefix("x"), npartitions=3)
    columns = {"sample_weight": dd.from_pandas(pd.Series(weights["sample_weight"]), npartitions=3)}
    fit = DaskRankSVM(**options).fit(
        frame,
        pairs=pairs,
        pair_weight=weights["pair_weight"],
        **columns,
        qid=dd.from_pandas(pd.Series(mixed.qid), npartitions=3) if with_ids else None,
    )
    assert fit.objective_ == pytest.approx(expected.objective_, rel=1e-9)


def test_pairs_without_weight_are_counted_in_every_part():
    X, qid = np.arange(6.0)[:, np.newaxis], np.repeat([0, 1, 2], 2)
    arguments = {"pairs": [[1, 0], [3, 2], [5, 4]], "pair_weight": [1.0, 0.0, 2.0]}
    expected = RankSVM().fit(X, qid=qid, **arguments)
    cut = da.from_array(X, chunks=(2, 1)), da.from_array(qid, chunks=2)
    fit = DaskRankSVM(n_partitions=3).fit(cut[0], qid=cut[1], **arguments)
    assert fit.n_pairs_ == expected.n_pairs_ == 3
    assert fit.objective_ == pytest.approx(expected.objective_, rel=1e-9)


def test_listed_pairs_that_are_invalid(data, parts_of, tmp_path):
    X, y, qid = parts_of(data)
    last = int(np.flatnonzero(data.qid == data.qid[-1])[0])
    for bad, message in (
        ([[0, 1], [0, 600]], r"pairs\[1\] is \(0, 600\), but X has rows 0 to 599"),
        ([[0, 1], [last, 0]], rf"pairs\[1\] joins row {last} with row 0 of another query"),
    ):
        with pytest.raises(DataError, match=message):
            DaskRankSVM().fit(X, pairs=bad, qid=qid)
    with pytest.raises(DataError, match="not both"):
        DaskRankSVM().fit(X, y, pairs=[[0, 1]], qid=qid)
    with pytest.raises(DataError, match="pairs was also given"):
        DaskRankSVM().fit([str(tmp_path / "a.txt")], pairs=[[0, 1]])


def test_sizes_of_queries(data, parts_of):
    """Queries that parts cut, also in parts of unknown sizes."""
    X, y, _ = parts_of(data)
    sizes = np.unique(data.qid, return_counts=True)[1]
    expected = RankSVM(C=C, tol=TOL).fit(data.X, data.y, group=sizes)
    check_same(DaskRankSVM(C=C, tol=TOL).fit(X, y, group=sizes), expected)
    all_rows = X[:, 0] < np.inf
    group = da.from_array(sizes, chunks=7)
    fit = DaskRankSVM(C=C, tol=TOL).fit(X[all_rows], y[all_rows], group=group, eval_set=(X, y), eval_group=sizes)
    check_same(fit, expected)
    assert fit.evals_result_["valid_0"]["ndcg@10"][0] == pytest.approx(expected.score(data.X, data.y, qid=data.qid))
    with pytest.raises(DataError, match="qid or group"):
        DaskRankSVM().fit(X, y, qid=y, group=sizes)
    search = DaskRankSVMCV(Cs=[1e-3, 1e-1], cv=2).fit(X, y, group=sizes)
    assert search.n_queries_ == len(sizes)


# -- where the rows are ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [37, 290])
def test_unsorted_queries_of_string_ids(data, parts_of, chunk, caplog):
    """Every query is in every part: all rows are shuffled by the content of their ids."""
    order = np.random.default_rng(0).permutation(data.n_rows)
    mixed = data.select(order)
    names = np.array([f"query {number}" for number in mixed.qid])
    X, y, _ = parts_of(mixed, chunk)
    with caplog.at_level("WARNING", logger="ranksvm.dask"):
        fit = DaskRankSVM(C=C, tol=TOL).fit(X, y, qid=da.from_array(names, chunks=chunk))
    assert "queries in several parts: 40; " in caplog.text
    assert "MB are shuffled" in caplog.text
    check_same(fit, RankSVM(C=C, tol=TOL).fit(mixed.X, mixed.y, qid=names))
    again = DaskRankSVM(C=C, tol=TOL).fit(X, y, qid=da.from_array(names, chunks=chunk))
    np.testing.assert_array_equal(again.coef_, fit.coef_)


def test_empty_parts_parts_without_pairs_and_unknown_sizes(data):
    labels = data.y.copy()
    labels[:100] = 1.0
    frame = pd.DataFrame({"keep": np.arange(data.n_rows) >= 0})
    whole = dd.from_pandas(frame, npartitions=1)["keep"].to_dask_array()
    X, y, qid = (da.from_array(values, chunks=(100, *values.shape[1:])) for values in (data.X, labels, data.qid))
    rows = da.from_array(np.arange(data.n_rows), chunks=100)
    kept = (rows < 200) | (rows >= 300)  # the third part is empty, and the sizes are unknown
    where = kept.compute()
    fit = DaskRankSVM(C=C, tol=TOL).fit(X[kept], y[kept], qid=qid[kept])
    check_same(fit, RankSVM(C=C, tol=TOL).fit(data.X[where], labels[where], qid=data.qid[where]))
    assert whole.ndim == 1


@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_sparse_parts(data, parts_of, kind):
    thinned = data.X * (np.random.default_rng(0).random(data.X.shape) < 0.4)
    X = da.from_array(thinned, chunks=(100, -1)).map_blocks(kind, dtype=thinned.dtype)
    _, y, qid = parts_of(data)
    expected = RankSVM(C=C, tol=TOL).fit(sp.csr_array(thinned), data.y, qid=data.qid)
    check_same(DaskRankSVM(C=C, tol=TOL).fit(X, y, qid=qid), expected)


def test_a_dask_dataframe_with_a_column_of_ids(data):
    frame = pd.DataFrame(data.X, columns=[f"x{number}" for number in range(6)]).assign(qid=data.qid, label=data.y)
    parts = dd.from_pandas(frame, npartitions=4)
    features = parts.drop(columns="label")
    fit = DaskRankSVM(C=C, tol=TOL).fit(features, parts["label"])
    expected = RankSVM(C=C, tol=TOL).fit(frame.drop(columns="label"), frame["label"])
    check_same(fit, expected)
    assert (fit.qid_column_, list(fit.feature_names_in_)) == ("qid", list(expected.feature_names_in_))
    scores = fit.predict(features)
    assert isinstance(scores, dd.Series)
    np.testing.assert_allclose(scores.compute(), expected.predict(frame.drop(columns="label")), atol=1e-4)
    named = DaskRankSVM(C=C, tol=TOL).fit(features.rename(columns={"qid": "session"}), parts["label"], qid="session")
    np.testing.assert_array_equal(named.coef_, fit.coef_)
    assert named.qid_column_ == "session"
    with pytest.raises(DataError, match="X has a column 'label', which is named like labels"):
        DaskRankSVM(C=C).fit(parts, parts["label"])
    with pytest.raises(DataError, match="X has a column 'x3', which is also the name of y"):
        DaskRankSVM(C=C).fit(features, parts["x3"])


def test_a_dask_dataframe_of_parquet_files(data, tmp_path):
    frame = pd.DataFrame(data.X, columns=[f"x{number}" for number in range(6)]).assign(qid=data.qid, label=data.y)
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), 9)):
        frame.iloc[rows].to_parquet(tmp_path / f"{number}.parquet")
    parts = dd.read_parquet(tmp_path)  # dask would read the few columns of y in fewer parts
    features = parts.drop(columns="label")
    fit = DaskRankSVM(C=C, tol=TOL).fit(features, parts["label"])
    expected = RankSVM(C=C, tol=TOL).fit(data.X, data.y, qid=data.qid)
    check_same(fit, expected)
    assert float(fit.score(features, parts["label"])) == pytest.approx(expected.score(data.X, data.y, qid=data.qid))
    np.testing.assert_allclose(fit.predict(features).compute(), expected.predict(data.X), atol=1e-4)


@pytest.mark.parametrize("kind", ["txt", "rsd", "parquet", "csv"])
def test_files_that_workers_read(data, tmp_path, kind):
    paths = [str(tmp_path / f"part{number}.{kind}") for number in range(3)]
    for path, rows in zip(paths, np.array_split(np.arange(data.n_rows), 3), strict=True):
        part = data.select(rows)
        if kind == "txt":
            ranksvm.write_letor(path, part.X, part.y, part.qid)
        else:
            {"rsd": part.save, "parquet": part.to_parquet, "csv": part.to_csv}[kind](path)
    fit = DaskRankSVM(C=C, tol=TOL).fit(paths)
    single = data.X.astype(np.float32) if kind == "txt" else data.X
    if kind == "csv":  # the digits of float32 numbers, read as float64
        single = np.concatenate([ranksvm.datasets.read_data(path).X for path in paths])
    check_same(fit, RankSVM(C=C, tol=TOL).fit(single, data.y, qid=data.qid))
    np.testing.assert_allclose(fit.predict(paths).compute(), fit.to_local().predict(single), rtol=1e-6, atol=1e-6)
    addressed = DaskRankSVM(C=C, tol=TOL).fit([f"local://{path}" for path in paths])
    np.testing.assert_array_equal(addressed.coef_, fit.coef_)


def test_arrays_of_this_process(data):
    fit = DaskRankSVM(C=C, tol=TOL).fit(data.X, data.y, qid=data.qid)
    check_same(fit, RankSVM(C=C, tol=TOL).fit(data.X, data.y, qid=data.qid))
    assert isinstance(fit.predict(data.X), np.ndarray)


def test_every_option_of_rank_svm_is_one():
    for local, there in ((RankSVM, DaskRankSVM), (RankSVMCV, DaskRankSVMCV)):
        assert there(**local().get_params()).get_params().items() >= local().get_params().items()
        of_fit = inspect.signature(local.fit).parameters.keys() - inspect.signature(there.fit).parameters.keys()
        assert of_fit <= {"callbacks"}


class Cubed:
    """A loss of the user's own, which travels by value."""

    def value(self, margins):
        return np.maximum(0.0, 1.0 - margins) ** 3

    def derivative(self, margins):
        return -3.0 * np.maximum(0.0, 1.0 - margins) ** 2

    def curvature(self, margins):
        return 6.0 * np.maximum(0.0, 1.0 - margins)


def test_a_loss_of_the_users_own(data, parts_of, monkeypatch):
    monkeypatch.setattr(Cubed, "__module__", "__main__")
    X, y, qid = parts_of(data)
    options = {"C": C, "loss": Cubed(), "tol": TOL}
    check_same(DaskRankSVM(**options).fit(X, y, qid=qid), RankSVM(**options).fit(data.X, data.y, qid=data.qid))


# -- the dual, which needs the rows in one process ---------------------------------------------------------------------


def test_the_dual_is_that_of_the_gathered_rows(data, parts_of, caplog):
    """In the order of the user's rows, whatever the parts: dual variables are those of the same pairs."""
    mixed = data.select(np.random.default_rng(0).permutation(data.n_rows))
    weight = np.random.default_rng(1).uniform(0.5, 2.0, mixed.n_rows)
    X, y, qid = parts_of(mixed)
    options = {"C": C, "tol": 1e-6, "solver": "dual", "pair_weighting": "label_gap"}
    expected = RankSVM(**options).fit(mixed.X, mixed.y, qid=mixed.qid, sample_weight=weight)
    with caplog.at_level("INFO", logger="ranksvm.dask"):
        fit = DaskRankSVM(**options).fit(X, y, qid=qid, sample_weight=weight, eval_set=(X, y), eval_qid=qid)
    assert "600 rows (" in caplog.text
    np.testing.assert_array_equal(fit.coef_, expected.coef_)
    np.testing.assert_array_equal(fit.to_local().pair_alpha_, expected.pair_alpha_)
    assert (fit.solver_, fit.n_rounds_) == ("dual", 0)
    assert fit.evals_result_["valid_0"]["ndcg@10"][0] == pytest.approx(
        expected.score(mixed.X, mixed.y, qid=mixed.qid), rel=1e-12
    )
    pairs = np.array([[0, 1], [2, 3], [4, 1]])
    fit = DaskRankSVM(C=C, tol=1e-6, solver="dual").fit(X, pairs=pairs, pair_weight=[1.0, 2.0, 3.0])
    expected = RankSVM(C=C, tol=1e-6, solver="dual").fit(mixed.X, pairs=pairs, pair_weight=[1.0, 2.0, 3.0])
    np.testing.assert_array_equal(fit.coef_, expected.coef_)


def test_the_dual_in_a_search(data, parts_of):
    frame = pd.DataFrame(data.X, columns=list("abcdef")).assign(qid=data.qid)
    parts, labels = dd.from_pandas(frame, npartitions=3), dd.from_pandas(pd.Series(data.y), npartitions=3)
    options = {"Cs": [1e-3, 1e-1], "solver": "dual", "monotone": {"c": 1}, "cv": 2}
    pairs = np.array([[0, 1], [2, 3], [40, 41]])
    for sets in ({}, {"eval_set": [(parts, labels), (parts, pairs)]}):
        fit = DaskRankSVMCV(**options).fit(parts, labels, **sets)
        local = {"eval_set": [(frame, data.y), (frame, pairs)]} if sets else {}
        expected = RankSVMCV(**options).fit(frame, data.y, **local)
        np.testing.assert_array_equal(fit.coef_, expected.coef_)
        np.testing.assert_array_equal(fit.scores_, expected.scores_)
        assert fit.evals_result_ == expected.evals_result_
    assert (fit.qid_column_, list(fit.feature_names_in_)) == ("qid", list("abcdef"))


def test_what_the_dual_refuses(data, parts_of, tmp_path):
    X, y, qid = parts_of(data)
    with pytest.raises(OptionError, match=r"solver='dual' needs all 600 rows in this process: .*memory_limit='10KB'"):
        DaskRankSVM(solver="dual", memory_limit="10KB").fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="checkpoint= keeps the weights between rounds, and solver='dual' has none"):
        DaskRankSVM(solver="dual", checkpoint=tmp_path / "fit.npz").fit(X, y, qid=qid)


def test_bits_depend_on_the_parts_alone(data, parts_of):
    X, y, qid = parts_of(data)
    fits = [DaskRankSVM(C=C, n_partitions=3).fit(X, y, qid=qid) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].coef_, fits[1].coef_)
    assert fits[0].history_ == fits[1].history_


# -- what comes out ----------------------------------------------------------------------------------------------------


def test_the_local_model_is_an_ordinary_one(data, parts_of, tmp_path):
    X, y, qid = parts_of(data)
    fit = DaskRankSVM(C=C).fit(X, y, qid=qid)
    local = fit.to_local()
    assert type(local) is RankSVM
    assert (local.duality_gap_, local.objective_) == (fit.duality_gap_, fit.objective_)
    np.testing.assert_array_equal(fit.predict(X).compute(), local.predict(data.X))
    assert float(fit.score(X, y, qid=qid)) == pytest.approx(local.score(data.X, data.y, qid=data.qid), rel=1e-12)
    fit.save(tmp_path / "model.rsvm")
    np.testing.assert_array_equal(ranksvm.load(tmp_path / "model.rsvm").coef_, local.coef_)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(fit)).coef_, local.coef_)
    assert clone(fit).get_params() == fit.get_params()


def test_the_tasks_of_a_score_grow_with_the_parts(data, parts_of):
    local = RankSVM(C=C).fit(data.X, data.y, qid=data.qid)
    fit = DaskRankSVM(C=C, n_partitions=2).fit(data.X, data.y, qid=data.qid)
    expected, n_tasks = local.score(data.X, data.y, qid=data.qid), []
    for chunk in (12, 6):
        X, y, qid = parts_of(data, chunk)
        score = fit.score(X, y, qid=qid)
        n_tasks.append(len(score.__dask_graph__()))
        assert float(score) == pytest.approx(expected, rel=1e-12)
    assert n_tasks[1] < 2.1 * n_tasks[0]


def test_evaluation_sets(data, parts_of):
    X, y, qid = parts_of(data)
    shuffled = data.select(np.random.default_rng(2).permutation(data.n_rows))
    metrics = {"eval_metric": ["ndcg", "map"], "eval_at": [3, 10], "eval_names": ["same", "mixed"]}
    sets = [(X, y), parts_of(shuffled)[:2]]
    fit = DaskRankSVM(C=C).fit(X, y, qid=qid, eval_set=sets, eval_qid=[qid, parts_of(shuffled)[2]], **metrics)
    there = [(data.X, data.y), (shuffled.X, shuffled.y)]
    local = RankSVM(C=C).fit(data.X, data.y, qid=data.qid, eval_set=there, eval_qid=[data.qid, shuffled.qid], **metrics)
    assert fit.evals_result_.keys() == local.evals_result_.keys()
    for name, found in fit.evals_result_.items():
        for metric, values in found.items():
            assert values == pytest.approx(local.evals_result_[name][metric], rel=1e-12)


def test_warm_start_and_checkpoint(data, parts_of, tmp_path):
    X, y, qid = parts_of(data)
    cold = DaskRankSVM(C=C, tol=1e-6).fit(X, y, qid=qid)
    warm = clone(cold).set_params(warm_start=True)
    vars(warm).update(coef_=cold.coef_)
    assert warm.fit(X, y, qid=qid).n_iter_ == 0
    path = tmp_path / "fit.npz"
    for loss in ("squared_hinge", "hinge"):
        first = DaskRankSVM(C=C, loss=loss, checkpoint=path).fit(X, y, qid=qid)
        again = DaskRankSVM(C=C, loss=loss, checkpoint=path).fit(X, y, qid=qid)
        assert again.converged_
        assert again.n_iter_ <= 1 < first.n_iter_
        path.unlink()
    first.fit(X[:, :5], y, qid=qid)
    with pytest.raises(DataError, match="has 5 weights, but X has 6"):
        DaskRankSVM(checkpoint=path).fit(X, y, qid=qid)


# -- mistakes ----------------------------------------------------------------------------------------------------------


def test_errors_name_the_part_and_the_row(data, parts_of):
    X, y, qid = parts_of(data)

    def with_value(values, row, value, chunk=100, dtype=None):
        changed = np.array(values, dtype=dtype)
        changed[row] = value
        return da.from_array(changed, chunks=(chunk, *changed.shape[1:]))

    fit = DaskRankSVM().fit
    with pytest.raises(DataError, match=r"part 2: .*NaN at X\[17, 3\] "):
        fit(with_value(data.X, (217, 3), np.nan), y, qid=qid)
    with pytest.raises(DataError, match=r"part 3: 'many' in row 5, column 2, is not a number"):
        fit(with_value(data.X, (305, 2), "many", dtype=object), y, qid=qid)
    with pytest.raises(DataError, match=r"part 1: y .*row 50\b"):
        fit(X, with_value(data.y, 150, np.nan, dtype=float), qid=qid)
    with pytest.raises(DataError, match=r"part 0: qid is NaN in row 7\b"):
        fit(X, y, qid=with_value(data.qid, 7, np.nan, dtype=float))
    with pytest.raises(DataError, match=r"part 4: sample_weight is -1.0 in row 1\b"):
        fit(X, y, qid=qid, sample_weight=with_value(np.ones(data.n_rows), 401, -1.0))
    with pytest.raises(DataError, match=r"part 0: propensity is 2.0 in row 1\b"):
        fit(X, y, qid=qid, propensity=with_value(np.ones(data.n_rows), 1, 2.0))


def test_a_missing_column_names_the_part(data):
    frame = pd.DataFrame(data.X, columns=list("abcdef")).assign(qid=data.qid)
    thirds = [frame[:200], frame[200:400].drop(columns="d"), frame[400:]]
    labels = dd.from_pandas(pd.Series(data.y), npartitions=3)
    for verified in (False, True):  # by Dask, which then says so itself
        parts = [dask.delayed(third) for third in thirds]
        damaged = dd.from_delayed(parts, meta=frame[:0], verify_meta=verified)
        with pytest.raises(DataError, match=r"part 1(?s:.*)\bd\b"):
            DaskRankSVM().fit(damaged, labels)


def test_mistakes_in_the_arguments(data, parts_of, tmp_path):
    X, y, qid = parts_of(data)
    fit = DaskRankSVM().fit
    with pytest.raises(DataError, match="qid is missing"):
        fit(X, y)
    with pytest.raises(DataError, match="y is missing"):
        fit(X, qid=qid)
    with pytest.raises(DataError, match="X has 600 rows, but y has 590"):
        fit(X, y[:590], qid=qid)
    with pytest.raises(DataError, match="X has 600 rows, but query_weight has 60"):
        fit(X, y, qid=qid, query_weight=np.ones(60))
    with pytest.raises(DataError, match="query_weight is no dask collection"):
        fit(X[X[:, 0] < 9], y, qid=qid, query_weight=np.ones(60))
    with pytest.raises(DataError, match="X has 6 parts, but y has 2"):
        fit(X[X[:, 0] < 9], y[:200], qid=qid)
    with pytest.raises(DataError, match=r"part 0 \(.*absent.txt\): .*no such file"):
        fit([str(tmp_path / "absent.txt")])
    with pytest.raises(NoComparablePairsError):
        fit(X, da.zeros_like(y), qid=qid)
    with pytest.raises(DataError, match="y='bm25' names a column, but X is not a dask DataFrame"):
        fit(X, "bm25", qid=qid)
    frame = dd.from_dask_array(X, columns=["bm25", *"abcde"])
    with pytest.raises(DataError, match=r"sample_weight='bm25': only qid may name(?s:.*)sample_weight=X\['bm25'\]"):
        fit(frame, y, qid=qid, sample_weight="bm25")
    with pytest.raises(OptionError, match="memory_limit='1GB' is for rows of one process"):
        DaskRankSVM(memory_limit="1GB").fit(X, y, qid=qid)
    with pytest.raises(OptionError, match="'per_query' needs queries"):
        DaskRankSVM(pair_weighting="per_query").fit(X, pairs=[[0, 1]])
    with pytest.raises(OptionError, match="timeout"):
        DaskRankSVM(timeout=0).fit(X, y, qid=qid)


def test_files_of_other_columns(data, tmp_path):
    frame = data.to_frame(library="pandas")
    paths = [str(tmp_path / name) for name in ("a.parquet", "b.parquet")]
    frame.to_parquet(paths[0])
    frame.drop(columns="f2").to_parquet(paths[1])
    with pytest.raises(DataError, match=r"part 1 \(.*b.parquet\): it lacks the column 'f2'"):
        DaskRankSVM().fit(paths)


def test_features_of_files_are_matched_by_name(data, tmp_path):
    names = [f"x{column}" for column in range(data.n_features)]
    frame = pd.DataFrame(data.X, columns=names).assign(score=1.0, label=data.y, qid=data.qid)
    paths = [str(tmp_path / name) for name in ("a.parquet", "b.parquet", "c.parquet", "d.parquet")]
    frame.drop(columns="score").to_parquet(paths[0])
    frame[["score", *reversed(names), "label", "qid"]].to_parquet(paths[1])
    frame.drop(columns="x2").to_parquet(paths[2])
    frame[names].to_parquet(paths[3])
    fit = DaskRankSVM(C=C).fit(paths[:1], eval_set=[(paths[1:2], "label")])
    expected = fit.to_local().predict(frame[names])
    for path in (paths[1], paths[3]):  # predict needs neither labels nor query ids
        np.testing.assert_array_equal(fit.predict(path).compute(), expected)
    assert float(fit.score(paths[1])) == pytest.approx(float(fit.score(paths[0])))
    assert fit.evals_result_["valid_0"]["ndcg@10"][-1] == pytest.approx(float(fit.score(paths[0])))
    for fails in (lambda: fit.predict(paths[2]).compute(), lambda: float(fit.score(paths[2]))):
        with pytest.raises(DataError, match=r"part 0 \(.*c.parquet\): it lacks the feature 'x2' of the model"):
            fails()
    ranksvm.RankingData(np.ones((4, 20)), np.arange(4.0), np.zeros(4)).save(tmp_path / "wide.rsd")
    with pytest.raises(DataError, match=r"wide.rsd\): it has 20 features, but the model has"):
        fit.predict(tmp_path / "wide.rsd").compute()


def test_the_column_of_ids_of_files_is_known_to_evaluation_sets(data, tmp_path):
    path = str(tmp_path / "a.parquet")
    data.to_frame(library="pandas").rename(columns={"qid": "session", "label": "grade"}).to_parquet(path)
    fit = DaskRankSVM(C=C).fit(path, "grade", qid="session", eval_set=[(path, "grade")])
    assert fit.qid_column_ == "session"
    assert fit.evals_result_["valid_0"]["ndcg@10"][-1] == pytest.approx(float(fit.score(path, "grade")))


@pytest.mark.parametrize("solver", ["newton", "dual"])
@pytest.mark.parametrize("kind", ["txt", "csv"])
def test_ids_that_are_numbers_in_one_file_and_text_in_another(data, tmp_path, solver, kind):
    ids = data.qid.astype(str)
    ids[ids == ids[-1]] = "last"
    paths = [str(tmp_path / f"{number}.{kind}") for number in range(2)]
    for path, own in zip(paths, (np.arange(320), np.arange(320, data.n_rows)), strict=True):
        ranksvm.datasets.write_data(ranksvm.RankingData(data.X[own], data.y[own], ids[own]), path)
    assert ids[319] == ids[320]
    X = np.concatenate([ranksvm.datasets.read_data(path).X for path in paths])
    fit, expected = (each(C=C, tol=TOL, solver=solver) for each in (DaskRankSVM, RankSVM))
    fit, expected = fit.fit(paths), expected.fit(X, data.y, qid=ids)
    check_same(fit, expected)
    assert float(fit.score(paths)) == pytest.approx(expected.score(X, data.y, qid=ids))


@pytest.mark.parametrize("other", [int, str])
def test_ids_that_are_floats_in_one_file(data, tmp_path, other):
    """pandas makes integers floats if a value of the column was missing."""
    paths = [str(tmp_path / f"{number}.parquet") for number in range(2)]
    frame = data.to_frame(library="pandas").assign(qid=np.unique(data.qid, return_inverse=True)[1])
    for number, (path, kind) in enumerate(zip(paths, (float, other), strict=True)):
        frame[number::2].astype({"qid": kind}).to_parquet(path)
    fit, expected = DaskRankSVM(C=C, tol=TOL).fit(paths), RankSVM(C=C, tol=TOL).fit(data.X, data.y, qid=data.qid)
    check_same(fit, expected)
    assert float(fit.score(paths)) == pytest.approx(expected.score(data.X, data.y, qid=data.qid))


def test_text_files_whose_feature_ids_seem_to_start_at_different_numbers(data, tmp_path):
    paths = [str(tmp_path / f"{number}.txt") for number in range(2)]
    first, second = np.array_split(np.arange(data.n_rows), 2)
    ranksvm.write_letor(paths[0], data.X[first], data.y[first], data.qid[first], zero_based=True)
    ranksvm.write_letor(paths[1], data.X[second, 1:], data.y[second], data.qid[second])  # ids 1, 2, ...
    with pytest.raises(DataError, match=r"part 1 \(.*1.txt\): it has no feature id 0.*those of part 0 \(.*start at 0"):
        DaskRankSVM(C=C).fit(paths)


def test_text_files_may_lack_the_last_features(data, tmp_path):
    """Lines of text omit features that are 0; the rows of queries that are in several files move between parts."""
    X = data.X.astype(np.float32)
    rows = np.array_split(np.arange(data.n_rows), 5)
    X[np.concatenate(rows[1::2]), -1] = 0.0
    paths = [str(tmp_path / f"{number}.txt") for number in range(5)]
    for path, own in zip(paths, rows, strict=True):
        path_X = X[own, :-1] if not X[own, -1].any() else X[own]
        ranksvm.write_letor(path, path_X, data.y[own], data.qid[own])
    check_same(DaskRankSVM(C=C, tol=TOL).fit(paths), RankSVM(C=C, tol=TOL).fit(X, data.y, qid=data.qid))


def test_a_query_larger_than_a_worker(data, parts_of, monkeypatch):
    from ranksvm.dask.cluster import Cluster

    monkeypatch.setattr(Cluster, "memory", lambda self: 1000)
    X, y, qid = parts_of(data)
    with pytest.raises(DataError, match=r"query \d+ has \d+ rows .* too many for one worker"):
        DaskRankSVM().fit(X, y, qid=qid)


def test_scattered_data_are_said_to_be(client, data):
    blocks = client.scatter([data.X[:300], data.X[300:]])
    X = da.concatenate([da.from_delayed(block, (300, 6), data.X.dtype) for block in blocks])
    y, qid = (da.from_array(values, chunks=300) for values in (data.y, data.qid))
    with pytest.warns(UserWarning, match=r"2 of 2 parts \(part 0, part 1\) were scattered"):
        DaskRankSVM(C=C).fit(X, y, qid=qid)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        DaskRankSVM(C=C).fit(data.X, data.y, qid=data.qid)


def test_a_closed_client(client, data, parts_of):
    X, y, qid = parts_of(data)
    ranker = DaskRankSVM()
    with Client(client.scheduler.address, set_as_default=False) as closed:
        ranker.client = closed
    with pytest.raises(ClusterError, match=r"is closed: set ranker\.client"):
        ranker.fit(X, y, qid=qid)


def test_no_client(data, monkeypatch):
    def none():
        raise ValueError("no clients found")

    monkeypatch.setattr("ranksvm.dask.base.default_client", none)
    with pytest.raises(ClusterError, match="there is no Dask client"):
        DaskRankSVM().fit(data.X, data.y, qid=data.qid)


def test_workers_without_this_version(data, monkeypatch):
    monkeypatch.setattr("ranksvm.dask.cluster.__version__", "99.0")
    with pytest.raises(ClusterError, match=r"the worker tcp://.* has ranksvm .*, and this process has ranksvm 99.0"):
        DaskRankSVM().fit(data.X, data.y, qid=data.qid)
