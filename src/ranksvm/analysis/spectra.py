"""DualSpectra: singular values of each query's dual variables, and the ranks and dimensions that follow from them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ranksvm._util.checks import is_integer, is_number
from ranksvm._util.text import plain
from ranksvm.data import frames
from ranksvm.exceptions import DataError, OptionError

__all__ = ["DualSpectra", "compare_ranks"]

# A share of the energy counts as reached if round-off keeps the sum below it by at most this relative amount.
ROUND_OFF = 1e-12
# The share of the dimensions, and the share of the energy, that Xu et al. report.
DIMENSION_SHARE, ENERGY_SHARE = 0.3, 0.9


class DualSpectra:
    """Singular values of the dual variables of each query, and how many of them have a given share of the energy.

    The block ``alpha_l`` of query l (rows: preferred documents, columns: other documents; `DualBlock`) has the singular
    values ``s_1 >= s_2 >= ...``, as many as its smaller side, and the energy ``sum of s_i^2``, the sum of its squared
    entries. ``k_l(t)`` is the smallest k for which ``s_1^2 + ... + s_k^2`` is at least ``t`` times the energy, and
    ``Dim_t(l) = k_l(t) / min(shape)`` the corresponding share of the dimensions (Xu et al., IEEE TKDE 2019, Fig. 2). At
    t = 1 ``k_l`` is the numerical rank: the number of ``s_i`` above ``tol * s_1``. A query without pairs, or whose
    alpha are all 0, has no energy: its ``k_l`` is 0, its ratio is NaN, and histograms and shares exclude it.

    Parameters
    ----------
    ids : ndarray, shape (n_queries,)
        Id of each query.
    n_documents : ndarray of int64, shape (n_queries,)
        Number of documents that are in a pair of the query.
    n_pairs : ndarray of int64, shape (n_queries,)
        Number of pairs.
    shapes : ndarray of int64, shape (n_queries, 2)
        Numbers of preferred and of other documents.
    singular_values : list of ndarray of float64
        Singular values of each query, largest first: shape (min(shape),).
    energy : tuple of float, default (0.9, 1.0)
        Shares of the energy that tables and displays show by default, each in (0, 1].
    tol : float, optional
        Singular values up to this multiple of the largest one count as 0; None: ``max(shape)`` times the spacing of
        float64 at 1 (2.2e-16), as in `numpy.linalg.matrix_rank`.

    Attributes
    ----------
    ids, n_documents, n_pairs, shapes, singular_values, energy, tol
        As passed to the constructor.

    Examples
    --------
    >>> from ranksvm import RankSVM, analysis, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> spectra = analysis.dual_spectra(ranker.dual_coef(data.X, data.y, data.qid))
    >>> spectra.dimensions(0.9).shape, bool((spectra.dimensions(0.9) <= spectra.rank).all())
    ((20,), True)
    """

    def __init__(
        self,
        ids: np.ndarray,
        n_documents: np.ndarray,
        n_pairs: np.ndarray,
        shapes: np.ndarray,
        singular_values: list[np.ndarray],
        *,
        energy: Sequence[float] = (0.9, 1.0),
        tol: float | None = None,
    ):
        self.ids = ids
        self.n_documents = n_documents
        self.n_pairs = n_pairs
        self.shapes = shapes
        self.singular_values = singular_values
        self.energy = checked_energy(energy)
        self.tol = checked_tol(tol)

    @property
    def n_dimensions(self) -> np.ndarray:
        """Number of dimensions of each query's block, ``min(shape)``: int64, shape (n_queries,)."""
        return self.shapes.min(axis=1)

    @property
    def nbytes(self) -> np.ndarray:
        """Bytes of each query's block, a dense matrix of float64: int64, shape (n_queries,)."""
        return 8 * self.shapes.prod(axis=1)

    @property
    def counted(self) -> np.ndarray:
        """Whether a query's block has energy, so that histograms and shares count it: bool, shape (n_queries,)."""
        return self.rank > 0

    @property
    def rank(self) -> np.ndarray:
        """Numerical rank of each query's block: int64, shape (n_queries,)."""
        return np.array([self._rank(values, shape) for values, shape in self._blocks()], dtype=np.int64)

    def dimensions(self, t: float) -> np.ndarray:
        """Number of dimensions that contain the share t of the energy of each query.

        Parameters
        ----------
        t : float
            Share of the energy in (0, 1].

        Returns
        -------
        ndarray of int64, shape (n_queries,)
            ``k_l(t)``; at t = 1 the numerical rank, and never more than that.

        Raises
        ------
        OptionError
            When t is out of range.
        """
        (t,) = checked_energy([t])
        rank = self.rank
        if t == 1.0:
            return rank
        found = np.zeros(len(self.ids), dtype=np.int64)
        for number in np.flatnonzero(rank):
            curve = _cumulative(self.singular_values[number])
            found[number] = 1 + np.searchsorted(curve, t * (1.0 - ROUND_OFF))
        return np.minimum(found, rank)

    def dimension_ratio(self, t: float) -> np.ndarray:
        """Share of the dimensions of each query that contain the share t of its energy.

        Parameters
        ----------
        t : float
            Share of the energy in (0, 1].

        Returns
        -------
        ndarray of float64, shape (n_queries,)
            ``Dim_t(l)`` in (0, 1]; NaN for a query without energy.

        Raises
        ------
        OptionError
            When t is out of range.
        """
        ratio = np.full(len(self.ids), np.nan)
        counted = self.counted
        ratio[counted] = self.dimensions(t)[counted] / self.n_dimensions[counted]
        return ratio

    def histogram(self, t: float, bins: int = 10) -> tuple[np.ndarray, np.ndarray]:
        """Histogram of the queries by the share of their dimensions needed for the share t of the energy.

        Parameters
        ----------
        t : float
            Share of the energy in (0, 1].
        bins : int, default 10
            Number of equal parts of [0, 1]. Each part includes its lower end, and the last part also its upper end;
            counts are exact, without round-off.

        Returns
        -------
        counts : ndarray of int64, shape (bins,)
            Numbers of queries.
        edges : ndarray of float64, shape (bins + 1,)
            Ends of the parts.

        Raises
        ------
        OptionError
            When t or bins is invalid.
        """
        if not is_integer(bins, 1):
            raise OptionError(f"bins must be a positive integer, got {bins!r}.")
        counted = self.counted
        bin_of_query = self.dimensions(t)[counted] * int(bins) // self.n_dimensions[counted]
        counts = np.bincount(np.minimum(bin_of_query, bins - 1), minlength=bins)
        return counts.astype(np.int64), np.linspace(0.0, 1.0, int(bins) + 1)

    def share_below(self, ratio: float = DIMENSION_SHARE, t: float = ENERGY_SHARE) -> float:
        """Share of the queries that need less than ``ratio`` of their dimensions for the share t of the energy.

        Parameters
        ----------
        ratio : float, default 0.3
            Share of the dimensions.
        t : float, default 0.9
            Share of the energy in (0, 1].

        Returns
        -------
        float
            Share among the queries with energy; NaN if there are none.

        Raises
        ------
        OptionError
            When t is out of range.
        """
        ratios = self.dimension_ratio(t)[self.counted]
        return float((ratios < ratio).mean()) if len(ratios) else float("nan")

    def energy_curve(self, query: object) -> np.ndarray:
        """Share of the energy of a query in its first k dimensions.

        Parameters
        ----------
        query : object
            Id of the query.

        Returns
        -------
        ndarray of float64, shape (min(shape) + 1,)
            For k = 0, 1, ..., min(shape): from 0 to 1; all 0 for a query without energy.

        Raises
        ------
        DataError
            When there is no such query.
        """
        return np.concatenate(([0.0], _cumulative(self.singular_values[self._number(query)])))

    def table(self, queries: Iterable[object] | None = None) -> np.ndarray:
        """The sizes, ranks and dimensions of all queries, or of some, in one table.

        Parameters
        ----------
        queries : iterable of query ids, optional
            The queries, in the desired order; None: all.

        Returns
        -------
        structured ndarray, shape (n_queries,)
            Columns ``query``, ``documents``, ``pairs``, ``preferred`` and ``other`` (the shape of the block),
            ``bytes``, ``rank``, and for each t of ``energy`` ``dimensions_t`` and ``ratio_t``, such as
            ``dimensions_0.9``. ``pandas.DataFrame(table)`` makes a DataFrame of it.

        Raises
        ------
        DataError
            When there is no such query.
        """
        columns = {
            "query": self.ids,
            "documents": self.n_documents,
            "pairs": self.n_pairs,
            "preferred": self.shapes[:, 0],
            "other": self.shapes[:, 1],
            "bytes": self.nbytes,
            "rank": self.rank,
        }
        for t in self.energy:
            columns |= {f"dimensions_{t:g}": self.dimensions(t), f"ratio_{t:g}": self.dimension_ratio(t)}
        return frames.table_from(columns, None)[self._numbers(queries)]

    def to_dict(self, bins: int = 10) -> dict[str, Any]:
        """All but the singular values as plain Python values, ready for JSON.

        Parameters
        ----------
        bins : int, default 10
            Number of parts of the histograms.

        Returns
        -------
        dict
            ``n_queries``, ``n_counted`` (queries with energy) and ``n_pairs``. Under ``energy``, for each t: the median
            of the dimensions, median and mean of their ratio, the share of the queries with a ratio below 0.3, and the
            histogram. Under ``per_query``: the rows of `table`.
        """
        energy = []
        for t in self.energy:
            counts, edges = self.histogram(t, bins)
            dimensions, ratios = (values[self.counted] for values in (self.dimensions(t), self.dimension_ratio(t)))
            energy.append(
                {
                    "t": t,
                    "median_dimensions": float(np.median(dimensions)) if len(dimensions) else float("nan"),
                    "median_ratio": float(np.median(ratios)) if len(ratios) else float("nan"),
                    "mean_ratio": float(np.mean(ratios)) if len(ratios) else float("nan"),
                    "share_below_0.3": self.share_below(DIMENSION_SHARE, t),
                    "histogram": {"counts": counts.tolist(), "edges": edges.tolist()},
                }
            )
        table = self.table()
        names = table.dtype.names or ()
        return plain(
            {
                "n_queries": len(self.ids),
                "n_counted": int(self.counted.sum()),
                "n_pairs": int(self.n_pairs.sum()),
                "energy": energy,
                "per_query": [dict(zip(names, row, strict=True)) for row in table.tolist()],
            }
        )

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        parts = [
            f"{100 * t:g} % of the energy in {np.median(self.dimension_ratio(t)[self.counted]):.0%} of the dimensions"
            for t in self.energy
            if self.counted.any()
        ]
        medians = f"; medians: {', '.join(parts)}" if parts else ""
        return f"DualSpectra({len(self)} queries, {int(self.n_pairs.sum())} pairs{medians})"

    def _blocks(self) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        return zip(self.singular_values, self.shapes, strict=True)

    def _rank(self, values: np.ndarray, shape: np.ndarray) -> int:
        tol = max(shape) * np.finfo(np.float64).eps if self.tol is None else self.tol
        return int(np.count_nonzero(values > tol * values.max(initial=0.0)))

    def _number(self, query: object) -> int:
        found = np.flatnonzero(self.ids == query)
        if len(found) == 0:
            raise DataError(f"there is no query {query!r}.")
        return int(found[0])

    def _numbers(self, queries: Iterable[object] | None) -> np.ndarray:
        chosen = range(len(self)) if queries is None else [self._number(query) for query in queries]
        return np.fromiter(chosen, dtype=np.int64)


