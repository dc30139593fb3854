"""A label that is missing is refused wherever labels are taken, before anything is compared or sorted."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import ranksvm._compiled.online as online
import ranksvm._compiled.sweep as sweep

import ranksvm
from ranksvm import metrics
from ranksvm.exceptions import DataError

X = np.random.default_rng(0).normal(size=(24, 3))
Y = np.arange(24) % 3
QID = np.repeat([0, 1, 2, 3], 6)
HOLES = (5, 17)


def holed(value):
    y = Y.astype(object)
    y[list(HOLES)] = value
    return y


LABELS = {
    "None": holed(None),
    "NaN": holed(np.nan),
    "list": holed(None).tolist(),
    "float": holed(np.nan).astype(float),
    "NA": pd.Series(holed(pd.NA), dtype="Int64"),
    "NaT": pd.Series(holed(pd.NaT)),
    "polars": pl.Series(holed(None).tolist()),
    "arrow": pa.array(holed(None).tolist()),
}
FITS = {
    "RankSVM": ranksvm.RankSVM(),
    "RankSVM hinge": ranksvm.RankSVM(loss="hinge"),
    "RankSVMCV": ranksvm.RankSVMCV(),
    "KernelRankSVM": ranksvm.KernelRankSVM(),
    "KernelRankSVMCV": ranksvm.KernelRankSVMCV(),
    "FactorizedRankSVM": ranksvm.FactorizedRankSVM(),
    "RegularizedRankSVM": ranksvm.RegularizedRankSVM(),
    "SOLARRanker": ranksvm.SOLARRanker(),
    "PRanker": ranksvm.PRanker(),
    "PairwisePerceptronRanker": ranksvm.PairwisePerceptronRanker(),
    "PerceptronCommitteeRanker": ranksvm.PerceptronCommitteeRanker(),
}
ENTRIES = {
    **{name: lambda y, model=model: model.fit(X, y, qid=QID) for name, model in FITS.items()},
    "regularization_path": lambda y: ranksvm.regularization_path(X, y, qid=QID),
    "score": lambda y: ranksvm.RankSVM().fit(X, Y, qid=QID).score(X, y, qid=QID),
    "eval_set": lambda y: ranksvm.RankSVM().fit(X, Y, qid=QID, eval_set=[(X, y)], eval_qid=[QID]),
    "partial_fit": lambda y: ranksvm.SOLARRanker().partial_fit(X, y, qid=QID),
    "predict_then_learn": lambda y: ranksvm.SOLARRanker().predict_then_learn(X, y, qid=QID),
    "learn_one_query": lambda y: ranksvm.SOLARRanker().learn_one_query(X, y),
    "dual_coef": lambda y: ranksvm.RankSVM().fit(X, Y, qid=QID).dual_coef(X, y, qid=QID),
    "evaluate": lambda y: metrics.evaluate(y, X[:, 0], QID),
    "cumulative": lambda y: metrics.CumulativeMetrics().add(y, X[:, 0]),
    "scorer": lambda y: metrics.scorer("map")(ranksvm.RankSVM().fit(X, Y, qid=QID), X, y, qid=QID),
    "cross_validate": lambda y: ranksvm.cross_validate(ranksvm.RankSVM(), X, y, qid=QID, cv=2),
    "progressive_validation": lambda y: ranksvm.progressive_validation(ranksvm.SOLARRanker(), X, y, qid=QID),
    "Refit": lambda y: ranksvm.Refit(ranksvm.RankSVM(), every=1).partial_fit(X, y, qid=QID),
    "write_letor": lambda y: ranksvm.write_letor("not-written.txt", X, y, QID),
}


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS)
@pytest.mark.parametrize("entry", ENTRIES.values(), ids=ENTRIES)
def test_every_entry_refuses_missing_labels(entry, y):
    with pytest.raises(DataError, match=r"y is \S+ in row 5 \(from 0\), 2 of 24 rows have no value: give every row"):
        entry(y)


@pytest.mark.parametrize("entry", ["RankSVM", "evaluate", "SOLARRanker", "cross_validate"])
def test_infinite_and_enormous_labels(entry):
    with pytest.raises(DataError, match=r"y is inf in row 5 \(from 0\), and 2 of 24 rows are infinite"):
        ENTRIES[entry](holed(np.inf))
    with pytest.raises(DataError, match=r"row 5 \(from 0\) has an integer that is too large"):
        ENTRIES[entry](holed(10**400).tolist())


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_parquet_with_missing_labels(tmp_path, value):
    path = tmp_path / "data.parquet"
    labels = [value if row in HOLES else float(label) for row, label in enumerate(Y)]
    pq.write_table(pa.table({"label": labels, "qid": QID, "f1": X[:, 0]}), path)
    for read in (
        ranksvm.RankingData.from_parquet,
        lambda path: list(ranksvm.datasets.iter_data(path, batch_queries=2)),
    ):
        with pytest.raises(DataError, match=r"column .label. of .*data\.parquet has .* in 2 of .* the first is row 5"):
            read(path)


def test_the_compiled_layer_refuses_nan():
    y, pointers = np.array([1.0, np.nan, 0.0]), np.array([0, 3], dtype=np.int64)
    with pytest.raises(ValueError, match="y has NaN"):
        sweep.compress_levels(pointers, 0, 1, y, np.empty(3, dtype=np.int32), np.empty(1, dtype=np.int32))
    with pytest.raises(ValueError, match="y has NaN"):
        online.count_pairs(y)
