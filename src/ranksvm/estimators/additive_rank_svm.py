"""AdditiveRankSVM: the sum of a linear part, a step function of each feature, and functions of two features."""

from collections.abc import Sequence
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import is_integer
from ranksvm.additive import AdditiveFunction
from ranksvm.estimators.additive_path import AdditivePath, additive_path
from ranksvm.estimators.base.additive_ranker import AdditiveRanker
from ranksvm.estimators.base.arguments import (
    EvalFeatures,
    EvalSets,
    Interactions,
    LossLike,
    MetricsLike,
    Monotone,
    Names,
    TrainingData,
)
from ranksvm.estimators.base.calibrated import CalibratedMixin
from ranksvm.estimators.base.dual_mixin import DualMixin
from ranksvm.estimators.base.inputs import read_evaluation_sets, read_training_data, resolve_files
from ranksvm.estimators.base.ranker import additive_options, all_or_nothing
from ranksvm.estimators.base.sklearn_base import BaseEstimator
from ranksvm.exceptions import OptionError
from ranksvm.fits.additive import additive_problem, additive_training_set
from ranksvm.fits.evaluation import joined_sets
from ranksvm.fits.interactions import solve_with_interactions
from ranksvm.fits.problem import interruptible_if
from ranksvm.fits.training_set import EvalArguments, TrainingArguments
from ranksvm.model_files.registry import storable

__all__ = ["DEFAULT_CS", "AdditiveRankSVM"]

# Values of C that paths and searches try by default: powers of 4 from 4^-7 to 4^2.
DEFAULT_CS = 4.0 ** np.arange(-7, 3)


