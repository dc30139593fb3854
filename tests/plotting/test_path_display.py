"""PathDisplay draws the numbers of the estimator or path, and names what they are."""

import itertools
import sys

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from sklearn.exceptions import NotFittedError

from ranksvm import (
    AdditiveRankSVM,
    AdditiveRankSVMCV,
    PathDisplay,
    RankSVM,
    RankSVMCV,
    make_ranking,
    regularization_path,
)
from ranksvm.exceptions import DataError, MissingDependencyError, OptionError

CS = 2.0 ** np.arange(-10, 3)


def labels(display):
    return [text.get_text() for text in display.labels_]


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=30, n_docs=(4, 12), n_features=12, random_state=0)


@pytest.fixture(scope="module")
def by_folds(data):
    return RankSVMCV(CS, cv=4, rule="one_standard_error").fit(data.X, data.y, qid=data.qid)


@pytest.fixture(scope="module")
def path(data):
    frame = pd.DataFrame(data.X, columns=[f"f{number}" for number in range(12)])
    return regularization_path(frame, data.y, qid=data.qid, Cs=CS)


def names(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


def test_scores_of_folds(by_folds):
    display = PathDisplay.from_estimator(by_folds)
    np.testing.assert_array_equal(display.line_.get_xydata(), np.column_stack([CS, by_folds.mean_scores_]))
    for line, scores in zip(display.fold_lines_, by_folds.scores_.T, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), scores)
    corners = display.fill_between_.get_paths()[0].vertices
    means, errors = by_folds.mean_scores_, by_folds.standard_errors_
    for height in (means - errors, means + errors):
        assert all(np.isclose(corners, corner).all(axis=1).any() for corner in np.column_stack([CS, height]))
    assert display.chosen_line_.get_xdata()[0] == by_folds.C_
    power = f"$C = 2^{{{np.log2(by_folds.C_):.0f}}}$"
    assert names(display) == [
        "each of 4 folds",
        "mean of 4 folds",
        "± one standard error",
        "best minus its standard error",
        f"{power} (one-standard-error rule)",
    ]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("C", "ndcg@10")
    assert display.figure_ is display.ax_.figure


def test_numbers_of_ones_own():
    scores = np.random.default_rng(0).random((13, 5))
    display = PathDisplay(CS, scores=scores, metric="err").plot(pyplot.subplots()[1])
    np.testing.assert_allclose(display.line_.get_ydata(), scores.mean(axis=1))
    assert names(display) == ["each of 5 folds", "mean of 5 folds", "± one standard error"]


def test_scores_on_validation_data(data):
    model = RankSVMCV([0.01, 0.3], metric="MAP").fit(
        data.X, data.y, qid=data.qid, eval_set=[(data.X, data.y)], eval_qid=[data.qid]
    )
    ax = pyplot.subplots()[1]
    display = PathDisplay.from_estimator(model, ax=ax, line_kw={"color": "red"}, fill_between_kw={"alpha": 0.5})
    assert display.ax_ is ax
    assert display.fold_lines_ == []
    assert names(display) == ["validation data", "± one standard error", f"C = {model.C_:.3g}"]
    assert display.line_.get_color() == "red"
    assert display.fill_between_.get_alpha() == 0.5
    assert ax.get_ylabel() == "map"


def test_without_a_standard_error_there_is_no_band(data):
    rows = np.flatnonzero(np.isin(data.qid, np.unique(data.qid)[:1]))
    model = RankSVMCV(CS, rule="one_standard_error").fit(
        data.X, data.y, qid=data.qid, eval_set=(data.X[rows], data.y[rows]), eval_qid=data.qid[rows]
    )
    assert PathDisplay.from_estimator(model).fill_between_ is None


def test_weights(path):
    display = PathDisplay.from_path(path, chosen_C=CS[4], n_named=3)
    for line, weights in zip(display.coef_lines_, path.coefs.T, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), weights)
    assert names(display) == ["largest weight at this C", "$C = 2^{-6}$"]
    assert len(labels(display)) == 3
    assert display.line_ is None
    unnamed = PathDisplay.from_path(path, feature_names=list("abcdefghijkl"))
    assert unnamed.chosen_line_ is None
    assert len(labels(unnamed)) == 8
    assert set(labels(unnamed)) <= set("abcdefghijkl")


