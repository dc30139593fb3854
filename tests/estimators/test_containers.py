"""What holds features but is no array of them, as X of every estimator: one error that says what to pass instead."""

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from ranksvm import (
    FactorizedRankSVM,
    KernelRankSVM,
    QueryMinMaxScaler,
    RankSVM,
    RankSVMCV,
    SOLARRanker,
    cross_validate,
    make_ranking,
)
from ranksvm.exceptions import DataError

DATA = make_ranking(n_queries=5, n_docs=6, n_features=3, random_state=0)


def of_package(package, name):
    """An object of a class of that name, as of a package that need not be installed."""
    return type(name, (), {"__module__": f"{package}.core"})()


CONTAINERS = {
    "xgboost": (of_package("xgboost", "DMatrix"), "of type xgboost.DMatrix: pass the features"),
    "lightgbm": (of_package("lightgbm", "Dataset"), "of type lightgbm.Dataset: pass the features"),
    "catboost": (of_package("catboost", "Pool"), "of type catboost.Pool: pass the features"),
    "name of a file": ("train.txt", r"'train.txt': read the file first, data = ranksvm.datasets.read_data\(path\)"),
    "path": (Path("train.txt"), "read the file first"),
    "dict": ({"a": [1.0, 2.0]}, "pass a DataFrame"),
    "list of dicts": ([{"a": 1.0}, {"a": 2.0}], "pass a DataFrame"),
    "masked": (np.ma.masked_greater(DATA.X, 1.0), r"X is an array with masked values: pass X.filled\(numpy.nan\)"),
    "RankingData": (DATA, "give X=data.X, y=data.y, qid=data.qid"),
}
MODELS = [RankSVM(), RankSVMCV(), KernelRankSVM(), FactorizedRankSVM(), SOLARRanker()]


@pytest.mark.parametrize("kind", CONTAINERS)
def test_containers_are_refused_everywhere(kind):
    X, message = CONTAINERS[kind]
    for model in MODELS:
        if kind in ("RankingData", "name of a file", "path") and isinstance(model, RankSVM | RankSVMCV):
            continue  # which take them
        with pytest.raises(DataError, match=message):
            model.fit(X)
        with pytest.raises(DataError, match=message):
            model.fit(X, DATA.y, qid=DATA.qid)
    model = RankSVM().fit(DATA.X, DATA.y, qid=DATA.qid)
    for method in (model.predict, model.rank, model.explain, model.score):
        with pytest.raises(DataError, match=message):
            method(X)
    with pytest.raises(DataError, match=message):
        model.score(X, DATA.y, qid=DATA.qid)
    with pytest.raises(DataError, match=message):
        model.fit(DATA.X, DATA.y, qid=DATA.qid, eval_set=[(X, DATA.y)], eval_qid=[DATA.qid])
    with pytest.raises(DataError, match=message):
        cross_validate(RankSVM(), X, DATA.y, qid=DATA.qid)
    with pytest.raises(DataError, match=message):
        QueryMinMaxScaler().fit(X, qid=DATA.qid)


def test_the_real_ones():
    xgboost, lightgbm = pytest.importorskip("xgboost"), pytest.importorskip("lightgbm")
    for X in (xgboost.DMatrix(DATA.X), lightgbm.Dataset(DATA.X)):
        with pytest.raises(DataError, match="pass the features that it was made of"):
            RankSVM().fit(X, DATA.y, qid=DATA.qid)


def test_packages_are_not_imported_to_know_them(monkeypatch):
    for package in ("xgboost", "lightgbm", "catboost"):
        monkeypatch.setitem(sys.modules, package, ModuleType(package))
    model = RankSVM().fit(DATA.X, DATA.y, qid=DATA.qid)
    assert np.isfinite(model.predict(DATA.X)).all()
