"""Preferences: the features of chosen and of rejected answers, as in the training of reward models."""

from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.checks import check_one_per_row, check_unmasked, is_sparse
from ranksvm._util.types import DataFrame, MatrixLike, SparseMatrix
from ranksvm.data import frames
from ranksvm.data.numeric_column import checked_weights
from ranksvm.data.queries import Queries, id_array
from ranksvm.device.arrays import host_sparse, host_values
from ranksvm.exceptions import DataError, NoComparablePairsError

__all__ = ["Preferences"]

Rows = np.ndarray | SparseMatrix | DataFrame
Values = TypeVar("Values")


class Preferences:
    """Pairs of answers in two arrays: row i of ``chosen`` is preferred to row i of ``rejected``.

    Everything that takes ``X`` and ``pairs`` takes a ``Preferences`` instead of both: ``fit``, ``score``, ``calibrate``
    and ``dual_coef`` of `RankSVM`, `AdditiveRankSVM`, `KernelRankSVM` and their searches such as `RankSVMCV`, their
    ``eval_set``, `cross_validate`, `regularization_path` and `analysis.weight_intervals`.

    An answer that is in several pairs is repeated in the arrays, once per pair.

    Parameters
    ----------
    chosen, rejected : array-like, sparse matrix or DataFrame of shape (n_pairs, n_features)
        Features of the preferred and of the other answer of each pair. `RankSVM` and `RankSVMCV` read two C-contiguous
        arrays of one type, float32 or float64, in place. Other input is converted once, which copies it. Sparse
        matrices are also stacked into one. So are arrays that have no more rows than features, arrays for
        ``solver="dual"``, and arrays for kernels, which need all rows in one array.
    prompt : array-like of shape (n_pairs,), optional
        The prompt that the two answers of a pair respond to: an id of any dtype. Folds keep the pairs of a prompt
        together, and intervals treat prompts, not pairs, as independent. None: every pair has a prompt of its own;
        pass the prompts if some have several pairs, because otherwise a model is tested on prompts that it has seen.
    weight : array-like of shape (n_pairs,), optional
        Weight of each pair, finite and not negative; 1 by default. With ``pair_weighting="per_query"`` only its share
        of the weights of its prompt matters: without prompts, all positive weights have the same effect.

    Attributes
    ----------
    blocks : tuple of two arrays
        The features as passed, including the pairs that a subset (`taken`) omits.

    Raises
    ------
    DataError
        When the arrays differ in their shapes or names of columns, lengths differ, a prompt is missing, or a weight is
        negative or not finite.
    NoComparablePairsError
        When there is no pair.

    Examples
    --------
    >>> import numpy as np
    >>> from ranksvm import Preferences, RankSVM
    >>> random = np.random.default_rng(0)
    >>> chosen, rejected = random.normal(0.5, 1.0, (300, 8)), random.normal(0.0, 1.0, (300, 8))
    >>> data = Preferences(chosen, rejected, prompt=np.arange(300) // 3)
    >>> ranker = RankSVM(C=0.01).fit(data)
    >>> ranker.score(data) > 0.7
    True
    """

    def __init__(
        self,
        chosen: MatrixLike,
        rejected: MatrixLike,
        *,
        prompt: ArrayLike | None = None,
        weight: ArrayLike | None = None,
    ):
        self.blocks = _two_dimensional("chosen", chosen), _two_dimensional("rejected", rejected)
        shape, other = (block.shape for block in self.blocks)
        if shape != other:
            raise DataError(
                f"chosen has shape {shape} and rejected {other}: row i of each is one pair, so they must agree."
            )
        for name, other_name in zip(*map(frames.column_names, self.blocks), strict=False):
            # names that are not strings, such as pandas' numbers, are not names of features
            if name != other_name and isinstance(name, str) and isinstance(other_name, str):
                raise DataError(
                    "chosen and rejected must have the same columns in the same order, but where chosen has "
                    f"{name!r}, rejected has {other_name!r}."
                )
        n_pairs = shape[0]
        if n_pairs == 0:
            raise NoComparablePairsError("chosen and rejected have no rows: there is nothing to learn from.")
        if isinstance(prompt, str):
            raise DataError(f"prompt={prompt!r} must hold one id for each pair, such as table[{prompt!r}].")
        if prompt is not None:
            prompt = id_array(prompt)
            check_one_per_row("prompt", prompt, n_pairs, "chosen")
            Queries.from_qid(prompt, name="prompt")  # refuses missing ids
        self._prompt = prompt
        self._weight = None if weight is None else checked_weights("weight", weight, n_pairs, "chosen")
        # numbers of the pairs (rows of each block) that this subset has; None: all
        self._kept: np.ndarray | None = None

    @property
    def n_pairs(self) -> int:
        """Number of pairs."""
        return self.blocks[0].shape[0] if self._kept is None else len(self._kept)

    @property
    def chosen(self) -> Rows:
        """Features of the preferred answers; a copy for a subset."""
        return self._select_pairs(self.blocks[0])

    @property
    def rejected(self) -> Rows:
        """Features of the other answers; a copy for a subset."""
        return self._select_pairs(self.blocks[1])

    @property
    def prompt(self) -> np.ndarray | None:
        """Prompt of each pair; None without prompts."""
        return self._select_pairs(self._prompt)

    @property
    def weight(self) -> np.ndarray | None:
        """Weight of each pair, None for 1."""
        return self._select_pairs(self._weight)

    @property
    def X(self) -> Rows:  # noqa: N802 (the field's own name)
        """The rows of ``chosen``, then the rows of ``rejected``, in one array (CSR matrix, DataFrame): a copy."""
        return frames.stacked(self.chosen, self.rejected)

    @property
    def qid(self) -> np.ndarray:
        """Prompt of each row of ``X``; without prompts, the number of the row's pair."""
        each = np.arange(self.n_pairs) if self.prompt is None else self.prompt
        return np.concatenate([each, each])

    @property
    def pairs(self) -> np.ndarray:
        """Pairs (preferred, other) of row numbers of ``X``, shape (n_pairs, 2)."""
        return np.arange(2 * self.n_pairs).reshape(2, -1).T

    def taken(self, numbers: ArrayLike) -> "Preferences":
        """Some of the pairs, without a copy of their features.

        Parameters
        ----------
        numbers : array-like of int
            Numbers of the pairs, from 0, as `QueryKFold` gives them: ``QueryKFold().split(data, qid=data.prompt)``.

        Returns
        -------
        Preferences
            These pairs.

        Raises
        ------
        NoComparablePairsError
            When ``numbers`` is empty.
        DataError
            When there is no pair of a number.
        """
        numbers = np.asarray(numbers)
        if numbers.size == 0:
            raise NoComparablePairsError("no pairs are taken: there is nothing to learn from.")
        kept = np.arange(self.n_pairs) if self._kept is None else self._kept
        part = object.__new__(Preferences)
        part.__dict__.update(vars(self))
        try:
            part._kept = kept[numbers]
        except IndexError as error:
            raise DataError(f"numbers must be numbers of the {self.n_pairs} pairs, from 0: {error}.") from None
        return part

    def arguments(self, **given: object) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """The arguments ``qid``, ``pairs`` and ``pair_weight`` of a call that has these preferences for X.

        Row numbers run through all rows of the two ``blocks``, also for a subset of the pairs.

        Parameters
        ----------
        **given : object
            Arguments of the call that the preferences replace.

        Returns
        -------
        qid : ndarray, shape (n_rows,)
            Prompt of each row of the blocks.
        pairs : ndarray of int64, shape (n_pairs, 2)
            Row numbers (preferred, other).
        pair_weight : ndarray of float64, shape (n_pairs,), or None
            Weight of each pair.

        Raises
        ------
        DataError
            When one of these arguments was also passed.
        """
        for name, value in given.items():
            if value is not None:
                own = {"qid": "prompt", "group": "prompt", "pair_weight": "weight"}.get(name)
                advice = f"say Preferences(..., {own}=...)" if own else "they are the pairs"
                raise DataError(f"{name} is given in addition to Preferences: {advice}.")
        n_rows = self.blocks[0].shape[0]
        each = np.arange(n_rows) if self._prompt is None else self._prompt
        kept = np.arange(n_rows) if self._kept is None else self._kept
        return np.concatenate([each, each]), np.column_stack([kept, kept + n_rows]), self.weight

    def rows(self, numbers: np.ndarray) -> Rows:
        """Copy some rows of the blocks, and only these.

        Parameters
        ----------
        numbers : ndarray of int
            Row numbers, ascending.

        Returns
        -------
        ndarray, CSR matrix or DataFrame
            The rows.
        """
        n_first = self.blocks[0].shape[0]
        parts = numbers[numbers < n_first], numbers[numbers >= n_first] - n_first
        return frames.stacked(*map(frames.take_rows, self.blocks, parts))

    def __len__(self) -> int:
        return self.n_pairs

    def __array__(self, *args: object, **kwargs: object) -> np.ndarray:
        raise DataError(
            "Preferences are not an array of features: give their arrays, X=data.X, pairs=data.pairs, qid=data.qid."
        )

    def __repr__(self) -> str:
        prompts = "" if self.prompt is None else f", n_prompts={Queries.from_qid(self.prompt).n_queries}"
        return f"Preferences(n_pairs={self.n_pairs}, n_features={self.blocks[0].shape[1]}{prompts})"

    def _select_pairs(self, values: Values) -> Values:
        return values if values is None or self._kept is None else frames.take_rows(values, self._kept)


def _two_dimensional(name: str, X: MatrixLike) -> Rows:
    """X as a two-dimensional array: unchanged, or converted if it is a list."""
    check_unmasked(name, X)
    X = host_sparse(X)
    if not (is_sparse(X) or frames.is_frame(X)):
        try:
            X = np.asarray(host_values(X))
        except ValueError as error:
            raise DataError(f"{name} must hold one row of features for each pair: {error}") from error
    if len(X.shape) != 2:
        raise DataError(f"{name} must have one row of features for each pair, got shape {X.shape}.")
    return X
