"""Parts of an explanation: the difference of two scores, and a query's ranking, explained by features."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ranksvm._util.checks import check_top
from ranksvm._util.text import compared, feature_label, one_line, plain, told_apart

__all__ = ["QueryExplanation", "ScoreDifference"]

# Maximum number of features, and of documents, that a printed explanation lists.
LISTED = 10


@dataclass(frozen=True, eq=False, repr=False)
class ScoreDifference:
    """A difference of two scores, and the contribution of each feature.

    For a linear model ``contributions[k] = weights[k] * (values[k] - other_values[k])``. The largest in absolute value
    is first; features that contribute nothing are omitted. The contributions add up to ``difference``, up to round-off.
    An additive model has no weights, and an interaction of two features no value.

    Attributes
    ----------
    query : object
        Id of the query.
    row : int
        The explained document.
    other_row : int or None
        The document with which it is compared; None: it is compared with the mean of its query's documents.
    rank, other_rank : int or None
        Their ranks in the query, from 1; None for the mean.
    n_documents : int
        Number of documents of the query.
    score, other_score : float
        Their scores.
    columns : ndarray of int64, shape (n_contributing,)
        The features, as columns of X.
    names : list of str or None
        Their names, if known.
    weights : ndarray of float64, shape (n_contributing,), or None
        Their weights.
    values, other_values, contributions : ndarray of float64, shape (n_contributing,)
        The two values and the contribution of each of these features.
    texts : dict of str to list of str, or None
        By the name of a feature, its texts; values are positions in this list. So their mean is not shown.

    Examples
    --------
    >>> from ranksvm import RankSVM, analysis, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> explanation = analysis.explain(ranker, data.X, data.qid)
    >>> best, second = explanation.query(1).rows[:2]
    >>> found = explanation.pair(best, second)
    >>> found.rank, found.other_rank, bool(abs(found.contributions.sum() - found.difference) < 1e-12)
    (1, 2, True)
    """

    query: object
    row: int
    other_row: int | None
    rank: int
    other_rank: int | None
    n_documents: int
    score: float
    other_score: float
    columns: np.ndarray
    names: list[str] | None
    weights: np.ndarray | None
    values: np.ndarray
    other_values: np.ndarray
    contributions: np.ndarray
    texts: dict[str, list[str]] | None = None

    @property
    def difference(self) -> float:
        """``score - other_score``, the sum of the contributions."""
        return self.score - self.other_score

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Everything as plain Python values, ready for JSON.

        Parameters
        ----------
        top : int, optional
            Number of features, those that contribute most; None: all.

        Returns
        -------
        dict
            The fields by name; "n_features", the number of features that contribute; "features", one dict for each of
            them; and "rest", the sum of the omitted contributions. A dict has the keys feature (the name, or ``f1``,
            ``f2``, ...), column (of X, from 0), name (None if unknown), weight, value, other_value and contribution.
            Values that stand for texts are given as texts. A value is None if it does not exist, as for a mean of
            texts.

        Raises
        ------
        OptionError
            When ``top`` is not a whole number from 0.
        """
        check_top(top)
        names = [None] * len(self.columns) if self.names is None else self.names
        labels = _labels(self.columns, self.names)
        weights = _or_none(self.weights, names)
        values = [self._value(name, value) for name, value in zip(names, self.values, strict=True)]
        others = [
            self._value(name, value, is_mean=self.other_row is None)
            for name, value in zip(names, self.other_values, strict=True)
        ]
        of_features = zip(labels, self.columns, names, weights, values, others, self.contributions, strict=True)
        keys = ("feature", "column", "name", "weight", "value", "other_value", "contribution")
        fields = ("query", "row", "other_row", "rank", "other_rank", "n_documents", "score", "other_score")
        found: dict[str, Any] = plain(
            {
                **{name: getattr(self, name) for name in fields},
                "difference": self.difference,
                "n_features": len(self.columns),
                "features": [dict(zip(keys, row, strict=True)) for row in list(of_features)[:top]],
                "rest": float(self.contributions[len(self.columns) if top is None else top :].sum()),
            }
        )
        return found

    def _value(self, name: str | None, value: float, is_mean: bool = False) -> float | str | None:
        """A value as text, if it stands for one."""
        texts = None if name is None or self.texts is None else self.texts.get(name)
        if texts is None or np.isnan(value):
            return value
        return None if is_mean else "other" if value < 0 else texts[int(value)]

    def __repr__(self) -> str:
        above = "above" if self.difference >= 0 else "below"
        against = (
            "the mean of its query" if self.other_row is None else f"row {self.other_row} (rank {self.other_rank})"
        )
        lines = [
            f"Row {self.row} (rank {self.rank} of {self.n_documents}, query {self.query!r}) scores "
            f"{abs(self.difference):.4g} {above} {against}"
        ]
        found = self.to_dict(LISTED)
        other = "mean" if self.other_row is None else "other"
        weight = [] if self.weights is None else ["weight"]
        rows = [
            (
                x["feature"],
                *(f"{x[key]:.4g}" for key in weight),
                *compared(x["value"], x["other_value"]),
                f"{x['contribution']:+.4g}",
            )
            for x in found["features"]
        ]
        left, empty = len(self.columns) - LISTED, [""] * (len(weight) + 2)
        if left > 0:
            rows.append((f"{left} more", *empty, f"{found['rest']:+.4g}"))
        rows.append(("sum", *empty, f"{self.difference:+.4g}"))
        return "\n".join([*lines, *aligned([("feature", *weight, "value", other, "contribution"), *rows])])


