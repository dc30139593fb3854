"""WeightsDisplay and ShapeDisplay."""

import sys

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest

from ranksvm import AdditiveRankSVM, RankSVM
from ranksvm.analysis import WeightIntervals, shape_bands
from ranksvm.exceptions import MissingDependencyError, OptionError
from ranksvm.plotting import ShapeDisplay, WeightsDisplay


@pytest.fixture(autouse=True)
def no_window():
    backend = matplotlib.get_backend()
    matplotlib.use("Agg")
    yield
    plt.close("all")
    matplotlib.use(backend)


@pytest.fixture
def weights():
    coef = np.array([0.1, -2.0, 1.0, 0.0])
    errors = np.array([0.3, 0.3, 0.3, 0.0])
    return WeightIntervals(coef, errors, 20, 0.9, feature_names=np.array(["a", "b", "c", "d"]))


def labels(display):
    return [label.get_text() for label in display.ax_.get_yticklabels()]


def test_largest_weights_on_top_with_their_intervals(weights):
    display = WeightsDisplay.from_intervals(weights, top=3)
    assert labels(display) == ["b", "c", "a"]
    without_zero, open_ = display.ax_.collections
    low, high = weights.interval()
    ends = [(segment[0, 0], segment[1, 0]) for segment in without_zero.get_segments()]
    np.testing.assert_allclose(ends, [(low[1], high[1]), (low[2], high[2])])
    assert len(open_.get_segments()) == 1
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["interval without 0", "interval contains 0"]
    bottom, top = display.ax_.get_ylim()
    assert bottom > top
    assert display.ax_.get_xlabel() == "weight, 90 % interval"
    assert display.figure_ is display.ax_.figure
    display.figure_.canvas.draw()


def test_no_weights_have_no_legend(weights, recwarn):
    assert WeightsDisplay.from_intervals(weights, top=0).ax_.get_legend() is None
    assert not recwarn.list


def test_another_level_axes_and_columns_for_names(weights):
    _, ax = plt.subplots()
    weights.feature_names = None
    display = WeightsDisplay.from_intervals(weights, level=0.5, top=None, ax=ax)
    assert display.ax_ is ax
    assert labels(display) == ["f2", "f3", "f1", "f4"]
    assert display.ax_.get_ylabel() == "feature"
    assert "50 %" in display.ax_.get_xlabel()
    np.testing.assert_array_equal(display.low, weights.interval(0.5)[0])
    with pytest.raises(OptionError, match="level"):
        WeightsDisplay.from_intervals(weights, level=2)