def compare_ranks(
    spectra: Mapping[str, DualSpectra], *, t: float = 1.0, queries: Iterable[object] | None = None
) -> np.ndarray:
    """Numbers of dimensions of the dual variables of several models for each query, side by side.

    At t = 1 these are the ranks, as in Table 6 of Xu et al. (IEEE TKDE 2019), if the spectra of low-rank models come
    from their low-rank matrices, ``dual_spectra(model.low_rank_coef(X, y, qid))``. The values in that table for plain
    RankSVM are not ranks of these blocks: 8, 92 and 234 for OHSUMED's queries 49, 45 and 35, whose blocks have 4, 46
    and 117 rows, an upper bound on the rank. The published values are twice these numbers. They may be full ranks of
    matrices of documents by documents, with alpha on both sides of the diagonal.

    Parameters
    ----------
    spectra : mapping of str to DualSpectra
        The result of `dual_spectra` for each model, by the name of its column, for the same queries.
    t : float, default 1.0
        Share of the energy in (0, 1].
    queries : iterable of query ids, optional
        The queries, in the desired order; None: all of the first model, in its order.

    Returns
    -------
    structured ndarray, shape (n_queries,)
        Columns ``query``, ``documents`` and ``pairs``, of the first model, then one for each model.

    Raises
    ------
    OptionError
        When there is no model, a name is the name of another column, or t is out of range.
    DataError
        When a model lacks a query.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking
    >>> from ranksvm.analysis import compare_ranks, dual_spectra
    >>> data = make_ranking(n_queries=20, n_docs=15, n_features=5, random_state=0)
    >>> spectra = {}
    >>> for loss in ["hinge", "squared_hinge"]:
    ...     ranker = RankSVM(C=0.1, loss=loss).fit(data.X, data.y, qid=data.qid)
    ...     spectra[loss] = dual_spectra(ranker.dual_coef(data.X, data.y, data.qid))
    >>> compare_ranks(spectra, queries=[3, 1]).dtype.names
    ('query', 'documents', 'pairs', 'hinge', 'squared_hinge')
    """
    if not spectra:
        raise OptionError("there are no spectra to compare: give a mapping of names to results of dual_spectra.")
    first = next(iter(spectra.values()))
    numbers = first._numbers(queries)
    columns = {"query": first.ids[numbers], "documents": first.n_documents[numbers], "pairs": first.n_pairs[numbers]}
    for name, of_model in spectra.items():
        if name in columns:
            raise OptionError(f"a model cannot be named {name!r}: the table has a column of that name.")
        columns[name] = of_model.dimensions(t)[of_model._numbers(columns["query"].tolist())]
    return frames.table_from(columns, None)


