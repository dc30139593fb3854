"""Linear rankers read from model files to score documents: neither scikit-learn nor a solver is imported."""

from typing import Any, ClassVar

import numpy as np

from ranksvm.estimators import ONLINE_CHOICES
from ranksvm.estimators.base.linear_ranker import LinearRanker
from ranksvm.model_files.schema import Array, Schema

__all__ = ["SAVED_LINEAR_RANKERS", "SAVED_ONLINE_RANKERS", "SavedLinearRanker", "SavedOnlineRanker"]


class SavedLinearRanker(LinearRanker):
    """A linear ranker of a model file: it scores, ranks and explains documents, and cannot be fitted.

    Parameters
    ----------
    **params : optional
        The hyper-parameters of the saved class.
    """

    _fitted_schema: ClassVar[Schema] = {"coef_": Array("n_features")}

    def __init__(self, **params: Any):
        vars(self).update(params)


class SavedOnlineRanker(SavedLinearRanker):
    """An online ranker of a model file: it scores, ranks and explains documents, and cannot learn.

    Parameters
    ----------
    **params : optional
        The hyper-parameters of the saved class.
    """

    _fitted_schema: ClassVar[Schema] = {
        "coef_": Array("n_features", required=False),
        "weights_": Array("n_features"),
        "lag_": Array("n_features", nullable=True),
        "counts_": Array(4),
    }
    weights_: np.ndarray
    lag_: np.ndarray | None
    counts_: np.ndarray

    def _check_loaded(self) -> None:
        """Compute the weights, or their mean over all pairs seen, as `OnlineRanker.coef_` does."""
        if hasattr(self, "weights_"):
            mean = self.lag_ is not None
            self.coef_ = self.weights_ - self.lag_ / max(self.counts_[0], 1.0) if mean else self.weights_


# For each class whose files hold `coef_`: its name -> a class of the same name, because messages show the name.
SAVED_LINEAR_RANKERS = {
    name: type(name, (SavedLinearRanker,), {})
    for name in ("RankSVM", "RankSVMCV", "FactorizedRankSVM", "RegularizedRankSVM", "ImportedRanker")
}

# The same for online rankers, whose `coef_` is computed from `weights_`, `lag_` and `counts_`.
SAVED_ONLINE_RANKERS = {
    choice.estimator: type(choice.estimator, (SavedOnlineRanker,), {})
    for choice in ONLINE_CHOICES.values()
    if choice.linear
}
