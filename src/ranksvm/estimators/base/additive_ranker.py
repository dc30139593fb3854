"""Base of the rankers with an additive scoring function: it describes what each feature adds to the scores."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Self, cast
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import is_sparse
from ranksvm._util.text import feature_labels
from ranksvm._util.threads import effective_n_jobs
from ranksvm._util.types import Features, MatrixLike
from ranksvm.additive import AdditiveFunction, TrainingShares
from ranksvm.additive.function import FunctionArrays, arrays_of, function_of, joined
from ranksvm.additive.interactions import all_pairs
from ranksvm.additive.shapes import Cells, Shape, edited_steps, shapes_of, term_labels, term_means
from ranksvm.data import Preferences, Queries, frames, validation
from ranksvm.data.statistics import within_query_variance
from ranksvm.data.text_categories import coded, learned_categories
from ranksvm.datasets.file_data import TextFeatures
from ranksvm.estimators.base.arguments import Validated
from ranksvm.estimators.base.ranker import Ranker, additive_options, check_is_fitted
from ranksvm.exceptions import DataError, ModelFileError
from ranksvm.fits.additive import fitted_problem, fitted_terms
from ranksvm.fits.additive_options import AdditiveOptions, feature_numbers
from ranksvm.fits.results.explanation import Contributions, Explanation
from ranksvm.fits.training_set import TrainingArguments
from ranksvm.model_files.schema import Array, Schema, TextLists, Trace

__all__ = ["AdditiveRanker"]

# The scoring function of each ranker that has computed scores, and the attributes from which it was built.
_FUNCTIONS: WeakKeyDictionary[Any, tuple[tuple[Any, ...], AdditiveFunction]] = WeakKeyDictionary()


class AdditiveRanker(Ranker):
    """Base of the rankers whose score is a sum of functions of one feature and functions of two features."""

    _takes_missing = True
    _copies_from_devices = True  # the levels of the features are computed on the host
    # Features of all data, while ``fit`` learns from a part of the data within `knowing_all_data`; otherwise None.
    _all_data: Any = None
    categorical: Sequence[str | int] | None
    _earlier_names: ClassVar = {"coef_": "linear_coef_"}
    _fitted_schema: ClassVar[Schema] = {
        "linear_coef_": Array("n_features"),
        "fill_": Array("n_features"),
        "has_missing_": Array("n_features", dtype="int64", minimum=0, maximum=1),
        "is_categorical_": Array("n_features", dtype="int64", minimum=0, maximum=1),
        "n_cuts_": Array("n_features", dtype="int64", minimum=0),
        "cuts_": Array("n_all_cuts"),
        "shape_values_": Array("n_levels"),
        "interactions_": Array("n_interactions", 2, dtype="int64", minimum=0),
        "n_interaction_cuts_": Array("n_features", dtype="int64", minimum=0),
        "interaction_cuts_": Array("n_all_interaction_cuts"),
        "interaction_values_": Array("n_cells"),
        "interaction_bounds_": Array("n_feature_pairs", nullable=True),
        "candidate_bounds_": Array("n_feature_pairs", nullable=True),
        "monotone_": Array("n_features", dtype="int64", minimum=-1, maximum=1, nullable=True),
        "ranges_": Array("n_features", 2),
        "level_means_": Array("n_levels"),
        "level_shares_": Array("n_levels", minimum=0.0, maximum=1.0),
        "cell_shares_": Array("n_cells", minimum=0.0, maximum=1.0),
        "edited_": Trace(nullable=True),
        "categories_": TextLists(default={}),
    }

    linear_coef_: np.ndarray
    fill_: np.ndarray
    has_missing_: np.ndarray
    is_categorical_: np.ndarray
    n_cuts_: np.ndarray
    cuts_: np.ndarray
    shape_values_: np.ndarray
    interactions_: np.ndarray
    n_interaction_cuts_: np.ndarray
    interaction_cuts_: np.ndarray
    interaction_values_: np.ndarray
    interaction_bounds_: np.ndarray | None
    candidate_bounds_: np.ndarray | None
    monotone_: np.ndarray | None
    ranges_: np.ndarray
    level_means_: np.ndarray
    level_shares_: np.ndarray
    cell_shares_: np.ndarray
    edited_: dict[str, list[Any]] | None
    categories_: dict[str, list[str]]
    objective_: float
    duality_gap_: float
    converged_: bool
    status_: str
    width_: float | None

    @property
    def feature_importances_(self) -> np.ndarray:
        """Share of each feature in the spread of the scores; ndarray of float64, shape (n_features,).

        The spread of a feature is the standard deviation, over the training rows, of its values in `shapes`. Half of
        the spread of each interaction is added to each of its two features. `feature_importance` measures the spread
        within queries of any data.
        """
        shapes, cells = self._described()
        sizes = np.array([shape.spread for shape in shapes])
        for pair, cell in zip(self.interactions_, cells, strict=True):
            sizes[pair] += cell.spread / 2
        total = sizes.sum()
        shares: np.ndarray = sizes / total if total > 0.0 else sizes
        return shares

    def shapes(self) -> list[Shape]:
        """What each feature adds to scores, as a function of its value.

        Returns
        -------
        list of Shape
            The linear part and the steps of each feature, with mean 0 over the training rows. Each is printed as a
            table of its levels, and has ``to_frame``, ``to_csv``, ``values`` and ``spread``.

        See Also
        --------
        ranksvm.plotting.ShapeDisplay : Draws them.

        Examples
        --------
        >>> import numpy as np
        >>> from ranksvm import AdditiveRankSVM
        >>> X, y = np.array([[1.0], [2.0], [3.0], [4.0]]), [0, 2, 2, 1]
        >>> ranker = AdditiveRankSVM(C=1e4, tol=1e-10).fit(X, y, group=[4])
        >>> ranker.shapes()[0].values.round(2).tolist()
        [-1.25, 0.75, 0.75, -0.25]
        """
        return self._described()[0]

    def interaction_shapes(self) -> list[Cells]:
        """What each interaction adds to scores, for each cell: a level of one feature with a level of another.

        Returns
        -------
        list of Cells
            The cells of each interaction, with mean 0 over the training rows, and ``to_frame`` as in `shapes`.
        """
        return self._described()[1]

    def contributions(self, X: MatrixLike) -> Contributions:
        """What each feature and each interaction adds to the score of each document.

        Parameters
        ----------
        X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
            Features.

        Returns
        -------
        Contributions
            In the form that ``shap.Explanation`` takes: ``values``, ``base_values``, ``data``, ``feature_names``. The
            values of a row and its base value add up to its score.

        Raises
        ------
        DataError
            When the features of X are not the model's.
        """
        rows, function = self._host_features(X), self._trained_function()
        means = term_means(function)
        data = np.full((rows.shape[0], len(means)), np.nan)
        data[:, : function.n_features] = rows.toarray() if is_sparse(rows) else rows
        values = np.hstack(function.contributions(rows)) - means
        names = term_labels(function, getattr(self, "feature_names_in_", None))
        return Contributions(values, np.full(len(values), means.sum()), data, names)

    def explain(
        self, X: MatrixLike, qid: ArrayLike | None = None, *, feature_names: ArrayLike | None = None
    ) -> Explanation:
        """Attribution of score differences within queries to the features and interactions.

        Document i ranks above document j of its query because ``s_i - s_j`` is the sum, over the terms (features and
        interactions), of the differences of their contributions. The score of document i, minus the mean score of its
        query, is the sum of the differences between its contributions and their means over the query.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, as in `rank`.
        feature_names : array-like of str, shape (n_features,), optional
            Names of the features; None: the column names, if `fit` was given a DataFrame.

        Returns
        -------
        Explanation
            With methods ``document(row)``, ``pair(row, other_row)`` and ``query(id)``, and all ``contributions``.

        Raises
        ------
        DataError
            When the features of X are not the model's, or lengths differ.

        Examples
        --------
        >>> from ranksvm import AdditiveRankSVM, make_ranking
        >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
        >>> ranker = AdditiveRankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
        >>> pair = ranker.explain(data.X, data.qid).pair(3, 0)
        >>> bool(abs(pair.contributions.sum() - pair.difference) < 1e-12)
        True
        """
        X, ids = self._split_qid(X, qid)
        rows = self._host_features(X)
        names, function = self._names_or(feature_names), self._function()
        parts = np.hstack(function.contributions(rows))
        labels = None if names is None and not function.interactions else term_labels(function, names)
        queries = Queries.from_qid(ids, len(parts))
        return Explanation(parts, None, self._scores(rows), queries, labels, rows, self._texts)

    def feature_importance(self, X: MatrixLike, qid: ArrayLike | None = None) -> np.ndarray:
        """Importance of each feature, then of each interaction: standard deviation of its contribution within queries.

        The variance is pooled over the queries, as in `RankSVM.feature_importance`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.
        qid : array-like of shape (n_samples,) or str, optional
            Query of each row, as in `rank`.

        Returns
        -------
        ndarray of float64, shape (n_features + n_interactions,)
            The importances, in the unit of the scores; 0 if no query has two documents. The order is that of
            ``contributions(X).feature_names``.

        See Also
        --------
        ranksvm.analysis.feature_importance : The same for a Pipeline that ends with a ranker.
        """
        X, ids = self._split_qid(X, qid)
        rows = self._host_features(X)
        parts = np.hstack(self._function().contributions(rows))
        queries = Queries.from_qid(ids, len(parts))
        spread: np.ndarray = np.sqrt(within_query_variance(parts, queries, effective_n_jobs(self.n_jobs)))
        return spread

    def edit_shape(
        self,
        feature: str | int,
        values: ArrayLike | Mapping[int, float],
        X: MatrixLike | Preferences | None = None,
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
    ) -> Self:
        """Copy the model, replace the steps of one feature by given ones, and compute the cost of this change.

        If the training data are given, ``objective_`` and ``duality_gap_`` of the copy are computed for the new steps;
        the gap bounds how far the edited model is from the optimum. Without the training data, the gap is infinite,
        because the cost is unknown, and ``objective_`` keeps its value from before the edit.

        Parameters
        ----------
        feature : str or int
            Name or number (from 0) of the feature.
        values : array-like of shape (n_levels,), or dict of int to float
            The new steps: one for each level, like the column ``step`` in the tables of `shapes`; or a dict from the
            numbers of some levels to their steps. Only the differences between steps matter. The linear part stays.
        X : array-like, sparse matrix, DataFrame or Preferences, optional
            Features of the training data. Data that ``fit`` took as a path or `RankingData` are passed as arrays.
        y : array-like, optional
            Labels of the training data.
        qid, group, sample_weight, query_weight, propensity, pairs, pair_weight, event : array-like, optional
            As in ``fit``, with the same values.

        Returns
        -------
        AdditiveRankSVM
            The copy, of the same class. ``edited_`` lists, for each edit in order, the number of the feature, and the
            objective and the gap before the edit.

        Raises
        ------
        DataError
            When the data are not those that the model was fitted to.
        OptionError
            When the feature or a level does not exist; when the steps contradict ``monotone``; or when the model cannot
            have such steps, as with ``step_weight=0``.

        Examples
        --------
        >>> from ranksvm import AdditiveRankSVM, make_ranking
        >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
        >>> ranker = AdditiveRankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
        >>> flat = ranker.edit_shape(0, [0.0] * 32, data.X, data.y, qid=data.qid)
        >>> flat.objective_ > ranker.objective_, flat.objective_ - flat.duality_gap_ < ranker.objective_
        (True, True)
        """
        check_is_fitted(self)
        names = getattr(self, "feature_names_in_", None)
        (number,) = feature_numbers("edit_shape", [feature], self.n_features_in_, names)
        before, options = self._trained_function(), self._fitted_options()
        scales = fitted_terms(before, options).scales_of(number)
        sign = 0 if self.monotone_ is None else int(self.monotone_[number])
        shapes = list(before.shapes)
        shapes[number] = edited_steps(before.bins[number], shapes[number], values, scales, sign)
        function = replace(before, shapes=shapes)
        edited = copy.copy(self)
        vars(edited).pop("calibration_slope_", None)
        edited._assign_function(function)
        edited.candidate_bounds_ = edited.interaction_bounds_ = None
        edited.converged_, edited.status_, edited.duality_gap_ = False, "edited by hand", float("inf")
        earlier = self.edited_ or {"feature": [], "objective": [], "duality_gap": []}
        now = {"feature": number, "objective": self.objective_, "duality_gap": self.duality_gap_}
        edited.edited_ = {name: [*earlier[name], value] for name, value in now.items()}
        if X is not None:
            if isinstance(X, Preferences):
                qid, pairs, pair_weight = X.arguments(y=y, qid=qid, group=group, pairs=pairs, pair_weight=pair_weight)
                X = frames.stacked(*X.blocks)
            frames.refuse_containers(X)
            if y is None and pairs is None:
                raise DataError("edit_shape: X is given without y or pairs, and the objective needs all training data.")
            X, ids = self._split_qid(X, qid)
            rows = self._host_features(X)
            training = TrainingArguments(
                rows,
                None if y is None else validation.checked_labels(y, rows.shape[0]),
                qid=ids,
                group=group,
                sample_weight=sample_weight,
                query_weight=query_weight,
                propensity=propensity,
                pairs=pairs,
                pair_weight=pair_weight,
                event=event,
            )
            problem = fitted_problem(training, options, function, self.monotone_)
            objective, gap = problem.certificate(function, float(self.fitted_params_["C"]), self.width_)
            edited.objective_ = objective
            # the lower bound on the minimum from before the edit still holds
            edited.duality_gap_ = min(gap, objective - (self.objective_ - self.duality_gap_))
        return edited

    def interaction_table(self) -> Any:
        """All pairs of features, with bounds on how much a function of both could lower the objective.

        Returns
        -------
        DataFrame or structured ndarray
            Columns ``first``, ``second`` (names of the features), ``bound`` (the most by which a function of both could
            have lowered the objective, before any was added), ``left`` (the most by which a function added to the
            fitted model could lower the objective; 0 for pairs that have one) and ``chosen``; the largest bound first.
            These are ``candidate_bounds_`` and ``interaction_bounds_``, to which the duality gap has to be added.

        Raises
        ------
        DataError
            When there are no bounds: the model was fitted with ``interactions=0``, made by `edit_shape`, or is one of
            `AdditiveRankSVM.path`.
        """
        check_is_fitted(self)
        if self.candidate_bounds_ is None or self.interaction_bounds_ is None:
            raise DataError("there are no bounds: fit with interactions, a number (or 'auto') or a list of pairs.")
        names = np.array(feature_labels(self.n_features_in_, getattr(self, "feature_names_in_", None)), dtype=str)
        pairs = all_pairs(self.n_features_in_)
        order = np.argsort(-self.candidate_bounds_, kind="stable")
        chosen = {tuple(pair) for pair in self.interactions_.tolist()}
        columns = {
            "first": names[pairs[order, 0]],
            "second": names[pairs[order, 1]],
            "bound": self.candidate_bounds_[order],
            "left": self.interaction_bounds_[order],
            "chosen": np.array([tuple(pair) in chosen for pair in pairs[order].tolist()], dtype=bool),
        }
        return frames.table_from(columns, self.frame_type_)

    def _assign_function(self, function: AdditiveFunction) -> None:
        """Set the attributes of a scoring function."""
        arrays = arrays_of(function)
        self.linear_coef_ = arrays.linear_coef
        self.fill_ = arrays.fill
        self.has_missing_ = arrays.has_missing
        self.is_categorical_ = arrays.is_categorical
        self.n_cuts_ = arrays.n_cuts
        self.cuts_ = arrays.cuts
        self.shape_values_ = arrays.shape_values
        self.interactions_ = arrays.interactions
        self.n_interaction_cuts_ = arrays.n_interaction_cuts
        self.interaction_cuts_ = arrays.interaction_cuts
        self.interaction_values_ = arrays.interaction_values
        training = function.training
        assert training is not None
        self.ranges_ = training.ranges
        self.level_means_ = joined(training.means)
        self.level_shares_ = joined(training.shares)
        self.cell_shares_ = joined(training.cells)
        self.edited_ = None

    def _trained_function(self) -> AdditiveFunction:
        """The scoring function, with the distribution of the training rows over levels and cells."""
        check_is_fitted(self)
        function = self._function()
        ends = np.cumsum([each.n_levels for each in function.bins])[:-1]
        means, shares = np.split(self.level_means_, ends), np.split(self.level_shares_, ends)
        shapes = [each.values.shape for each in function.interactions]
        parts = np.split(self.cell_shares_, np.cumsum([rows * columns for rows, columns in shapes])[:-1])
        cells = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=False)]
        return replace(function, training=TrainingShares(self.ranges_, means, shares, cells))

    def _described(self) -> tuple[list[Shape], list[Cells]]:
        return shapes_of(self._trained_function(), getattr(self, "feature_names_in_", None), self._texts)

    def _fitted_options(self) -> AdditiveOptions:
        """The hyper-parameters that define the fitted model; levels, interactions and signs come from attributes."""
        without = {"monotone": None, "categorical": None, "interactions": 0}
        return additive_options(
            self, **without, solver="auto", device="cpu", tol=1e-4, max_iter=1, **self.fitted_params_
        )

    def _function(self) -> AdditiveFunction:
        """The scoring function, from the fitted attributes."""
        arrays = FunctionArrays(*(getattr(self, f"{name}_") for name in FunctionArrays._fields))
        names = getattr(self, "feature_names_in_", None)
        fitted = (*arrays, names)
        last = _FUNCTIONS.get(self)
        if last is None or any(one is not other for one, other in zip(last[0], fitted, strict=True)):
            last = _FUNCTIONS[self] = fitted, replace(function_of(arrays), names=names)
        return last[1]

    def _features_with_missing(self) -> np.ndarray | None:
        """For each feature, whether a value is missing anywhere in all data; None if ``fit`` gets all data."""
        if self._all_data is None:
            return None
        blocks = self._all_data.blocks if isinstance(self._all_data, Preferences) else [self._all_data]
        found: np.ndarray = np.any([frames.columns_with_missing(block) for block in blocks], axis=0)
        return found

    def _learn_categories(self, X: Any, text_features: TextFeatures | None) -> Any:
        self.categories_ = {}
        if text_features is None and not frames.is_frame(X):
            return X
        names = frames.column_names(X) if text_features is None else text_features.names
        given = self.categorical if self.categorical is not None else ()
        listed = [names[number] for number in feature_numbers("categorical", given, len(names), names)]
        if text_features is None:
            self.categories_, texts = learned_categories(X, listed), frames.text_columns(X)
        else:
            self.categories_, texts = text_features.categories, list(text_features.categories)
        if left := [name for name in texts if name not in listed]:
            frames.refuse_reserved_columns(left)
            raise DataError(
                f"X has columns of text: {', '.join(map(repr, left))}. Name those that are categories, "
                f"categorical={listed + left!r}, and drop the others."
            )
        return coded(X, self.categories_) if text_features is None else X

    def _coded(self, X: Any) -> Any:
        return coded(X, self._texts) if self._texts and frames.is_frame(X) else X

    @property
    def _texts(self) -> dict[str, list[str]]:
        """The texts of categories, by feature; none in a model that was fitted with Dask."""
        return getattr(self, "categories_", {})

    def _features(self, X: MatrixLike, finite: bool = True) -> Validated:
        return super()._features(X, finite=False)  # infinite values are refused when levels are looked up

    def _host_features(self, X: MatrixLike) -> Features:
        """X, validated: it is never on a GPU, because the model does not read features there."""
        return cast("Features", self._features(X))

    def _scores(self, X: Validated) -> np.ndarray:
        return self._function().scores(cast("Features", X), effective_n_jobs(self.n_jobs))

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if not hasattr(self, "linear_coef_"):
            return
        try:
            self._function()
        except ValueError as error:
            raise ModelFileError(f"{type(self).__name__}: {error}.") from error
