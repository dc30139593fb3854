"""NDCG of a thousand levels: infinite by the formula of the paper, and what it should be here."""

import numpy as np

from papers import kernel_data


def test_gains_that_overflow_give_no_ndcg_and_relative_ones_do():
    rows = dict(kernel_data._overflow().rows)
    assert rows["2^y - 1 in float64"] == "nan"
    assert rows["2^(y - 1,127)"] == rows["`ranksvm.metrics`"]
    discounts = 1.0 / np.log2(np.arange(2, 12))
    gains = 0.5 ** np.arange(10)
    exchanged = gains[[1, 0, *range(2, 10)]]
    assert rows["`ranksvm.metrics`"] == f"{exchanged @ discounts / (gains @ discounts):.6f}"
