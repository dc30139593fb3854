"""Pairs per document, against pairs listed one by one."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ranksvm.data import pairs_per_document
from ranksvm.datasets import read_data
from ranksvm.exceptions import DataError

ROWS = st.lists(st.tuples(st.integers(-1, 3), st.integers(1, 5)), min_size=1, max_size=30)


def listed(y, qid):
    ratios = []
    for query in set(qid):
        labels = [label for label, of_query in zip(y, qid, strict=True) if of_query == query]
        ratios.append(sum(a != b for a, b in combinations(labels, 2)) / len(labels))
    return sum(ratios) / len(ratios)


@given(ROWS)
def test_against_listed_pairs(rows):
    y, qid = zip(*rows, strict=True)
    assert pairs_per_document(y, qid) == pytest.approx(listed(y, qid), rel=1e-12)
    assert pairs_per_document(np.array(y), None) == pytest.approx(listed(y, [1] * len(y)), rel=1e-12)


def test_it_is_the_mean_over_queries_not_a_ratio_of_totals():
    # queries of 2 documents with 1 pair, of 4 with 4, of 1 with none
    assert pairs_per_document([1, 0, 1, 1, 0, 0, 5], [1, 1, 2, 2, 2, 2, 3]) == pytest.approx((1 / 2 + 4 / 4 + 0) / 3)


def test_equal_labels_have_no_pairs():
    assert pairs_per_document([1, 1, 1], [1, 1, 2]) == 0.0


def test_errors():
    with pytest.raises(DataError, match=r"y must have one label for each row, and at least one row, got shape \(0,\)"):
        pairs_per_document([], None)
    with pytest.raises(DataError, match=r"got shape \(1, 2\)"):
        pairs_per_document([[1, 2]], None)
    with pytest.raises(DataError, match="qid has 1 entries"):
        pairs_per_document([1, 2], [1])
    with pytest.raises(DataError, match="y"):
        pairs_per_document([1, None], [1, 1])


# Xu et al. (IEEE TKDE 2019), Table 1, print 30.6 and 2.45.
@pytest.mark.parametrize(("name", "expected"), [("OHSUMED", 30.615), ("MQ2008", 2.485)])
def test_real_data(shared_data, name, expected):
    # the test parts of the five folds are all queries, each once
    parts = [read_data(shared_data / name / f"Fold{fold}" / "test.txt.gz") for fold in range(1, 6)]
    y, qid = (np.concatenate([getattr(part, field) for part in parts]) for field in ("y", "qid"))
    assert pairs_per_document(y, qid) == pytest.approx(expected, abs=5e-4)