def checked_energy(energy: Iterable[float] | float) -> tuple[float, ...]:
    """Validated shares of the energy; OptionError if they are invalid."""
    parts = tuple(energy) if np.iterable(energy) and not isinstance(energy, str) else (energy,)
    for t in parts:
        if not is_number(t) or not 0.0 < float(t) <= 1.0:
            raise OptionError(f"a share of the energy must be a number above 0 and at most 1, such as 0.9, got {t!r}.")
    if not parts:
        raise OptionError("energy must name at least one share, such as 0.9.")
    return tuple(dict.fromkeys(map(float, parts)))


def checked_tol(tol: float | None) -> float | None:
    """The validated tolerance of numerical ranks; OptionError if it is invalid."""
    if tol is None or (is_number(tol) and 0.0 <= float(tol) < 1.0):
        return None if tol is None else float(tol)
    raise OptionError(f"tol must be None or a number from 0 to less than 1, got {tol!r}.")


def _cumulative(values: np.ndarray) -> np.ndarray:
    """Share of the energy in the first 1, 2, ... singular values; all 0 if there is no energy."""
    largest = values.max(initial=0.0)
    # normalized first, because squares of tiny alpha would underflow
    sums = np.cumsum((values / largest) ** 2) if largest > 0.0 else np.zeros(len(values))
    return sums / sums[-1] if largest > 0.0 else sums
