"""Ranking data: queries, pairs, files, scalers, generators. The only place where user input is validated."""

from typing import TYPE_CHECKING

from ranksvm._lazy import lazy_names
from ranksvm.data.clicks import pairs_from_clicks
from ranksvm.data.design_matrix import DenseDesign, DesignMatrix, SparseDesign, TwoBlockDesign, as_design_matrix
from ranksvm.data.files import read_data, write_data
from ranksvm.data.letor import read_letor
from ranksvm.data.letor_writer import write_letor
from ranksvm.data.pair_blocks import PairBlocks
from ranksvm.data.pair_list import PairList
from ranksvm.data.pairs import ComparablePairs
from ranksvm.data.pairs_per_document import pairs_per_document
from ranksvm.data.partition import joined, partition
from ranksvm.data.preferences import Preferences
from ranksvm.data.queries import Queries
from ranksvm.data.ranking_data import RankingData
from ranksvm.data.runs import Qrels, Run
from ranksvm.data.shared_documents import SharedDocuments, shared_documents
from ranksvm.data.trec_files import read_qrels, read_run, write_qrels, write_run
from ranksvm.data.two_blocks import TwoBlocks

if TYPE_CHECKING:
    from ranksvm.data.conversion import ConvertedData, convert_to_cache
    from ranksvm.data.generators import make_ranking, make_ranking_stream
    from ranksvm.data.letor_stream import iter_letor
    from ranksvm.data.scalers import QueryMinMaxScaler, QueryStandardScaler
    from ranksvm.data.streams import iter_data
else:
    # Most programs use none of them; the scalers are estimators and load scikit-learn, the slowest import.
    __getattr__ = lazy_names(
        __name__,
        {
            "ConvertedData": "ranksvm.data.conversion",
            "QueryMinMaxScaler": "ranksvm.data.scalers",
            "QueryStandardScaler": "ranksvm.data.scalers",
            "convert_to_cache": "ranksvm.data.conversion",
            "iter_data": "ranksvm.data.streams",
            "iter_letor": "ranksvm.data.letor_stream",
            "make_ranking": "ranksvm.data.generators",
            "make_ranking_stream": "ranksvm.data.generators",
        },
    )

__all__ = [
    "ComparablePairs",
    "ConvertedData",
    "DenseDesign",
    "DesignMatrix",
    "PairBlocks",
    "PairList",
    "Preferences",
    "Qrels",
    "Queries",
    "QueryMinMaxScaler",
    "QueryStandardScaler",
    "RankingData",
    "Run",
    "SharedDocuments",
    "SparseDesign",
    "TwoBlockDesign",
    "TwoBlocks",
    "as_design_matrix",
    "convert_to_cache",
    "iter_data",
    "iter_letor",
    "make_ranking",
    "make_ranking_stream",
    "pairs_from_clicks",
    "pairs_per_document",
    "joined",
    "partition",
    "read_data",
    "read_letor",
    "read_qrels",
    "read_run",
    "shared_documents",
    "write_data",
    "write_letor",
    "write_qrels",
    "write_run",
]
