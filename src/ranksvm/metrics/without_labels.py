"""The metric of data that have no labels: listed pairs, and right-censored times."""

from ranksvm.exceptions import OptionError
from ranksvm.metrics.definitions import ConcordanceIndex, Metric, PairwiseAccuracy

__all__ = ["ACCURACY", "CONCORDANCE", "DEFAULT_METRIC", "only_metric"]

# The metric of labels by which `score`, `eval_set` and searches evaluate by default.
DEFAULT_METRIC = "ndcg@10"
ACCURACY, CONCORDANCE = PairwiseAccuracy(), ConcordanceIndex()


def only_metric(what: str, own: Metric, asked: Metric) -> Metric:
    """The one metric of data without labels.

    Parameters
    ----------
    what : str
        What the data are, for the message.
    own : Metric
        Their metric.
    asked : Metric
        The metric that was asked for: this one, or the default one, which it stands in for.

    Returns
    -------
    Metric
        ``own``.

    Raises
    ------
    OptionError
        When another metric was asked for.
    """
    if asked.name not in (own.name, DEFAULT_METRIC):
        raise OptionError(f"metric={asked.name!r} needs labels: {what} are evaluated by {own.name!r} only.")
    return own
