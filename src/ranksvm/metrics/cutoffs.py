"""Metrics at several cut-offs, as LightGBM's ``eval_at`` asks for them."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from ranksvm._util.checks import is_integer
from ranksvm.exceptions import OptionError
from ranksvm.metrics.definitions import Metric, _AtCutoff

__all__ = ["metrics_at"]


def metrics_at(metrics: Iterable[Metric], cutoffs: Any) -> list[Metric]:
    """Metrics, each without a cut-off at every one of the given ones.

    Parameters
    ----------
    metrics : iterable of Metric
        Metrics; those that have a cut-off, or take none, stay as they are.
    cutoffs : int, iterable of int, or None
        The cut-offs, from 1; None: the metrics stay as they are.

    Returns
    -------
    list of Metric
        The metrics, in their order, without duplicates.

    Raises
    ------
    OptionError
        When there is no cut-off, or one is not a whole number from 1.
    """
    if cutoffs is None:
        return list(dict.fromkeys(metrics))
    numbers = [cutoffs] if is_integer(cutoffs) or not isinstance(cutoffs, Iterable) else list(cutoffs)
    if not numbers:
        raise OptionError("eval_at has no cut-off: give numbers such as [5, 10], or leave it out.")
    found: list[Metric] = []
    for metric in metrics:
        if isinstance(metric, _AtCutoff) and metric.cutoff is None:
            found += [dataclasses.replace(metric, cutoff=number) for number in numbers]
        else:
            found.append(metric)
    return list(dict.fromkeys(found))
