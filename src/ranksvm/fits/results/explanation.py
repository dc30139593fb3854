"""Attribution of score differences of linear and additive models to their features and terms."""

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from ranksvm._util.checks import is_sparse
from ranksvm._util.lazy import first_import
from ranksvm._util.tables import frame_of
from ranksvm._util.text import feature_labels
from ranksvm._util.types import CSRMatrix, Features
from ranksvm.data import Queries
from ranksvm.exceptions import DataError, MissingDependencyError
from ranksvm.fits.results.score_difference import QueryExplanation, ScoreDifference

if TYPE_CHECKING:
    import shap

__all__ = ["Contributions", "Explanation", "shap_explanation"]


def shap_explanation(
    values: np.ndarray, base_values: np.ndarray, data: np.ndarray, names: Sequence[str] | None
) -> "shap.Explanation":
    """A ``shap.Explanation``.

    Parameters
    ----------
    values : ndarray of float64, shape (n_samples, n_terms)
        The contributions to each score.
    base_values : ndarray of float64, shape (n_samples,)
        The scores without the contributions.
    data : ndarray of float64, shape (n_samples, n_terms)
        The values of the features.
    names : sequence of str or None
        Names of the terms; None: ``f1``, ``f2``, ...

    Returns
    -------
    shap.Explanation
        The explanation.

    Raises
    ------
    MissingDependencyError
        When SHAP is not installed.
    """
    try:
        with first_import():
            import shap
    except ImportError as error:
        raise MissingDependencyError("to_shap needs SHAP: pip install shap") from error
    named = feature_labels(values.shape[1], names)
    return shap.Explanation(values=values, base_values=base_values, data=data, feature_names=named)


