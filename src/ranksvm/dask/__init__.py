"""RankSVM on a Dask cluster: ``pip install 'ranksvm[dask]'``.

Nothing else in this package imports Dask.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

from ranksvm._util.lazy import lazy_names
from ranksvm.exceptions import MissingDependencyError

if find_spec("distributed") is None:
    raise MissingDependencyError("ranksvm.dask needs Dask and its scheduler: pip install 'ranksvm[dask]'")

if TYPE_CHECKING:
    from ranksvm.dask.additive_rank_svm import DaskAdditiveRankSVM
    from ranksvm.dask.additive_rank_svm_cv import DaskAdditiveRankSVMCV
    from ranksvm.dask.rank_svm import DaskRankSVM
    from ranksvm.dask.rank_svm_cv import DaskRankSVMCV
else:
    # Workers import modules of this package for their tasks, without estimators and scikit-learn.
    __getattr__ = lazy_names(
        __name__,
        {
            "DaskAdditiveRankSVM": "ranksvm.dask.additive_rank_svm",
            "DaskAdditiveRankSVMCV": "ranksvm.dask.additive_rank_svm_cv",
            "DaskRankSVM": "ranksvm.dask.rank_svm",
            "DaskRankSVMCV": "ranksvm.dask.rank_svm_cv",
        },
    )

__all__ = ["DaskAdditiveRankSVM", "DaskAdditiveRankSVMCV", "DaskRankSVM", "DaskRankSVMCV"]
