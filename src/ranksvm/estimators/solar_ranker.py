"""SOLARRanker: online learning to rank with closed-form updates."""

from typing import ClassVar, Self

import numpy as np

import ranksvm._compiled.online as online
from ranksvm._util.checks import is_number
from ranksvm._util.threads import one_blas_thread
from ranksvm._util.types import RandomState
from ranksvm.estimators.base.arguments import MetricsLike
from ranksvm.estimators.base.online_ranker import OnlineRanker, OnlineRows
from ranksvm.estimators.base.undo import lock_of
from ranksvm.exceptions import ModelFileError, OptionError
from ranksvm.model_files.registry import storable
from ranksvm.model_files.schema import Array, PlainDict, Schema

__all__ = ["SOLARRanker"]


@storable
class SOLARRanker(OnlineRanker):
    """SOLAR: scalable online learning to rank, of the first or the second order.

    When a query arrives, the current model ranks its documents; then the model learns from the observed preferences,
    pair by pair. With the difference z of the two documents of a pair and ``h = max(0, 1 - w'z)``, SOLAR-I
    (``order=1``) takes the step ``w += h z / (|z|^2 + 1 / (2 C))``, which minimizes ``1/2 |w - w_before|^2 + C h^2``.
    SOLAR-II (``order=2``) also keeps a covariance S of w, initially I. If ``h > 0``, its updates are ``w += (h / b) S
    z`` and ``S -= (S z)(S z)' / b`` with ``b = z'Sz + gamma``. A pair of weight a uses ``C a`` and ``gamma / a``.

    Parameters
    ----------
    order : {1, 2}, default 1
        Order of the method: SOLAR-I or SOLAR-II.
    C : float, default 1e-5
        For the first order: weight of a pair, positive; a larger value makes larger updates.
    gamma : float, default 1e4
        For the second order: positive; a larger value makes smaller updates of w and of S. A full S may be lost to
        round-off if features are linearly dependent and exceed ``1e6 sqrt(gamma)``, which is warned about.
    covariance : {"full", "diagonal"}, default "full"
        For the second order: the full S, n_features^2 numbers (sparse documents are then converted to dense arrays), or
        its diagonal, for many features or sparse data.
    decay : float, default 1.0
        Factor in (0, 1] applied to past knowledge at every query: the first order updates ``decay w``, the second order
        uses ``decay S + (1 - decay) I``, so that its updates do not vanish. 1 forgets nothing. If relevance drifts,
        0.95 to 0.99 suit the first order with a small C: w is then nearly a sum of the pairs seen, dominated by the
        last ``1 / (1 - decay)`` queries. (With a large C, w adapts without decay.) For the second order with a small
        gamma, such as 100, values of 0.9 to 0.999 are suitable.
    average : bool, default False
        Whether ``coef_`` is the mean of the weights over all pairs seen instead of the last weights.
    shuffle_pairs : bool, default True
        Whether the pairs implied by the labels of a query are visited in random order; otherwise by label, the highest
        first. Pairs that are passed explicitly keep their order.
    n_passes : int, default 1
        Passes that `fit` makes over the data.
    early_stopping_rounds : int or None, default None
        `fit` stops after this number of passes without a better value on the first set of ``eval_set``, and keeps the
        model of the best pass.
    eval_metric : str, Metric, or list of either, default "ndcg@10"
        What `fit` evaluates on ``eval_set`` after each pass; the first metric decides on early stopping.
    random_state : int, numpy.random.RandomState or None, default None
        Seed of the orders of pairs.
    n_jobs : int or None, default None
        Number of threads for checking and scoring; learning uses one.
    verbose : int, default 0
        1 shows every pass of `fit`, and its metrics on ``eval_set``.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        The weights, or their mean. Without ``average`` it is ``weights_`` itself: copy it to keep it.
    weights_ : ndarray of float64, shape (n_features,)
        The last weights; the array changes when the model learns.
    covariance_ : ndarray of float64, shape (n_features, n_features) or (n_features,)
        S, or its diagonal; only for the second order.
    fitted_params_ : dict
        ``order`` and ``covariance``, with their values when learning started.
    n_pairs_, n_updates_, n_queries_ : int
        Numbers of pairs seen, of pairs that changed the model, and of queries learned from.
    evals_result_ : dict
        After `fit`: the metrics after each pass on each set of ``eval_set``, in LightGBM's form.
    best_iteration_, best_score_ : int and float, or None
        After `fit` with ``early_stopping_rounds``: the pass, from 1, whose model was kept, and its value.
    cumulative_loss_ : float
        Sum over the pairs seen: the weight of the pair times its squared hinge before the update.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of str
        Names of the features, if X had string column names.
    frame_type_ : str or None
        Library of the DataFrame X, such as "polars".
    qid_column_ : str or None
        Column of X that held the query ids: the one that ``qid`` named, or "qid".

    See Also
    --------
    RankSVM : Learns from all queries at once, to the optimum.

    Notes
    -----
    Wang, Wan, Zhang & Hoi, "SOLAR: Scalable Online Learning Algorithms for Ranking", ACL 2015. Their equation (7)
    shrinks S also for a pair that is correctly ordered with a margin; here, as in AROW (Crammer, Kulesza & Dredze, NIPS
    2009), it shrinks only at updates.

    Examples
    --------
    >>> from ranksvm import SOLARRanker, make_ranking
    >>> data = make_ranking(n_queries=50, n_docs=20, n_features=10, random_state=0)
    >>> ranker = SOLARRanker(order=2, random_state=0)
    >>> for query in range(1, 51):
    ...     own = data.qid == query
    ...     ranking = ranker.rank_one_query(data.X[own])
    ...     ranker = ranker.learn_one_query(data.X[own], data.y[own])
    >>> ranker.n_queries_, ranker.covariance_.shape
    (50, (10, 10))
    """

    _model_params = ("order", "covariance")
    _fitted_schema: ClassVar[Schema] = {
        "fitted_params_": PlainDict(),
        "_covariance_": Array("n_covariance", nullable=True),
    }

    _model_kind: ClassVar[str] = "solar"

    def __init__(
        self,
        order: int = 1,
        *,
        C: float = 1e-5,
        gamma: float = 1e4,
        covariance: str = "full",
        decay: float = 1.0,
        average: bool = False,
        shuffle_pairs: bool = True,
        n_passes: int = 1,
        early_stopping_rounds: int | None = None,
        eval_metric: MetricsLike = "ndcg@10",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.order = order
        self.C = C
        self.gamma = gamma
        self.covariance = covariance
        self.decay = decay
        self.average = average
        self.shuffle_pairs = shuffle_pairs
        self.n_passes = n_passes
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def forget(self, keep: float = 0.0) -> Self:
        """Keep only a share of what was learned, for instance after relevance has changed.

        The first order continues with ``keep w``. The second order keeps a share of the information: the precision ``P
        = S^-1``, which begins as I, becomes ``Q = I + keep (P - I)``, and S becomes the inverse of Q. w keeps its
        direction, and gets the length of ``keep Q^-1 P w``: it is multiplied by a factor that is near ``keep`` as long
        as S is near I, and near 1 when S is small. So the ranking stays the same as long as ``keep`` is above 0, and
        later queries count ``1 / keep`` times as much relative to earlier ones.

        Parameters
        ----------
        keep : float, default 0.0
            The share, in [0, 1].

        Returns
        -------
        self
            The estimator.

        Raises
        ------
        OptionError
            When ``keep`` is not in [0, 1], or with ``average=True``: the mean of past weights cannot forget.

        Examples
        --------
        >>> from ranksvm import SOLARRanker
        >>> ranker = SOLARRanker(C=0.5).learn_one_query([[1.0, 0.0], [0.0, 1.0]], [1, 0])
        >>> before = ranker.coef_.copy()
        >>> bool((ranker.forget(0.25).coef_ == 0.25 * before).all())
        True
        """
        if not is_number(keep) or not 0.0 <= keep <= 1.0:
            raise OptionError(f"keep must be between 0 and 1, got {keep!r}.")
        if self.average:
            raise OptionError("with average=True the model is the mean of past weights, which cannot forget.")
        if self._is_new():
            return self
        with lock_of(self), one_blas_thread():  # the bits must not depend on the number of threads
            if self._covariance_ is None:
                self.weights_ *= keep
            elif self.fitted_params_["covariance"] == "diagonal":
                self._forget(keep, self._covariance_, None)
            else:
                self._forget(keep, *np.linalg.eigh(self.covariance_))
        return self

    def _forget(self, keep: float, s: np.ndarray, vectors: np.ndarray | None) -> None:
        """`forget` for the second order, with eigenvalues s of S and their vectors; None: the unit vectors."""
        s = np.clip(s, 1e-300, 1.0)
        # factors for the components of w along the eigenvectors of S; the eigenvalues of P are 1 / s
        shares = keep / (s + keep * (1.0 - s))
        w = self.weights_ if vectors is None else vectors.T @ self.weights_
        length = float(np.linalg.norm(w))
        if length > 0:
            self.weights_ *= float(np.linalg.norm(shares * w)) / length
        new = s / (s + keep * (1.0 - s))
        assert self._covariance_ is not None
        self._covariance_[:] = new if vectors is None else ((vectors * new) @ vectors.T).reshape(-1)

    @property
    def covariance_(self) -> np.ndarray:
        """S, shape (n_features, n_features), or its diagonal; only for the second order."""
        flat: np.ndarray | None = getattr(self, "_covariance_", None)
        if flat is None:
            raise AttributeError("only a model of order 2 that has learned has a covariance.")
        n_features = len(self.weights_)
        if self.fitted_params_["covariance"] == "diagonal":
            return flat
        lower = np.tril(flat.reshape(n_features, n_features))
        covariance: np.ndarray = lower + np.tril(lower, -1).T
        return covariance

    def _check_loaded(self) -> None:
        super()._check_loaded()
        if not hasattr(self, "fitted_params_"):
            return
        order, covariance = self.fitted_params_["order"], self.fitted_params_["covariance"]
        S, n_features = self._covariance_, len(self.weights_)
        size = {"full": n_features**2, "diagonal": n_features}.get(covariance) if order == 2 else None
        if order not in (1, 2) or (None if S is None else len(S)) != size:
            raise ModelFileError(f"_covariance_ does not belong to order {order!r} and covariance {covariance!r}.")

    def _state_matches_params(self) -> dict[str, bool]:
        S, n_features = self._covariance_, len(self.weights_)
        second = self.order == 2
        size = n_features**2 if self.covariance == "full" else n_features
        return super()._state_matches_params() | {
            "order": second == (S is not None),
            "covariance": not second or S is None or len(S) == size,
        }

    def _begin(self, n_features: int) -> None:
        self.fitted_params_ = self._params_now()
        self._covariance_ = None
        if self.order == 2:
            full = self.covariance == "full"
            self._covariance_ = np.eye(n_features).reshape(-1) if full else np.ones(n_features)

    def _learn(self, rows: OnlineRows, preferred: np.ndarray, other: np.ndarray, weight: np.ndarray | None) -> None:
        method, parameter = "solar_first", self.C
        if self.order == 2:
            method = "solar_second" if self.covariance == "full" else "solar_diagonal"
            parameter = self.gamma
        if method == "solar_second":
            rows, preferred, other = rows.dense_part(preferred, other)
        learn = online.learn_dense if rows.dense else online.learn_sparse
        model = online.Model(self.weights_, self.lag_, self.counts_, float(self.decay), self._covariance_)
        learn(model, method, float(parameter), self._covariance_, *rows.arrays, preferred, other, weight)
