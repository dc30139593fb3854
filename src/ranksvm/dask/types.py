"""Names for the types of the arguments of estimators on Dask.

dask arrays and dask Series are array-likes, as is the name of a column: `numpy.typing.ArrayLike` includes all of them.
"""

from collections.abc import Sequence
from typing import Any, Protocol

from numpy.typing import ArrayLike

from ranksvm._util.types import MatrixLike, PathLike
from ranksvm.data import Preferences

__all__ = ["DaskFeatures", "DaskFrame", "EvalSets", "EvalValues"]


class DaskFrame(Protocol):
    """A dask DataFrame."""

    @property
    def npartitions(self) -> int: ...
    # Any, because the value is an index of pandas
    @property
    def columns(self) -> Any: ...
    # Any, because the arguments of this method depend on the function that it calls
    @property
    def map_partitions(self) -> Any: ...


# Features as users pass them: in this process, on the cluster, or in files.
DaskFeatures = MatrixLike | DaskFrame | PathLike | Sequence[PathLike]
# One evaluation set: features and labels; features, times and events; or pairs of answers.
EvalSet = tuple[DaskFeatures, ArrayLike] | tuple[DaskFeatures, ArrayLike, ArrayLike | None] | Preferences
EvalSets = EvalSet | Sequence[EvalSet] | None
# Values for the rows of evaluation sets: for each set, or for the only one.
EvalValues = ArrayLike | Sequence[ArrayLike | None] | None
