"""How much the shapes of an additive model depend on the sample of queries."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util import checks
from ranksvm._util.random_states import random_numbers
from ranksvm._util.types import MatrixLike
from ranksvm.additive.shapes import Shape
from ranksvm.analysis.intervals import checked_level
from ranksvm.data import Queries
from ranksvm.device.arrays import host_values
from ranksvm.estimators.base.additive_ranker import AdditiveRanker
from ranksvm.estimators.base.ranker import check_is_fitted
from ranksvm.exceptions import DataError, OptionError

if TYPE_CHECKING:
    from ranksvm.estimators import AdditiveRankSVM, AdditiveRankSVMCV

__all__ = ["ShapeBands", "shape_bands"]

# Relative duality gap of the refits: bands need no higher accuracy.
TOLERANCE = 1e-3


@dataclass(frozen=True, eq=False)
class ShapeBands:
    """Bands that show how much the shapes of an additive model vary between refits, at each point.

    Attributes
    ----------
    level : float
        Share of the refits that lie within the band at each point.
    curves : list of ndarray of float64, each of shape (2, 2 * (n_steps + 1))
        Lower and upper end for each feature at the points of `Shape.curve`.
    values : list of ndarray of float64, each of shape (2, n_levels)
        Lower and upper end for each feature at its levels, for ``Shape.values``.

    Examples
    --------
    >>> from ranksvm import AdditiveRankSVM, analysis, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=3, random_state=0)
    >>> ranker = AdditiveRankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> analysis.shape_bands(ranker, data.X, data.y, data.qid, n_refits=5)
    ShapeBands(3 features, level 0.9)
    """

    level: float
    curves: list[np.ndarray]
    values: list[np.ndarray]

    def __repr__(self) -> str:
        return f"ShapeBands({len(self.values)} features, level {self.level:g})"


def shape_bands(
    model: "AdditiveRankSVM | AdditiveRankSVMCV",
    X: MatrixLike,
    y: ArrayLike,
    qid: ArrayLike | None = None,
    *,
    group: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    query_weight: ArrayLike | None = None,
    n_refits: int = 50,
    level: float = 0.9,
    n_jobs: int | None = None,
    random_state: int | np.random.RandomState | None = 0,
) -> ShapeBands:
    """Bands of the shapes of an additive model, from refits with random weights of the queries.

    This is the Bayesian bootstrap (Rubin, Annals of Statistics 9, 1981): each refit multiplies the weights of queries
    by independent exponential variables with mean 1. The levels and interactions of the model, C and the step weight do
    not change. The ends of a band are quantiles of the refits at each point, after each shape has been shifted to mean
    0. A band shows how much a shape depends on the sample of queries, not how far the shape is from the true one.

    Parameters
    ----------
    model : AdditiveRankSVM or AdditiveRankSVMCV
        A model that was fitted to labels, without ``propensity``, ``pairs`` and ``event``. It is not changed.
    X, y : array-like
        Its training data.
    qid, group : array-like (or for qid str), optional
        Their queries, as in `AdditiveRankSVM.fit`. There must be several.
    sample_weight, query_weight : array-like of shape (n_samples,), optional
        As in `AdditiveRankSVM.fit`.
    n_refits : int, default 50
        Number of refits, each of which takes about as long as a fit.
    level : float, default 0.9
        Share of the refits that lie within the band at each point.
    n_jobs : int or None, default None
        Number of threads of a fit; None or -1: the number of processors.
    random_state : int, RandomState or None, default 0
        Seed of the weights.

    Returns
    -------
    ShapeBands
        The bands, which `ranksvm.plotting.ShapeDisplay` draws.

    Raises
    ------
    OptionError
        When the model is of another kind, or an option has an invalid value.
    DataError
        When the data are not the model's training data, or belong to one query.

    Examples
    --------
    >>> from ranksvm import AdditiveRankSVM, make_ranking
    >>> from ranksvm.analysis import shape_bands
    >>> data = make_ranking(n_queries=30, n_docs=10, n_features=3, random_state=0)
    >>> ranker = AdditiveRankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> low, high = shape_bands(ranker, data.X, data.y, data.qid, n_refits=10).values[0]
    >>> low.shape, bool((low <= high).all())
    ((32,), True)
    """
    if not isinstance(model, AdditiveRanker):
        raise OptionError(f"shape_bands needs an AdditiveRankSVM or AdditiveRankSVMCV, got {model!r}.")
    check_is_fitted(model)
    checks.check(n_refits=checks.count(n_refits, 2))
    level, random = checked_level(level), random_numbers(random_state)
    X, qid = model._split_qid(X, qid)
    qid, group = map(host_values, (qid, group))
    queries = Queries.of(qid, group, checks.n_rows_of(X))
    if queries.n_queries < 2:
        raise DataError("all rows belong to one query, but bands need several queries: give qid.")
    refit = _unfitted(model, n_jobs)
    given = np.ones(queries.n_rows) if query_weight is None else np.asarray(query_weight, dtype=np.float64)
    shapes, curves, values = model.shapes(), [], []
    for _ in range(n_refits):
        weights = random.standard_exponential(queries.n_queries)[queries.numbers()]
        refit.fit(X, y, qid=queries.numbers(), sample_weight=sample_weight, query_weight=given * weights)
        found = refit.shapes()
        if refit.n_pairs_ != model.n_pairs_:
            raise DataError(
                f"these labels give {refit.n_pairs_} pairs, but the model was fitted to {model.n_pairs_}: bands need "
                "the training data of a model that was fitted without pairs and event."
            )
        if any(not _same_levels(one, other) for one, other in zip(found, shapes, strict=True)):
            raise DataError("these are not the data that the model was fitted to: their values have other levels.")
        curves.append([each.curve()[1] for each in found])
        values.append([each.values for each in found])
    ends = [(1.0 - level) / 2.0, (1.0 + level) / 2.0]
    quantiles = [
        [np.quantile(np.array(of_feature), ends, axis=0) for of_feature in zip(*part, strict=True)]
        for part in (curves, values)
    ]
    return ShapeBands(level, *quantiles)


def _same_levels(one: Shape, other: Shape) -> bool:
    """Whether two shapes have the same levels, up to round-off: weights may have been added in another order."""
    pairs = (one.ends, other.ends), (one.shares, other.shares)
    return all(a.shape == b.shape and np.allclose(a, b, rtol=1e-9, atol=0.0) for a, b in pairs)


def _unfitted(model: "AdditiveRankSVM | AdditiveRankSVMCV", n_jobs: int | None) -> "AdditiveRankSVM":
    """An unfitted AdditiveRankSVM with the parameters, categories and interactions of a model."""
    found = model._with_same_params()
    chosen = [(int(a), int(b)) for a, b in model.interactions_]
    return found.set_params(interactions=chosen or 0, tol=TOLERANCE, n_jobs=n_jobs, verbose=0)
