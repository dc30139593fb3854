"""An additive function as plain arrays, and arrays that are none."""

import numpy as np
import pytest

from ranksvm.additive import AdditiveFunction, FeatureBins, Interaction
from ranksvm.additive.function import arrays_of, function_of


def function():
    bins = [
        FeatureBins(np.array([1.0, 2.0])),
        FeatureBins(np.empty(0), True, np.array([3.0, 7.0])),
        FeatureBins(np.empty(0)),
    ]
    coarse = [FeatureBins(np.array([2.0])), FeatureBins(np.empty(0), True, np.array([7.0]))]
    values = np.array([[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]])
    shapes = [np.array([0.0, 1.0, 3.0]), np.array([0.0, 4.0, 5.0, 6.0]), np.zeros(1)]
    return AdditiveFunction(np.array([0.5, 0.0, 1.0]), np.zeros(3), bins, shapes, [Interaction(0, 1, *coarse, values)])


def test_the_function_of_its_arrays_is_the_same():
    X = np.array([[0.0, 3.0, 1.0], [1.5, 7.0, 2.0], [2.0, np.nan, 0.0], [9.0, 7.0, 0.0], [2.5, 4.0, 0.0]])
    expected = [0.0 + 4.0 + 1.0, 0.75 + 1.0 + 5.0 + 2.0, 1.0 + 3.0 + 6.0 + 2.0, 4.5 + 3.0 + 5.0 + 1.0, 1.25 + 3.0]
    assert function().scores(X).tolist() == expected
    assert function_of(arrays_of(function())).scores(X).tolist() == expected


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("n_cuts", lambda a: a + 1, "cuts has 4 values, not 7"),
        ("n_cuts", lambda a: a * 200, "more levels than a code"),
        ("cuts", lambda a: a[::-1].copy(), "do not ascend"),
        ("shape_values", lambda a: a[:-1], "shape_values has 7 values, not 8"),
        ("interactions", lambda a: a + 2, "not pairs of two features"),
        ("interactions", lambda a: a[:, ::-1].copy(), "not pairs of two features"),
        ("interactions", lambda a: np.vstack([a, a]), "not pairs of two features"),
        ("interaction_cuts", lambda a: a + 0.5, "are not among its cuts"),
        ("interaction_values", lambda a: a[1:], "interaction_values has 5 values, not 6"),
        ("n_interaction_cuts", lambda a: a - 1, "more levels than a code"),
    ],
)
def test_arrays_that_do_not_agree_are_refused(name, change, message):
    arrays = arrays_of(function())
    with pytest.raises(ValueError, match=message):
        function_of(arrays._replace(**{name: change(getattr(arrays, name))}))
