"""The subject of a report: a model, its data, and all measurements of them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ranksvm._util.pipeline_steps import steps_of
from ranksvm.analysis import WeightIntervals, explain, feature_importance, weight_intervals
from ranksvm.data import ComparablePairs
from ranksvm.data.text_categories import features_for
from ranksvm.datasets.ranking_data import RankingData
from ranksvm.exceptions import DataError, NoIntervalsError, OptionError
from ranksvm.fits.results.explanation import Explanation
from ranksvm.metrics import Comparison, Evaluation, Metric, compare_systems, evaluate, parse_metrics
from ranksvm.metrics.scorers import predict_scores

if TYPE_CHECKING:
    from ranksvm.estimators import RankSVM, RankSVMCV
    from ranksvm.estimators.base.ranker import Ranker

__all__ = ["Model", "Subject", "examine"]

# largest cut-off of the curves of NDCG
CUTOFFS = 20
_OTHERWISE = (
    "these are not the data that it was trained on, or it was trained with weights or listed pairs. Give its training "
    "data, or none (train, --train): without them the report has no intervals of weights."
)


class Model(Protocol):
    """A fitted estimator."""

    def predict(self, X: Any) -> Any: ...


@dataclass(frozen=True)
class Subject:
    """A model, the data on which it is measured, and the results.

    Parameters
    ----------
    model : estimator
        The model, possibly a Pipeline.
    name : str
        Its name.
    data, train : RankingData, and RankingData or None
        The data it is measured on, and those it was trained on.
    metrics : list of str
        The metrics; queries are compared by the first one.
    scores : ndarray of float64, shape (n_rows,)
        Scores of the model.
    evaluations, curves : dict of str to Evaluation
        For each system by name, the model first: ``evaluations`` has its evaluation by ``metrics``, and ``curves`` its
        NDCG at every cut-off from 1 up to at most 20.
    comparisons : list of Comparison
        The model against each baseline in each metric.
    correction : str
        How the p-values are corrected for the number of baselines.
    intervals : WeightIntervals or None
        Intervals of the weights.
    why_no_intervals : str
        The reason why there are no intervals; empty if there are, or if there are no training data.
    explanation : Explanation or None
        Contributions of the features to the scores of a linear model.
    importance : ndarray of float64, shape (n_features,), or None
        Importance of the features of a linear model.
    """

    model: Model
    name: str
    data: RankingData
    train: RankingData | None
    metrics: list[str]
    scores: np.ndarray
    evaluations: dict[str, Evaluation]
    curves: dict[str, Evaluation]
    comparisons: list[Comparison]
    correction: str
    intervals: WeightIntervals | None
    why_no_intervals: str
    explanation: Explanation | None
    importance: np.ndarray | None

    @property
    def ranker(self) -> "Ranker":
        """The model itself, or the last step of a Pipeline."""
        return steps_of(self.model)[-1]

    @property
    def metric(self) -> str:
        """The metric by which queries are compared."""
        return self.metrics[0]

    @property
    def baselines(self) -> list[str]:
        """Names of the other systems."""
        return list(self.evaluations)[1:]

    def document(self, row: int) -> str:
        """The id of a document; if it has none, its row, from 0."""
        docid = "" if self.data.docid is None else str(self.data.docid[row])
        return docid or f"row {row}"


def examine(
    model: Model,
    data: RankingData,
    *,
    name: str,
    train: RankingData | None,
    baselines: Mapping[str, Model | ArrayLike],
    metrics: str | Metric | Iterable[str | Metric],
    convention: str,
    correction: str,
    n_jobs: int | None,
) -> Subject:
    """Measure a model and its baselines; the parameters are as in `make_report`."""
    names = [metric.name for metric in parse_metrics(metrics)]
    if name in baselines:
        raise OptionError(f"a baseline has the name of the model, {name!r}: give it another one.")
    if train is not None and train.n_features != data.n_features:
        raise DataError(f"train has {train.n_features} features, the data of the report {data.n_features}.")
    scores = _scores(model, data)
    systems: dict[str, ArrayLike] = {name: scores}
    for other, given in baselines.items():
        systems[str(other)] = _scores(given, data) if hasattr(given, "predict") else given
    cutoffs = [f"ndcg@{k}" for k in range(1, max(2, min(CUTOFFS, int(data.queries.sizes.max(initial=2)))) + 1)]

    def evaluations(requested: Sequence[str]) -> dict[str, Evaluation]:
        qid = data.query_ids
        return {
            system: evaluate(data.y, values, qid, requested, convention=convention, docid=data.docid)
            for system, values in systems.items()
        }

    found = evaluations(names)
    linear, X = hasattr(steps_of(model)[-1], "explain"), features_for(model, data)
    features = data.feature_names
    intervals, why_none = _intervals(model, train, n_jobs, features)
    return Subject(
        model=model,
        name=name,
        data=data,
        train=train,
        metrics=names,
        scores=scores,
        evaluations=found,
        curves=evaluations(cutoffs),
        comparisons=_comparisons(found, names, correction),
        correction=correction,
        intervals=intervals,
        why_no_intervals=why_none,
        explanation=explain(model, X, data.query_ids, feature_names=features) if linear else None,
        importance=feature_importance(model, X, data.query_ids) if linear else None,
    )


def _scores(model: Any, data: RankingData) -> np.ndarray:
    return predict_scores(model, features_for(model, data), data.query_ids)


def _comparisons(evaluations: dict[str, Evaluation], metrics: Sequence[str], correction: str) -> list[Comparison]:
    """Compare the model with each baseline in each metric that is defined for all systems (model minus baseline)."""
    model = next(iter(evaluations))
    found: list[Comparison] = []
    if len(evaluations) < 2:
        return found
    for metric in metrics:
        if not any(math.isnan(evaluation.means[metric]) for evaluation in evaluations.values()):
            tests = compare_systems(evaluations, metric, baseline=model, correction=correction)  # type: ignore[arg-type]
            found += [test.swapped() for test in tests]
    return found


def _intervals(
    model: Model, train: RankingData | None, n_jobs: int | None, features: Sequence[str] | None
) -> tuple[WeightIntervals | None, str]:
    """Intervals of the weights of a RankSVM, from its training data; or the reason why there are none."""
    from ranksvm.estimators import RankSVM, RankSVMCV

    ranker = steps_of(model)[-1]
    if train is None or not isinstance(ranker, RankSVM | RankSVMCV):
        return None, ""
    try:
        found = weight_intervals(model, train.X, train.y, train.query_ids, n_jobs=n_jobs, feature_names=features)
    except NoIntervalsError as error:
        return None, str(error)
    _check_trained_on(ranker, train, found)
    return found, ""


def _check_trained_on(ranker: "RankSVM | RankSVMCV", train: RankingData, found: WeightIntervals) -> None:
    """Refuse data that the ranker was not trained on: a fit to them gives another model."""
    labels = np.asarray(train.y, dtype=np.float64)
    n_pairs = ComparablePairs.from_labels(train.queries, labels, may_be_empty=True).n_pairs
    if ranker.fitted_params_["pair_selection"] == "all" and n_pairs != ranker.n_pairs_:
        raise DataError(
            f"the training data given have {n_pairs:,} pairs, but the model was trained on {ranker.n_pairs_:,}: "
            f"{_OTHERWISE}"
        )
    distance = float(np.linalg.norm(found.coef - ranker.coef_))
    # Two fits to the same data differ by at most this distance, because each is at most a proven distance from the
    # optimum. The factor 1.001 and the last term below allow for round-off.
    proven = found.solver_error + math.sqrt(2.0 * max(0.0, getattr(ranker, "duality_gap_", math.inf)))
    if distance > 1.001 * proven + 1e-9 * float(np.linalg.norm(ranker.coef_)):
        raise DataError(
            f"a fit to the training data given has weights at a distance of {distance:.3g} from the weights of "
            f"the model, but the certificates allow only {proven:.3g}: {_OTHERWISE}"
        )
