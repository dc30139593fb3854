"""Large-margin learning to rank: the public API, loaded on first use."""

import importlib
from typing import Any

__version__ = "0.1.0"

# public name -> module that defines it
_API = {
    "RankSVM": "ranksvm.estimators",
    "RankSVMCV": "ranksvm.estimators",
    "KernelRankSVM": "ranksvm.estimators",
    "KernelRankSVMCV": "ranksvm.estimators",
    "FactorizedRankSVM": "ranksvm.estimators",
    "RegularizedRankSVM": "ranksvm.estimators",
    "SOLARRanker": "ranksvm.estimators",
    "PRanker": "ranksvm.estimators",
    "PairwisePerceptronRanker": "ranksvm.estimators",
    "CommitteePerceptronRanker": "ranksvm.estimators",
    "regularization_path": "ranksvm.estimators",
    "PathDisplay": "ranksvm.plotting",
    "GridDisplay": "ranksvm.plotting",
    "ProgressiveDisplay": "ranksvm.plotting",
    "Queries": "ranksvm.data",
    "load": "ranksvm.persistence",
    "RankingData": "ranksvm.data",
    "Preferences": "ranksvm.data",
    "read_letor": "ranksvm.data",
    "write_letor": "ranksvm.data",
    "make_ranking": "ranksvm.data",
    "make_ranking_stream": "ranksvm.data",
    "pairs_from_clicks": "ranksvm.data",
    "QueryMinMaxScaler": "ranksvm.data",
    "QueryStandardScaler": "ranksvm.data",
    "QueryKFold": "ranksvm.model_selection",
    "QueryShuffleSplit": "ranksvm.model_selection",
    "cross_validate": "ranksvm.model_selection",
    "progressive_validation": "ranksvm.model_selection",
    "Refit": "ranksvm.model_selection",
    "environment": "ranksvm._environment",
}

_MODULES = ("analysis", "data", "exceptions", "metrics", "model_selection", "plotting")

__all__ = ["__version__", *_API]


def __getattr__(name: str) -> Any:
    if name in _API:
        return getattr(importlib.import_module(_API[name]), name)
    if name in _MODULES:
        return importlib.import_module(f"ranksvm.{name}")
    raise AttributeError(f"module 'ranksvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
