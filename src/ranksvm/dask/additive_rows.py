"""The training set of an additive model on a cluster: rows, their levels, and the terms over them."""

from collections.abc import Callable
from typing import Any

from distributed import Future

from ranksvm.additive import AdditiveTerms
from ranksvm.dask.additive_parts import levels_on_cluster, with_terms
from ranksvm.dask.backend import DaskBackend
from ranksvm.dask.cluster import Cluster
from ranksvm.dask.preparation import DescribeRows, Prepared, parts_of_rows
from ranksvm.dask.rows import Columns
from ranksvm.fits.additive_levels import AdditiveLevels
from ranksvm.fits.additive_options import AdditiveOptions
from ranksvm.fits.additive_partitioned import SAMPLE_ROWS
from ranksvm.terms.parts.part import Part
from ranksvm.terms.parts.term import PartitionedTerm

__all__ = ["AdditiveRows", "describing"]


class AdditiveRows:
    """Rows on a cluster, with the levels of their features: an `AdditiveParts`.

    It makes a term for each set of variables; the terms share the rows and their codes.

    Parameters
    ----------
    cluster : Cluster
        The cluster.
    prepared : Prepared
        The rows.
    levels : AdditiveLevels
        The levels of their features.
    options : AdditiveOptions
        The hyper-parameters.
    n_threads : int
        Number of threads in this process.
    prepare_again : callable, optional
        Prepares the rows again after their workers were lost; None: a loss is an error.

    Attributes
    ----------
    made : list of PartitionedTerm
        The terms.
    """

    def __init__(
        self,
        cluster: Cluster,
        prepared: Prepared,
        levels: AdditiveLevels,
        options: AdditiveOptions,
        n_threads: int,
        prepare_again: Callable[[], Prepared] | None = None,
    ):
        self.levels = levels
        self.made: list[PartitionedTerm] = []
        self._cluster, self._n_threads, self._prepare_again = cluster, n_threads, prepare_again
        self._how = options.pair_selection, options.pair_weighting, True
        self._parts = parts_of_rows(cluster, prepared, *self._how)

    def term(self, terms: AdditiveTerms, options: AdditiveOptions) -> PartitionedTerm:
        """The term over all parts with these variables."""
        prepare_again = self._prepare_again

        def make_parts() -> list[Future]:
            assert prepare_again is not None
            return self._with_terms(parts_of_rows(self._cluster, prepare_again(), *self._how), terms)

        backend = DaskBackend(self._cluster, None if prepare_again is None else make_parts)
        backend.put(self._with_terms(self._parts, terms))
        known: dict[str, Any] = {"sample_rows": SAMPLE_ROWS}
        if self.made and (sample := self.made[0].fetch()) is not None:
            known["sample"] = Part(sample.X, sample.pairs, terms)
        term = PartitionedTerm(backend, options.loss, self._n_threads, **known)
        self._parts = backend.parts  # later terms use their codes
        self.made.append(term)
        return term

    def close(self) -> None:
        """Free what the workers keep."""
        for term in self.made:
            term.close()

    def _with_terms(self, parts: list[Future], terms: AdditiveTerms) -> list[Future]:
        return self._cluster.mapped(with_terms, parts, terms)


def describing(cluster: Cluster, options: AdditiveOptions) -> DescribeRows:
    """A function that computes the levels of all rows, for `prepared_rows`."""

    def levels(rows: list[Future], columns: Columns) -> AdditiveLevels:
        assert columns.n_features is not None
        names = None if columns.names is None else columns.names.tolist()
        return levels_on_cluster(cluster, rows, columns.n_features, options, names)

    return levels
