"""Contributions to scores of the terms (functions of one or two features) of an additive model."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksvm._util.tables import frame_of
from ranksvm.fits.results.explanation import shap_explanation

if TYPE_CHECKING:
    import shap

__all__ = ["Contributions"]


@dataclass(frozen=True, eq=False, repr=False)
class Contributions:
    """What each term (function of one or two features) adds to each score, in the form of ``shap.Explanation``.

    `to_shap` returns one, for the plots of SHAP.

    Attributes
    ----------
    values : ndarray of float64, shape (n_samples, n_terms)
        The contributions of features, then of interactions; each has mean 0 over the training rows.
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
