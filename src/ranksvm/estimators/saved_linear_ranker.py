"""Linear rankers read from model files to score documents: neither scikit-learn nor a solver is imported."""

from typing import Any, ClassVar

from ranksvm._schema import Array, Schema
from ranksvm.estimators.linear_ranker import LinearRanker

__all__ = ["SAVED_LINEAR_RANKERS", "SavedLinearRanker"]


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


# Name of each class whose files hold `coef_` -> a class of the same name, which is shown in messages.
SAVED_LINEAR_RANKERS = {
    name: type(name, (SavedLinearRanker,), {})
    for name in ("RankSVM", "RankSVMCV", "FactorizedRankSVM", "RegularizedRankSVM", "ImportedRanker")
}
