"""How much users saw of each document of a query over all its impressions, and how often they clicked on it."""

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from ranksvm.metrics.click_weights import Bias, Log, clip_of, gains, propensities, unclipped

if TYPE_CHECKING:
    from ranksvm.datasets import RankingData

__all__ = ["Exposures", "exposures", "list_exposures"]


@dataclasses.dataclass(frozen=True, eq=False)
class Exposures:
    """Sums over the impressions of each query, whichever ranker made them; a row is a document of a query.

    Parameters
    ----------
    query : ndarray of int64, shape (n_rows,)
        Number of the query of each row.
    impressions : ndarray of float64, shape (n_queries,)
        Number of impressions of each query.
    exposure : ndarray of float64, shape (n_rows,)
        Sum of the propensities of the ranks at which the row was shown.
    gain : ndarray of float64, shape (n_rows,)
        Sum of the clicks, minus the offsets of these ranks.
    clicks : ndarray of float64, shape (n_rows,)
        Number of clicks.
    clip : float
        Lower limit of the mean exposures: smaller ones are raised to it.
    """

    query: np.ndarray
    impressions: np.ndarray
    exposure: np.ndarray
    gain: np.ndarray
    clicks: np.ndarray
    clip: float

    @property
    def impressions_by_row(self) -> np.ndarray:
        """Number of impressions of the query of each row."""
        return self.impressions[self.query]

    @property
    def limited(self) -> np.ndarray:
        """The exposure, at least ``clip`` times the number of impressions."""
        return np.maximum(self.exposure, self.clip * self.impressions_by_row)

    def per_exposure(self, values: np.ndarray) -> np.ndarray:
        """Values of the rows divided by the limited exposure; 0 for rows that users did not see."""
        return np.divide(values, self.limited, out=np.zeros(len(values)), where=self.exposure > 0)

    @property
    def click_weight(self) -> np.ndarray:
        """Weight of a click on each row: 1 over its mean exposure; 0 for rows that users did not see."""
        return self.per_exposure(self.impressions_by_row)


def exposures(log: Log, data: "RankingData", bias: Bias) -> Exposures:
    """The sums for the rows of the data, in one pass over the log."""
    query, plain = data.queries.numbers(), unclipped(bias)
    impressions = np.zeros(data.queries.n_queries)
    exposure, gain, clicks = np.zeros((3, data.n_rows))
    for block in log.blocks():
        rows, propensity = block.rows(data), propensities(block, plain)
        exposure += np.bincount(rows, propensity, data.n_rows)
        gain += np.bincount(rows, gains(block, plain), data.n_rows)
        clicks += np.bincount(rows[block.clicked], minlength=data.n_rows)
        impressions += np.bincount(query[rows[block.pointers[:-1]]], minlength=len(impressions))
    return Exposures(query, impressions, exposure, gain, clicks, clip_of(bias))


def list_exposures(log: Log, bias: Bias) -> tuple[Exposures, np.ndarray]:
    """The sums for the rows of the log, as if each impression were a query, and the query of each impression."""
    plain, columns, sizes, queries = unclipped(bias), [], [], []
    for block in log.blocks():
        columns.append((propensities(block, plain), gains(block, plain), block.clicked.astype(np.float64)))
        sizes.append(np.diff(block.pointers))
        queries.append(block.query[block.pointers[:-1]])
    exposure, gain, clicks = (np.concatenate(column) for column in zip(*columns, strict=True))
    size = np.concatenate(sizes)
    impression = np.repeat(np.arange(len(size)), size)
    sums = Exposures(impression, np.ones(len(size)), exposure, gain, clicks, clip_of(bias))
    return sums, np.concatenate(queries)
