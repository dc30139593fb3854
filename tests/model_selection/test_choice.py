"""Standard errors and the one-standard-error rule."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ranksvm.model_selection.cross_validation import choose, mean_and_standard_error, standard_error_over_queries

NAN = np.nan


def test_over_folds():
    means, errors = mean_and_standard_error(np.array([[0.2, 0.4, 0.9], [0.5, 0.5, 0.5]]))
    np.testing.assert_allclose(means, [0.5, 0.5])
    np.testing.assert_allclose(errors, [np.std([0.2, 0.4, 0.9], ddof=1) / np.sqrt(3), 0.0])


def test_folds_without_a_value_do_not_count():
    means, errors = mean_and_standard_error(np.array([[0.2, NAN, 0.4], [NAN, NAN, 0.4], [NAN, NAN, NAN]]))
    np.testing.assert_allclose(means, [0.3, 0.4, NAN])
    np.testing.assert_allclose(errors, [np.std([0.2, 0.4], ddof=1) / np.sqrt(2), NAN, NAN])


@given(st.lists(st.floats(0, 1), min_size=2, max_size=20), st.floats(0.1, 10))
def test_over_queries_of_equal_weight(values, weight):
    error = standard_error_over_queries(np.array([*values, NAN]), np.full(len(values) + 1, weight))
    assert error == pytest.approx(np.std(values, ddof=1) / np.sqrt(len(values)), abs=1e-12)


def test_over_queries_of_different_weight():
    rng = np.random.default_rng(0)
    values, weights = rng.normal(size=60), rng.integers(1, 5, 60).astype(float)
    # the bootstrap over queries is another way to the same number
    drawn = rng.integers(60, size=(20000, 60))
    means = (values[drawn] * weights[drawn]).sum(axis=1) / weights[drawn].sum(axis=1)
    assert standard_error_over_queries(values, weights) == pytest.approx(means.std(), rel=0.05)


@pytest.mark.parametrize("values", [[], [0.5], [0.5, NAN]])
def test_one_query_has_no_standard_error(values):
    assert np.isnan(standard_error_over_queries(np.array(values), np.ones(len(values))))
    assert np.isnan(standard_error_over_queries(np.array([0.5, 0.7]), np.array([1.0, 0.0])))


@pytest.mark.parametrize(
    ("means", "errors", "best", "one_standard_error"),
    [
        ([0.1, 0.45, 0.5, 0.5, 0.4], [9, 9, 0.06, 0.0, 9], 2, 1),
        ([0.44, 0.43, 0.5], [0, 0, 0.06], 2, 0),
        ([NAN, 0.2, 0.3], [NAN, 0.1, 0.2], 2, 1),
        ([0.1, 0.2], [NAN, NAN], 1, 1),
        ([0.1, 0.5, NAN], [0.0, 0.0, 0.0], 1, 1),
    ],
)
def test_the_rules(means, errors, best, one_standard_error):
    means, errors = np.array(means), np.array(errors, dtype=float)
    assert choose(means, errors, "best") == best
    assert choose(means, errors, "one_standard_error") == one_standard_error
