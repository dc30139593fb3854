"""Names for the types of the arguments of estimators: what users pass to ``fit``, and to the constructors."""

from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from ranksvm._util.types import Features, MatrixLike, PathLike
from ranksvm.data import Preferences
from ranksvm.data.device_features import DeviceFeatures
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.fits.training_set import ForEachSet
from ranksvm.losses.margin_function import MarginFunction
from ranksvm.metrics import Convention, Metric

__all__ = [
    "ConventionLike",
    "EvalFeatures",
    "EvalSets",
    "ForEachSet",
    "Interactions",
    "LossLike",
    "MetricsLike",
    "Monotone",
    "Names",
    "TrainingData",
    "TrainingFeatures",
    "Validated",
]


# `TrainingFeatures` may include pairs (`Preferences`); `TrainingData` may also include labels and queries, in memory
# (RankingData) or in a file (a path).
TrainingFeatures = MatrixLike | Preferences
TrainingData = TrainingFeatures | RankingData | PathLike
# Features after their validation.
Validated = Features | DeviceFeatures

# Sets to evaluate on: (X, y), (X, pairs), (X, time, event) or Preferences.
EvalSet = tuple[MatrixLike, ArrayLike] | tuple[MatrixLike, ArrayLike, ArrayLike] | Preferences
EvalSets = EvalSet | Sequence[EvalSet]
EvalFeatures = MatrixLike | tuple[MatrixLike, ...]
Names = str | Sequence[str]

MetricsLike = str | Metric | Sequence[str | Metric]
ConventionLike = str | Convention
LossLike = str | MarginFunction
Monotone = ArrayLike | Mapping[str, int] | Mapping[int, int]
# Functions of two features: how many, "auto", several numbers from which one is chosen, or the pairs of features.
Interactions = int | str | Sequence[int] | Sequence[Sequence[str | int]]
