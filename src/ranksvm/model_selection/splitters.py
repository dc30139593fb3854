"""Splitters for cross-validation that keep the rows of a query together."""

from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.model_selection import BaseCrossValidator

from ranksvm._util.checks import is_integer, is_number, n_rows_of
from ranksvm._util.random_states import random_numbers
from ranksvm._util.types import MatrixLike, RandomState
from ranksvm.data import Queries
from ranksvm.data.frames import split_qid
from ranksvm.exceptions import DataError, OptionError
from ranksvm.model_files.registry import storable

__all__ = ["QueryKFold", "QueryShuffleSplit"]


class _QuerySplitter(BaseCrossValidator):
    """Splits queries, and returns their rows."""

    # With metadata routing, scikit-learn passes `qid` but not `groups`, because BaseCrossValidator removes `groups`
    # from the requests. (Before scikit-learn 1.7, this class must not remove it again.) Without routing only `groups`
    # can reach a splitter.
    __metadata_request__split: ClassVar = {"qid": True}

    n_splits: int

    def get_n_splits(self, X: object = None, y: object = None, groups: object = None, *, qid: object = None) -> int:
        """Number of splits.

        Parameters
        ----------
        X, y, groups, qid : object, optional
            Not used; present because scikit-learn passes them.

        Returns
        -------
        int
            ``n_splits``.
        """
        return self.n_splits

    def split(
        self, X: MatrixLike, y: object = None, groups: ArrayLike | None = None, *, qid: ArrayLike | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Rows of each training and test part, in ascending order.

        Parameters
        ----------
        X : array-like of shape (n_rows, n_features)
            Rows; only their number is used.
        y : array-like of shape (n_rows,), optional
            Not used.
        groups : array-like of shape (n_rows,), optional
            The query ids, if ``qid`` is not given: scikit-learn passes them in this way when metadata routing is off.
        qid : array-like of shape (n_rows,), optional
            Query id of each row, in any order, or the name of a column of ``X``.

        Yields
        ------
        train, test : ndarray of int64
            Row numbers.

        Raises
        ------
        DataError
            When there are no query ids, their number differs from the number of rows, or there are too few queries.
        """
        ids = split_qid(X, groups if qid is None else qid)[1]
        if ids is None:
            raise DataError(
                f"{type(self).__name__} needs the query of each row, but got neither qid nor groups. Inside "
                "scikit-learn's searches, sklearn.set_config(enable_metadata_routing=True) passes qid on to splitter, "
                "fit and score (without it, groups=qid reaches only the splitter, and the score gets no queries); "
                "ranksvm.cross_validate needs no routing."
            )
        queries = Queries.from_qid(ids, n_rows_of(X))
        number = queries.numbers()
        for chosen in self._test_queries(queries.n_queries):
            in_test = np.zeros(queries.n_queries, dtype=bool)
            in_test[chosen] = True
            test = in_test[number]
            yield np.flatnonzero(~test), np.flatnonzero(test)

    def _test_queries(self, n_queries: int) -> Iterator[np.ndarray]:
        """Numbers of the queries of each test part."""
        raise NotImplementedError


@storable
class QueryKFold(_QuerySplitter):
    """K folds of whole queries; each is the test part once.

    The folds differ by at most one in their numbers of queries. Their numbers of rows may differ more. This does no
    harm, because metrics are means over queries. The folds are blocks of queries in order of first appearance, or in
    random order.

    Parameters
    ----------
    n_splits : int, default 5
        Number of folds, at least 2.
    shuffle : bool, default False
        Whether to shuffle the queries first.
    random_state : int, RandomState or None, default None
        Source of the random order.

    Examples
    --------
    >>> for train, test in QueryKFold(2).split([[0.0]] * 5, qid=["a", "b", "a", "c", "d"]):
    ...     print(train, test)
    [3 4] [0 1 2]
    [0 1 2] [3 4]
    """

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: RandomState = None):
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state
        if not is_integer(n_splits, 2):
            raise OptionError(f"n_splits must be a whole number from 2, got {n_splits!r}.")
        if random_state is not None and not shuffle:
            raise OptionError("random_state has no effect without shuffle=True.")

    def _test_queries(self, n_queries: int) -> Iterator[np.ndarray]:
        if n_queries < self.n_splits:
            raise DataError(f"n_splits is {self.n_splits} but there {_number(n_queries)}.")
        order = np.arange(n_queries)
        if self.shuffle:
            random_numbers(self.random_state).shuffle(order)
        yield from np.array_split(order, self.n_splits)


@storable
class QueryShuffleSplit(_QuerySplitter):
    """Random splits of the queries into a training and a test part.

    Parameters
    ----------
    n_splits : int, default 10
        Number of splits, at least 1.
    test_size : float or int, default 0.2
        Share (between 0 and 1, rounded up) or number of the queries in the test part.
    random_state : int, RandomState or None, default None
        Source of the random choices.

    Examples
    --------
    >>> from ranksvm import QueryShuffleSplit, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> splits = list(QueryShuffleSplit(3, test_size=0.25, random_state=0).split(data.X, data.y, qid=data.qid))
    >>> [(len(train), len(test)) for train, test in splits]
    [(120, 40), (120, 40), (120, 40)]
    """

    def __init__(self, n_splits: int = 10, *, test_size: float = 0.2, random_state: RandomState = None):
        self.n_splits = n_splits
        self.test_size = test_size
        self.random_state = random_state
        if not is_integer(n_splits, 1):
            raise OptionError(f"n_splits must be a whole number from 1, got {n_splits!r}.")
        is_share = is_number(test_size) and 0 < test_size < 1
        if not is_share and not is_integer(test_size, 1):
            raise OptionError(f"test_size must be a share between 0 and 1 or a whole number from 1, got {test_size!r}.")

    def _test_queries(self, n_queries: int) -> Iterator[np.ndarray]:
        n_test = int(np.ceil(self.test_size * n_queries)) if self.test_size < 1 else int(self.test_size)
        if n_test >= n_queries:
            raise DataError(f"test_size={self.test_size!r} leaves no query of {n_queries} to train on.")
        generator = random_numbers(self.random_state)
        for _ in range(self.n_splits):
            yield generator.permutation(n_queries)[:n_test]


def _number(n_queries: int) -> str:
    return "is only 1 query" if n_queries == 1 else f"are only {n_queries} queries"
