"""Scorers: metrics in the form used by scikit-learn's searches and cross-validation."""

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.types import MatrixLike
from ranksvm.data import frames
from ranksvm.exceptions import DataError
from ranksvm.metrics.conventions import Convention, convention_named
from ranksvm.metrics.definitions import Metric, parse_metric
from ranksvm.metrics.evaluation import evaluate

if TYPE_CHECKING:
    from sklearn.utils.metadata_routing import MetadataRequest

__all__ = ["RankingScorer", "scorer"]


@dataclasses.dataclass(frozen=True)
class RankingScorer:
    """A scikit-learn scorer: ``scorer(estimator, X, y, qid=...)`` is the mean of a metric; made by `scorer`.

    It requests ``qid`` and ``sample_weight``: with ``sklearn.set_config(enable_metadata_routing=True)`` it receives
    them without a call to ``set_score_request``. Without ``qid``, it uses the same column of a DataFrame X as
    `RankSVM.score`.

    Parameters
    ----------
    metric : Metric
        The metric.
    convention : Convention
        The convention.
    max_label : float, optional
        Highest grade of the scale, for ERR, as in `evaluate`.

    Examples
    --------
    >>> from ranksvm import metrics
    >>> metrics.scorer("ndcg@5", convention="trec").metric.name
    'ndcg@5'
    """

    metric: Metric
    convention: Convention
    max_label: float | None = None

    def __call__(
        self,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        qid: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        if qid is None:
            qid = _column_of_ids(estimator, X)
        if qid is None:
            raise DataError(
                f"the scorer of {self.metric.name!r} was called without qid. In scikit-learn's searches, call "
                "sklearn.set_config(enable_metadata_routing=True) and pass qid (as params={'qid': qid} or qid=qid); "
                "ranksvm.cross_validate needs neither. If all rows are one query, pass the same id for each."
            )
        ids = frames.split_qid(X, qid)[1]
        scores = predict_scores(estimator, X, qid)
        rules: dict[str, Any] = {"convention": self.convention, "max_label": self.max_label}
        result = evaluate(y, scores, ids, self.metric, sample_weight=sample_weight, **rules)
        return result.means[self.metric.name]

    def get_metadata_routing(self) -> "MetadataRequest":
        """The metadata that the scorer requests from scikit-learn.

        Returns
        -------
        MetadataRequest
            A request of ``qid`` and ``sample_weight`` for ``score``.
        """
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=type(self).__name__)
        for param in ("qid", "sample_weight"):
            request.score.add_request(param=param, alias=True)
        return request


def _column_of_ids(estimator: object, X: object) -> str | None:
    """The column of X that has the query ids, as in our estimators' ``score``: the column used in ``fit``, or "qid"."""
    estimator = getattr(estimator, "best_estimator_", estimator)
    column = getattr(estimator, "qid_column_", None) or frames.QID
    return column if frames.has_column(X, column) else None


def predict_scores(estimator: Any, X: MatrixLike, qid: ArrayLike) -> np.ndarray:
    """Predictions of an estimator; it gets the query ids if it requests them, as a Pipeline with a query scaler does.

    Parameters
    ----------
    estimator : object
        A fitted estimator. A search's ``predict`` passes on no metadata, so its best estimator is called.
    X : array-like of shape (n_rows, n_features)
        Features.
    qid : array-like of shape (n_rows,) or str
        Query of each row, or the column of X that has it.

    Returns
    -------
    ndarray of shape (n_rows,)
        The scores.
    """
    estimator = getattr(estimator, "best_estimator_", estimator)
    if not hasattr(estimator, "get_metadata_routing"):
        return estimator.predict(X)
    import sklearn
    from sklearn.utils.metadata_routing import get_routing_for_object

    with sklearn.config_context(enable_metadata_routing=True):
        asks = get_routing_for_object(estimator).consumes("predict", ["qid"])
        return estimator.predict(X, qid=qid) if asks else estimator.predict(X)


def scorer(
    metric: str | Metric = "ndcg@10", *, convention: str | Convention = "default", max_label: float | None = None
) -> RankingScorer:
    """A scorer of a metric, for ``GridSearchCV(..., scoring=...)`` and ``cross_val_score``.

    Parameters
    ----------
    metric : str or Metric, default "ndcg@10"
        The metric.
    convention : str or Convention, default "default"
        The convention.
    max_label : float, optional
        Highest grade of the scale, for ERR; None: the highest label of the rows that are scored, which may differ
        between folds.

    Returns
    -------
    RankingScorer
        The scorer: higher is better.

    Raises
    ------
    OptionError
        When the metric or convention is unknown.

    Examples
    --------
    >>> from ranksvm import RankSVM, make_ranking, metrics
    >>> data = make_ranking(n_queries=20, n_docs=8, n_features=4, random_state=0)
    >>> ranker = RankSVM(C=0.01).fit(data.X, data.y, qid=data.qid)
    >>> bool(metrics.scorer("map")(ranker, data.X, data.y, qid=data.qid) > 0.8)
    True
    """
    return RankingScorer(parse_metric(metric), convention_named(convention), max_label)