class Explanation:
    """Attribution of the scores of a linear or additive ranker to the features, for documents, pairs and queries.

    A score is a sum over the features, so a difference of scores is also a sum over the features. Document i ranks
    above document j of its query because ``s_i - s_j = sum of w_f (x_if - x_jf)`` is positive (`pair`). The score of
    document i differs from the mean score of its query by the sum of ``w_f (x_if - mean_f)``, the mean of its
    differences from all documents of the query (`document`). These summands are the Shapley values of the features with
    the query's documents as the background ("linear SHAP", Lundberg & Lee, "A unified approach to interpreting model
    predictions", NIPS 2017), exact for a linear model. All values are computed on access.

    A score of an additive ranker is a sum over terms: one for each feature, and one for each interaction. What is said
    here about features then holds for terms, with the contribution of a term to a score in place of ``w_f x_f``.

    Parameters
    ----------
    X : ndarray or CSR matrix, shape (n_samples, n_features)
        The features, or the contributions of terms to scores; referenced, not copied.
    coef : ndarray of float64, shape (n_features,), or None
        The weights; None if X has contributions.
    scores : ndarray of float64, shape (n_samples,)
        The sum of the contributions to each document's score.
    queries : Queries
        The grouping of the rows.
    feature_names : ndarray of str, shape (n_features,), or None
        Names of the features, or terms.
    values : ndarray or CSR matrix, shape (n_samples, at most n_features), optional
        If X has contributions: the values of the features, whose contributions are the first columns of X.
    texts : dict of str to list of str, optional
        By the name of a feature whose values are positions in a list of texts: these texts.

    Attributes
    ----------
    scores : ndarray of float64, shape (n_samples,)
        Score of each document.
    mean_scores : ndarray of float64, shape (n_samples,)
        Mean score of each document's query; with the sum of `contributions` it gives the document's score.
    ranks : ndarray of int64, shape (n_samples,)
        Rank of each document in its query, from 1; equal scores in row order.

    Examples
    --------
    >>> from ranksvm import RankSVM, analysis, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> explanation = analysis.explain(ranker, data.X, data.qid)
    >>> explanation.contributions.shape
    (160, 4)
    """

    def __init__(
        self,
        X: Features,
        coef: np.ndarray | None,
        scores: np.ndarray,
        queries: Queries,
        feature_names: Sequence[str] | None = None,
        values: Features | None = None,
        texts: dict[str, list[str]] | None = None,
    ):
        self.coef = coef
        self.scores = scores
        self.queries = queries
        self.feature_names = feature_names
        self._X = X
        self._weights = np.ones(X.shape[1]) if coef is None else coef
        self._values = values
        self._texts = texts
        self._numbers = queries.numbers()
        sizes = np.maximum(queries.sizes, 1)
        self.mean_scores = (np.bincount(self._numbers, weights=scores, minlength=len(sizes)) / sizes)[self._numbers]
        by_query = np.lexsort((-scores, self._numbers))
        self.ranks = np.empty(len(scores), dtype=np.int64)
        self.ranks[by_query] = np.arange(len(scores)) - np.repeat(queries.pointers[:-1], queries.sizes) + 1

    @property
    def contributions(self) -> Features:
        """Contribution of every feature to the score of every document minus the mean score of its query.

        Shape (n_samples, n_features), float64, computed at each access; each row adds up to ``scores - mean_scores``.
        For a CSR X the result is CSR. Each of its rows stores the features of all documents of its query, which can be
        many more than in X. `to_shap` passes them to the plots of SHAP.
        """
        if not is_sparse(self._X):
            out = np.empty(self._X.shape)
            for _, rows in self.queries:
                values = self._X[rows].astype(np.float64)
                out[rows] = (values - values.mean(axis=0)) * self._weights
            return out
        blocks = [_sparse_contributions(self._X[rows], self._weights) for _, rows in self.queries]
        from scipy import sparse

        stacked: CSRMatrix = sparse.vstack(blocks, format="csr")
        if self.queries.order is not None:
            stacked = stacked[np.argsort(self.queries.order)]
        return stacked

    def to_shap(self) -> "shap.Explanation":
        """The contributions, mean scores and values as a ``shap.Explanation``, for the plots of SHAP.

        Returns
        -------
        shap.Explanation
            Dense ``values``, ``base_values``, ``data`` and ``feature_names``, one row for each document; the ``data``
            of interactions are NaN.

        Raises
        ------
        MissingDependencyError
            When SHAP is not installed.
        """
        values = self._X if self._values is None else self._values
        data = np.full(self._X.shape, np.nan)
        data[:, : values.shape[1]] = _dense(values)
        return shap_explanation(_dense(self.contributions), self.mean_scores, data, self.feature_names)

    def document(self, row: int) -> ScoreDifference:
        """Attribution of the difference between a document's score and the mean score of its query.

        Parameters
        ----------
        row : int
            The document, a row of X.

        Returns
        -------
        ScoreDifference
            The contribution of each feature.

        Raises
        ------
        DataError
            When there is no such row.
        """
        row = self._row(row)
        return self._difference(row, None, _mean(self._X, self.queries.rows(self._numbers[row])))

    def pair(self, row: int, other_row: int) -> ScoreDifference:
        """Why one document ranks above (or below) another one of the same query.

        Parameters
        ----------
        row, other_row : int
            The documents, rows of X.

        Returns
        -------
        ScoreDifference
            The contribution of each feature to the score of the first document minus its contribution to the score of
            the second.

        Raises
        ------
        DataError
            When there is no such row, or the two belong to different queries, whose scores are not comparable.
        """
        row, other_row = self._row(row), self._row(other_row)
        if self._numbers[row] != self._numbers[other_row]:
            one, two = (self.queries.keys[self._numbers[i]] for i in (row, other_row))
            raise DataError(
                f"rows {row} and {other_row} belong to different queries, {one!r} and {two!r}: "
                "scores are comparable within a query only."
            )
        return self._difference(row, other_row, _entries(self._X, other_row))

    def query(self, query: object) -> QueryExplanation:
        """A query's ranking and the features that matter in it.

        Parameters
        ----------
        query : object
            Its id, as in ``qid``.

        Returns
        -------
        QueryExplanation
            Documents, best first, and features, most important first.

        Raises
        ------
        DataError
            When there is no such query.
        """
        rows = self.queries.rows(self.queries.number(query))
        rows = rows[np.argsort(self.ranks[rows])]
        columns, values = _dense_columns(self._X[rows])
        spread = values.std(axis=0, ddof=1) if len(rows) > 1 else np.zeros(len(columns))
        importances = np.abs(self._weights[columns]) * spread
        largest = _largest(importances)
        columns = columns[largest]
        return QueryExplanation(
            query=query,
            rows=rows,
            scores=self.scores[rows],
            columns=columns,
            names=self._names(columns),
            weights=self._shown_weights(columns),
            importances=importances[largest],
        )

    def __len__(self) -> int:
        return len(self.scores)

    def __repr__(self) -> str:
        return (
            f"Explanation({len(self)} documents, {self.queries.n_queries} queries, {self._X.shape[1]} features): "
            ".document(row), .pair(row, other_row), .query(id), .contributions"
        )

    def _difference(self, row: int, other: int | None, other_entries: tuple[np.ndarray, np.ndarray]) -> ScoreDifference:
        columns, values, other_values = _side_by_side(_entries(self._X, row), other_entries)
        contributions = self._weights[columns] * (values - other_values)
        largest = _largest(contributions)
        columns, values, other_values = columns[largest], values[largest], other_values[largest]
        if self._values is not None:
            values, other_values = self._shown_values(columns, row, other)
        return ScoreDifference(
            query=self.queries.keys[self._numbers[row]],
            row=row,
            other_row=other,
            rank=int(self.ranks[row]),
            other_rank=None if other is None else int(self.ranks[other]),
            n_documents=int(self.queries.sizes[self._numbers[row]]),
            score=float(self.scores[row]),
            other_score=float(self.mean_scores[row] if other is None else self.scores[other]),
            columns=columns,
            names=self._names(columns),
            weights=self._shown_weights(columns),
            values=values,
            other_values=other_values,
            contributions=contributions[largest],
            texts=self._texts,
        )

    def _shown_weights(self, columns: np.ndarray) -> np.ndarray | None:
        return None if self.coef is None else self.coef[columns]

    def _shown_values(self, columns: np.ndarray, row: int, other: int | None) -> tuple[np.ndarray, np.ndarray]:
        """Values of a document, and of ``other`` (None: the means over its query); NaN for terms without a value."""
        assert self._values is not None
        rows = [row] if other is None else [row, other]
        if other is None:
            rows += self.queries.rows(self._numbers[row]).tolist()
        of_features = columns < self._values.shape[1]
        part = self._values[rows][:, columns[of_features]]
        part = (part.toarray() if is_sparse(part) else part).astype(np.float64)
        values, other_values = np.full(len(columns), np.nan), np.full(len(columns), np.nan)
        values[of_features] = part[0]
        known = ~np.isnan(part[1:])
        sums, counts = np.where(known, part[1:], 0.0).sum(axis=0), known.sum(axis=0)
        other_values[of_features] = np.divide(sums, counts, out=np.full(len(counts), np.nan), where=counts > 0)
        return values, other_values

    def _names(self, columns: np.ndarray) -> list[str] | None:
        return None if self.feature_names is None else [str(self.feature_names[column]) for column in columns]

    def _row(self, row: SupportsIndex) -> int:
        try:
            number = operator.index(row)
        except TypeError:
            raise DataError(f"a document is identified by its row, a whole number, got {row!r}.") from None
        if not 0 <= number < len(self):
            raise DataError(f"there is no row {number}: X has rows 0 to {len(self) - 1}.")
        return number


