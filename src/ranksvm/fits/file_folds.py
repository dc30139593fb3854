"""Cross-validation on a file that is read in passes: training and test queries, and metrics on the test queries."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ranksvm._util.types import Features, MemoryLimit
from ranksvm.data import Queries
from ranksvm.data.validation import check_scores
from ranksvm.datasets.cache.rows import FileRows
from ranksvm.fits.file_training_set import FileTrainingSet, file_backend
from ranksvm.metrics import Convention, Evaluation, Metric, evaluate
from ranksvm.model_selection.cross_validation import pooled, query_splits

__all__ = ["evaluated_in_file", "file_folds"]


def file_folds(data: FileTrainingSet, cv: Any) -> Iterator[tuple[FileTrainingSet, FileRows]]:
    """The training and the test part of each fold.

    Parameters
    ----------
    data : FileTrainingSet
        All rows.
    cv : int or splitter
        Number of folds of a `QueryKFold`, or a splitter, which is given one row for each query, in the order in which
        queries first appear.

    Yields
    ------
    train : FileTrainingSet
        The queries to learn from.
    test : FileRows
        The queries to evaluate on.
    """
    n = data.n_queries
    each = Queries(np.arange(n + 1), None, np.arange(n))
    for train, test in query_splits(cv, np.zeros((n, 1)), np.zeros(n), each):
        yield data._replace(rows=data.rows.taken(np.sort(train))), data.rows.taken(np.sort(test))


def evaluated_in_file(
    rows: FileRows,
    models: Sequence[Callable[[Any], np.ndarray]],
    metric: Metric,
    convention: Convention,
    memory_limit: MemoryLimit,
    n_threads: int,
) -> list[Evaluation]:
    """Evaluate several models by one metric, reading the rows once.

    Parameters
    ----------
    rows : FileRows
        The rows.
    models : sequence of callable
        For each model, a function that takes rows of X and returns their scores.
    metric : Metric
        The metric.
    convention : Convention
        The convention that defines the metric.
    memory_limit : int, str or None
        The memory limit.
    n_threads : int
        Number of threads.

    Returns
    -------
    list of Evaluation
        One for each model.
    """
    backend = file_backend(rows, memory_limit, n_threads)

    def of_block(first: int, last: int, X: Features) -> list[Evaluation]:
        queries, labels, weights = rows.columns(first, last)
        given = {name: weights.get(name) for name in ("sample_weight", "event")}
        scores = [check_scores(model(X)) for model in models]
        return [evaluate(labels, each, queries.numbers(), metric, convention=convention, **given) for each in scores]

    return [pooled(blocks) for blocks in zip(*backend.each(of_block), strict=True)]
