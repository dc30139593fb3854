"""Large-margin learning to rank: the public API, loaded on first use."""

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

# Public name -> module that defines it. Type checkers and editors read the imports below instead; a test compares both.
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
    "save": "ranksvm.persistence",
    "RankingData": "ranksvm.data",
    "Preferences": "ranksvm.data",
    "read_letor": "ranksvm.data",
    "write_letor": "ranksvm.data",
    "read_qrels": "ranksvm.data",
    "read_run": "ranksvm.data",
    "write_qrels": "ranksvm.data",
    "write_run": "ranksvm.data",
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


if TYPE_CHECKING:
    from ranksvm import (
        analysis as analysis,
    )
    from ranksvm import (
        data as data,
    )
    from ranksvm import (
        exceptions as exceptions,
    )
    from ranksvm import (
        metrics as metrics,
    )
    from ranksvm import (
        model_selection as model_selection,
    )
    from ranksvm import (
        plotting as plotting,
    )
    from ranksvm._environment import environment as environment
    from ranksvm.data import (
        Queries as Queries,
    )
    from ranksvm.data import (
        QueryMinMaxScaler as QueryMinMaxScaler,
    )
    from ranksvm.data import (
        QueryStandardScaler as QueryStandardScaler,
    )
    from ranksvm.data import (
        RankingData as RankingData,
    )
    from ranksvm.data import (
        make_ranking as make_ranking,
    )
    from ranksvm.data import (
        make_ranking_stream as make_ranking_stream,
    )
    from ranksvm.data import (
        pairs_from_clicks as pairs_from_clicks,
    )
    from ranksvm.data import (
        read_letor as read_letor,
    )
    from ranksvm.data import read_qrels as read_qrels
    from ranksvm.data import read_run as read_run
    from ranksvm.data import (
        write_letor as write_letor,
    )
    from ranksvm.data import write_qrels as write_qrels
    from ranksvm.data import write_run as write_run
    from ranksvm.estimators import (
        CommitteePerceptronRanker as CommitteePerceptronRanker,
    )
    from ranksvm.estimators import (
        FactorizedRankSVM as FactorizedRankSVM,
    )
    from ranksvm.estimators import (
        KernelRankSVM as KernelRankSVM,
    )
    from ranksvm.estimators import (
        KernelRankSVMCV as KernelRankSVMCV,
    )
    from ranksvm.estimators import (
        PairwisePerceptronRanker as PairwisePerceptronRanker,
    )
    from ranksvm.estimators import (
        PRanker as PRanker,
    )
    from ranksvm.estimators import (
        RankSVM as RankSVM,
    )
    from ranksvm.estimators import (
        RankSVMCV as RankSVMCV,
    )
    from ranksvm.estimators import (
        RegularizedRankSVM as RegularizedRankSVM,
    )
    from ranksvm.estimators import (
        SOLARRanker as SOLARRanker,
    )
    from ranksvm.estimators import (
        regularization_path as regularization_path,
    )
    from ranksvm.model_selection import (
        QueryKFold as QueryKFold,
    )
    from ranksvm.model_selection import (
        QueryShuffleSplit as QueryShuffleSplit,
    )
    from ranksvm.model_selection import (
        Refit as Refit,
    )
    from ranksvm.model_selection import (
        cross_validate as cross_validate,
    )
    from ranksvm.model_selection import (
        progressive_validation as progressive_validation,
    )
    from ranksvm.persistence import load as load
    from ranksvm.persistence import save as save
    from ranksvm.plotting import GridDisplay as GridDisplay
    from ranksvm.plotting import PathDisplay as PathDisplay
    from ranksvm.plotting import ProgressiveDisplay as ProgressiveDisplay
else:

    def __getattr__(name: str) -> Any:
        if name in _API:
            return getattr(importlib.import_module(_API[name]), name)
        if name in _MODULES:
            return importlib.import_module(f"ranksvm.{name}")
        raise AttributeError(f"module 'ranksvm' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES])
