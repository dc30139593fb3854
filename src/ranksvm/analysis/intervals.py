"""WeightIntervals: weights of a linear ranker with standard errors and confidence intervals."""

from typing import Any

import numpy as np
from scipy.special import stdtrit

from ranksvm._util.text import feature_label, plain
from ranksvm.exceptions import OptionError
from ranksvm.fits.results.score_difference import LISTED, aligned

__all__ = ["WeightIntervals"]


class WeightIntervals:
    """Weights of a linear ranker, with standard errors and confidence intervals.

    Parameters
    ----------
    coef : ndarray of float64, shape (n_features,)
        Weights of the fit to all queries.
    standard_errors : ndarray of float64, shape (n_features,)
        Standard error of each weight.
    n_queries : int
        Number of queries that have pairs, at least 2.
    level : float
        Default confidence level of the intervals.
    solver_error : float
        The largest distance of ``coef`` from the exact weights, proven by the duality gap: ``sqrt(2 * gap)``. It
        should be small relative to the standard errors.
    interaction : float
        Variance caused by joint effects of pairs of queries, relative to the variance of a plain jackknife: near 0 for
        many queries and few features, above 1 if the model can fit nearly everything.
    feature_names : ndarray of str, shape (n_features,), or None
        Names of the features.

    Attributes
    ----------
    coef, standard_errors, n_queries, level, solver_error, interaction, feature_names
        As passed to the constructor.

    Examples
    --------
    >>> from ranksvm import RankSVM, analysis, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> weights = analysis.weight_intervals(RankSVM(C=0.01), data.X, data.y, data.qid)
    >>> low, high = weights.interval(0.9)
    >>> bool((low <= high).all()), weights.excludes_zero().shape
    (True, (4,))
    """

    def __init__(
        self,
        coef: np.ndarray,
        standard_errors: np.ndarray,
        n_queries: int,
        level: float = 0.95,
        solver_error: float = 0.0,
        interaction: float = 0.0,
        feature_names: Any = None,
    ):
        self.coef = coef
        self.standard_errors = standard_errors
        self.n_queries = n_queries
        self.level = level
        self.solver_error = solver_error
        self.interaction = interaction
        self.feature_names = feature_names

    def interval(self, level: float | None = None) -> tuple[np.ndarray, np.ndarray]:
        """Confidence interval of each weight.

        It is the weight plus and minus its standard error times a quantile of Student's t with ``n_queries - 1``
        degrees of freedom.

        Parameters
        ----------
        level : float, optional
            Confidence level in (0, 1); None: ``level``.

        Returns
        -------
        low, high : ndarray of float64, shape (n_features,)
            The ends.

        Raises
        ------
        OptionError
            When level is invalid.
        """
        level = checked_level(self.level if level is None else level)
        half = stdtrit(self.n_queries - 1, 0.5 * (1.0 + level)) * self.standard_errors
        return self.coef - half, self.coef + half

    def excludes_zero(self, level: float | None = None) -> np.ndarray:
        """Whether the interval of each weight excludes 0.

        Parameters
        ----------
        level : float, optional
            Confidence level in (0, 1); None: ``level``.

        Returns
        -------
        ndarray of bool, shape (n_features,)
            True if the whole interval has the sign of the weight.

        Raises
        ------
        OptionError
            When level is invalid.
        """
        low, high = self.interval(level)
        return (low > 0.0) | (high < 0.0)

    def to_dict(self, top: int | None = None) -> dict[str, Any]:
        """Weights and intervals as plain Python values, ready for JSON.

        Parameters
        ----------
        top : int, optional
            Number of features to return, the ones with the largest weights; None: all.

        Returns
        -------
        dict
            ``n_queries``, ``level``, ``solver_error``, ``interaction``, and ``features``: a list of dicts, the largest
            weight first. Each has ``feature`` (the name, or ``f1``, ``f2``, ...), ``column`` (of X, from 0), ``name``
            (None if not known), ``weight``, ``standard_error``, ``low``, ``high`` and ``excludes_zero``.
        """
        largest = np.argsort(-np.abs(self.coef), kind="stable")[:top]
        names = [None] * len(largest) if self.feature_names is None else [str(self.feature_names[f]) for f in largest]
        columns = {
            "feature": [feature_label(column, self.feature_names) for column in largest.tolist()],
            "column": largest.tolist(),
            "name": names,
            "weight": self.coef[largest].tolist(),
            "standard_error": self.standard_errors[largest].tolist(),
            **{end: values[largest].tolist() for end, values in zip(("low", "high"), self.interval(), strict=True)},
            "excludes_zero": self.excludes_zero()[largest].tolist(),
        }
        return plain(
            {
                "n_queries": self.n_queries,
                "level": self.level,
                "solver_error": self.solver_error,
                "interaction": self.interaction,
                "features": [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
            }
        )

    def __repr__(self) -> str:
        numbers = ("weight", "standard_error", "low", "high")
        rows = [
            (x["feature"], *(format(x[key], ".4g") for key in numbers), "yes" if x["excludes_zero"] else "no")
            for x in self.to_dict(LISTED)["features"]
        ]
        if len(self.coef) > LISTED:
            rows.append((f"{len(self.coef) - LISTED} more", *[""] * 5))
        title = f"Weights, {self.n_queries} queries, intervals at level {self.level:g}"
        header = ("feature", "weight", "std. error", "low", "high", "without 0")
        return "\n".join([title, *aligned([header, *rows])])


def checked_level(level: object) -> float:
    """A validated confidence level; OptionError if it is invalid."""
    if not isinstance(level, float) or not 0.0 < level < 1.0:
        raise OptionError(f"level must be a number between 0 and 1, such as 0.95, got {level!r}.")
    return level
