"""Names of metrics, such as ``"ndcg@10"``, and the metrics they denote."""

import re
from collections.abc import Iterable

from ranksvm.exceptions import OptionError
from ranksvm.metrics.definitions import (
    ERR,
    NDCG,
    AveragePrecision,
    ConcordanceIndex,
    KendallTau,
    MeanNDCG,
    Metric,
    PairwiseAccuracy,
    Precision,
    Recall,
    ReciprocalRank,
    _AtCutoff,
)

__all__ = ["parse_metric", "parse_metrics"]

_KINDS: dict[str, type[Metric]] = {
    kind.label: kind
    for kind in (
        NDCG,
        MeanNDCG,
        AveragePrecision,
        ReciprocalRank,
        ERR,
        Precision,
        Recall,
        PairwiseAccuracy,
        KendallTau,
        ConcordanceIndex,
    )
}
# Names that other tools use, in lower case: trec_eval (without its prefix ``-m``), ir_measures, XGBoost, LightGBM.
_ALIASES = {
    "ndcg_cut": "ndcg",
    "ap": "map",
    "map_cut": "map",
    "mean_average_precision": "map",
    "rr": "mrr",
    "recip_rank": "mrr",
    "reciprocal_rank": "mrr",
    "pre": "p",
    "prec": "p",
    "precision": "p",
    "rec": "r",
    "recall": "r",
    "tau": "kendall_tau",
    "kendall": "kendall_tau",
}
# trec_eval prints ndcg_cut_10 and takes ndcg_cut.10, P.5,10
_TREC_CUTOFF = re.compile(r"(.*[a-z])[._]([0-9]+)\Z", re.ASCII)
_AVAILABLE = (
    "ndcg, ndcg@k, mean_ndcg, map, map@k, mrr, mrr@k, err, err@k, p@k, r@k, pairwise_accuracy, kendall_tau, "
    "concordance_index"
)


def parse_metric(name: str | Metric) -> Metric:
    """The metric with a given name.

    Parameters
    ----------
    name : str or Metric
        A name such as ``"ndcg@10"``, ``"map"``, ``"p@5"``, in upper or lower case, or that of another tool:
        ``"ndcg_cut_10"``, ``"P_5"``, ``"recall.100"``, ``"recip_rank"`` (trec_eval), ``"AP"``, ``"RR@10"``
        (ir_measures), ``"pre@5"`` (XGBoost). A `Metric` is returned unchanged. A name says nothing about gains, ties
        or queries without relevant documents: these are the convention's.

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
    kind = _KINDS.get(_ALIASES.get(label, label))
    if kind is None:
        raise OptionError(f"unknown metric {name!r}: choose from {_AVAILABLE}.")
    if not issubclass(kind, _AtCutoff):
        if at:
            raise OptionError(f"{kind.label!r} takes no cut-off, got {name!r}: choose from {_AVAILABLE}.")
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
        raise OptionError(f"no metric is given: choose from {_AVAILABLE}.")
    return metrics