def test_what_is_largest_at_any_c_is_named():
    # column 1 is largest at the first C only, 4 at the second, 0 in the end; 3 is second once, 2 never
    coefs = np.array([[0.1, 0.5, 0, -0.4, 0.2], [0.3, 0.1, 0, 0.2, -1], [9, 0.1, 0.2, 0.3, 1]], dtype=float)
    display = PathDisplay(CS[:3], coefs=coefs).plot()
    assert labels(display)[:3] == ["f1", "f2", "f5"]
    assert labels(PathDisplay(CS[:3], coefs=coefs).plot(n_named=4))[3] == "f4"
    (marks,) = [line for line in display.ax_.get_lines() if line.get_label() == "largest weight at this C"]
    np.testing.assert_array_equal(marks.get_ydata(), [0.5, -1, 9])


def test_names_do_not_overlap_and_lines_differ_without_color(data):
    path = regularization_path(data.X, data.y, qid=data.qid, Cs=CS)
    display = PathDisplay.from_path(path, n_named=12)
    path_labels = [f"f{number}" for number in range(1, 13)]
    display.figure_.canvas.draw()
    heights = sorted(text.get_position()[1] for text in display.labels_)
    height = display.ax_.get_window_extent().height
    letters = display.labels_[0].get_fontsize() * display.figure_.dpi / 72
    assert len(heights) == 12
    assert np.diff(heights).min() * height > letters
    assert 0 <= heights[0] <= heights[-1] <= 1
    assert len({(line.get_color(), str(line._dash_pattern)) for line in display.coef_lines_}) == 12
    neighbors = [display.coef_lines_[path_labels.index(name)] for name in labels(display)]
    assert all(str(a._dash_pattern) != str(b._dash_pattern) for a, b in itertools.pairwise(neighbors))


def test_one_value_of_c_is_drawn(path):
    assert len(PathDisplay(CS[:1], coefs=path.coefs[:1]).plot().labels_) == 8


def test_errors(by_folds, path, monkeypatch):
    with pytest.raises(OptionError, match=r"got a RankSVM. For a Pipeline pass the last step"):
        PathDisplay.from_estimator(RankSVM())
    with pytest.raises(NotFittedError):
        PathDisplay.from_estimator(RankSVMCV())
    with pytest.raises(OptionError, match="either scores or coefs"):
        PathDisplay(CS)
    with pytest.raises(DataError, match="there are 2 feature names, but the path has 12"):
        PathDisplay.from_path(path, feature_names=["a", "b"])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot")
    with pytest.raises(MissingDependencyError, match=r'pip install "ranksvm\[plot\]"'):
        PathDisplay.from_estimator(by_folds)


def test_additive_models(data):
    search = AdditiveRankSVMCV([1e-3, 1e-2], step_weights=[0.0, 1.0], interactions=[0, 1], cv=3)
    search.fit(data.X, data.y, qid=data.qid)
    display = PathDisplay.from_estimator(search)
    (own,) = np.flatnonzero(
        (search.step_weights_ == search.step_weight_) & (search.interaction_counts_ == search.n_interactions_)
    )
    np.testing.assert_array_equal(display.line_.get_ydata(), search.mean_scores_[own])
    path = AdditiveRankSVM().path(data.X, data.y, qid=data.qid, Cs=[1e-3, 1e-2])
    display = PathDisplay.from_path(path)
    assert display.ax_.get_ylabel() == "spread of the shape"
    for line, spreads in zip(display.coef_lines_, path.spreads.T, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), spreads)


def test_the_limit_of_the_rule_is_by_the_best_of_all_settings_of_an_additive_model():
    data = make_ranking(n_queries=30, n_docs=8, n_features=5, random_state=3)
    options = {"step_weights": [0.0, 1.0], "cv": 3, "rule": "one_standard_error"}
    search = AdditiveRankSVMCV([1e-4, 1e-3, 1e-2, 0.1], **options).fit(data.X, data.y, qid=data.qid)
    best = np.unravel_index(search.mean_scores_.argmax(), search.mean_scores_.shape)
    assert search.step_weights_[best[0]] != search.step_weight_
    display = PathDisplay.from_estimator(search)
    (limit,) = [line for line in display.ax_.get_lines() if line.get_label() == "best minus its standard error"]
    assert limit.get_ydata()[0] == search.mean_scores_[best] - search.standard_errors_[best]
    assert names(display)[-1] == "C = 0.0001, step weight 0 (one-standard-error rule)"


def test_long_names_leave_room_for_the_axes(path):
    display = PathDisplay.from_path(path, feature_names=[f"{'a long name ' * 6}{number}" for number in range(12)])
    display.figure_.draw_without_rendering()
    assert display.ax_.get_position().width > 0.6
    assert len(set(labels(display))) == len(display.labels_)
