"""The dual variables and the low-rank matrices of any model, and the singular values of the dual variables."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util import checks
from ranksvm._util.memory import memory_bytes
from ranksvm._util.threads import effective_n_jobs, one_blas_thread, parallel_map
from ranksvm._util.types import MatrixLike, MemoryLimit
from ranksvm.analysis.explanations import last_step_input
from ranksvm.analysis.spectra import DualSpectra, checked_energy, checked_tol
from ranksvm.exceptions import DataError, OptionError
from ranksvm.fits.results.dual import DualBlock, DualCoef

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

__all__ = ["dual_coef", "dual_spectra", "low_rank_coef"]

# Number of bytes that the computation of a block (a query's matrix of dual variables, see DualCoef) takes for each
# pair, and for each entry of the block. The decomposition takes as many again for each entry as the computation does.
BYTES_PER_PAIR, BYTES_PER_ENTRY = 90, 16
ADVICE = "To analyze it, fit to a sample of its documents."


def dual_coef(
    model: "BaseEstimator",
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
        When the data have other features or another number of pairs than the data of the fit, or lengths differ.

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
    model: "BaseEstimator", X: MatrixLike, y: ArrayLike, qid: ArrayLike | None = None, *, group: ArrayLike | None = None
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
        When the data have other features or another number of pairs than the data of the fit, or lengths differ.

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


class _Spectrum(NamedTuple):
    """What is kept of a query's block (matrix of dual variables): its size and its singular values."""

    query: object
    n_documents: int
    n_pairs: int
    shape: tuple[int, int]
    singular_values: np.ndarray


def dual_spectra(
    dual: DualCoef | Sequence[DualBlock],
    *,
    energy: Sequence[float] = (0.9, 1.0),
    tol: float | None = None,
    memory_limit: MemoryLimit = None,
    n_jobs: int | None = None,
) -> DualSpectra:
    """Singular values of the dual variables of each query, from which ranks and effective dimensions follow.

    A query of m preferred and n other documents takes ``O(m n min(m, n))`` operations. Threads process the queries, the
    largest first, with one block each; if the largest blocks do not fit into memory together, they are decomposed one
    at a time.

    Parameters
    ----------
    dual : DualCoef, or sequence of DualBlock
        The dual variables, one block for each query, such as the result of a ranker's ``dual_coef(X, y, qid)``. Blocks
        are accessed one by one and not stored.
    energy : sequence of float, default (0.9, 1.0)
        Shares of the energy (the sum of the squared singular values of a block) that tables and displays of the result
        show by default, each in (0, 1]; 1.0 gives the numerical rank.
    tol : float, optional
        Singular values up to this multiple of the largest one of their block count as 0 in a rank; None: ``max(shape)``
        times the spacing of float64 at 1 (2.2e-16).
    memory_limit : int or str, optional
        Bytes that blocks may use, or text such as "4GB"; None: half of the free memory. A block takes 16 bytes for each
        of its entries (`DualCoef.entries_per_query`), 90 for each pair during its computation, and 16 more for each
        entry during its decomposition.
    n_jobs : int, optional
        Number of threads; None or -1: all processors.

    Returns
    -------
    DualSpectra
        Singular values, ranks, dimensions by energy, histograms and tables.

    Raises
    ------
    OptionError
        When an option has an invalid value, or ``dual`` is not a sequence of blocks.
    DataError
        When there is no query, or the block of a query does not fit into memory; the message names the query and the
        size.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking
    >>> from ranksvm.analysis import dual_spectra
    >>> data = make_ranking(n_queries=20, n_docs=30, n_features=5, random_state=0)
    >>> ranker = RankSVM(C=0.1, loss="hinge").fit(data.X, data.y, qid=data.qid)
    >>> spectra = dual_spectra(ranker.dual_coef(data.X, data.y, data.qid))
    >>> spectra.rank.shape, bool((spectra.dimensions(0.9) <= spectra.rank).all())
    ((20,), True)
    """
    energy, tol = checked_energy(energy), checked_tol(tol)
    checks.check(memory_limit=checks.memory_limit(memory_limit))
    n_threads = effective_n_jobs(n_jobs)
    if hasattr(dual, "shape") or not (hasattr(dual, "__len__") and hasattr(dual, "__getitem__")):
        raise OptionError(f"dual must be a sequence of blocks, such as ranker.dual_coef(X, y, qid), got {dual!r}.")
    if len(dual) == 0:
        raise DataError("there is no query whose dual variables could be analyzed.")
    # a plain list of blocks has neither attribute; its blocks are in memory already
    pairs, entries = (
        np.asarray(getattr(dual, name, np.zeros(len(dual))), dtype=np.float64)
        for name in ("pairs_per_query", "entries_per_query")
    )
    needed = np.maximum(BYTES_PER_PAIR * pairs, BYTES_PER_ENTRY * entries) + BYTES_PER_ENTRY * entries
    limit = memory_bytes(memory_limit)
    for number in np.flatnonzero(needed > limit).tolist():
        raise DataError(
            f"{_name(number, dual)} has {pairs[number]:,.0f} pairs: its block of {entries[number]:,.0f} dual "
            f"variables takes up to {_size(needed[number])}, and {_size(limit)} are allowed (memory_limit; by default "
            f"half of the free memory). {ADVICE}"
        )

    def spectrum(number: int) -> _Spectrum:
        return _spectrum(dual, number)

    order = np.argsort(-needed, kind="stable")
    alone = needed[order] * n_threads > limit
    with one_blas_thread():
        found = [spectrum(number) for number in order[alone].tolist()]
        found += parallel_map(spectrum, order[~alone].tolist(), n_threads)
    in_order = [found[place] for place in np.argsort(order, kind="stable")]
    ids, n_documents, n_pairs, shapes, values = zip(*in_order, strict=True)
    return DualSpectra(
        np.array(ids),
        np.array(n_documents, dtype=np.int64),
        np.array(n_pairs, dtype=np.int64),
        np.array(shapes, dtype=np.int64),
        list(values),
        energy=energy,
        tol=tol,
    )


def _spectrum(dual: DualCoef | Sequence[DualBlock], number: int) -> _Spectrum:
    try:
        block = dual[number]
        # a matrix with an empty side has no singular values, and LAPACK is not called
        values = np.linalg.svd(block.alpha, compute_uv=False) if min(block.shape) else np.zeros(0)
    except MemoryError as error:
        raise DataError(
            f"the block of dual variables of {_name(number, dual)} does not fit into memory: {error}. {ADVICE}"
        ) from error
    n_documents = len(np.union1d(block.preferred_rows, block.other_rows))
    return _Spectrum(block.query, n_documents, int(np.count_nonzero(block.weights)), block.shape, values)


def _name(number: int, dual: DualCoef | Sequence[DualBlock]) -> str:
    """The name of a query whose block, and so its id, is not available."""
    return f"query number {number} (of 0 to {len(dual) - 1}, in order of appearance)"


def _size(n_bytes: float) -> str:
    """A number of bytes as text."""
    for unit in ("bytes", "kB", "MB", "GB", "TB"):
        if n_bytes < 1000 or unit == "TB":
            break
        n_bytes /= 1000
    return f"{n_bytes:,.3g} {unit}" if n_bytes < 1000 else f"{n_bytes:,.0f} {unit}"
