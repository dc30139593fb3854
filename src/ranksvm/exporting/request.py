"""The input of every export target, with the documents and scores of its self-test, and the result of an export."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.atomic_files import atomic_write
from ranksvm._util.checks import is_sparse
from ranksvm._util.types import Features, PathLike
from ranksvm.data import Queries
from ranksvm.exceptions import DataError, OptionError
from ranksvm.exporting.scoring import Additive, Linear, QueryScaling, Scaling, Scoring
from ranksvm.exporting.tables import Axis

__all__ = ["Export", "Request", "SelfTest", "Target", "feature_ranges", "self_test"]

N_DOCUMENTS = 3
# Maximum number of features of an invented document, so that people can read it.
N_INVENTED = 20
# Values of features in invented documents, in units of the feature's scale. Value (feature number + document number)
# modulo 3 is used.
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

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm import RankSVM, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> test = ranker.export(to="sql").test
    >>> bool(np.allclose(ranker.predict(test.X), test.scores))
    True
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
    largest = np.finfo(np.float32).max
    rows = np.clip(rows, -largest, largest).astype(np.float32).astype(np.float64)
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


@dataclass
class Request:
    """Input of one export: the model, the names of its features, the self-test, and options.

    Parameters
    ----------
    scoring : Scoring
        What the model computes.
    names : list of str
        Names of the features in the engine.
    test : SelfTest
        Documents and scores for the file.
    name : str
        Name of the model in the engine.
    store : str
        Feature store, feature set or schema.
    table, query_column : str
        Table of documents, and its column of query ids.
    ranges : tuple of ndarray, optional
        Smallest and largest value of each feature: scores of a linear model are then shifted so that they are not
        negative.
    non_negative : bool
        Whether scores must not be negative.
    file : str
        Name of the file, for the line that installs it.
    templates : list of dict, optional
        Features of a feature set, with the queries that compute them.
    notes : list of str
        Sentences for the user: what was left out, what was changed.
    """

    scoring: Scoring
    names: list[str]
    test: SelfTest
    name: str
    store: str = ""
    table: str = "documents"
    query_column: str = "qid"
    ranges: tuple[np.ndarray, np.ndarray] | None = None
    non_negative: bool = False
    file: str = "FILE"
    templates: list[dict[str, Any]] | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def coef(self) -> np.ndarray:
        """The weights of a linear model, or of the linear part of an additive one."""
        assert isinstance(self.scoring.function, Linear | Additive)
        return self.scoring.function.coef

    @property
    def additive(self) -> Additive | None:
        """The function of the scaled features, if the model is additive."""
        return self.scoring.function if isinstance(self.scoring.function, Additive) else None

    @property
    def scaling(self) -> Scaling | None:
        """The scaler, which is the same for all queries, or None."""
        assert not isinstance(self.scoring.scaling, QueryScaling)
        return self.scoring.scaling

    @property
    def query_scaling(self) -> QueryScaling | None:
        """The per-query scaler, if there is one."""
        return self.scoring.scaling if isinstance(self.scoring.scaling, QueryScaling) else None

    def affine(self) -> Scaling:
        """The scaling that is the same for all queries; ``(x - 0) / 1`` if there is none."""
        n = self.scoring.n_features
        by_query = self.query_scaling is not None
        return Scaling(np.zeros(n), np.ones(n)) if by_query or self.scaling is None else self.scaling

    def folded(self) -> tuple[np.ndarray, float]:
        """Weights of the unscaled features, and the intercept that results from the shift."""
        if self.scaling is None:
            return self.coef, 0.0
        weights = self.coef / self.scaling.scale
        return weights, -float(weights @ self.scaling.shift)

    def unscaled(self) -> Additive:
        """The scoring function of an additive or a linear model, for unscaled features."""
        n = self.scoring.n_features
        function = self.additive or Additive(self.coef, np.zeros(n, dtype=bool), [])
        return function if self.scaling is None else function.of_unscaled(self.scaling)

    def used_columns(self) -> np.ndarray:
        """Columns that can change the score; a note says which features are left out."""
        matters = self.coef != 0.0 if self.additive is None else self.additive.used
        used = np.flatnonzero(matters)
        left_out = [self.names[j] for j in np.flatnonzero(~matters)]
        if not len(used):
            raise OptionError("all weights of the model are 0: there is nothing to export.")
        if left_out:
            named = ", ".join(left_out[:5]) + (", ..." if len(left_out) > 5 else ".")
            which = "of weight 0" if self.additive is None else "without effect"
            self.notes.append(f"{_features(len(left_out))} {which} dropped: {named}")
        return used


@dataclass(frozen=True)
class Target:
    """A format that models are written in.

    Parameters
    ----------
    name : str
        Its name, as the value of ``to``.
    suffix : str
        Usual extension of the file.
    write : callable
        Converts a `Request` to the content of the file.
    query_methods : frozenset
        Methods of per-query scalers that it can compute.
    no_query_scaler : str
        Why it cannot compute other per-query scalers, as the end of a sentence.
    kernels : bool
        Whether `write` takes kernel models.
    additive : bool
        Whether `write` takes additive models.
    non_negative : bool
        Whether it is an engine that refuses negative scores.
    templates : bool
        Whether its features are computed by queries, which the file may contain.
    store : str
        Default feature store.
    check_name : callable, optional
        Raises OptionError if the format does not allow a model's name.
    """

    name: str
    suffix: str
    write: Callable[[Request], bytes]
    query_methods: frozenset[str | tuple[str, str]] = frozenset()
    no_query_scaler: str = "it scores one document at a time and does not see the other documents of its query"
    kernels: bool = False
    additive: bool = True
    non_negative: bool = False
    templates: bool = False
    store: str = ""
    check_name: Callable[[str], None] | None = None


@dataclass(frozen=True, eq=False)
class Export:
    """A model in another format.

    Attributes
    ----------
    target : str
        The format.
    content : bytes
        The file.
    features : list of str
        Names of the model's features in the engine, in the order of the columns.
    notes : list of str
        Sentences: what was left out, and what was changed.
    test : SelfTest
        The documents of the self-test that the file carries, and their scores.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> result = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid).export(to="sql")
    >>> result.target, result.features
    ('sql', ['f1', 'f2', 'f3', 'f4'])
    >>> "CREATE VIEW" in result.text.upper()
    True
    """

    target: str
    content: bytes
    features: list[str]
    notes: list[str]
    test: SelfTest

    def __repr__(self) -> str:
        return f"Export({self.target!r}, {len(self.content):,} bytes, {_features(len(self.features))})"

    @property
    def text(self) -> str:
        """The file as text.

        Returns
        -------
        str
            Its content; UnicodeDecodeError for a format that is not text.
        """
        return self.content.decode()

    def save(self, path: PathLike) -> None:
        """Write the file, atomically.

        Parameters
        ----------
        path : str or path-like
            The file.
        """
        with atomic_write(path) as file:
            file.write(self.content)


def _features(number: int) -> str:
    return "1 feature" if number == 1 else f"{number} features"
