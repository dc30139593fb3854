"""Fuzz fits and metrics with labels, query ids, weights and features of any type and value."""

import contextlib
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import scipy.sparse as sp

import ranksvm
from fuzz.mutations import FLOATS, NUMBERS, pick
from ranksvm import metrics
from ranksvm.exceptions import RankSVMError

N = 12
WILD = [
    *NUMBERS,
    *FLOATS,
    None,
    pd.NA,
    pd.NaT,
    "",
    "x",
    "1",
    b"1",
    True,
    10**400,
    1j,
    [],
    (),
    {},
    np.float32(1),
    object,
]
KINDS = [
    list,
    lambda v: np.array(v, dtype=object),
    np.array,
    pd.Series,
    pl.Series,
    pa.array,
    lambda v: np.ma.array(np.arange(N), mask=[True] + [False] * (N - 1)),
    lambda v: np.array(v, dtype=object)[:, np.newaxis],
    lambda v: v[:-1],
    lambda v: tuple(v),
    lambda v: np.array(v[0]),
]


class Target:
    """Call fits and metrics with odd arguments."""

    def __init__(self, folder):
        warnings.simplefilter("ignore")

    def run(self, random):
        """One call."""
        X = random.normal(size=(N, 3))
        X = [X, sp.csr_matrix(np.where(X > 0, X, 0)), pd.DataFrame(X), pl.DataFrame(X)][int(random.integers(4))]
        if isinstance(X, np.ndarray) and random.random() < 0.3:
            X = X.copy()
            X[int(random.integers(N)), 1] = pick(random, FLOATS)
        y = self._column(random, np.arange(N) % 3)
        given = {"qid": self._column(random, np.repeat([0, 1, 2], 4)) if random.random() < 0.8 else None}
        for name in ("sample_weight", "query_weight", "propensity", "group"):
            if random.random() < 0.15:
                given[name] = self._column(random, np.repeat([4, 4, 4], 4) if name == "group" else np.ones(N))
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            with contextlib.suppress(RankSVMError):
                self._call(random, X, y, given)

    def _column(self, random, usual):
        values = usual.tolist()
        for _ in range(int(random.integers(0, 3))):
            values[int(random.integers(len(values)))] = pick(random, WILD)
        try:
            return pick(random, KINDS)(values)
        except Exception:  # the library cannot store such values
            return values

    def _call(self, random, X, y, given):
        weights = {name: given.pop(name) for name in ("sample_weight", "propensity", "query_weight") if name in given}
        kind = int(random.integers(7))
        if kind == 0:
            model = ranksvm.RankSVM(max_iter=20).fit(X, y, **given, **weights)
            assert np.isfinite(model.coef_).all()
        elif kind == 1:
            weights.pop("sample_weight", None)
            model = ranksvm.SOLARRanker(int(random.integers(1, 3)), average=bool(random.integers(2)))
            self._learn(model, X, y, given, weights)
        elif kind == 2:
            weights.pop("sample_weight", None)
            self._learn(ranksvm.PerceptronCommitteeRanker(3), X, y, given, weights)
        elif kind == 3:
            scores = self._column(random, np.arange(N))
            metrics.evaluate(y, scores, given["qid"], sample_weight=weights.get("sample_weight"))
        elif kind == 4:
            ranksvm.Queries.from_group(self._column(random, np.array([4, 4, 4])), N)
        elif kind == 5:
            ranksvm.RankSVM().fit(np.eye(N), np.arange(N) % 3, qid=np.repeat([0, 1], 6)).score(
                np.eye(N), y, qid=given["qid"]
            )
        else:
            ranksvm.KernelRankSVM(max_iter=5).fit(X, y, **given, **weights)

    def _learn(self, model, X, y, given, weights):
        model.partial_fit(np.eye(N, 3), np.arange(N) % 3)
        before = model.coef_.copy()
        try:
            model.partial_fit(X, y, **given, **weights)
        except RankSVMError:
            np.testing.assert_array_equal(model.coef_, before)
            raise
        assert np.isfinite(model.coef_).all()
