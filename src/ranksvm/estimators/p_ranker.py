"""PRanker: PRank, the pointwise perceptron with thresholds between the levels of relevance."""

from typing import ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

import ranksvm._compiled.online as online
from ranksvm._util.types import MatrixLike, RandomState
from ranksvm.data.numeric_column import numeric_column
from ranksvm.estimators.base.arguments import MetricsLike
from ranksvm.estimators.base.online_ranker import OnlineRanker, OnlineRows
from ranksvm.exceptions import DataError, ModelFileError, OptionError
from ranksvm.fits.training_set import TrainingArguments
from ranksvm.model_files.registry import storable
from ranksvm.model_files.schema import Array, Schema

__all__ = ["PRanker"]

_NO_PAIRS = "PRank learns the levels of documents, which pairs do not contain: give labels to partial_fit."


@storable
class PRanker(OnlineRanker):
    """PRank: a score for each document, and thresholds that separate the levels of relevance.

    The predicted level of a document is the number of thresholds at or below its score ``w'x``. If it is wrong, every
    threshold that is on the wrong side of the score, or equal to it, moves by 1 toward the correct side, and for each
    of these thresholds w moves by x so that the score moves in the opposite direction.

    Parameters
    ----------
    levels : array-like of float or None, default None
        All labels that may occur, in any order; None: the labels in the first call of `fit` or `partial_fit`.
    average : bool, default False
        Whether ``coef_`` is the mean of the weights over all documents seen instead of the last weights.
    shuffle_pairs : bool, default True
        Whether the documents of a query are visited in random order; otherwise in the order of their rows.
    n_passes : int, default 1
        Passes that `fit` makes over the data.
    early_stopping_rounds, eval_metric : optional
        As in `SOLARRanker`.
    random_state : int, numpy.random.RandomState or None, default None
        Seed of the orders of documents.
    n_jobs : int or None, default None
        Number of threads for checking and scoring; learning uses one.
    verbose : int, default 0
        As in `SOLARRanker`.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        The weights, or their mean.
    weights_ : ndarray of float64, shape (n_features,)
        The last weights; the array changes when the model learns.
    thresholds_ : ndarray of float64, shape (n_levels - 1,)
        The thresholds, ascending.
    levels_ : ndarray of float64, shape (n_levels,)
        The labels, ascending.
    n_pairs_, n_updates_, n_queries_ : int
        Numbers of documents seen, of documents whose predicted level was wrong, and of queries learned from.
    cumulative_loss_ : float
        0: PRank learns from documents, not from pairs.
    evals_result_, best_iteration_, best_score_
        As in `SOLARRanker`.
    n_features_in_, feature_names_in_, frame_type_, qid_column_
        As in `SOLARRanker`.

    Notes
    -----
    Crammer & Singer, "Pranking with ranking", NIPS 2001.

    Examples
    --------
    >>> from ranksvm import PRanker, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = PRanker([0, 1, 2, 3, 4], random_state=0).fit(data.X, data.y, qid=data.qid)
    >>> ranker.predict(data.X).shape, ranker.n_queries_
    ((160,), 20)
    """

    _fitted_schema: ClassVar[Schema] = {
        "levels_": Array("n_levels"),
        "thresholds_": Array("n_levels - 1"),
    }

    def __init__(
        self,
        levels: ArrayLike | None = None,
        *,
        average: bool = False,
        shuffle_pairs: bool = True,
        n_passes: int = 1,
        early_stopping_rounds: int | None = None,
        eval_metric: MetricsLike = "ndcg@10",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.levels = levels
        self.average = average
        self.shuffle_pairs = shuffle_pairs
        self.n_passes = n_passes
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _check_data(self, training: TrainingArguments, first: bool) -> None:
        if training.query_weight is not None or training.propensity is not None:
            raise DataError("PRank learns from documents one by one, not from pairs: it takes no weights.")
        y = training.y
        if first:
            self.levels_ = np.unique(y) if self.levels is None else self._given_levels()
        unknown = y[~np.isin(y, self.levels_)]
        if len(unknown):
            raise DataError(
                f"y has the label {unknown[0]:g}, which is not one of the levels {self.levels_.tolist()}: give levels "
                "(--levels), all labels that may occur."
            )

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if hasattr(self, "levels_") and (np.diff(self.levels_) <= 0.0).any():
            raise ModelFileError("levels_ must ascend.")

    def partial_fit_pairs(self, X: MatrixLike, pairs: ArrayLike, weight: ArrayLike | None = None) -> "PRanker":
        """Raise DataError: PRank learns from labels, not from pairs.

        Parameters
        ----------
        X, pairs, weight : object
            As in the other online rankers.

        Raises
        ------
        DataError
            Always.
        """
        raise DataError(_NO_PAIRS)

    def _learn(self, rows: OnlineRows, preferred: np.ndarray, other: np.ndarray, weight: np.ndarray | None) -> NoReturn:
        raise DataError(_NO_PAIRS)

    def _given_levels(self) -> np.ndarray:
        assert self.levels is not None
        try:
            return np.unique(numeric_column("levels", self.levels))
        except DataError:
            raise OptionError(f"levels must be None or a list of finite numbers, got {self.levels!r}.") from None

    def _state_matches_params(self) -> dict[str, bool]:
        same = self.levels is None or np.array_equal(self._given_levels(), self.levels_)
        return super()._state_matches_params() | {"levels": same}

    def _begin(self, n_features: int) -> None:
        self.thresholds_ = np.zeros(len(self.levels_) - 1)

    def _learn_query(
        self, rows: OnlineRows, own: np.ndarray, y: np.ndarray, preferred_weight: np.ndarray | None
    ) -> None:
        levels = np.searchsorted(self.levels_, y).astype(np.int32)
        if self.shuffle_pairs:
            # seeds have 32 bits
            order = np.random.RandomState((self.seed_, int(self.counts_[3]) % 2**32)).permutation(len(own))
            own, levels = own[order], levels[order]
        learn = online.prank_dense if rows.dense else online.prank_sparse
        learn(self._model, self.thresholds_, *rows.arrays, own, levels)
