"""ShapeDisplay: what features of an additive model, and pairs of features, add to the scores."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ranksvm.additive.shapes import Cells, Shape
from ranksvm.analysis.bands import ShapeBands
from ranksvm.estimators.base.additive_ranker import AdditiveRanker
from ranksvm.exceptions import OptionError
from ranksvm.plotting._shape_axes import draw_cells, draw_shape, value_limits
from ranksvm.plotting.figures import axes_or_new, literal, short_names

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["ShapeDisplay"]

# Width and height of the axes of one shape, in inches.
WIDTH, HEIGHT = 3.0, 2.3


class ShapeDisplay:
    """Shapes of the features of an additive model, and the cells of its interactions, the largest first.

    A shape is the sum of the linear part and the steps of a feature, with mean 0 over the training rows; all shapes
    have the same vertical axis. A feature with one value at each level is drawn as a point for each level, and a
    category as a bar. Missing values have a separate mark at the right. Gray bars at the bottom show where the training
    rows are. The cells of all interactions have one color scale; cells without training rows are gray. The values of an
    interaction are added to the shapes of its features.

    Parameters
    ----------
    terms : sequence of Shape or Cells
        What to draw, in this order.
    bands : ShapeBands, optional
        Bands of the shapes.

    Attributes
    ----------
    axes_ : list of matplotlib Axes
        The axes of each term.
    figure_ : matplotlib Figure
        Their figure.

    See Also
    --------
    ranksvm.analysis.shape_bands : Bands of shapes.

    Examples
    --------
    >>> from ranksvm import AdditiveRankSVM, make_ranking, plotting
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = AdditiveRankSVM(C=0.01, interactions=1).fit(data.X, data.y, qid=data.qid)
    >>> len(plotting.ShapeDisplay.from_estimator(ranker, top=3).axes_)
    3
    """

    def __init__(self, terms: Sequence[Shape | Cells], *, bands: ShapeBands | None = None):
        self.terms = terms
        self.bands = bands

    @classmethod
    def from_estimator(
        cls,
        estimator: AdditiveRanker,
        features: Sequence[Any] | None = None,
        *,
        top: int | None = 9,
        bands: ShapeBands | None = None,
        ax: "Axes | Sequence[Axes] | np.ndarray | None" = None,
        **options: Any,
    ) -> "ShapeDisplay":
        """Draw shapes and interactions of a model.

        Parameters
        ----------
        estimator : AdditiveRankSVM or AdditiveRankSVMCV
            A fitted model.
        features : sequence of str, int or pair, optional
            Names or numbers (from 0) of features, and pairs of them for interactions; None: the terms whose values
            spread most over the training rows.
        top : int or None, default 9
            Without ``features``: the maximum number of terms; None: all that are not 0.
        bands : ShapeBands, optional
            The result of `ranksvm.analysis.shape_bands`.
        ax : matplotlib Axes, or sequence of them, optional
            Axes for each term; None: axes of a new figure.
        **options : dict
            Options of `plot`.

        Returns
        -------
        ShapeDisplay
            The display, drawn.

        Raises
        ------
        OptionError
            When the estimator is of another kind, or there are no such features or interactions.
        NotFittedError
            When it is not fitted.
        MissingDependencyError
            When matplotlib is not installed.
        """
        if not isinstance(estimator, AdditiveRanker):
            raise OptionError(
                f"ShapeDisplay shows an AdditiveRankSVM or AdditiveRankSVMCV, got a {type(estimator).__name__}. For a "
                "Pipeline pass the last step, pipeline[-1]."
            )
        terms: list[Shape | Cells] = [*estimator.shapes(), *estimator.interaction_shapes()]
        if features is not None:
            terms = [_chosen(terms, feature) for feature in features]
        else:
            terms = [term for term in sorted(terms, key=lambda term: -term.spread) if term.spread > 0.0][:top]
        return cls(terms, bands=bands).plot(ax, **options)

    def plot(
        self,
        ax: "Axes | Sequence[Axes] | np.ndarray | None" = None,
        *,
        n_columns: int = 3,
        by_levels: bool | None = None,
    ) -> "ShapeDisplay":
        """Draw the plot.

        Parameters
        ----------
        ax : matplotlib Axes, or sequence of them, optional
            Axes for each term; None: axes of a new figure.
        n_columns : int, default 3
            Maximum number of columns of a new figure.
        by_levels : bool or None, default None
            Whether all levels of a feature have the same width, instead of the width of their interval. None: only if
            half of the levels are within a tenth of the range of the values.

        Returns
        -------
        ShapeDisplay
            Itself, with ``axes_`` and ``figure_``.

        Raises
        ------
        OptionError
            When the number of axes is not the number of terms.
        MissingDependencyError
            When matplotlib is not installed.
        """
        n = len(self.terms)
        if ax is None:
            columns = max(1, min(n_columns, n))
            rows = max(1, math.ceil(n / columns))
            size = (WIDTH * columns + 0.4, HEIGHT * rows)
            grid: np.ndarray = axes_or_new(
                None, nrows=rows, ncols=columns, squeeze=False, figsize=size, layout="constrained"
            )
            axes = grid.ravel().tolist()
            for empty in axes[n:]:
                empty.set_axis_off()
            axes = axes[:n]
        else:
            axes = np.asarray(ax, dtype=object).ravel().tolist()
            columns = 1
            if len(axes) != n:
                raise OptionError(f"ax has {len(axes)} axes, but {n} terms are drawn: give one for each.")
        shapes = [term for term in self.terms if isinstance(term, Shape)]
        limits = value_limits(shapes, self.bands)
        cells = [np.abs(term.values).max() for term in self.terms if isinstance(term, Cells)]
        for place, (each, term) in enumerate(zip(axes, self.terms, strict=True)):
            if isinstance(term, Cells):
                mesh = draw_cells(each, term, max(cells) or 1.0)
                bar = each.figure.colorbar(mesh, ax=each)
                # as vectors, because pages that load no files do not show a bitmap within an SVG
                bar.solids.set_rasterized(False)
                bar.ax.tick_params(labelsize="x-small")
                each.set_title(literal(" x ".join(short_names(term.names))), fontsize="medium")
            else:
                band = (
                    None if self.bands is None else (self.bands.curves[term.feature], self.bands.values[term.feature])
                )
                draw_shape(each, term, limits, band, by_levels)
                each.set_title(literal(short_names([term.name])[0]), fontsize="medium")
                each.tick_params(labelsize="small")
                if place % columns == 0:
                    each.set_ylabel("added to the score", fontsize="small")
        self.axes_ = axes
        self.figure_ = axes[0].figure if axes else grid.ravel()[0].figure
        return self


def _chosen(terms: list[Shape | Cells], feature: Any) -> Shape | Cells:
    """The term of a feature, or of a pair of them, by name or number."""
    wanted = [feature] if isinstance(feature, str) or np.isscalar(feature) else list(feature)
    for term in terms:
        if isinstance(term, Shape):
            found = [(term.feature, term.name)]
        else:
            found = [(term.first, term.names[0]), (term.second, term.names[1])]
        if len(found) == len(wanted) and all(any(each in one for one in found) for each in wanted):
            return term
    raise OptionError(f"the model has no term of {feature!r}.")