@dataclass(frozen=True, eq=False, repr=False)
class QueryExplanation:
    """A query's ranking, and the importance of the features for it.

    Attributes
    ----------
    query : object
        Id of the query.
    rows : ndarray of int64, shape (n_documents,)
        Its rows, best first.
    scores : ndarray of float64, shape (n_documents,)
        Their scores.
    columns : ndarray of int64, shape (n_important,)
        The features that matter here, as columns of X, most important first.
    names : list of str or None
        Their names, if known.
    weights : ndarray of float64, shape (n_important,), or None
        Their weights; None for an additive model.
    importances : ndarray of float64, shape (n_important,)
        ``|w_f|`` times the standard deviation of the feature over the documents of the query (with the divisor
        ``n_documents - 1``); for an additive model, the standard deviation of the feature's contribution.

    Examples
    --------
    >>> from ranksvm import RankSVM, analysis, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> query = analysis.explain(ranker, data.X, data.qid).query(1)
    >>> len(query.rows), bool(query.scores[0] == query.scores.max())
    (8, True)
    """

    query: object
    rows: np.ndarray
    scores: np.ndarray
    columns: np.ndarray
    names: list[str] | None
    weights: np.ndarray | None
    importances: np.ndarray

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Everything as plain Python values, ready for JSON.

        Parameters
        ----------
        top : int, optional
            Number of documents (the best) and features (the most important); None: all.

        Returns
        -------
        dict
            The keys are "query", "n_documents", "documents" (dicts with the keys row, rank and score) and "features"
            (dicts with the keys feature, column, name, weight and importance; see `ScoreDifference.to_dict`).

        Raises
        ------
        OptionError
            When ``top`` is not a whole number from 0.
        """
        check_top(top)
        names = [None] * len(self.columns) if self.names is None else self.names
        keys = ("feature", "column", "name", "weight", "importance")
        documents = list(zip(self.rows.tolist(), self.scores.tolist(), strict=True))[:top]
        labels = _labels(self.columns, self.names)
        features = list(zip(labels, self.columns, names, _or_none(self.weights, names), self.importances, strict=True))[
            :top
        ]
        found: dict[str, Any] = plain(
            {
                "query": self.query,
                "n_documents": len(self.rows),
                "documents": [
                    {"row": row, "rank": rank, "score": score} for rank, (row, score) in enumerate(documents, 1)
                ],
                "features": [dict(zip(keys, row, strict=True)) for row in features],
            }
        )
        return found

    def __repr__(self) -> str:
        found = self.to_dict(LISTED)
        scores = told_apart([x["score"] for x in found["documents"]], 4)
        best = ", ".join(f"{x['row']} ({score})" for x, score in zip(found["documents"], scores, strict=True))
        more = ", ..." if len(self.rows) > LISTED else ""
        numbers = ("importance",) if self.weights is None else ("weight", "importance")
        rows = [(x["feature"], *(f"{x[key]:.4g}" for key in numbers)) for x in found["features"]]
        if len(self.columns) > LISTED:
            rows.append((f"{len(self.columns) - LISTED} more", *[""] * len(numbers)))
        title = f"Query {self.query!r}: {len(self.rows)} documents; rows (scores), best first: {best}{more}"
        return "\n".join([title, *aligned([("feature", *numbers), *rows])])


def _labels(columns: np.ndarray, names: list[str] | None) -> list[str]:
    """Labels of some columns, from their names."""
    return [feature_label(column) for column in columns.tolist()] if names is None else names


def _or_none(weights: np.ndarray | None, names: Sequence[object]) -> np.ndarray | list[None]:
    return [None] * len(names) if weights is None else weights


def aligned(rows: list[tuple[str, ...]]) -> list[str]:
    """Columns of text, the first aligned to the left, the others to the right."""
    rows = [tuple(map(one_line, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]
