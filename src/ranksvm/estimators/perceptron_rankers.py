"""Two baselines for the other online rankers: a perceptron on pairs, and a committee of perceptrons."""

from typing import ClassVar

import numpy as np

import ranksvm._compiled.online as online
from ranksvm._util.types import RandomState
from ranksvm.estimators.base.arguments import MetricsLike
from ranksvm.estimators.base.online_ranker import OnlineRanker, OnlineRows
from ranksvm.model_files.registry import storable
from ranksvm.model_files.schema import Array, Schema

__all__ = ["PairwisePerceptronRanker", "PerceptronCommitteeRanker"]


@storable
class PairwisePerceptronRanker(OnlineRanker):
    """The perceptron on pairs: ``w += z`` for a misordered pair, which has the feature difference z and ``w'z <= 0``.

    Parameters
    ----------
    average : bool, default False
        Whether ``coef_`` is the mean of the weights over all pairs seen instead of the last weights.
    shuffle_pairs : bool, default True
        Whether the pairs implied by the labels of a query are visited in random order; otherwise by label, the highest
        first.
    n_passes : int, default 1
        Passes that `fit` makes over the data.
    early_stopping_rounds, eval_metric : optional
        As in `SOLARRanker`.
    random_state : int, numpy.random.RandomState or None, default None
        Seed of the orders of pairs.
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
    n_pairs_, n_updates_, n_queries_ : int
        Numbers of pairs seen, of misordered pairs, and of queries learned from.
    cumulative_loss_ : float
        Sum over the pairs seen: the weight of the pair times ``max(0, -w'z)^2`` before the update.
    evals_result_, best_iteration_, best_score_
        As in `SOLARRanker`.
    n_features_in_, feature_names_in_, frame_type_, qid_column_
        As in `SOLARRanker`.

    Notes
    -----
    A pair of weight a moves w by ``a z``. This is Crammer & Singer's PRank in the pairwise form with which Wang et al.
    (ACL 2015) compare SOLAR.

    Examples
    --------
    >>> from ranksvm import PairwisePerceptronRanker, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = PairwisePerceptronRanker(average=True, random_state=0).fit(data.X, data.y, qid=data.qid)
    >>> ranker.score(data.X, data.y, qid=data.qid) > 0.8
    True
    """

    def __init__(
        self,
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
        self.average = average
        self.shuffle_pairs = shuffle_pairs
        self.n_passes = n_passes
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _learn(self, rows: OnlineRows, preferred: np.ndarray, other: np.ndarray, weight: np.ndarray | None) -> None:
        learn = online.learn_dense if rows.dense else online.learn_sparse
        learn(self._model, "perceptron", 0.0, None, *rows.arrays, preferred, other, weight)


@storable
class PerceptronCommitteeRanker(OnlineRanker):
    """A committee of the current model of a perceptron on pairs and its past models that survived the most pairs.

    A model survives a pair that it orders correctly. When the current model misorders a pair, it replaces the committee
    member with the fewest survivals, if it has survived more pairs itself. The score of a document is the sum over all
    members and the current model, each weighted by its number of survived pairs.

    Parameters
    ----------
    n_experts : int, default 20
        Size of the committee.
    shuffle_pairs : bool, default True
        Whether the pairs implied by the labels of a query are visited in random order; otherwise by label, the highest
        first.
    n_passes : int, default 1
        Passes that `fit` makes over the data.
    early_stopping_rounds, eval_metric : optional
        As in `SOLARRanker`.
    random_state : int, numpy.random.RandomState or None, default None
        Seed of the orders of pairs.
    n_jobs : int or None, default None
        Number of threads for checking and scoring; learning uses one.
    verbose : int, default 0
        As in `SOLARRanker`.

    Attributes
    ----------
    coef_ : ndarray of float64, shape (n_features,)
        The weights: the sum over the committee.
    experts_ : ndarray of float64, shape (n_experts, n_features)
        The members; the arrays change when the model learns.
    survivals_ : ndarray of float64, shape (n_experts,)
        Number of pairs that each member has survived; 0 for an empty place.
    weights_ : ndarray of float64, shape (n_features,)
        The current model.
    n_pairs_, n_updates_, n_queries_ : int
        Numbers of pairs seen, of misordered pairs, and of queries learned from.
    cumulative_loss_ : float
        Sum over the pairs seen: the weight of the pair times ``max(0, -w'z)^2`` before the update.
    evals_result_, best_iteration_, best_score_
        As in `SOLARRanker`.
    n_features_in_, feature_names_in_, frame_type_, qid_column_
        As in `SOLARRanker`.

    Notes
    -----
    Wang et al. (ACL 2015) compare SOLAR with a committee of 20 such models. It is not the whole committee perceptron of
    Elsas, Carvalho & Carbonell, "Fast learning of document ranking functions with the committee perceptron" (WSDM
    2008), which can choose members by a metric of rankings and leaves out pairs that are misordered too often.
    In earlier versions this class was called ``CommitteePerceptronRanker``.

    Examples
    --------
    >>> from ranksvm import PerceptronCommitteeRanker, make_ranking
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = PerceptronCommitteeRanker(n_experts=5, random_state=0).fit(data.X, data.y, qid=data.qid)
    >>> ranker.score(data.X, data.y, qid=data.qid) > 0.8
    True
    """

    average = False
    _fitted_schema: ClassVar[Schema] = {
        "experts_": Array("n_members", "n_features"),
        "survivals_": Array("n_members", minimum=0.0),
        "survival_": Array(1, minimum=0.0),
    }

    _model_kind: ClassVar[str] = "committee"

    def __init__(
        self,
        n_experts: int = 20,
        *,
        shuffle_pairs: bool = True,
        n_passes: int = 1,
        early_stopping_rounds: int | None = None,
        eval_metric: MetricsLike = "ndcg@10",
        random_state: RandomState = None,
        n_jobs: int | None = None,
        verbose: int = 0,
    ):
        self.n_experts = n_experts
        self.shuffle_pairs = shuffle_pairs
        self.n_passes = n_passes
        self.early_stopping_rounds = early_stopping_rounds
        self.eval_metric = eval_metric
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def coef_(self) -> np.ndarray:  # type: ignore[override]
        """The sum over the committee and the current model; ndarray of float64, shape (n_features,)."""
        if not hasattr(self, "weights_"):
            raise AttributeError("this PerceptronCommitteeRanker has not learned anything yet.")
        weights: np.ndarray = self.survivals_ @ self.experts_ + self.survival_[0] * self.weights_
        return weights

    def _state_matches_params(self) -> dict[str, bool]:
        return super()._state_matches_params() | {"n_experts": self.n_experts == len(self.experts_)}

    def _begin(self, n_features: int) -> None:
        self.experts_ = np.zeros((int(self.n_experts), n_features))
        self.survivals_ = np.zeros(int(self.n_experts))
        self.survival_ = np.zeros(1)

    def _learn(self, rows: OnlineRows, preferred: np.ndarray, other: np.ndarray, weight: np.ndarray | None) -> None:
        learn = online.committee_dense if rows.dense else online.committee_sparse
        learn(self._model, self.experts_, self.survivals_, self.survival_, *rows.arrays, preferred, other, weight)
