"""Description of ranking data: counts of rows, queries, levels (distinct labels), pairs and more, also as text."""

from typing import Any

import numpy as np

from ranksvm._util.checks import is_sparse
from ranksvm._util.text import count, counted
from ranksvm.data.pairs import ComparablePairs
from ranksvm.data.statistics import pairs_per_document, shared_documents
from ranksvm.datasets.ranking_data import RankingData

__all__ = ["data_facts", "described_data", "level_rows", "sizes_in_words"]

# if there are more levels than this, the levels in the middle are not listed
LISTED_LEVELS = 20


def described_data(data: RankingData) -> dict[str, Any]:
    """Counts of rows, queries, features, pairs, rows at each level, and documents that several queries share."""
    n_rows, n_features = data.X.shape
    queries, labels = data.queries, np.asarray(data.y, dtype=np.float64)
    pairs = ComparablePairs.from_labels(queries, labels, may_be_empty=True)
    sparse = is_sparse(data.X)
    nonzero = data.X.count_nonzero() if sparse else np.count_nonzero(data.X)
    levels, counts = np.unique(labels, return_counts=True)
    sizes = queries.sizes
    return {
        "rows": n_rows,
        "queries": queries.n_queries,
        "features": n_features,
        "storage": f"{'sparse' if sparse else 'dense'} {data.X.dtype}",
        "categories": {name: len(texts) for name, texts in data.categories.items()},
        "density": float(nonzero / max(1, n_rows * n_features)),
        "document_ids": data.docid is not None,
        "shared_documents": None if data.docid is None else _shared(data),
        "rows_per_query": {
            "min": sizes.min(initial=n_rows),
            "median": float(np.median(sizes)) if len(sizes) else 0.0,
            "mean": float(sizes.mean()) if len(sizes) else 0.0,
            "max": sizes.max(initial=0),
        },
        "levels": [{"level": float(level), "rows": int(n)} for level, n in zip(levels, counts, strict=True)],
        "pairs": pairs.n_pairs,
        "pairs_per_document": pairs_per_document(labels, data.qid),
        "queries_without_pairs": int((pairs.pairs_per_query == 0).sum()),
    }


def data_facts(found: dict[str, Any]) -> list[tuple[str, str]]:
    """Name and text of each fact of `described_data`, except the levels."""
    return [
        ("rows", count(found["rows"])),
        ("queries", count(found["queries"])),
        ("features", f"{count(found['features'])} ({found['storage']})"),
        *([("categories", _categories(found["categories"]))] if found["categories"] else []),
        ("density", f"{100 * found['density']:.3g} % of the values are not 0"),
        ("rows per query", sizes_in_words(found["rows_per_query"])),
        ("pairs", f"{count(found['pairs'])} with different labels"),
        ("pairs per document", f"{found['pairs_per_document']:.3f}, mean over queries"),
        ("queries without pairs", count(found["queries_without_pairs"])),
        ("document ids", _documents(found["shared_documents"])),
    ]


def _categories(counts: dict[str, int]) -> str:
    """The features that hold text, with the number of distinct texts of each."""
    return ", ".join(f"{name} ({counted(n, 'text')})" for name, n in counts.items())


def sizes_in_words(sizes: dict[str, Any]) -> str:
    """Smallest, largest, median and mean number of rows of a query, as text."""
    return f"{count(sizes['min'])} to {count(sizes['max'])}, median {sizes['median']:g}, mean {sizes['mean']:.1f}"


def level_rows(found: dict[str, Any]) -> list[list[str]]:
    """Each level with its number and share of rows; if there are many levels, only the smallest and the largest."""
    levels = found["levels"]
    rows = [[f"{x['level']:g}", count(x["rows"]), f"{x['rows'] / found['rows']:.1%}"] for x in levels]
    if len(levels) <= LISTED_LEVELS:
        return rows
    half = LISTED_LEVELS // 2
    return [*rows[:half], [f"... {count(len(levels) - 2 * half)} more", "", ""], *rows[-half:]]


def _shared(data: RankingData) -> dict[str, Any]:
    """Number of documents, number of those that occur in several queries, and means per document and per query."""
    found = shared_documents(data.docid, data.qid)
    return {
        "documents": found.n_documents,
        "shared": found.n_shared,
        "queries_per_document": found.queries_per_document,
        "mean_share_per_query": float(found.share_per_query.mean()),
    }


def _documents(shared: dict[str, Any] | None) -> str:
    if shared is None:
        return "no"
    text = f"of {counted(shared['documents'], 'document')}, {count(shared['shared'])} of them in several queries"
    share = f" (on average {100 * shared['mean_share_per_query']:.1f} % of the documents of a query)"
    return text + (share if shared["shared"] else "")
