"""Right-censored times: which of two documents is known to have the longer time."""

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check_one_per_row
from ranksvm.data.numeric_column import numeric_column
from ranksvm.data.queries import Queries
from ranksvm.exceptions import DataError

__all__ = ["checked_event", "order_of_times", "strata_or_rows"]


def checked_event(event: ArrayLike, n_rows: int) -> np.ndarray:
    """Validate the values that say whether the event of each row was observed.

    Parameters
    ----------
    event : array-like of bool, shape (n_rows,)
        True or 1 if the row's time is the time of the event, False or 0 if it is the time of the last observation.
    n_rows : int
        Number of rows.

    Returns
    -------
    ndarray of float64, shape (n_rows,)
        1 or 0.

    Raises
    ------
    DataError
        When there is not one value for each row, or a value is neither 0 nor 1.
    """
    values = numeric_column("event", event, advice="it must be 1 (observed) or 0 (censored) in every row")
    check_one_per_row("event", values, n_rows)
    other = np.flatnonzero((values != 0.0) & (values != 1.0))
    if len(other):
        raise DataError(
            f"event is {values[other[0]]:g} in row {other[0]} (from 0): it must be 1 or True (the event happened "
            "then) or 0 or False (censored: the event had not happened by then)."
        )
    return values


def order_of_times(time: np.ndarray, event: np.ndarray) -> np.ndarray:
    """Labels that order documents by their times; a censored time is longer than an equal observed one.

    Document i is known to have a longer time than j if its label is greater and the event of j was observed.

    Parameters
    ----------
    time : ndarray of float64, shape (n_rows,)
        Time of the event or of the last observation.
    event : ndarray of float64, shape (n_rows,)
        1 if the event was observed, 0 if the time is censored.

    Returns
    -------
    ndarray of float64, shape (n_rows,)
        Twice the rank of the time among all distinct times, from 0, plus 1 if it is censored.
    """
    _, rank = np.unique(time, return_inverse=True)
    return 2.0 * rank.reshape(-1) + (1.0 - event)


def strata_or_rows(queries: Queries) -> Queries:
    """Groups that folds keep together: the strata (queries), or single rows if there is only one stratum.

    Parameters
    ----------
    queries : Queries
        The rows' strata.

    Returns
    -------
    Queries
        The strata if there are several, else one group for each row.
    """
    return queries if queries.n_queries > 1 else Queries.from_qid(np.arange(queries.n_rows))
