"""The documents of a self-test and their scores: three documents of the user's data, or three invented ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import is_sparse
from ranksvm._util.types import Features
from ranksvm.data import Queries
from ranksvm.exceptions import DataError
from ranksvm.exporting.scaling import QueryScaling, Scaling
from ranksvm.exporting.scoring import Additive, Linear, Scoring
from ranksvm.exporting.tables import Axis

__all__ = ["SelfTest", "feature_ranges", "self_test"]

N_DOCUMENTS = 3
# Maximum number of features of an invented document, so that people can read it.
N_INVENTED = 20
# Values in invented documents, in units of a feature's scale; (feature number + document number) modulo 3 selects one.
STEPS = (0.25, 1.0, -0.5)


@dataclass(frozen=True, eq=False)
class SelfTest:
    """Documents of one query and their scores.

    Parameters
    ----------
    X : ndarray of float64, shape (3, n_features)
        The documents; float32 represents each value exactly.
    scores : ndarray of float64, shape (3,)
        The scores of the model.
    """

    X: np.ndarray
    scores: np.ndarray

    def by_name(self, names: list[str], columns: np.ndarray) -> list[dict[str, Any]]:
        """Each document as a JSON object: its features that are not 0, by name, and its score."""
        return [
            {"features": {names[j]: float(x[j]) for j in columns if x[j]}, "score": float(score)}
            for x, score in zip(self.X, self.scores, strict=True)
        ]


def self_test(scoring: Scoring, X: Features | None = None, qid: ArrayLike | None = None) -> SelfTest:
    """Three documents and their scores.

    Parameters
    ----------
    scoring : Scoring
        The model.
    X : ndarray or CSR matrix of shape (n_rows, n_features), optional
        Data from which the documents are taken. If features are scaled by query, the documents are the first three of
        the first query that has at least three. Otherwise, for a linear model, they are the documents with the lowest,
        middle and highest score, and for other models the first three documents. None: the documents are invented.
    qid : array-like of shape (n_rows,), optional
        Query of each row.

    Returns
    -------
    SelfTest
        The documents.
    """
    rows = _invented(scoring) if X is None else _chosen(scoring, X, qid)
    # engines that compute in float32 then read the same numbers, and every format can write them
    rows = rows.astype(np.float32).astype(np.float64)
    if not (isinstance(scoring.scaling, QueryScaling) and scoring.scaling.of_retrievers):
        rows = np.nan_to_num(rows, nan=0.0)
    return SelfTest(rows, scoring.scores(rows))


def feature_ranges(scoring: Scoring, X: Any = None) -> tuple[np.ndarray, np.ndarray] | None:
    """Smallest and largest value of every feature: in the data, or else as a MinMaxScaler has stored them.

    Parameters
    ----------
    scoring : Scoring
        The model.
    X : ndarray or CSR matrix of shape (n_rows, n_features), optional
        Data.

    Returns
    -------
    tuple of ndarray, or None
        None if they are not known.
    """
    if X is not None:
        low, high = X.min(axis=0), X.max(axis=0)
        dense = (np.ravel(x.toarray() if is_sparse(x) else x).astype(np.float64) for x in (low, high))
        return next(dense), next(dense)
    scaling = scoring.scaling
    if isinstance(scaling, Scaling) and scaling.low is not None and scaling.high is not None:
        return scaling.low, scaling.high
    return None


def _chosen(scoring: Scoring, X: Features, qid: ArrayLike | None) -> np.ndarray:
    if X.shape[1] != scoring.n_features:
        raise DataError(f"data has {X.shape[1]} features, but the model has {scoring.n_features}.")
    if X.shape[0] < N_DOCUMENTS:
        raise DataError(f"data has {X.shape[0]} rows: a self-test needs {N_DOCUMENTS} documents.")
    if isinstance(scoring.scaling, QueryScaling):
        rows = _of_one_query(qid, X.shape[0])
    elif isinstance(scoring.function, Linear):
        scaling, coef = scoring.scaling, scoring.function.coef
        # the order of the scores; a shift is the same for all rows and would not change it
        order = np.argsort(np.ravel(X @ (coef if scaling is None else coef / scaling.scale)), kind="stable")
        rows = order[[0, len(order) // 2, -1]]
    else:
        rows = np.arange(N_DOCUMENTS)
    found = X[np.sort(rows)]
    return np.asarray(found.toarray() if is_sparse(found) else found, dtype=np.float64)


def _of_one_query(qid: ArrayLike | None, n_rows: int) -> np.ndarray:
    for _, rows in Queries.from_qid(qid, n_rows):
        if len(rows) >= N_DOCUMENTS:
            return np.asarray(rows[:N_DOCUMENTS])
    raise DataError(f"no query of the data has {N_DOCUMENTS} documents, which a self-test of this model needs.")


def _invented(scoring: Scoring) -> np.ndarray:
    n = scoring.n_features
    scaling = scoring.scaling if isinstance(scoring.scaling, Scaling) else Scaling(np.zeros(n), np.ones(n))
    function = scoring.function
    weights = np.abs(function.coef) if isinstance(function, Linear | Additive) else np.ones(n)
    if isinstance(function, Additive):
        for table in function.tables:
            for axis in table.axes:
                weights[axis.feature] += np.ptp(table.values)
    important = np.sort(np.argsort(-weights, kind="stable")[:N_INVENTED])
    X = np.zeros((N_DOCUMENTS, n))
    for document in range(N_DOCUMENTS):
        steps = np.take(STEPS, (np.arange(len(important)) + document) % len(STEPS))
        X[document, important] = scaling.shift[important] + steps * scaling.scale[important]
    # multiples of a power of 2 have few digits
    unit = np.exp2(np.floor(np.log2(scaling.scale)) - 4.0)
    X = np.round(X / unit) * unit
    if isinstance(function, Additive):
        for number, table in enumerate(function.tables):
            feature, middles = table.axes[0].feature, _middles(table.axes[0])
            if len(table.axes) == 1 and feature in important and len(middles):
                places = (number + np.arange(N_DOCUMENTS) * max(1, len(middles) // N_DOCUMENTS)) % len(middles)
                X[:, feature] = scaling.shift[feature] + middles[places] * scaling.scale[feature]
    return X


def _middles(axis: Axis) -> np.ndarray:
    """A value in each interval, or in each category of a categorical feature; none if there are no cuts."""
    cuts = axis.cuts[int(axis.missing) :]
    if not len(cuts):
        return cuts
    ends = np.concatenate([[cuts[0] - 1.0], cuts, [cuts[-1] + 1.0]])
    middles = (ends[:-1] + ends[1:]) / 2.0
    return middles[1::2] if axis.category else middles
