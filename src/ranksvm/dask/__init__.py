"""RankSVM on a Dask cluster: ``pip install "ranksvm[dask]"``.

Nothing else in this package imports Dask.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ranksvm._util.lazy import lazy_names
from ranksvm.exceptions import MissingDependencyError

if find_spec("distributed") is None:
    raise MissingDependencyError('ranksvm.dask needs Dask and its scheduler: pip install "ranksvm[dask]"')

if TYPE_CHECKING:
    from ranksvm.dask.additive_rank_svm import DaskAdditiveRankSVM, DaskAdditiveRankSVMCV
    from ranksvm.dask.rank_svm import DaskRankSVM, DaskRankSVMCV
else:
    # Workers import modules of this package for their tasks, without estimators and scikit-learn.
    __getattr__ = lazy_names(
        __name__,
        {
            "DaskAdditiveRankSVM": "ranksvm.dask.additive_rank_svm",
            "DaskAdditiveRankSVMCV": "ranksvm.dask.additive_rank_svm",
            "DaskRankSVM": "ranksvm.dask.rank_svm",
            "DaskRankSVMCV": "ranksvm.dask.rank_svm",
        },
    )

__all__ = ["DaskAdditiveRankSVM", "DaskAdditiveRankSVMCV", "DaskRankSVM", "DaskRankSVMCV"]
