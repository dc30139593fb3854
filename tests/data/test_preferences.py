"""Preferences: what they give for X, pairs and qid, and what they refuse."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp

from ranksvm import Preferences, QueryKFold
from ranksvm.data import TwoBlocks
from ranksvm.data.frames import library
from ranksvm.data.pair_list import groups_of_pairs
from ranksvm.data.queries import Queries
from ranksvm.exceptions import DataError, NoComparablePairsError

random = np.random.default_rng(0)
CHOSEN, REJECTED = random.normal(size=(2, 5, 3))


def test_rows_pairs_and_queries():
    data = Preferences(CHOSEN, REJECTED, prompt=list("aabbc"), weight=[1, 2, 3, 4, 5])
    np.testing.assert_array_equal(data.X, np.vstack([CHOSEN, REJECTED]))
    assert data.pairs.tolist() == [[0, 5], [1, 6], [2, 7], [3, 8], [4, 9]]
    assert data.qid.tolist() == list("aabbcaabbc")
    assert data.weight.tolist() == [1, 2, 3, 4, 5]
    assert len(data) == data.n_pairs == 5
    assert repr(data) == "Preferences(n_pairs=5, n_features=3, n_prompts=3)"


def test_some_pairs_share_the_features():
    whole = Preferences(CHOSEN, REJECTED, prompt=list("aabbc"), weight=[1, 2, 3, 4, 5])
    assert whole.chosen is CHOSEN
    part = whole.taken([3, 2, 0]).taken([2, 0])
    assert part.blocks[0] is CHOSEN
    np.testing.assert_array_equal(part.chosen, CHOSEN[[0, 3]])
    np.testing.assert_array_equal(part.X, np.vstack([CHOSEN[[0, 3]], REJECTED[[0, 3]]]))
    assert (part.prompt.tolist(), part.weight.tolist(), part.n_pairs) == (["a", "b"], [1.0, 4.0], 2)
    assert part.pairs.tolist() == [[0, 2], [1, 3]]
    qid, pairs, weight = part.arguments()
    assert weight.tolist() == [1.0, 4.0]
    assert qid.tolist() == list("aabbcaabbc")
    assert pairs.tolist() == [[0, 5], [3, 8]]
    np.testing.assert_array_equal(part.rows(pairs[0]), [CHOSEN[0], REJECTED[0]])
    with pytest.raises(NoComparablePairsError, match="no pairs are taken"):
        whole.taken([])


def test_folds_of_prompts():
    data = Preferences(CHOSEN, REJECTED, prompt=list("aabbc"))
    train, test = next(QueryKFold(3).split(data, qid=data.prompt))
    assert (data.taken(train).prompt.tolist(), data.taken(test).prompt.tolist()) == (["b", "b", "c"], ["a", "a"])


def test_a_column_called_chosen():
    assert library(pd.DataFrame({"chosen": [1.0], "blocks": [2.0]})) == "pandas"


def test_without_prompts_each_pair_has_its_own():
    data = Preferences(CHOSEN, REJECTED)
    assert data.weight is None
    assert data.qid.tolist() == [0, 1, 2, 3, 4] * 2


@pytest.mark.parametrize("form", [pd.DataFrame, pl.DataFrame, sp.csr_array, np.ndarray.tolist])
def test_features_of_any_kind_are_stacked(form):
    stacked = Preferences(form(CHOSEN), form(REJECTED)).X
    dense = stacked.toarray() if sp.issparse(stacked) else np.asarray(stacked)
    np.testing.assert_array_equal(dense, np.vstack([CHOSEN, REJECTED]))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rejected": REJECTED[:4]}, r"chosen has shape \(5, 3\) and rejected \(4, 3\)"),
        ({"rejected": REJECTED[:, :2]}, r"chosen has shape \(5, 3\) and rejected \(5, 2\)"),
        ({"chosen": CHOSEN[0]}, "chosen must have one row of features"),
        ({"prompt": [1, 2]}, "prompt has 2 entries but chosen has 5 rows"),
        ({"prompt": [1, 2, None, 3, 4]}, "row 2"),
        ({"prompt": "prompt_id"}, "one id for each pair"),
        ({"weight": [1, 1, -1, 1, 1]}, "weight is -1.0 in row 2"),
        ({"weight": [1, 1, np.nan, 1, 1]}, "weight is nan in row 2"),
        ({"weight": [1]}, "weight has 1 entries"),
    ],
)
def test_what_is_refused(arguments, message):
    given = {"chosen": CHOSEN, "rejected": REJECTED} | arguments
    with pytest.raises(DataError, match=message):
        Preferences(given.pop("chosen"), given.pop("rejected"), **given)


def test_no_pair_is_refused():
    with pytest.raises(NoComparablePairsError, match="nothing to learn from"):
        Preferences(CHOSEN[:0], REJECTED[:0])


@pytest.mark.parametrize("numbers", [[len(CHOSEN)], [0.5], [True]])
def test_pairs_that_do_not_exist_are_refused(numbers):
    with pytest.raises(DataError, match="numbers must be numbers of the"):
        Preferences(CHOSEN, REJECTED).taken(numbers)


def test_they_are_no_array():
    with pytest.raises(DataError, match=r"X=data\.X"):
        np.asarray(Preferences(CHOSEN, REJECTED))


def test_rows_of_two_blocks():
    blocks, rows = TwoBlocks(CHOSEN, REJECTED[:2]), np.array([6, 0, 5, 4])
    np.testing.assert_array_equal(blocks.stacked(), np.vstack([CHOSEN, REJECTED[:2]]))
    np.testing.assert_array_equal(blocks[rows], blocks.stacked()[rows])
    assert TwoBlocks.joined(CHOSEN.astype(np.float32), REJECTED).dtype == np.float64


def test_pairs_that_stay_together():
    """Those of a query; of one query, those that rows connect."""
    preferred, other = np.array([0, 1, 4]), np.array([1, 2, 5])
    several = Queries.from_qid(list("aaabbb"))
    assert groups_of_pairs(several, preferred, other).tolist() == ["a", "a", "b"]
    first, second, third = groups_of_pairs(Queries.from_qid(None, 6), preferred, other)
    assert first == second != third


@pytest.mark.parametrize(("prompt", "word"), [([None, "a"], "missing"), ([0.0, np.nan], "NaN")])
def test_a_missing_prompt_is_called_so(prompt, word):
    with pytest.raises(DataError, match=f"prompt is {word} in row"):
        Preferences(np.eye(2), np.eye(2), prompt=prompt)
