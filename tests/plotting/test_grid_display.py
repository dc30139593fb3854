"""GridDisplay draws the scores of every gamma and C, and marks the choice."""

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgb
from sklearn.exceptions import NotFittedError

from ranksvm import GridDisplay, KernelRankSVMCV, RankSVMCV, make_ranking
from ranksvm.exceptions import OptionError

CS = 2.0 ** np.arange(-6, 2, 2)
GAMMAS = [0.01, 0.1, 1.0]


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=20, n_docs=8, n_features=6, random_state=0)


@pytest.fixture(scope="module")
def model(data):
    return KernelRankSVMCV(CS, GAMMAS, cv=3, metric="map").fit(data.X, data.y, qid=data.qid)


def names(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_a_line_for_every_gamma(model):
    display = GridDisplay.from_estimator(model)
    for line, scores in zip(display.lines_, model.mean_scores_, strict=True):
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([CS, scores]))
    assert names(display) == [
        *("gamma = 0.01", "gamma = 0.1", "gamma = 1"),
        "± one standard error",
        "chosen",
    ]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("C", "map")
    looks = {(line.get_color(), line.get_marker(), str(line._dash_pattern)) for line in display.lines_}
    assert all(len(set(each)) == 3 for each in zip(*looks, strict=True))
    row = GAMMAS.index(model.gamma_)
    corners = display.fill_between_.get_paths()[0].vertices
    low = model.mean_scores_[row] - model.standard_errors_[row]
    assert all(np.isclose(corners, corner).all(axis=1).any() for corner in np.column_stack([CS, low]))
    assert f"gamma = {model.gamma_:.3g}" in display.ax_.get_title()


def test_a_heat_map_with_numbers(model):
    ax = pyplot.subplots()[1]
    display = GridDisplay.from_estimator(model, kind="heatmap", ax=ax)
    assert display.ax_ is ax
    np.testing.assert_array_equal(display.image_.get_array(), model.mean_scores_)
    assert [text.get_text() for text in display.texts_] == [
        f"{score:.4f}".removeprefix("0") for score in model.mean_scores_.ravel()
    ]
    (frame,) = display.ax_.patches
    row, column = GAMMAS.index(model.gamma_), CS.tolist().index(model.C_)
    assert frame.get_xy() == (column - 0.5, row - 0.5)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0.01", "0.1", "1"]
    display.figure_.canvas.draw()


@pytest.mark.parametrize("kind", ["lines", "heatmap"])
def test_a_kernel_without_gamma_and_missing_scores(data, model, kind):
    plain = KernelRankSVMCV(CS, kernel="cosine", cv=3).fit(data.X, data.y, qid=data.qid)
    display = GridDisplay.from_estimator(plain, kind=kind)
    assert (len(display.lines_), len(display.texts_)) == ((1, 0) if kind == "lines" else (0, 4))
    scores = model.mean_scores_.copy()
    scores[2, 1:] = np.nan
    display = GridDisplay(CS, np.array(GAMMAS), scores).plot(kind=kind)
    assert len(display.texts_) == (0 if kind == "lines" else 9)
    display.figure_.canvas.draw()


def test_numbers_in_cells_have_enough_contrast():
    scores = np.linspace(0.0, 1.0, 60).reshape(3, 20)
    display = GridDisplay(2.0 ** np.arange(20), np.array(GAMMAS), scores).plot(kind="heatmap")

    def luminance(color):
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(color)]
        return float(np.dot([0.2126, 0.7152, 0.0722], linear))

    for text, value in zip(display.texts_, scores.ravel(), strict=True):
        cell = display.image_.cmap(display.image_.norm(value))[:3]
        low, high = sorted([luminance(text.get_color()), luminance(cell)])
        assert (high + 0.05) / (low + 0.05) >= 4.5


def test_errors(data):
    with pytest.raises(OptionError, match=r"got a RankSVMCV. .* PathDisplay shows a RankSVMCV"):
        GridDisplay.from_estimator(RankSVMCV())
    with pytest.raises(NotFittedError):
        GridDisplay.from_estimator(KernelRankSVMCV())
    with pytest.raises(OptionError, match="kind must be one of 'lines', 'heatmap', got 'bars'"):
        GridDisplay(CS, np.array(GAMMAS), np.zeros((3, 4))).plot(kind="bars")


@pytest.mark.parametrize("layout", [None, "constrained"])
def test_a_legend_does_not_cover_the_axes_beside_it(model, layout):
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4), layout=layout)
    for ax in axes:
        GridDisplay.from_estimator(model, ax=ax)
    figure.canvas.draw()
    legend, own, beside = (each.get_window_extent() for each in (axes[0].get_legend(), *axes))
    assert legend.x1 <= beside.x0
    assert (legend.x1 <= own.x1) == (layout is None)


def test_ticks_of_the_heat_map_are_all_powers_or_all_decimal(model):
    for Cs, expected in ((CS, "$2^{-6}$"), ([0.01, 0.1, 1.0, 10.0], "0.01")):
        display = GridDisplay(np.array(Cs), np.array(GAMMAS), model.mean_scores_).plot(kind="heatmap")
        texts = [tick.get_text() for tick in display.ax_.get_xticklabels()]
        assert texts[0] == expected
        assert len({text.startswith("$") for text in texts}) == 1


def test_the_title_of_a_small_heat_map_fits():
    display = GridDisplay(
        np.array([0.5]),
        np.array([0.0078125]),
        np.array([[0.9]]),
        chosen_C=0.5,
        chosen_gamma=0.0078125,
        metric="map",
        rule="one_standard_error",
    ).plot(kind="heatmap")
    display.figure_.draw_without_rendering()
    title = display.ax_.title.get_window_extent()
    assert title.x0 >= 0
    assert title.x1 <= display.figure_.bbox.width