# ---- the columns in which rows of X have values, and these values in float64, for dense or sparse X


def _dense(X: Features) -> np.ndarray:
    return np.asarray(X.toarray() if is_sparse(X) else X, dtype=np.float64)


def _entries(X: Features, row: int) -> tuple[np.ndarray, np.ndarray]:
    if is_sparse(X):
        stored = slice(X.indptr[row], X.indptr[row + 1])
        return X.indices[stored], X.data[stored].astype(np.float64)
    return np.arange(X.shape[1]), X[row].astype(np.float64)


def _mean(X: Features, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean of some rows."""
    if is_sparse(X):
        part = X[rows]
        columns, place = np.unique(part.indices, return_inverse=True)
        return columns, np.bincount(place, weights=part.data, minlength=len(columns)) / len(rows)
    return np.arange(X.shape[1]), X[rows].mean(axis=0, dtype=np.float64)


def _side_by_side(
    one: tuple[np.ndarray, np.ndarray], two: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The columns of two rows together, and the values of each row in all of these columns."""
    columns, place = np.unique(np.concatenate((one[0], two[0])), return_inverse=True)
    places = np.split(place, [len(one[0])])
    values = [np.bincount(p, weights=v, minlength=len(columns)) for p, (_, v) in zip(places, (one, two), strict=True)]
    return columns, values[0], values[1]


def _dense_columns(X: Features) -> tuple[np.ndarray, np.ndarray]:
    """The columns in which some rows store values (all columns if X is dense), and the values there, dense."""
    if not is_sparse(X):
        return np.arange(X.shape[1]), X.astype(np.float64)
    from scipy import sparse

    columns, place = np.unique(X.indices, return_inverse=True)
    narrow = sparse.csr_matrix((X.data.astype(np.float64), place, X.indptr), shape=(X.shape[0], len(columns)))
    return columns, narrow.toarray()


def _sparse_contributions(X: Features, coef: np.ndarray) -> CSRMatrix:
    from scipy import sparse

    columns, values = _dense_columns(X)
    values = (values - values.mean(axis=0)) * coef[columns]
    used = coef[columns] != 0.0
    columns, values = columns[used], values[:, used]
    pointers = np.arange(0, values.size + 1, max(1, len(columns))) if len(columns) else np.zeros(len(values) + 1, int)
    entries = values.ravel(), np.tile(columns, len(values)), pointers
    contributions: CSRMatrix = sparse.csr_matrix(entries, shape=X.shape)
    return contributions


def _largest(values: np.ndarray) -> np.ndarray:
    """Positions of the nonzero values, largest in absolute value first, equal ones in order."""
    order = np.argsort(-np.abs(values), kind="stable")
    return order[: np.count_nonzero(values)]


@dataclass(frozen=True, eq=False, repr=False)
class Contributions:
    """What each term (function of one or two features) adds to each score, in the form of ``shap.Explanation``.

    `to_shap` returns one, for the plots of SHAP.

    Attributes
    ----------
    values : ndarray of float64, shape (n_samples, n_terms)
        The contributions of features, then of interactions; each has mean 0 over the training rows, weighted by
        ``sample_weight`` if the fit was.
    base_values : ndarray of float64, shape (n_samples,)
        The mean score of the training rows; adding the sum of ``values`` to it gives the score.
    data : ndarray of float64, shape (n_samples, n_terms)
        The values of the features; NaN for interactions.
    feature_names : list of str
        Names of the terms: the name of a feature, or "a x b" for an interaction.

    Examples
    --------
    >>> from ranksvm import AdditiveRankSVM, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = AdditiveRankSVM(C=0.01, interactions=[(0, 1)]).fit(data.X, data.y, qid=data.qid)
    >>> found = ranker.contributions(data.X)
    >>> found.feature_names
    ['f1', 'f2', 'f3', 'f4', 'f1 x f2']
    >>> bool(abs(found.values.sum(axis=1) + found.base_values - ranker.predict(data.X)).max() < 1e-12)
    True
    """

    values: np.ndarray
    base_values: np.ndarray
    data: np.ndarray
    feature_names: list[str]

    def to_frame(self, *, library: str | None = None) -> Any:
        """The contributions as a DataFrame.

        Parameters
        ----------
        library : {"pandas", "polars", "pyarrow"}, optional
            Library of the DataFrame; None: the first of them that is installed.

        Returns
        -------
        DataFrame
            A row for each document, a column for each term.

        Raises
        ------
        MissingDependencyError
            When the library is not installed; if ``library`` is None, when none of the three is.
        """
        return frame_of(dict(zip(self.feature_names, self.values.T, strict=True)), library)

    def to_shap(self) -> "shap.Explanation":
        """The contributions as a ``shap.Explanation``, for the plots of SHAP.

        Returns
        -------
        shap.Explanation
            ``values``, ``base_values``, ``data`` and ``feature_names``, one row for each document.

        Raises
        ------
        MissingDependencyError
            When SHAP is not installed.
        """
        return shap_explanation(self.values, self.base_values, self.data, self.feature_names)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        return (
            f"Contributions({len(self)} documents, {len(self.feature_names)} terms): "
            ".values, .base_values, .data, .feature_names, .to_frame()"
        )
