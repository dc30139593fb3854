"""The input of every export target, and the result of an export."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ranksvm._util.atomic_files import atomic_write
from ranksvm._util.special_files import is_special
from ranksvm._util.types import PathLike
from ranksvm.exceptions import OptionError
from ranksvm.exporting.documents import SelfTest
from ranksvm.exporting.scaling import QueryScaling, Scaling
from ranksvm.exporting.scoring import Additive, Linear, Scoring

__all__ = ["Export", "Request", "Target", "name_of"]


@dataclass
class Request:
    """One export.

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
        """The scaling; ``(x - 0) / 1`` without a scaler, and for a per-query scaler."""
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
            named = ", ".join(left_out[:5]) + (", ..." if len(left_out) > 5 else "")
            which = "of weight 0" if self.additive is None else "without effect"
            self.notes.append(f"{_features(len(left_out))} {which} dropped: {named}.")
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


def name_of(path: PathLike | None, given: str | None) -> str:
    """Name of a model: the given one, or the stem of its file."""
    if given is not None:
        return given
    stem = "" if path is None or is_special(path) else Path(path).name.split(".", 1)[0]
    return stem or "ranksvm"


def _features(number: int) -> str:
    return "1 feature" if number == 1 else f"{number} features"
