"""Readers and writers of ranking data in files and streams, binary caches, and generators of synthetic data."""

from typing import TYPE_CHECKING

from ranksvm._util.lazy import lazy_names

if TYPE_CHECKING:
    from ranksvm.datasets.cache.conversion import ConvertedData, convert_to_cache
    from ranksvm.datasets.files import read_data, write_data
    from ranksvm.datasets.generators import make_ranking, make_ranking_stream
    from ranksvm.datasets.letor.reader import read_letor
    from ranksvm.datasets.letor.writer import write_letor
    from ranksvm.datasets.ranking_data import RankingData
    from ranksvm.datasets.runs import Qrels, Run
    from ranksvm.datasets.streams import iter_data, iter_letor
    from ranksvm.datasets.trec_files import read_qrels, read_run, write_qrels, write_run
else:
    __getattr__ = lazy_names(
        __name__,
        {
            "ConvertedData": "ranksvm.datasets.cache.conversion",
            "Qrels": "ranksvm.datasets.runs",
            "RankingData": "ranksvm.datasets.ranking_data",
            "Run": "ranksvm.datasets.runs",
            "convert_to_cache": "ranksvm.datasets.cache.conversion",
            "iter_data": "ranksvm.datasets.streams",
            "iter_letor": "ranksvm.datasets.streams",
            "make_ranking": "ranksvm.datasets.generators",
            "make_ranking_stream": "ranksvm.datasets.generators",
            "read_data": "ranksvm.datasets.files",
            "read_letor": "ranksvm.datasets.letor.reader",
            "read_qrels": "ranksvm.datasets.trec_files",
            "read_run": "ranksvm.datasets.trec_files",
            "write_data": "ranksvm.datasets.files",
            "write_letor": "ranksvm.datasets.letor.writer",
            "write_qrels": "ranksvm.datasets.trec_files",
            "write_run": "ranksvm.datasets.trec_files",
        },
    )

__all__ = [
    "ConvertedData",
    "Qrels",
    "RankingData",
    "Run",
    "convert_to_cache",
    "iter_data",
    "iter_letor",
    "make_ranking",
    "make_ranking_stream",
    "read_data",
    "read_letor",
    "read_qrels",
    "read_run",
    "write_data",
    "write_letor",
    "write_qrels",
    "write_run",
]
