"""Weights of rows and queries, validated: the factors of the weights of pairs."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check_one_per_row
from ranksvm.data.numeric_column import as_array, numeric_column
from ranksvm.data.queries import Queries
from ranksvm.exceptions import DataError

__all__ = ["PairWeights", "check_total", "checked_weights"]

_CURE = "weights must be finite and not negative"


@dataclass(frozen=True)
class PairWeights:
    """Weights per row; a pair (i, j) has weight ``v_i * v_j * query_weight / propensity_i``.

    Parameters
    ----------
    sample_weight : array-like of shape (n_rows,), optional
        Weight v of each row: a row of weight 2 counts like two equal rows.
    query_weight : array-like of shape (n_rows,), optional
        Weight of each row's query, constant within a query.
    propensity : array-like of shape (n_rows,), optional
        Probability, in (0, 1], with which each row's feedback was observed; only the preferred document's is used
        (Joachims, Swaminathan & Schnabel, "Unbiased learning-to-rank with biased feedback", WSDM 2017, equation 5).
    """

    sample_weight: ArrayLike | None = None
    query_weight: ArrayLike | None = None
    propensity: ArrayLike | None = None

    def factors(self, queries: Queries) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The factor of each row in a pair's weight: as the preferred document, and as the other one.

        Parameters
        ----------
        queries : Queries
            The rows' queries.

        Returns
        -------
        preferred, other : ndarray of float64, shape (n_rows,), or None
            For rows sorted by query; None if there are no weights.

        Raises
        ------
        DataError
            When a weight is negative or not finite, ``query_weight`` varies within a query, or a propensity is not in
            (0, 1].
        """
        if self.sample_weight is None and self.query_weight is None and self.propensity is None:
            return None, None
        document = _sorted_weights("sample_weight", self.sample_weight, queries)
        query = _sorted_weights("query_weight", self.query_weight, queries)
        _check_constant(query, queries)
        with np.errstate(over="ignore"):
            preferred = document * query / self._propensities(queries)
        bad = np.flatnonzero(~np.isfinite(preferred))
        if len(bad):
            row = bad[0] if queries.order is None else queries.order[bad[0]]
            raise DataError(
                f"the weight of the pairs in which row {row} (from 0) is preferred overflows float64: rescale the "
                "weights, or limit propensities from below."
            )
        return preferred, document

    def _propensities(self, queries: Queries) -> np.ndarray:
        propensity = _sorted_weights("propensity", self.propensity, queries)
        bad = np.flatnonzero((propensity <= 0.0) | (propensity > 1.0))
        if len(bad):
            row = bad[0] if queries.order is None else queries.order[bad[0]]
            raise DataError(
                f"propensity is {propensity[bad[0]]} in row {row}: the probability that a row's feedback is observed "
                "must be in (0, 1]."
            )
        return propensity


def checked_weights(name: str, values: ArrayLike | None, n: int, owner: str) -> np.ndarray:
    """One finite, non-negative weight for each of the n rows of ``owner``; all 1 if ``values`` is None."""
    if values is None:
        return np.ones(n)
    weights = numeric_column(name, np.full(n, values) if as_array(name, values).ndim == 0 else values, cure=_CURE)
    check_one_per_row(name, weights, n, owner)
    bad = np.flatnonzero(weights < 0)
    if len(bad):
        raise DataError(f"{name} is {weights[bad[0]]} in row {bad[0]}: {_CURE}.")
    return weights


def check_total(weight: float) -> None:
    """Refuse pairs whose weights, or their sum, overflow."""
    if not np.isfinite(weight):
        raise DataError(
            "The weights of the pairs overflow float64: rescale the weights (or, if pairs are weighted by label gaps, "
            "the labels) closer to 1."
        )


def _sorted_weights(name: str, values: ArrayLike | None, queries: Queries) -> np.ndarray:
    return np.ascontiguousarray(queries.to_sorted(checked_weights(name, values, queries.n_rows, "X")))


def _check_constant(query_weight: np.ndarray, queries: Queries) -> None:
    filled = queries.sizes > 0
    first = query_weight[queries.pointers[:-1][filled]]
    varies = np.flatnonzero(query_weight != np.repeat(first, queries.sizes[filled]))
    if len(varies):
        query = int(np.searchsorted(queries.pointers, varies[0], side="right")) - 1
        name = queries.keys[query]
        raise DataError(f"query_weight varies within query {name!r}: give every row of a query the same weight.")
