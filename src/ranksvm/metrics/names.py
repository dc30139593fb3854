"""Choice of metrics: by names such as ``"ndcg@10"``, at cut-offs, and for data without labels."""

import dataclasses
import re
from collections.abc import Iterable

from ranksvm._util.checks import is_integer
from ranksvm.exceptions import OptionError
from ranksvm.metrics.definitions import METRICS, AtCutoff, ConcordanceIndex, Metric, PairwiseAccuracy

__all__ = ["ACCURACY", "CONCORDANCE", "DEFAULT_METRIC", "metrics_at", "only_metric", "parse_metric", "parse_metrics"]

# The metric that `score`, `eval_set` and searches use by default if there are labels.
DEFAULT_METRIC = "ndcg@10"
# The metrics of data without labels: listed pairs, and right-censored times.
ACCURACY, CONCORDANCE = PairwiseAccuracy(), ConcordanceIndex()

# trec_eval prints ndcg_cut_10 and takes ndcg_cut.10, P.5,10
_TREC_CUTOFF = re.compile(r"(.*[a-z])[._]([0-9]+)\Z", re.ASCII)


def parse_metric(name: str | Metric) -> Metric:
    """The metric with a given name.

    Parameters
    ----------
    name : str or Metric
        A name such as ``"ndcg@10"``, ``"map"``, ``"p@5"``, in upper or lower case, or a name of another tool:
        ``"ndcg_cut_10"``, ``"P_5"``, ``"recall.100"``, ``"recip_rank"`` (trec_eval), ``"AP"``, ``"RR@10"``
        (ir_measures), ``"pre@5"`` (XGBoost). A `Metric` is returned unchanged. A name says nothing about gains, ties
        or queries without relevant documents: these depend on the convention.

    Returns
    -------
    Metric
        The metric.

    Raises
    ------
    OptionError
        When there is no such metric, or its cut-off is missing or not a whole number from 1; the message lists the
        known names.

    Examples
    --------
    >>> from ranksvm.metrics import parse_metric
    >>> parse_metric("nDCG_cut_10").name, parse_metric("P@5").name
    ('ndcg@10', 'p@5')
    """
    if isinstance(name, Metric):
        return name
    if not isinstance(name, str):
        raise OptionError(f"a metric is named by a string such as 'ndcg@10', got {name!r}.")
    label, at, cutoff = _TREC_CUTOFF.sub(r"\1@\2", name.strip().lower()).replace("-", "_").partition("@")
    kind = METRICS.get(label)
    if kind is None:
        raise OptionError(f"unknown metric {name!r}: choose from {_available()}.")
    if not issubclass(kind, AtCutoff):
        if at:
            raise OptionError(f"{kind.label!r} takes no cut-off, got {name!r}: choose from {_available()}.")
        return kind()
    if at and not re.fullmatch("0*[1-9][0-9]*", cutoff, re.ASCII):
        raise OptionError(f"the cut-off in {name!r} must be a whole number from 1, as in '{kind.label}@10'.")
    return kind(int(cutoff) if at else None)


def parse_metrics(names: str | Metric | Iterable[str | Metric]) -> list[Metric]:
    """The metrics with given names, without duplicates, in their order.

    Parameters
    ----------
    names : str, Metric, or iterable of either
        Names; a string may hold several, separated by commas.

    Returns
    -------
    list of Metric
        The metrics.

    Raises
    ------
    OptionError
        When a name is unknown or there is none.

    Examples
    --------
    >>> from ranksvm.metrics import parse_metrics
    >>> [metric.name for metric in parse_metrics("ndcg@10, map, AP")]
    ['ndcg@10', 'map']
    """
    if isinstance(names, str):
        names = [name for name in names.split(",") if name.strip()]
    elif isinstance(names, Metric) or not isinstance(names, Iterable):
        names = [names]
    metrics = list(dict.fromkeys(parse_metric(name) for name in names))
    if not metrics:
        raise OptionError(f"no metric is given: choose from {_available()}.")
    return metrics


def metrics_at(metrics: Iterable[Metric], cutoffs: int | Iterable[int] | None) -> list[Metric]:
    """Metrics, with each one that lacks a cut-off replaced by the same metric at the given cut-offs.

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
        raise OptionError("eval_at has no cut-off: give numbers such as [5, 10], or omit eval_at.")
    found: list[Metric] = []
    for metric in metrics:
        if isinstance(metric, AtCutoff) and metric.cutoff is None:
            found += [dataclasses.replace(metric, cutoff=number) for number in numbers]
        else:
            found.append(metric)
    return list(dict.fromkeys(found))


def only_metric(what: str, own: Metric, requested: Metric) -> Metric:
    """The one metric of data without labels.

    Parameters
    ----------
    what : str
        What the data are, for the message.
    own : Metric
        Their metric.
    requested : Metric
        The requested metric: ``own``, or the default metric, which ``own`` replaces.

    Returns
    -------
    Metric
        ``own``.

    Raises
    ------
    OptionError
        When another metric was asked for.
    """
    if requested.name not in (own.name, DEFAULT_METRIC):
        raise OptionError(f"metric={requested.name!r} needs labels: {what} are evaluated by {own.name!r} only.")
    return own


def _available() -> str:
    return ", ".join(form for kind in dict.fromkeys(METRICS.values()) for form in _forms(kind))


def _forms(kind: type[Metric]) -> list[str]:
    if not issubclass(kind, AtCutoff):
        return [kind.label]
    at = f"{kind.label}@k"
    return [at] if kind.needs_cutoff else [kind.label, at]
