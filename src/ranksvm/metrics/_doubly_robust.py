"""The doubly robust estimate of metrics from clicks: a regression of relevance, corrected by the clicks."""

from typing import Any

import numpy as np

from ranksvm.metrics._counterfactual_sums import Totals, discounts, one_per_row
from ranksvm.metrics.click_weights import propensities, relevances

__all__ = ["DoublyRobust"]

# impressions that a document's relevance counts as before its own clicks, in the regression
_PRIOR = 1.0


class DoublyRobust:
    """The doubly robust estimate: two passes over the log."""

    def __init__(
        self,
        log: Any,
        data: Any,
        rank: Any,
        names: dict[str, tuple[str, int | None]],
        bias: Any,
        relevance: Any,
        unit: str,
    ):
        self._log, self._data, self._rank, self._names, self._bias = log, data, rank, names, bias
        self._unit = unit
        self._numbers = data.queries.numbers()
        self._given = None if relevance is None else one_per_row("relevance", relevance, data.n_rows, "the data")
        self._clip = 0.0 if bias is None or isinstance(bias, str) else bias.clip
        # propensities as they are: the clipping is that of rho
        self._plain = bias if bias is None or isinstance(bias, str) else bias.clipped(0.0)

    def totals(self) -> Totals:
        """The sums over the impressions."""
        regression, weight = self._regressions()
        values = [discounts(kind, cutoff, self._rank) for kind, cutoff in self._names.values()]
        values.append(np.ones(len(self._rank)))
        n_queries = self._data.queries.n_queries
        direct = [
            np.array([np.bincount(self._numbers, value * part, n_queries) for value in values]) for part in regression
        ]
        totals, first = Totals(self._names, self._unit), 0
        for block in self._log.blocks():
            rows, exposed = block.rows(self._data), propensities(block, self._plain)
            half = self._half(block, first)
            half_of_row = np.repeat(half, np.diff(block.pointers))
            m = np.where(half_of_row == 0, regression[0][rows], regression[1][rows])
            residual = (relevances(block, self._plain) - m) * exposed * weight[rows]
            query = self._numbers[rows[block.pointers[:-1]]]
            columns = [
                np.where(half == 0, direct[0][place][query], direct[1][place][query])
                + np.add.reduceat(value[rows] * residual, block.pointers[:-1])
                for place, value in enumerate(values)
            ]
            totals.add(block, np.column_stack([*columns, np.ones(block.n_impressions)]))
            first += block.n_impressions
        return totals

    @staticmethod
    def _half(block: Any, first: int) -> np.ndarray:
        return (first + np.arange(block.n_impressions)) % 2

    def _regressions(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Regression for either half of the impressions, from the other; 1 / rho of each row, 0 where never shown."""
        n_rows = self._data.n_rows
        exposed, clicks = np.zeros((2, n_rows)), np.zeros((2, n_rows))
        asked, first = np.zeros(self._data.queries.n_queries), 0
        for block in self._log.blocks():
            rows, propensity = block.rows(self._data), propensities(block, self._plain)
            half = np.repeat(self._half(block, first), np.diff(block.pointers))
            gained = relevances(block, self._plain) * propensity
            for part in (0, 1):
                inside = half == part
                exposed[part] += np.bincount(rows[inside], propensity[inside], n_rows)
                clicks[part] += np.bincount(rows[inside], gained[inside], n_rows)
            asked += np.bincount(self._numbers[rows[block.pointers[:-1]]], minlength=len(asked))
            first += block.n_impressions
        rho = exposed.sum(axis=0) / np.maximum(asked, 1.0)[self._numbers]
        weight = np.divide(1.0, np.maximum(rho, self._clip), out=np.zeros(n_rows), where=rho > 0)
        if self._given is not None:
            return [self._given, self._given], weight
        found = []
        for part in (1, 0):
            mean = clicks[part].sum() / max(float(exposed[part].sum()), 1e-300)
            found.append((clicks[part] + _PRIOR * mean) / (exposed[part] + _PRIOR))
        return found, weight
