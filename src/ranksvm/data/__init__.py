"""Ranking data in memory: queries, pairs, weights, design matrices and scalers, and validation of user input."""

import importlib
import warnings
from typing import TYPE_CHECKING, Any

from ranksvm.data.clicks import pairs_from_clicks
from ranksvm.data.design_matrix import (
    DenseDesign,
    DesignMatrix,
    SparseDesign,
    TwoBlockDesign,
    TwoBlocks,
    as_design_matrix,
)
from ranksvm.data.pair_blocks import PairBlocks
from ranksvm.data.pair_list import PairList
from ranksvm.data.pairs import ComparablePairs
from ranksvm.data.partition import joined, partition
from ranksvm.data.preferences import Preferences
from ranksvm.data.queries import Queries
from ranksvm.data.statistics import SharedDocuments, pairs_per_document, shared_documents

if TYPE_CHECKING:
    from ranksvm.data.scalers import QueryMinMaxScaler, QueryStandardScaler, RetrieverScaler
else:
    # These names moved to `ranksvm.datasets`.
    _MOVED = (
        *("ConvertedData", "Qrels", "RankingData", "Run", "convert_to_cache", "iter_data", "iter_letor"),
        *("make_ranking", "make_ranking_stream", "read_data", "read_letor", "read_qrels", "read_run"),
        *("write_data", "write_letor", "write_qrels", "write_run"),
    )

    def __getattr__(name: str) -> Any:
        # The scalers are estimators and load scikit-learn, the slowest import.
        if name in ("QueryMinMaxScaler", "QueryStandardScaler", "RetrieverScaler"):
            return getattr(importlib.import_module("ranksvm.data.scalers"), name)
        if name in _MOVED:
            message = f"ranksvm.data.{name} is deprecated: import it from ranksvm.datasets"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return getattr(importlib.import_module("ranksvm.datasets"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "ComparablePairs",
    "DenseDesign",
    "DesignMatrix",
    "PairBlocks",
    "PairList",
    "Preferences",
    "Queries",
    "QueryMinMaxScaler",
    "QueryStandardScaler",
    "RetrieverScaler",
    "SharedDocuments",
    "SparseDesign",
    "TwoBlockDesign",
    "TwoBlocks",
    "as_design_matrix",
    "joined",
    "pairs_from_clicks",
    "pairs_per_document",
    "partition",
    "shared_documents",
]