@storable
class AdditiveRankSVM(CalibratedMixin, DualMixin, AdditiveRanker, BaseEstimator):
    """Additive RankSVM: a linear part and a step function of each feature, and functions of chosen pairs of features.

    The score is ``f(x) = sum_j (w_j x_j + f_j(x_j)) + sum over chosen (a, b) of f_ab(x_a, x_b)``. Each ``f_j`` is
    constant between quantiles of the training data, and each ``f_ab`` is constant on each cell of a grid over two
    features. All functions are learned at once by the convex problem of `RankSVM`, with its losses, pairs and weights,
    and with its certificate: the optimum is at most ``duality_gap_`` below ``objective_``. Such a model ranks about as
    well as boosted trees if single features have curved effects, and every part of it can be read, plotted and
    exported.

    Parameters
    ----------
    C : float, default 1.0
        Weight of a pair, as in `RankSVM`; `AdditiveRankSVMCV` chooses it.
    step_weight : float, default 1.0
        Weight of the steps relative to the linear part, at least 0. With 0, the model is linear in the features, which
        are scaled to a range of 1. `AdditiveRankSVMCV` chooses it.
    linear : bool, default True
        Whether there is a linear part. A model without one can be exported to every engine that evaluates trees.
    max_bins : int, default 32
        Maximum number of levels (bins of the values) of a feature, from 2 to 255, in addition to the level of missing
        values. The penalty hardly depends on it (see the notes), so that more levels do not overfit by themselves.
    interactions : int, "auto" or list of pair, default 0
        The functions of two features. For each pair of features, there is a bound on how much a function of the pair
        could lower the objective; a number n adds functions of the n pairs with the largest bounds. A list gives the
        pairs, each as the names or numbers (from 0) of two features. An empty list adds no function, but computes the
        bounds. "auto" chooses the number by ``eval_set``, from 0, 4, 8, 16, 32 and 64.
    interaction_bins : int, default 8
        Maximum number of levels of a feature in a function of two features, from 2 to 16, missing values included.
    categorical : list of str or int, or None, default None
        Names or numbers (from 0) of features whose values are categories without an order. Each of the ``max_bins - 1``
        most frequent categories has a weight of its own; other categories, and values that do not occur in the training
        data, add nothing to the score. In a DataFrame or a file such a feature may be text.
    loss, huber_width, pair_selection, pair_weighting : optional
        As in `RankSVM`.
    monotone : None, {"increasing", "decreasing"}, array-like of shape (n_features,) or dict, default None
        Features in which the score must increase or decrease, as in `RankSVM`. This applies to the linear part, the
        steps and the functions of two features (no such function combines a feature in which the score must increase
        with one in which it must decrease).
    solver, tol, max_iter, warm_start, keep_on_interrupt : optional
        As in `RankSVM`, without solver "dual".
    device : str, default "cpu"
        "cpu", "auto" or the name of a GPU, as in `RankSVM`. The level of each value, and the preconditioner, are
        computed on the CPU in any case; X must be in the memory of the host.
    memory_limit : int, str or None, default None
        As in `RankSVM`: data in a larger file are read in passes, on the CPU.
    n_jobs : int or None, default None
        Number of threads; None or -1 means all processors.
    verbose : int, default 0
        1 shows every iteration.

    Attributes
    ----------
    linear_coef_ : ndarray of float64, shape (n_features,)
        The weights w of the linear part, in the units of the features; 0 for categories.
    fill_ : ndarray of float64, shape (n_features,)
        The value that the linear part uses for missing values: the mean of the feature.
    cuts_, n_cuts_ : ndarray
        The cuts between the levels, one feature after the other (for a categorical feature, its values), and the number
        of cuts of each feature.
    categories_ : dict of str to list of str
        For each feature that was a column of text, its categories in alphabetical order: their numbers, from 0, are the
        values of the feature.
    has_missing_, is_categorical_ : ndarray of int64, shape (n_features,)
        1 for features with a level for missing values, and 1 for categorical features.
    shape_values_ : ndarray of float64
        The value of each level, one feature after the other; 0 for the first level of each feature.
    interactions_ : ndarray of int64, shape (n_interactions, 2)
        Numbers of the two features of each function of two features.
    interaction_cuts_, n_interaction_cuts_ : ndarray
        Cuts between the levels that features have in functions of two features.
    interaction_values_ : ndarray of float64
        The value of each cell (a level of one feature with a level of the other), one function after the other. The
        cells of a function are ordered by the level of the first feature, then by the level of the second.
    candidate_bounds_ : ndarray of float64, shape (n_features * (n_features - 1) / 2,), or None
        A bound for each pair of features, in the order (0, 1), (0, 2), ...: before any function was added, a function
        of both features could lower the objective by at most this bound plus ``duality_gap_``. None with
        ``interactions=0``, after `edit_shape`, and in the models of `path`.
    interaction_bounds_ : ndarray of float64, shape (n_features * (n_features - 1) / 2,), or None
        The same bounds for the fitted model; 0 for the pairs that have a function. All other functions together could
        lower the objective by at most the sum of these bounds plus ``duality_gap_``.
    monotone_ : ndarray of int64, shape (n_features,), or None
        1, -1 or 0 for each feature; None if all are free.
    ranges_ : ndarray of float64, shape (n_features, 2)
        The smallest and the largest training value of each feature.
    level_means_, level_shares_ : ndarray of float64
        For each level, in the order of ``shape_values_``: the mean of the training values at it, and the share of the
        training rows.
    cell_shares_ : ndarray of float64
        The share of the training rows in each cell, in the order of ``interaction_values_``.
    edited_ : dict of list, or None
        The edits that `edit_shape` has made: feature, objective and duality_gap (before the edit); None without edits.
    objective_, duality_gap_, converged_, status_, n_iter_, solver_, history_, width_, pair_alpha_, device_
        As in `RankSVM`.
    fitted_params_, n_pairs_, n_queries_, censored_, n_features_in_, feature_names_in_, frame_type_, qid_column_
        As in `RankSVM`.
    calibration_slope_, evals_result_
        As in `RankSVM`.

    See Also
    --------
    AdditiveRankSVMCV : Chooses C, the step weight and the number of interactions.
    RankSVM : The linear model.

    Notes
    -----
    Let u_j(x) in [0, 1] be the quantile of x among the training values of feature j. A step between two levels is a
    column ``sqrt(d) 1[x_j >= cut]``, where d is the share of the training values between the middles of the two levels.
    The penalty ``1/2 sum of w^2`` on the steps is therefore the discretized ``1/2 integral of f_j'(u)^2 du``: the
    kernel of the steps is ``min(u, u')`` (the intersection kernel: Maji, Berg & Malik, PAMI 2013). A function of two
    features has the products of their columns, and the kernel ``min(u_a, u_a') min(u_b, u_b')``. The linear part has
    features divided by their range. Related models are GA2M (Lou, Caruana, Gehrke & Hooker, KDD 2013), ranking GAMs
    (Zhuang et al., WSDM 2021) and ILMART (Lucchese et al., SIGIR 2022), none of which is convex.

    The objective is 1-strongly convex in the weights of a new function. Adding the function therefore lowers the
    objective by at most ``1/2 |g|^2``, where g is the gradient with respect to these weights. Histograms over cells
    give this bound for all pairs of features in one pass.

    Apart from the linear part, shapes depend only on the order of a feature's values: with ``linear=False``, a strictly
    increasing transformation of a feature changes no score of the training data.

    Examples
    --------
    >>> from ranksvm import AdditiveRankSVM, make_ranking
    >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
    >>> ranker = AdditiveRankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> ranker.predict(data.X).shape
    (1000,)
    >>> bool(ranker.duality_gap_ <= 1e-4 * ranker.objective_)
    True
    """

    _model_params = (
        "C",
        "step_weight",
        "linear",
        "loss",
        "huber_width",
        "pair_selection",
        "pair_weighting",
        "max_bins",
        "interaction_bins",
    )

    def __init__(
        self,
        C: float = 1.0,
        *,
        step_weight: float = 1.0,
        linear: bool = True,
        max_bins: int = 32,
        interactions: Interactions = 0,
        interaction_bins: int = 8,
        categorical: Sequence[str | int] | None = None,
        loss: LossLike = "squared_hinge",
        huber_width: float = 1.0,
        pair_selection: str = "all",
        pair_weighting: str = "uniform",
        monotone: Monotone | None = None,
        solver: str = "auto",
        tol: float = 1e-4,
        max_iter: int = 1000,
        warm_start: bool = False,
        keep_on_interrupt: bool = False,
        device: str = "cpu",
        memory_limit: int | str | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.C = C
        self.step_weight = step_weight
        self.linear = linear
        self.max_bins = max_bins
        self.interactions = interactions
        self.interaction_bins = interaction_bins
        self.categorical = categorical
        self.loss = loss
        self.huber_width = huber_width
        self.pair_selection = pair_selection
        self.pair_weighting = pair_weighting
        self.monotone = monotone
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.warm_start = warm_start
        self.keep_on_interrupt = keep_on_interrupt
        self.device = device
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self,
        X: TrainingData,
        y: ArrayLike | None = None,
        *,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
        pair_weight: ArrayLike | None = None,
        event: ArrayLike | None = None,
        eval_set: EvalSets | None = None,
        eval_qid: ArrayLike | None = None,
        eval_group: ArrayLike | None = None,
        eval_names: Names | None = None,
        eval_sample_weight: ArrayLike | None = None,
        eval_metric: MetricsLike | None = None,
        eval_at: int | Sequence[int] | None = None,
        eval_X: EvalFeatures | None = None,
        eval_y: ArrayLike | None = None,
    ) -> Self:
        """Learn the scoring function.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features), Preferences, RankingData, or path
            Features, as in `RankSVM.fit`. NaN is a missing value. A feature with missing values in the training data
            has a level for them; ``predict`` refuses NaN in other features. Zeros of a sparse matrix are values, not
            missing.
        y : array-like of shape (n_samples,)
            Relevance labels, as in `RankSVM.fit`.
        qid, group : array-like (or for qid str), optional
            Queries, as in `RankSVM.fit`.
        sample_weight, query_weight, propensity : array-like of shape (n_samples,), optional
            Weights, as in `RankSVM.fit`. Quantiles, and the means that shapes and contributions subtract, weight each
            row by its sample weight.
        pairs, pair_weight : array-like, optional
            Explicit preferences instead of ``y``, as in `RankSVM.fit`.
        event : array-like of bool, shape (n_samples,), optional
            Which of the times in ``y`` are observed, as in `RankSVM.fit`: a HIGHER SCORE MEANS A LONGER TIME.
        eval_set : list or tuple of tuples (X, y), or one such tuple, optional
            Data to evaluate the model on, as in `RankSVM.fit`. With ``interactions="auto"``, the first metric on the
            first set decides on the number of interactions.
        eval_X, eval_y : array-like, or tuples of array-likes, optional
            Instead of ``eval_set``: the features and the labels of one set, or of several, as in LightGBM 4.7.
        eval_qid, eval_group : list of array-like, or one for a single set, optional
            Queries of each set, as ``qid`` or ``group``. If ``qid`` named a column, the same column of the sets is
            used.
        eval_names, eval_sample_weight, eval_metric, eval_at : optional
            As in `RankSVM.fit`.

        Returns
        -------
        AdditiveRankSVM
            The fitted estimator.

        Raises
        ------
        NoComparablePairsError
            When no query has two documents with different labels.
        DataError
            When X has infinite values, y is not finite, or lengths differ.
        OptionError
            When a hyper-parameter has an invalid value.

        Warns
        -----
        ConvergenceWarning
            When the certificate does not meet ``tol``.
        UninformativeWarning, OneQueryWarning, ScaleWarning, LikelyMistakeWarning
            As in `RankSVM.fit`.
        """
        eval_set = joined_sets(eval_set, eval_X, eval_y)
        options = additive_options(self)
        if isinstance(self.interactions, str) and eval_set is None:
            raise OptionError(
                "interactions='auto' chooses their number on validation data: give eval_set=[(X, y)], or use "
                "AdditiveRankSVMCV."
            )
        with all_or_nothing(self, self.verbose):
            training = TrainingArguments(
                X,
                y,
                qid=qid,
                group=group,
                pairs=pairs,
                pair_weight=pair_weight,
                sample_weight=sample_weight,
                query_weight=query_weight,
                propensity=propensity,
                event=event,
            )
            training = resolve_files(training, self.memory_limit, missing=True, categorical=self.categorical)
            training = read_training_data(self, training)
            self.censored_ = event is not None
            names, missing = getattr(self, "feature_names_in_", None), self._features_with_missing()
            data = additive_training_set(training, options, names, missing)
            sets = read_evaluation_sets(
                self,
                EvalArguments(eval_set, eval_qid, eval_group, eval_names, eval_sample_weight, eval_metric, eval_at),
                training.X,
                data.n_queries,
            )
            problem = additive_problem(data, options)
            start = None
            if self.warm_start and hasattr(self, "shape_values_"):
                start = problem.start_from(self._function())
            with interruptible_if(self.keep_on_interrupt) as interrupted:
                if is_integer(self.interactions) and self.interactions == 0:
                    result = problem.solve(float(self.C), start, interrupted)
                    self.candidate_bounds_ = self.interaction_bounds_ = None
                else:
                    n_threads, name = data.n_threads, sets.metrics[0].name if sets else ""

                    def value(function: AdditiveFunction) -> float:
                        return sets.evaluate(partial(function.scores, n_threads=n_threads))[0].means[name]

                    found = solve_with_interactions(problem, float(self.C), start, interrupted, value)
                    problem, result = found.problem, found.result
                    self.candidate_bounds_, self.interaction_bounds_ = found.candidate_bounds, found.bounds
            self._assign_function(problem.function(result.w))
            self.monotone_ = data.levels.signs
            self._assign_outcome(problem.outcome(result))
            self.fitted_params_ = self._params_now()
            self.evals_result_ = sets.evals_result([sets.evaluate(self._scores)])
        return self

    def path(
        self,
        X: TrainingData,
        y: ArrayLike | None = None,
        *,
        Cs: ArrayLike | None = None,
        qid: ArrayLike | None = None,
        group: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        query_weight: ArrayLike | None = None,
        propensity: ArrayLike | None = None,
        pairs: ArrayLike | None = None,
        pair_weight: ArrayLike | None = None,
        event: ArrayLike | None = None,
    ) -> AdditivePath:
        """Models for several values of C, each fit starting from the previous ones.

        The levels are computed once. For data in a file all values of C share each pass.

        Parameters
        ----------
        X, y, qid, group, sample_weight, query_weight, propensity, pairs, pair_weight, event : optional
            As in `fit`.
        Cs : array-like of float, optional
            The values of C, in any order; by default the powers of 4 from 4^-7 to 4^2.

        Returns
        -------
        AdditivePath
            ``Cs``, ascending; ``models``, a fitted `AdditiveRankSVM` for each, with its certificate; and ``spreads``,
            the standard deviation of each shape, which `PathDisplay.from_path` draws.

        Raises
        ------
        OptionError
            When a C is not positive, or ``interactions`` is "auto" or a number above 0: give a list of pairs.

        Examples
        --------
        >>> from ranksvm import AdditiveRankSVM, make_ranking
        >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
        >>> path = AdditiveRankSVM().path(data.X, data.y, qid=data.qid, Cs=[0.001, 0.01, 0.1])
        >>> path.spreads.shape, path.models[1].C
        ((3, 10), 0.01)
        """
        return additive_path(
            self,
            X,
            y,
            Cs,
            DEFAULT_CS,
            qid=qid,
            group=group,
            sample_weight=sample_weight,
            query_weight=query_weight,
            propensity=propensity,
            pairs=pairs,
            pair_weight=pair_weight,
            event=event,
        )
