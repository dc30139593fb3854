"""PathDisplay: the scores of a model selection, or the weights, along C."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ranksvm._util.text import feature_labels
from ranksvm.estimators import AdditivePath, AdditiveRankSVMCV, RankSVMCV, RegularizationPath
from ranksvm.exceptions import DataError, OptionError
from ranksvm.model_selection.cross_validation import mean_and_standard_error
from ranksvm.plotting.figures import (
    axes_or_new,
    by_rule,
    c_axis,
    c_name,
    end_labels,
    legend_above,
    line_style,
    nth_color,
    short_names,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.collections import PolyCollection
    from matplotlib.lines import Line2D
    from matplotlib.text import Annotation

__all__ = ["PathDisplay"]

_CHOSEN: dict[str, Any] = {"color": "0.4", "linestyle": "--", "linewidth": 1.0}
_FOLD: dict[str, Any] = {"color": "0.55", "linewidth": 0.8, "alpha": 0.6}
_OTHER_FEATURE: dict[str, Any] = {"color": "0.75", "linewidth": 0.8, "zorder": 1}


class PathDisplay:
    """Scores along C with a band of one standard error, or weights along C; the chosen C is marked and labeled.

    `from_estimator` (scores) and `from_path` (weights) create and draw it; the constructor takes arrays.

    Parameters
    ----------
    Cs : ndarray of float64, shape (n_Cs,)
        The values of C, ascending.
    scores : ndarray of float64, shape (n_Cs, n_parts), optional
        The metric for each C on each test part; give either ``scores`` or ``coefs``.
    mean_scores, standard_errors : ndarray of float64, shape (n_Cs,), optional
        Mean over the test parts, and its standard error (NaN if it has none); by default, computed from ``scores``.
    metric : str, optional
        Name of the metric.
    coefs : ndarray of float64, shape (n_Cs, n_features), optional
        Weights for each C.
    feature_names : sequence of str, optional
        Names of the features; by default ``f1``, ``f2``, ..., numbered as in LETOR files.
    chosen_C : float, optional
        The C to mark.
    rule : {"best", "one_standard_error"}, optional
        The rule by which it was chosen.
    quantity : str, default "weight"
        Name of the quantity in ``coefs``, for the axis.

    Attributes
    ----------
    ax_ : matplotlib.axes.Axes
        The axes drawn on.
    figure_ : matplotlib.figure.Figure
        Their figure.
    line_ : matplotlib.lines.Line2D or None
        The mean score along C.
    fill_between_ : matplotlib.collections.PolyCollection or None
        The band of one standard error.
    fold_lines_ : list of matplotlib.lines.Line2D
        The score of each test part, if there are several.
    coef_lines_ : list of matplotlib.lines.Line2D
        The weight of each feature along C.
    chosen_line_ : matplotlib.lines.Line2D or None
        The line at the chosen C.
    labels_ : list of matplotlib.text.Annotation
        Names of the features with the largest weights, beside the ends of their lines.

    See Also
    --------
    RankSVMCV : Chooses C.
    GridDisplay : The scores of a KernelRankSVMCV over C and gamma.
    regularization_path : Weights along C.
    AdditiveRankSVM.path : Additive models along C.

    Examples
    --------
    >>> from ranksvm import PathDisplay, RankSVMCV, make_ranking
    >>> data = make_ranking(n_queries=60, n_docs=20, n_features=10, random_state=0)
    >>> ranker = RankSVMCV(metric="ndcg@5", cv=4, rule="one_standard_error").fit(data.X, data.y, qid=data.qid)
    >>> display = PathDisplay.from_estimator(ranker)
    >>> display.ax_.get_ylabel()
    'ndcg@5'
    """

    def __init__(
        self,
        Cs: np.ndarray,
        *,
        scores: np.ndarray | None = None,
        mean_scores: np.ndarray | None = None,
        standard_errors: np.ndarray | None = None,
        metric: str | None = None,
        coefs: np.ndarray | None = None,
        feature_names: Any = None,
        chosen_C: float | None = None,
        rule: str | None = None,
        quantity: str = "weight",
    ):
        if (scores is None) == (coefs is None):
            raise OptionError("PathDisplay shows either scores or coefs along C: give one of them.")
        self.Cs = Cs
        if scores is not None and (mean_scores is None or standard_errors is None):
            mean_scores, standard_errors = mean_and_standard_error(scores)
        self.scores = scores
        self.mean_scores = mean_scores
        self.standard_errors = standard_errors
        self.metric = metric
        self.coefs = coefs
        self.feature_names = feature_names
        self.chosen_C = chosen_C
        self.rule = rule
        self.quantity = quantity
        self._limit: float | None = None  # of the one-standard-error rule; None: computed from the scores shown
        self._setting = ""  # what was chosen besides C

    @classmethod
    def from_estimator(
        cls, estimator: RankSVMCV | AdditiveRankSVMCV, *, ax: "Axes | None" = None, **options: Any
    ) -> "PathDisplay":
        """Draw the scores by which an estimator chose C; for an AdditiveRankSVMCV, the scores of the setting it chose.

        Parameters
        ----------
        estimator : RankSVMCV or AdditiveRankSVMCV
            A fitted estimator.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; None: axes of a new figure. The legend is outside of the axes if their figure has a layout
            engine (``plt.subplots(layout="constrained")``).
        **options : dict
            Options of `plot`.

        Returns
        -------
        PathDisplay
            The display, drawn.

        Raises
        ------
        OptionError
            When the estimator is of another kind.
        NotFittedError
            When it is not fitted.
        MissingDependencyError
            When matplotlib is not installed.
        """
        if not isinstance(estimator, RankSVMCV | AdditiveRankSVMCV):
            raise OptionError(
                f"PathDisplay.from_estimator shows how a RankSVMCV chose C, got a {type(estimator).__name__}. For a "
                "Pipeline pass the last step, pipeline[-1]; GridDisplay shows a KernelRankSVMCV, PathDisplay.from_path "
                "a regularization_path."
            )
        check_is_fitted(estimator, "scores_")
        own: slice | int = slice(None)
        if isinstance(estimator, AdditiveRankSVMCV):
            at = estimator.mean_scores_[:, np.flatnonzero(estimator.Cs_ == estimator.C_)[0]]
            is_best = (estimator.step_weights_ == estimator.step_weight_) & (at == estimator.best_score_)
            own = int(np.flatnonzero(is_best)[0])
        display = cls(
            estimator.Cs_,
            scores=estimator.scores_[own],
            mean_scores=estimator.mean_scores_[own],
            standard_errors=estimator.standard_errors_[own],
            metric=estimator.fitted_params_["metric"],
            chosen_C=estimator.C_,
            rule=estimator.fitted_params_["rule"],
        )
        # the rule compares all settings of an additive model, also those that are not shown
        best = np.nanargmax(estimator.mean_scores_)
        display._limit = float(estimator.mean_scores_.flat[best] - estimator.standard_errors_.flat[best])
        if isinstance(estimator, AdditiveRankSVMCV):
            display._setting = f", step weight {estimator.step_weight_:g}"
            if estimator.n_interactions_:
                display._setting += f", {estimator.n_interactions_} interactions"
        return display.plot(ax, **options)

    @classmethod
    def from_path(
        cls,
        path: RegularizationPath | AdditivePath,
        *,
        chosen_C: float | None = None,
        feature_names: Sequence[str] | None = None,
        ax: "Axes | None" = None,
        **options: Any,
    ) -> "PathDisplay":
        """Draw the weights along C, or for additive models the standard deviation of each feature's contribution.

        Parameters
        ----------
        path : RegularizationPath or AdditivePath
            The result of `regularization_path` or `AdditiveRankSVM.path`.
        chosen_C : float, optional
            The C to mark.
        feature_names : sequence of str, optional
            Names of the features; None: the names in the DataFrame that the path was computed from, if any.
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; None: axes of a new figure. The legend is outside of the axes if their figure has a layout
            engine (``plt.subplots(layout="constrained")``).
        **options : dict
            Options of `plot`.

        Returns
        -------
        PathDisplay
            The display, drawn.

        Raises
        ------
        DataError
            When there is not one name for each feature.
        MissingDependencyError
            When matplotlib is not installed.
        """
        additive = isinstance(path, AdditivePath)
        coefs, own = (path.spreads, path.names) if isinstance(path, AdditivePath) else (path.coefs, path.feature_names)
        names = own if feature_names is None else feature_names
        n_features = coefs.shape[1]
        if names is not None and len(names) != n_features:
            raise DataError(f"there are {len(names)} feature names, but the path has {n_features} features.")
        quantity = "spread of the shape" if additive else "weight"
        display = cls(path.Cs, coefs=coefs, feature_names=names, chosen_C=chosen_C, quantity=quantity)
        return display.plot(ax, **options)

    def plot(
        self,
        ax: "Axes | None" = None,
        *,
        n_named: int = 8,
        line_kw: dict[str, Any] | None = None,
        fill_between_kw: dict[str, Any] | None = None,
    ) -> "PathDisplay":
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Axes to draw on; None: axes of a new figure. The legend is outside of the axes if their figure has a layout
            engine (``plt.subplots(layout="constrained")``).
        n_named : int, default 8
            Number of features that have a color, dashes and a name; the others are gray. First, the features that
            have the largest absolute weight at some C are named, then those that have the second largest at some C, and
            so on.
        line_kw : dict, optional
            Passed to ``ax.plot`` for the mean score or the weights of the named features.
        fill_between_kw : dict, optional
            Passed to ``ax.fill_between`` for the band.

        Returns
        -------
        PathDisplay
            Itself.

        Raises
        ------
        MissingDependencyError
            When matplotlib is not installed.
        """
        self.ax_ = axes_or_new(ax, layout="constrained")
        self.figure_ = self.ax_.figure
        self.line_: Line2D | None = None
        self.fill_between_: PolyCollection | None = None
        self.chosen_line_: Line2D | None = None
        self.fold_lines_: list[Line2D] = []
        self.coef_lines_: list[Line2D] = []
        self.labels_: list[Annotation] = []
        c_axis(self.ax_, self.Cs)
        if self.scores is not None:
            named = self._plot_scores(line_kw or {}, fill_between_kw or {})
        else:
            named = self._plot_coefs(n_named, line_kw or {})
        if self.chosen_C is not None:
            self.chosen_line_ = self.ax_.axvline(
                self.chosen_C, **_CHOSEN, label=c_name(self.chosen_C) + self._setting + by_rule(self.rule)
            )
            named.append(self.chosen_line_)
        if named:
            legend_above(self.ax_, named)
        return self

    def _plot_scores(self, line_kw: dict[str, Any], fill_between_kw: dict[str, Any]) -> list["Artist"]:
        """Draw the scores; returns the handles of the legend."""
        assert self.scores is not None
        assert self.mean_scores is not None
        assert self.standard_errors is not None
        n_parts = self.scores.shape[1]
        if n_parts > 1:
            self.fold_lines_ = self.ax_.plot(self.Cs, self.scores, **_FOLD)
            self.fold_lines_[0].set_label(f"each of {n_parts} folds")
        label = f"mean of {n_parts} folds" if n_parts > 1 else "validation data"
        style: dict[str, Any] = {"marker": ".", "color": nth_color(0), "zorder": 3, "label": label} | line_kw
        (self.line_,) = self.ax_.plot(self.Cs, self.mean_scores, **style)
        named: list[Artist] = [*self.fold_lines_[:1], self.line_]
        if not np.isnan(self.standard_errors).all():
            low, high = self.mean_scores - self.standard_errors, self.mean_scores + self.standard_errors
            band: dict[str, Any] = {
                "alpha": 0.2,
                "color": nth_color(0),
                "linewidth": 0,
                "label": "± one standard error",
            }
            self.fill_between_ = self.ax_.fill_between(self.Cs, low, high, **(band | fill_between_kw))
            named.append(self.fill_between_)
            if self.rule == "one_standard_error":
                limit = low[np.nanargmax(self.mean_scores)] if self._limit is None else self._limit
                style = {
                    "color": nth_color(0),
                    "linestyle": ":",
                    "linewidth": 1.0,
                    "label": "best minus its standard error",
                }
                named.append(self.ax_.axhline(limit, **style))
        if self.chosen_C is not None and self.chosen_C in self.Cs:
            score = self.mean_scores[np.flatnonzero(self.Cs == self.chosen_C)[0]]
            self.ax_.plot(self.chosen_C, score, "o", markersize=8, markerfacecolor="none", color="0.4", zorder=4)
        self.ax_.set_ylabel(self.metric or "score")
        return named

    def _plot_coefs(self, n_named: int, line_kw: dict[str, Any]) -> list["Artist"]:
        """Draw the weights, and name the largest; returns the handles of the legend."""
        assert self.coefs is not None
        names = short_names(feature_labels(self.coefs.shape[1], self.feature_names))
        named = _largest_anywhere(self.coefs)[:n_named]
        self.coef_lines_ = self.ax_.plot(self.Cs, self.coefs, **_OTHER_FEATURE)
        for place, feature in enumerate(named):
            style = {**line_style(place), "linewidth": 1.5, "zorder": 2, "label": names[feature]} | line_kw
            self.coef_lines_[feature].set(**style)
        self.ax_.axhline(0.0, color="0.8", linewidth=0.8, zorder=0)
        self.ax_.set_ylabel(self.quantity)
        largest = np.abs(self.coefs).argmax(axis=1)
        style = {"linestyle": "none", "marker": "o", "markersize": 4, "markerfacecolor": "white", "zorder": 3}
        heights = self.coefs[np.arange(len(self.Cs)), largest]
        (marks,) = self.ax_.plot(self.Cs, heights, **style, color="0.4", label=f"largest {self.quantity} at this C")
        # lines end at the right edge, beside their names
        self.ax_.set_xlim(self.Cs[0] / 1.2, self.Cs[-1] * 1.2)
        self.labels_ = end_labels(self.ax_, [self.coef_lines_[f] for f in named], [names[f] for f in named])
        return [marks]


def _largest_anywhere(coefs: np.ndarray) -> np.ndarray:
    """The features, sorted by their best rank by absolute weight at any C, then by how often they have this rank."""
    places = np.argsort(np.argsort(-np.abs(coefs), axis=1, kind="stable"), axis=1)
    best = places.min(axis=0)
    return np.lexsort((-(places == best).sum(axis=0), best))
