"""Table 1: sizes of the data sets, and pairs per document."""

import numpy as np

from papers.fold_1 import n_pairs
from papers.items import Context
from papers.judgment import COUNT, Measure
from papers.results import Compared, Grid, Part
from papers.xu_2019.published import COUNTS, PAIRS_PER_DOCUMENT
from ranksvm.data import pairs_per_document, shared_documents

__all__ = ["table_1"]

# Printed digits. The mean of all 784 queries of MQ2008 is 2.485, near the printed 2.45, but it does not round to it.
PER_DOCUMENT = {"OHSUMED": Measure(1, 0.05, 0), "MQ2008": Measure(2, 0.05, 0)}


def table_1(context: Context) -> list[Part]:
    """Statistics of the queries of all five test parts, which together are all queries of the data set."""
    rows, table = [], Compared("pairs", ("data",))
    for name in context.sources.here(PAIRS_PER_DOCUMENT):
        folds = context.sources.folds(name)
        parts = [context.sources.read(name, fold, "test", docids=True) for fold in folds]
        y, qid, docid = (np.concatenate([getattr(part, field) for part in parts]) for field in ("y", "qid", "docid"))
        shared = shared_documents(docid, qid)
        measure, printed = PER_DOCUMENT[name], PAIRS_PER_DOCUMENT[name]
        n_queries = sum(part.queries.n_queries for part in parts)
        counts = len(y), n_queries, sum(n_pairs(part) for part in parts)
        for what, ours, theirs in zip(("documents", "queries", "pairs"), counts, COUNTS[name], strict=True):
            table.add((name,), what, COUNT, float(ours), float(theirs))
        table.add((name,), "pairs per document, mean of the queries", measure, pairs_per_document(y, qid), printed)
        sizes = [len(found) for part in parts for _, found in part.queries]
        per_query = shared.shared_per_query
        rows.append(
            (
                *(name, f"{len(sizes):,}", f"{shared.n_rows:,} / {shared.n_documents:,}", f"{parts[0].n_features}"),
                " / ".join(f"{int(np.sum(y == label)):,}" for label in np.unique(y)[::-1]),
                f"{np.mean(sizes):.1f}",
                f"{100 * shared.n_shared / shared.n_documents:.1f} %",
                f"{per_query.mean():.1f} / {np.median(per_query):.0f} / {per_query.max()}",
                f"{100 * shared.share_per_query.mean():.1f} %",
            )
        )
    header = [
        "data",
        "queries",
        "rows / documents",
        "features",
        "rows by label, best first",
        "rows a query",
        "documents in several queries",
        "of a query also in another: mean / median / most",
        "share of a query, mean",
    ]
    return [
        "The queries of all test parts. Each pair is in two documents; the paper counts it once, as pairs over "
        "documents of a query (`ranksvm.data.pairs_per_document`). Documents are rows: a document "
        "of several queries counts in each.",
        table,
        "The same data by size and label, and the documents that are in several queries "
        "(`ranksvm.data.shared_documents`), which the paper does not count:",
        Grid("documents", header, rows),
    ]
