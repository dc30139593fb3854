"""The steps of Pipelines, and whether they take missing values."""

import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from ranksvm import AdditiveRankSVM, QueryMinMaxScaler, RankSVM, RetrieverScaler
from ranksvm._util.pipeline_steps import steps_of, takes_missing


def test_the_steps_of_a_model():
    scaler, ranker = StandardScaler(), RankSVM()
    assert steps_of(make_pipeline(scaler, ranker)) == [scaler, ranker]
    assert steps_of(ranker) == [ranker]


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ([RankSVM()], False),
        ([AdditiveRankSVM()], True),
        ([StandardScaler(), RankSVM()], False),
        ([StandardScaler(), AdditiveRankSVM()], True),
        ([RetrieverScaler(), RankSVM()], True),
        ([QueryMinMaxScaler(), AdditiveRankSVM()], False),
        ([QueryMinMaxScaler(), RetrieverScaler(), RankSVM()], False),
        ([StandardScaler()], False),
    ],
    ids=lambda value: "-".join(type(step).__name__ for step in value) if isinstance(value, list) else None,
)
def test_the_first_step_that_can_tell_decides(steps, expected):
    assert takes_missing(make_pipeline(*steps)) is expected
    if len(steps) == 1:
        assert takes_missing(steps[0]) is expected
