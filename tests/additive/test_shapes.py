"""Names and tables of shapes, on levels of every kind."""

import numpy as np
import pytest

from ranksvm.additive import FeatureBins
from ranksvm.additive.shapes import Cells, Shape, level_labels


def test_labels_of_levels():
    assert level_labels(FeatureBins(np.empty(0))) == ["all"]
    assert level_labels(FeatureBins(np.array([0.5]), missing=True)) == ["below 0.5", "from 0.5", "missing"]
    labels = level_labels(FeatureBins(np.array([1.0, 2.0])))
    assert labels == ["below 1", "1 to 2", "from 2"]
    assert level_labels(FeatureBins(np.empty(0), False, np.array([3.0, 7.0]))) == ["other", "3", "7"]


def test_categories_named_as_other_levels_are_in_quotes():
    bins = FeatureBins(np.empty(0), True, np.array([0.0, 1.0, 2.0]))
    labels = level_labels(bins, ["missing", "other", "red"])
    assert labels == ["other", "'missing'", "'other'", "red", "missing"]


def test_labels_have_enough_digits_to_differ():
    labels = level_labels(FeatureBins(np.array([1000000.0, 1000000.25])))
    assert labels == ["below 1000000", "1000000 to 1000000.2", "from 1000000.2"]
    ids = FeatureBins(np.empty(0), False, np.array([5.0, 100000001.0, 100000002.0]))
    assert level_labels(ids) == ["other", "5", "100000001", "100000002"]
    long_ids = FeatureBins(np.empty(0), False, np.array([1000000000000001.0, 1000000000000002.0]))
    assert level_labels(long_ids) == ["other", "1000000000000001", "1000000000000002"]
    shape = Shape(0, "id", ids, 0.0, np.zeros(4), 5.0, 100000002.0, np.zeros(4), np.full(4, 0.25))
    assert repr(shape).splitlines()[4].split()[:4] == ["2", "100000001", "100000001", "100000001"]


def test_a_shape_as_a_table_and_as_a_curve():
    bins = FeatureBins(np.array([1.0]), missing=True)
    steps, shares, means = np.array([0.0, 2.0, -1.0]), np.array([0.5, 0.25, 0.25]), np.array([0.5, 2.0, 1.0])
    shape = Shape(0, "age", bins, 1.0, steps, 0.0, 3.0, means, shares)
    assert shape.mean == pytest.approx(1.25)
    np.testing.assert_allclose(shape.values, [-0.75, 2.75, -1.25])
    x, values = shape.curve()
    assert x.tolist() == [0.0, 1.0, 1.0, 3.0]
    np.testing.assert_allclose(values, [-1.25, -0.25, 1.75, 3.75])
    frame = shape.to_frame(library="pandas")
    assert list(frame.columns) == ["level", "label", "from", "to", "value", "step", "share"]
    assert frame["to"].tolist()[:2] == [1.0, 3.0]
    assert np.isnan(frame["from"][2])
    assert "25.0%" in repr(shape)


def test_cells_as_a_table():
    bins = FeatureBins(np.array([1.0]))
    cells = Cells(0, 2, ("a", "b"), bins, bins, np.array([[0.5, -0.5], [0.5, -0.5]]), np.full((2, 2), 0.25))
    assert cells.name == "a x b"
    assert cells.spread == pytest.approx(0.5)
    assert cells.to_frame(library="pandas")["value"].tolist() == [0.5, -0.5, 0.5, -0.5]
    assert repr(cells).splitlines()[1].split() == ["a", "b", "value", "share"]
