"""The dual variables, and the low-rank matrices, of any model that ends with a ranker that has them."""

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator

from ranksvm._util.types import MatrixLike
from ranksvm.analysis._pipelines import last_step_input
from ranksvm.exceptions import OptionError
from ranksvm.fits.results.dual import DualCoef

__all__ = ["dual_coef", "low_rank_coef"]


def dual_coef(
    model: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike | None = None,
    qid: ArrayLike | None = None,
    **fit_options: ArrayLike | None,
) -> DualCoef:
    """The dual variables of a fitted model, one for each pair, query by query.

    For a ranker, this calls its method of the same name, such as `RankSVM.dual_coef`, which defines the dual variables.
    For a Pipeline, the features that the ranker sees are the output of the steps before it.

    Parameters
    ----------
    model : estimator
        A fitted ranker that has dual variables, or a fitted Pipeline that ends with one.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The features that the model was fitted to, in the form expected by the model.
    y : array-like of shape (n_samples,), optional
        Their labels.
    qid : array-like of shape (n_samples,) or str, optional
        Query of each row, or the column of X that has them; None: one query.
    **fit_options : array-like
        Further arguments of the ranker's ``dual_coef``: ``group``, weights and pairs, the same as in ``fit``.

    Returns
    -------
    DualCoef
        A sequence with a `DualBlock` for each query, each computed on access.

    Raises
    ------
    OptionError
        When the model has no dual variables.
    DataError
        When X is not what the model was fitted to, or lengths differ.

    Examples
    --------
    >>> from ranksvm import RankSVM, analysis, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> dual = analysis.dual_coef(ranker, data.X, data.y, data.qid)
    >>> len(dual), dual.n_pairs == ranker.n_pairs_
    (20, True)
    """
    ranker, X, qid, _ = last_step_input(model, X, qid)
    if not hasattr(ranker, "dual_coef"):
        raise OptionError(
            f"a ranker with dual variables such as RankSVM is needed, or a Pipeline that ends with one, got {model!r}."
        )
    return ranker.dual_coef(X, y, qid, **fit_options)


def low_rank_coef(
    model: BaseEstimator, X: MatrixLike, y: ArrayLike, qid: ArrayLike | None = None, *, group: ArrayLike | None = None
) -> DualCoef:
    """The low-rank matrices of a fitted low-rank model, query by query.

    For a ranker, this calls its method of the same name, such as `RegularizedRankSVM.low_rank_coef`, which defines the
    matrices. For a Pipeline, the features that the ranker sees are the output of the steps before it.

    Parameters
    ----------
    model : estimator
        A fitted `FactorizedRankSVM` or `RegularizedRankSVM`, or a fitted Pipeline that ends with one.
    X : array-like or sparse matrix of shape (n_samples, n_features)
        The features that the model was fitted to, in the form expected by the model.
    y : array-like of shape (n_samples,)
        Their labels.
    qid : array-like of shape (n_samples,) or str, optional
        Query of each row, or the column of X that has them; None: one query.
    group : array-like of int, shape (n_queries,), optional
        Instead of ``qid``: sizes of consecutive queries.

    Returns
    -------
    DualCoef
        A sequence with a `DualBlock` for each query, each computed on access.

    Raises
    ------
    OptionError
        When the model is not a low-rank model.
    DataError
        When X is not what the model was fitted to, or lengths differ.

    Examples
    --------
    >>> from ranksvm import RegularizedRankSVM, analysis, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = RegularizedRankSVM(C=0.1).fit(data.X, data.y, qid=data.qid)
    >>> len(analysis.low_rank_coef(ranker, data.X, data.y, data.qid))
    20
    """
    ranker, X, qid, _ = last_step_input(model, X, qid)
    if not hasattr(ranker, "low_rank_coef"):
        raise OptionError(
            f"a FactorizedRankSVM or RegularizedRankSVM is needed, or a Pipeline that ends with one, got {model!r}."
        )
    return ranker.low_rank_coef(X, y, qid, group=group)
