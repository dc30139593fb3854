"""CutoffDisplay, DifferenceDisplay and LabelDisplay."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot

from ranksvm import make_ranking, metrics
from ranksvm.exceptions import DataError, OptionError
from ranksvm.plotting import CutoffDisplay, DifferenceDisplay, LabelDisplay

CUTOFFS = [f"ndcg@{k}" for k in range(1, 6)]


@pytest.fixture(scope="module")
def data():
    return make_ranking(30, n_docs=8, n_features=2, random_state=0)


@pytest.fixture(scope="module")
def evaluations(data):
    return {f"${n}$": metrics.evaluate(data.y, data.X[:, n], data.qid, [*CUTOFFS, "map"]) for n in range(2)}


def test_a_line_for_each_system_and_a_band_for_the_first(evaluations):
    display = CutoffDisplay.from_evaluations(evaluations)
    for line, found in zip(display.lines_, evaluations.values(), strict=True):
        assert line.get_xdata().tolist() == [1, 2, 3, 4, 5]
        assert line.get_ydata().tolist() == [found.means[name] for name in CUTOFFS]
    low, high = next(iter(evaluations.values())).interval("ndcg@3")
    assert (display.low[2], display.high[2]) == (low, high)
    # a name is no mathematics
    assert [text.get_text() for text in display.ax_.get_legend().get_texts()] == [r"\$0\$", r"\$1\$"]
    display.figure_.draw_without_rendering()


def test_a_metric_without_cutoffs_is_refused(evaluations):
    for names, found in (("map", evaluations), ("ndcg", {})):
        with pytest.raises(OptionError, match=f"there is no evaluation of {names} at a cut-off"):
            CutoffDisplay.from_evaluations(found, names)


def test_differences_are_sorted_and_counted(evaluations):
    a, b = evaluations.values()
    display = DifferenceDisplay.from_evaluations(a, b, "map")
    found = metrics.compare(a, b, "map")
    words = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert words == [f"better in {found.wins}", f"worse in {found.losses}", f"the same in {found.ties}"]
    better, worse = (patch.get_data().values for patch in display.ax_.patches)
    np.testing.assert_array_equal(better + worse, -np.sort(-(b.per_query["map"] - a.per_query["map"])))
    with pytest.raises(DataError, match="the same queries"):
        DifferenceDisplay.from_evaluations(a, metrics.evaluate([1, 0], [1, 2], ["p", "q"], "map"), "map")


def test_differences_are_those_that_are_compared(data):
    """Queries may be in another order, and round-off is no difference."""
    order = np.argsort(-data.qid, kind="stable")
    a = metrics.evaluate(data.y, data.X[:, 0], data.qid, "map")
    b = metrics.evaluate(data.y[order], data.X[order, 0], data.qid[order], "map")
    b = replace(b, per_query={"map": b.per_query["map"] * (1.0 + 1e-15)})
    assert not np.array_equal(a.qid, b.qid)
    assert not DifferenceDisplay.from_evaluations(a, b, "map").differences.any()


def test_many_queries_are_drawn_in_few_steps():
    display = DifferenceDisplay(np.linspace(-1, 1, 10_001), "map").plot()
    better, worse = (patch.get_data() for patch in display.ax_.patches)
    assert len(better.values) == 500
    np.testing.assert_allclose(better.values + worse.values, np.linspace(1, -1, 10_001)[better.edges[:-1]])
    assert display.ax_.get_xlim() == (0, 10_001)
    DifferenceDisplay(np.full(3, np.nan), "map").plot()


def test_queries_without_a_value_are_left_out():
    display = DifferenceDisplay(np.array([0.5, np.nan, -0.25, 0.0]), "map").plot()
    assert display.ax_.get_xlim() == (0, 3)


def test_quantiles_of_centered_scores_by_label(data):
    display = LabelDisplay.from_scores(data.y, data.X[:, 0] + 100 * data.qid, data.qid)
    centered = np.concatenate([block - block.mean() for block in data.X[:, 0].reshape(30, 8).astype(float)])
    assert display.groups == [f"{level:g}" for level in np.unique(data.y)]
    for row, level in zip(display.quantiles, np.unique(data.y), strict=True):
        np.testing.assert_allclose(
            row, np.quantile(centered[data.y == level], [0.05, 0.25, 0.5, 0.75, 0.95]), atol=1e-5
        )
    assert display.counts.sum() == 240


@pytest.mark.parametrize("y", [np.arange(100.0), np.r_[np.zeros(80), np.arange(20.0)], np.arange(100.0) ** 3])
def test_many_labels_are_grouped(y):
    display = LabelDisplay.from_scores(y, -y, np.repeat([1, 2], 50))
    assert len(display.groups) <= 10
    assert display.counts.sum() == 100
    assert (display.counts > 0).all()
    display.figure_.draw_without_rendering()


def overlapping(axis):
    """Pairs of neighboring tick labels that overlap. Slanted labels are compared in the direction of their text."""
    axis.figure.draw_without_rendering()
    ticks = axis.get_ticklabels()
    angle = np.deg2rad(ticks[0].get_rotation())
    if angle:
        starts = np.array([axis.axes.transData.transform((tick.get_position()[0], 0)) for tick in ticks])
        apart = np.diff(starts[:, 0]) * np.sin(angle)
        return [distance for distance in apart if distance < ticks[0].get_fontsize() * axis.figure.dpi / 72]
    boxes = [tick.get_window_extent() for tick in ticks]
    return [pair for pair in itertools.pairwise(boxes) if pair[0].overlaps(pair[1])]


@pytest.mark.parametrize("label", [lambda n: n % 5, lambda n: n % 12 * 1234567, lambda n: n * 1e3 - 12345.6])
def test_names_of_labels_do_not_overlap(label):
    n = np.arange(4800)
    for size in ((6.4, 4.8), (4.2, 3.0)):
        ax = pyplot.subplots(figsize=size, layout="constrained")[1]
        display = LabelDisplay.from_scores(label(n), np.sin(n), n // 48, ax=ax)
        assert not overlapping(ax.xaxis)
        assert len(set(display.groups)) == len(display.groups)


def test_labels_are_not_rounded():
    display = LabelDisplay.from_scores([1234567, 1234568], [0.0, 1.0], [1, 1])
    assert display.groups == ["1234567", "1234568"]


def test_counts_have_whole_numbers_as_ticks():
    found = metrics.evaluate([1, 0], [0.5, 1.0], [1, 1], "ndcg@5")
    ticks = CutoffDisplay.from_evaluations({"a": found}).ax_.get_xticks()
    assert (ticks == np.round(ticks)).all()
    ticks = DifferenceDisplay(np.array([-0.2]), "map").plot().ax_.get_xticks()
    assert set(ticks) == {0, 1}
