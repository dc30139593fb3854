"""Metrics at several cut-offs."""

import numpy as np
import pytest

from ranksvm.exceptions import OptionError
from ranksvm.metrics import parse_metrics
from ranksvm.metrics.names import metrics_at


@pytest.mark.parametrize(
    ("names", "cutoffs", "expected"),
    [
        ("ndcg", [5, 10], ["ndcg@5", "ndcg@10"]),
        ("ndcg,map", (1, 3), ["ndcg@1", "ndcg@3", "map@1", "map@3"]),
        ("ndcg@10,kendall_tau", [5], ["ndcg@10", "kendall_tau"]),  # nothing to add
        ("ndcg,ndcg@5", [5, 5], ["ndcg@5"]),
        ("map", 3, ["map@3"]),
        ("map", np.int64(3), ["map@3"]),
        ("map,map", None, ["map"]),
    ],
)
def test_each_metric_at_each_cutoff(names, cutoffs, expected):
    assert [metric.name for metric in metrics_at(parse_metrics(names), cutoffs)] == expected


@pytest.mark.parametrize("cutoffs", [[], 0, [5, -1], 2.5, ["5"], "5"])
def test_other_cutoffs_are_refused(cutoffs):
    with pytest.raises(OptionError, match="cut-off"):
        metrics_at(parse_metrics("ndcg"), cutoffs)