def test_without_matplotlib_the_message_says_what_to_install(weights, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot")
    with pytest.raises(MissingDependencyError, match=r'pip install "ranksvm\[plot\]"'):
        WeightsDisplay.from_intervals(weights)


@pytest.fixture(scope="module")
def data():
    random = np.random.default_rng(0)
    X = random.normal(size=(300, 5))
    X[:, 1] = random.integers(0, 2, 300)
    X[:, 2] = random.integers(0, 4, 300)
    X[:, 3] = np.exp(4.0 * X[:, 3])
    y = np.digitize(-(X[:, 0] ** 2) + X[:, 1] + (X[:, 2] == 2) + np.log(X[:, 3]) / 8.0, [-1.0, 0.5])
    X[random.random(300) < 0.2, 4] = np.nan
    return X, y, np.repeat(np.arange(30), 10)


@pytest.fixture(scope="module")
def model(data):
    X, y, qid = data
    return AdditiveRankSVM(C=1.0, categorical=[2], interactions=[(0, 4), (1, 2)]).fit(X, y, qid=qid)


def test_every_term_has_its_axes(model):
    display = ShapeDisplay.from_estimator(model)
    assert len(display.axes_) == 7
    assert sorted(ax.get_title() for ax in display.axes_) == ["f1", "f1 x f5", "f2", "f2 x f3", "f3", "f4", "f5"]
    display.figure_.canvas.draw()


def test_curves_points_bars_and_missing_values(model):
    shapes = model.shapes()
    display = ShapeDisplay.from_estimator(model, [0, 1, "f3", 3, 4])
    curve, points, bars, heavy, missing = display.axes_
    x, values = shapes[0].curve()
    np.testing.assert_array_equal(curve.lines[1].get_xydata(), np.column_stack([x, values]))
    np.testing.assert_allclose(points.lines[2].get_xydata(), [[0.0, shapes[1].values[0]], [1.0, shapes[1].values[1]]])
    # the level of other values has no training rows
    np.testing.assert_allclose([bar.get_height() for bar in bars.patches[:4]], shapes[2].values[1:])
    assert [label.get_text() for label in bars.get_xticklabels()] == ["0", "1", "2", "3"]
    # an exponential: each level has the same width
    assert heavy.get_xlim() == (0.0, 32.0)
    assert missing.lines[2].get_ydata()[0] == shapes[4].values[-1]
    assert [text.get_text() for text in missing.texts] == ["missing"]
    # in an orange as bright as the mark's, letters would be hard to read
    assert missing.texts[0].get_color() == "black"
    assert len({ax.get_ylim() for ax in display.axes_}) == 1
    assert ShapeDisplay.from_estimator(model, [3], by_levels=False).axes_[0].get_xlim()[1] > 1000.0


def test_cells_without_rows_are_empty(model):
    display = ShapeDisplay.from_estimator(model, [("f3", 1)])
    shown = display.axes_[0].collections[0].get_array()
    cells = model.interaction_shapes()[1]
    np.testing.assert_array_equal(np.ma.getmaskarray(shown).reshape(cells.shares.shape), cells.shares == 0.0)
    assert [label.get_text() for label in display.axes_[0].get_xticklabels()] == ["other", "0", "1", "2", "3"]


def test_names_of_categories_fit_into_the_figure():
    pandas = pytest.importorskip("pandas")
    random = np.random.default_rng(0)
    names = ["$5 & $10", "a very long name of a category, longer than the axes are high", "gold"]
    X = pandas.DataFrame({"tier": random.choice(names, 600), "id": 100000001 + random.integers(0, 60, 600)})
    y = (X["tier"] == "gold") + X["id"] % 2
    ranker = AdditiveRankSVM(0.1, categorical=["tier", "id"], interactions=[(0, 1)]).fit(X, y, qid=np.arange(600) // 20)
    display = ShapeDisplay.from_estimator(ranker, ["tier", "id", ("tier", "id")])
    display.figure_.canvas.draw()
    tier, number, cells = display.axes_
    assert [label.get_text() for label in tier.get_xticklabels()] == [r"\$5 & \$10", "a very …e high", "gold"]
    assert cells.get_yticklabels()[1].get_text() == r"\$5 & \$10"
    ids = [label.get_text() for label in number.get_xticklabels()]
    assert len(number.patches) == 64  # two bars for each of 32 levels
    assert 10 < len(ids) <= 18
    assert ids[1].startswith("1000000")
    assert tier.get_position().height > 0.3


def test_a_logarithmic_axis_of_the_user(model):
    _, ax = plt.subplots()
    ax.set_xscale("log")
    display = ShapeDisplay.from_estimator(model, [3], ax=ax, by_levels=False)
    display.figure_.canvas.draw()
    assert ax.get_xscale() == "log"


def test_features_without_values_are_drawn():
    random = np.random.default_rng(0)
    X = np.column_stack([np.full((100, 2), np.nan), random.normal(size=100)])
    ranker = AdditiveRankSVM(categorical=[0]).fit(X, X[:, 2] > 0.0, qid=np.arange(100) // 10)
    display = ShapeDisplay.from_estimator(ranker, [0, 1])
    display.figure_.canvas.draw()
    assert [ax.texts[0].get_text() for ax in display.axes_] == ["missing", "missing"]


def test_bands_surround_the_shapes(model, data):
    X, y, qid = data
    bands = shape_bands(model, X, y, qid, n_refits=8, level=0.8)
    for shape, (low, high) in zip(model.shapes(), bands.values, strict=True):
        assert (low <= high).all()
        assert ((low <= shape.values + 0.3) & (shape.values - 0.3 <= high)).all()
    again = shape_bands(model, X, y, qid, n_refits=8, level=0.8)
    np.testing.assert_array_equal(again.curves[0], bands.curves[0])
    display = ShapeDisplay.from_estimator(model, bands=bands)
    assert len(display.axes_[0].get_children()) > 0
    assert repr(bands) == "ShapeBands(5 features, level 0.8)"


def test_axes_of_the_user(model):
    figure, axes = plt.subplots(1, 2)
    display = ShapeDisplay.from_estimator(model, [0, 1], ax=axes)
    assert display.figure_ is figure
    with pytest.raises(OptionError, match="2 axes, but 3 terms"):
        ShapeDisplay.from_estimator(model, top=3, ax=axes)


def test_what_is_refused(model, data, monkeypatch):
    X, y, qid = data
    linear = RankSVM().fit(np.nan_to_num(X), y, qid=qid)
    with pytest.raises(OptionError, match="got a RankSVM"):
        ShapeDisplay.from_estimator(linear)
    for feature in ("f9", (0, 1)):
        with pytest.raises(OptionError, match="no term of"):
            ShapeDisplay.from_estimator(model, [feature])
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.delattr(matplotlib, "pyplot", raising=False)
    with pytest.raises(MissingDependencyError):
        ShapeDisplay.from_estimator(model)
