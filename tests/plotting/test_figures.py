"""One palette for all plots: colors that color-blind people can tell apart, and dashes beside them."""

import itertools

import numpy as np
import pytest
from matplotlib import pyplot

from ranksvm.plotting.figures import (
    DASHES,
    PALETTE,
    c_axis,
    c_name,
    labels_fit,
    legend_above,
    line_style,
    number_names,
    series_names,
    short_names,
    spread,
)

# from LMS colors of people without one kind of cone back to linear RGB (Vienot, Brettel & Mollon, 1999)
BLIND = {
    "red": np.array([[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]]),
    "green": np.array([[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]]),
}


def test_forty_two_lines_differ_and_neighbors_in_both():
    styles = [line_style(place) for place in range(42)]
    assert len({(style["color"], str(style["linestyle"])) for style in styles}) == 42
    for one, other in itertools.pairwise(styles):
        assert one["color"] != other["color"]
        assert one["linestyle"] != other["linestyle"]
    assert len(PALETTE) * len(DASHES) == 42


def test_colors_differ_for_the_color_blind():
    rgb = np.array([[int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)] for color in PALETTE])
    for matrix in (np.eye(3), *BLIND.values()):
        seen = np.clip(rgb**2.2 @ matrix.T, 0, 1) ** (1 / 2.2)
        for one, other in itertools.combinations(seen, 2):
            assert np.linalg.norm(one - other) > 0.1


def test_numbers():
    assert number_names([0.25, 1.0]) == ["$2^{-2}$", "$2^{0}$"]
    assert number_names([0.25, 0.3]) == ["0.25", "0.3"]
    assert number_names([1.0]) == ["1"]
    assert c_name(8.0) == "$C = 2^{3}$"
    assert c_name(0.1) == "C = 0.1"


def test_spread_keeps_order_distance_and_bounds():
    random = np.random.default_rng(0)
    for n in (1, 2, 5, 20):
        wishes = random.random(n)
        for distance in (0.01, 0.05, 0.5):
            found = spread(wishes, distance)
            np.testing.assert_array_equal(np.argsort(found, kind="stable"), np.argsort(wishes, kind="stable"))
            assert found.min() >= -1e-12
            assert found.max() <= 1 + 1e-12
            if n > 1:
                assert np.diff(np.sort(found)).min() >= min(distance, 1 / (n - 1)) - 1e-12
    np.testing.assert_allclose(spread(np.array([0.2, 0.8]), 0.1), [0.2, 0.8])
    np.testing.assert_allclose(spread(np.array([0.5, 0.5]), 0.1), [0.45, 0.55])


def test_long_names_are_shortened_in_figures():
    names = ["a" * 30 + "x" + "b" * 30, "a" * 30 + "y" + "b" * 30, "a" * 30 + "z" + "b" * 30, "short"]
    found = short_names(names)
    assert found == ["…aaaaaaaaaax…", "…aaaaaaaaaay…", "…aaaaaaaaaaz…", "short"]
    found = short_names([f"term frequency in the field {number} of the document" for number in (1, 20)])
    assert found == ["…the field 1…", "…he field 20…"]
    names = ["q" * 40, "q" * 40, "a" * 30, "a" * 31]
    found = short_names(names)
    assert len(set(found)) == 4
    assert max(map(len, found)) <= 26


def test_wide_letters_count_as_two_and_a_name_has_one_line():
    assert short_names(["文" * 40, "a\nb\r\nc\td", "a b c d"]) == ["文" * 5 + "…" + "文" * 4, "a b c d", "a b c d (2)"]
    assert short_names(["文" * 11, "🔥" * 4, ""]) == ["文" * 11, "🔥" * 4, ""]


@pytest.mark.parametrize("names", [["interval without 0", "interval contains 0"], ["PRODUCTION_RANKER_2024"] * 2])
def test_a_legend_is_within_the_figure_although_the_axes_are_narrow(names):
    figure, ax = pyplot.subplots(figsize=(4.2, 4.0), layout="constrained")
    for name in names:
        ax.plot([0, 1], label=name)
    ax.set_yticks([0, 1], ["WWWWWWWWWWW…WWWWWWWWWW"] * 2)
    legend_above(ax)
    figure.canvas.draw()
    legend = ax.get_legend().get_window_extent()
    assert legend.x0 >= 0
    assert legend.x1 <= figure.bbox.x1
    assert ax.bbox.width > 0.2 * figure.bbox.width


def test_legends_show_every_series():
    ax = pyplot.subplots()[1]
    for name in series_names(["$a$", "_hidden", "_$a$", "b" * 80, 0.5]):
        ax.plot([0, 1], label=name)
    shown = [text.get_text() for text in ax.legend().get_texts()]
    assert shown == [r"\$a\$", " _hidden", r" _\$a\$", "b" * 11 + "…" + "b" * 10, "0.5"]


def test_ticks_of_c_are_powers_of_the_base_of_its_values():
    for values, base in ((np.array([0.001, 0.1]), 10), (np.array([2.0**-9, 8.0]), 2), (np.array([0.3, 1.0]), 10)):
        ax = pyplot.subplots()[1]
        c_axis(ax, values)
        assert ax.xaxis.get_transform().base == base


def test_black_is_white_on_a_dark_background():
    assert line_style(6)["color"] == "black"
    with pyplot.style.context("dark_background"):
        assert line_style(6)["color"] == "white"


def test_labels_fit_into_the_width_of_the_axes():
    ax = pyplot.subplots(figsize=(4, 3))[1]
    assert labels_fit(ax, ["0", "1", "2"])
    assert not labels_fit(ax, ["a long label"] * 3)
    assert labels_fit(ax, ["a long label"] * 3, "xx-small")
    assert labels_fit(ax, [])
