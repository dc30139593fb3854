"""The displays of dual spectra draw their numbers, and name what they are."""

import sys

import numpy as np
import pytest
from matplotlib import pyplot
from matplotlib.colors import to_rgba

from ranksvm import RankSVM, make_ranking
from ranksvm.analysis import dual_spectra
from ranksvm.exceptions import DataError, MissingDependencyError, OptionError
from ranksvm.plotting import DimensionHistogramDisplay, DimensionsDisplay, EnergyDisplay

DISPLAYS = [DimensionHistogramDisplay, DimensionsDisplay, EnergyDisplay]


@pytest.fixture(scope="module")
def spectra():
    """Of two losses; query 2 has no pairs."""
    data = make_ranking(15, (5, 30), 5, n_levels=3, random_state=0)
    y = np.where(data.qid == 2, 0.0, data.y)
    rankers = {loss: RankSVM(C=0.1, loss=loss).fit(data.X, y, qid=data.qid) for loss in ("hinge", "squared_hinge")}
    return {loss: dual_spectra(ranker.dual_coef(data.X, y, data.qid)) for loss, ranker in rankers.items()}


def names(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_histograms_of_one_model(spectra):
    display = DimensionHistogramDisplay.from_spectra(spectra["hinge"], bins=5)
    assert len(display.axes_) == 2
    for ax, t in zip(display.axes_, (0.9, 1.0), strict=True):
        expected = spectra["hinge"].histogram(t, 5)[0]
        assert [bar.get_height() for bar in ax.patches] == expected.tolist()
        assert sum(expected) == spectra["hinge"].counted.sum() < 15
        assert [round(bar.get_x() + bar.get_width() / 2, 9) for bar in ax.patches] == [0.1, 0.3, 0.5, 0.7, 0.9]
        assert ax.get_legend() is None
    assert [ax.get_title() for ax in display.axes_] == ["90 % of the energy", "100 % of the energy: numerical rank"]
    assert display.axes_[0].get_ylabel() == "queries"
    assert display.figure_ is display.axes_[0].figure
    display.figure_.canvas.draw()


def test_histograms_of_several_models_on_given_axes(spectra):
    axes = pyplot.subplots(1, 3)[1]
    display = DimensionHistogramDisplay(spectra, energy=(0.5, 0.9, 0.99)).plot(axes, bar_kw={"edgecolor": "black"})
    assert list(display.axes_) == list(axes)
    assert display.counts_.shape == (3, 2, 10)
    assert display.counts_[1, 1].tolist() == spectra["squared_hinge"].histogram(0.9)[0].tolist()
    bars = display.axes_[1].containers
    assert [bar.get_height() for bar in bars[1]] == display.counts_[1, 1].tolist()
    assert bars[0][3].get_x() + bars[0][3].get_width() == pytest.approx(bars[1][3].get_x())
    assert names(axes[0]) == ["hinge", "squared_hinge"]
    one = DimensionHistogramDisplay.from_spectra(spectra["hinge"], energy=[0.9], axes=axes[0])
    assert one.axes_.tolist() == [axes[0]]
    with pytest.raises(OptionError, match="there are 2 shares of the energy: give as many axes, got 3"):
        DimensionHistogramDisplay.from_spectra(spectra, axes=axes)


@pytest.mark.parametrize("against", ["documents", "pairs"])
def test_dimensions_against_size(spectra, against):
    display = DimensionsDisplay.from_spectra(spectra["hinge"], against=against)
    one = spectra["hinge"]
    sizes = {"documents": one.n_documents, "pairs": one.n_pairs}[against]
    everything = display.ax_.lines[0].get_xydata()
    with_pairs = one.n_pairs > 0
    np.testing.assert_array_equal(everything, np.column_stack([sizes[with_pairs], one.n_dimensions[with_pairs]]))
    for line, t in zip(display.lines_, (0.9, 1.0), strict=True):
        np.testing.assert_array_equal(
            line.get_xydata(), np.column_stack([sizes[one.counted], one.dimensions(t)[one.counted]])
        )
    assert names(display.ax_) == ["all dimensions", "dimensions for 90 %", "rank"]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == (f"{against} of the query", "dimensions")
    assert (display.ax_.get_xscale(), display.ax_.get_yscale()) == ("log", "log")
    display.figure_.canvas.draw()


def test_ranks_of_several_models(spectra):
    ax = pyplot.subplots()[1]
    display = DimensionsDisplay(spectra, energy=[1.0]).plot(ax, line_kw={"alpha": 0.5})
    assert display.ax_ is ax
    assert names(ax) == ["all dimensions", "hinge", "squared_hinge"]
    assert ax.get_ylabel() == "rank"
    assert display.lines_[1].get_alpha() == 0.5
    several = DimensionsDisplay.from_spectra(spectra, energy=[0.9, 1.0])
    assert names(several.ax_)[1:3] == ["hinge: dimensions for 90 %", "hinge: rank"]
    # a color for each model, that of its histogram, and a marker for each series
    bars = [bars[0].get_facecolor() for bars in DimensionHistogramDisplay.from_spectra(spectra).axes_[0].containers]
    assert [to_rgba(line.get_color()) for line in several.lines_] == [bars[0], bars[0], bars[1], bars[1]]
    markers = [line.get_marker() for line in several.lines_]
    assert len(set(markers)) == 4
    assert markers[0] != markers[1]


def test_energy_curves(spectra):
    one = spectra["hinge"]
    display = EnergyDisplay.from_spectra(one)
    largest = one.ids[np.argsort(-one.n_pairs, kind="stable")[:3]].tolist()
    assert names(display.ax_) == [f"query {query}" for query in largest]
    for query, line in zip(largest, display.lines_, strict=True):
        curve = one.energy_curve(query)[1:]
        np.testing.assert_array_equal(line.get_xydata(), np.column_stack([np.arange(1, len(curve) + 1), curve]))
    # all but those without pairs in gray; then the two parts of the energy
    assert len(display.ax_.lines) == one.counted.sum() + 2 + 3
    chosen = EnergyDisplay(spectra, queries=[4, 7]).plot(pyplot.subplots()[1], line_kw={"linewidth": 3})
    assert names(chosen.ax_) == [f"query {query}, {loss}" for loss in spectra for query in (4, 7)]
    assert chosen.lines_[0].get_linewidth() == 3
    assert chosen.lines_[0].get_color() == chosen.lines_[2].get_color()
    assert chosen.lines_[0].get_linestyle() != chosen.lines_[2].get_linestyle()
    assert len(chosen.ax_.lines) == 4 + 2
    chosen.figure_.canvas.draw()


@pytest.mark.parametrize("display", DISPLAYS)
def test_errors(spectra, display, monkeypatch):
    with pytest.raises(OptionError, match="spectra must be a result of dual_spectra"):
        display.from_spectra({"hinge": RankSVM()})
    with pytest.raises(OptionError, match="no spectra to draw"):
        display.from_spectra({})
    with pytest.raises(OptionError, match="against must be one of"):
        DimensionsDisplay.from_spectra(spectra, against="rows")
    with pytest.raises(DataError, match="there is no query 99"):
        EnergyDisplay.from_spectra(spectra, queries=[99])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot")
    with pytest.raises(MissingDependencyError, match=r'pip install "ranksvm\[plot\]"'):
        display.from_spectra(spectra)
