"""Base of the rankers with an additive scoring function: shapes, interactions, contributions."""

from typing import Any, ClassVar

import numpy as np

from ranksvm._util.feature_names import feature_labels
from ranksvm._util.threads import effective_n_jobs
from ranksvm.additive import AdditiveFunction
from ranksvm.additive.arrays import FunctionArrays, arrays_of, function_of
from ranksvm.additive.interactions import all_pairs
from ranksvm.data import frames
from ranksvm.estimators.base.ranker import Ranker, check_is_fitted
from ranksvm.exceptions import DataError, ModelFileError
from ranksvm.model_files.schema import Array, Schema

__all__ = ["AdditiveRanker"]


class AdditiveRanker(Ranker):
    """Base of the rankers whose score is a sum of functions of one feature, and of two."""

    _takes_missing = True
    _fitted_schema: ClassVar[Schema] = {
        "coef_": Array("n_features"),
        "fill_": Array("n_features"),
        "has_missing_": Array("n_features", dtype="int64", least=0, most=1),
        "is_categorical_": Array("n_features", dtype="int64", least=0, most=1),
        "n_cuts_": Array("n_features", dtype="int64", least=0),
        "cuts_": Array("n_all_cuts"),
        "shape_values_": Array("n_levels"),
        "interactions_": Array("n_interactions", 2, dtype="int64", least=0),
        "n_interaction_cuts_": Array("n_features", dtype="int64", least=0),
        "interaction_cuts_": Array("n_all_interaction_cuts"),
        "interaction_values_": Array("n_cells"),
        "interaction_bounds_": Array("n_feature_pairs", nullable=True),
        "candidate_bounds_": Array("n_feature_pairs", nullable=True),
        "monotone_": Array("n_features", dtype="int64", least=-1, most=1, nullable=True),
    }

    coef_: np.ndarray
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

    def interaction_table(self) -> Any:
        """All pairs of features, with what a function of both could still gain.

        Returns
        -------
        DataFrame or structured ndarray
            Columns ``first``, ``second`` (names of the features), ``bound`` (what a function of both could have lowered
            the objective by at most, before any was added), ``left`` (the same for the fitted model; 0 for those that
            it has) and ``chosen``; the largest bound first.

        Raises
        ------
        DataError
            When the model was fitted with ``interactions=0``, which computes no bounds.
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
        library = self.frame_type_
        frame = None if library is None else frames.frame_from(columns, library)
        if frame is not None:
            return frame
        table = np.empty(len(order), dtype=[(name, values.dtype) for name, values in columns.items()])
        for name, values in columns.items():
            table[name] = values
        return table

    def _assign_function(self, function: AdditiveFunction) -> None:
        """Set the attributes of a scoring function."""
        arrays = arrays_of(function)
        self.coef_ = arrays.coef
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

    def _function(self) -> AdditiveFunction:
        """The scoring function, from the fitted attributes."""
        return function_of(FunctionArrays(*(getattr(self, f"{name}_") for name in FunctionArrays._fields)))

    def _scores(self, X: Any) -> np.ndarray:
        return self._function().scores(X, effective_n_jobs(self.n_jobs))

    def _features(self, X: Any, finite: bool = True) -> Any:
        # infinite values are refused where levels are looked up
        return super()._features(X, finite=False)

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if not hasattr(self, "coef_"):
            return
        try:
            self._function()
        except ValueError as error:
            raise ModelFileError(f"{type(self).__name__}: {error}.") from error
