"""RankSVM on a Dask cluster: ``pip install 'ranksvm[dask]'``.

Nothing else in this package imports Dask.
"""

from ranksvm.exceptions import MissingDependencyError

try:
    import distributed as _  # noqa: F401
except ImportError:
    raise MissingDependencyError("ranksvm.dask needs Dask and its scheduler: pip install 'ranksvm[dask]'") from None

from ranksvm.dask.rank_svm import DaskRankSVM
from ranksvm.dask.rank_svm_cv import DaskRankSVMCV

__all__ = ["DaskRankSVM", "DaskRankSVMCV"]
