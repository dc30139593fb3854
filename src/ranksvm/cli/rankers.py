"""The estimators that training commands fit, from their options; the choice of C for a low-rank model."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ranksvm._util.parameters import option_names
from ranksvm._util.text import power
from ranksvm._util.verbosity import Steps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike
    from sklearn.base import TransformerMixin

    from ranksvm import AdditiveRankSVM, FactorizedRankSVM, KernelRankSVM, RegularizedRankSVM
    from ranksvm._util.types import Features
    from ranksvm.cli.features import Model
    from ranksvm.estimators.base.choosing_ranker import ChoosingRanker
    from ranksvm.estimators.base.ranker import Ranker
    from ranksvm.estimators.rank_svm import RankSVMCore
    from ranksvm.metrics import Evaluation, Metric

    LowRank = FactorizedRankSVM | RegularizedRankSVM
    Estimator = RankSVMCore | KernelRankSVM | AdditiveRankSVM | ChoosingRanker | LowRank
    # Features, labels and queries of some rows.
    Rows = tuple[Features, np.ndarray, np.ndarray | None]

__all__ = ["LowRankChoice", "chooses", "evaluates_while_fitting", "make_ranker", "with_scaler"]

logger = logging.getLogger("ranksvm.cli")

_CHOICE = ("metric", "convention", "rule")


def make_ranker(options: dict[str, Any], *, only_fit: bool = False, **changes: Any) -> "Estimator":
    """The estimator for the options; if they have a range of values, an estimator that chooses among them.

    The ranges are ``Cs``, ``gammas``, and ``interactions="auto"``. An option that is None is not passed on; ``changes``
    override ``options``. With ``only_fit`` a RankSVM is made without the interface of scikit-learn, which
    cross-validation needs.
    """
    import ranksvm  # its names are imported on first use, so only the estimator needed here is loaded
    from ranksvm.estimators.rank_svm import RankSVMCore

    options = options | changes
    if options.get("low_rank") is not None:
        return _low_rank_ranker(options)
    if options["model"] == "additive":
        return _additive_ranker(options)
    names = option_names("linear" if options.get("kernel") is None else "kernel")
    given = {name: options[name] for name in names if options.get(name) is not None}
    kernel = "kernel" in given
    if not chooses(options):
        if kernel:
            return ranksvm.KernelRankSVM(C=options["C"], **given)
        return (RankSVMCore if only_fit else ranksvm.RankSVM)(C=options["C"], **given)
    given |= _choice(options)
    if not kernel:
        return ranksvm.RankSVMCV(**given)
    return ranksvm.KernelRankSVMCV(gammas=options["gammas"], **given)


def _additive_ranker(options: dict[str, Any]) -> "Estimator":
    from ranksvm import AdditiveRankSVM, AdditiveRankSVMCV

    given = {name: options[name] for name in option_names("additive") if options.get(name) is not None}
    if not chooses(options):
        return AdditiveRankSVM(options["C"], **given)
    weight = given.pop("step_weight", None)
    if weight is None and options["Cs"] is None:  # only the number of interactions is chosen
        weight = AdditiveRankSVM().step_weight
    return AdditiveRankSVMCV(step_weights=None if weight is None else [weight], **given, **_choice(options))


def _choice(options: dict[str, Any]) -> dict[str, Any]:
    """The parameters that say how an estimator chooses C, and from which values."""
    Cs = [options["C"]] if options["Cs"] is None else options["Cs"]
    return {"Cs": Cs, "cv": options["folds"], **{name: options[name] for name in _CHOICE}}


def _low_rank_ranker(options: dict[str, Any]) -> "Estimator":
    from ranksvm import FactorizedRankSVM, RegularizedRankSVM

    model = options["low_rank"]
    given = {name: options[name] for name in option_names(model) if options.get(name) is not None}
    if model == "regularized":
        return RegularizedRankSVM(options["C"], **given)
    if evaluates_while_fitting(options):
        given["eval_metric"] = options["metric"]
    return FactorizedRankSVM(options["C"], **given)


def evaluates_while_fitting(options: dict[str, Any]) -> bool:
    """Whether the fitted model depends on the validation data."""
    return chooses(options) or options.get("early_stopping_rounds") is not None


def chooses(options: dict[str, Any]) -> bool:
    """Whether the options have a range to choose from."""
    return options["Cs"] is not None or options.get("gammas") is not None or options.get("interactions") == "auto"


def with_scaler(scaler: "TransformerMixin | None", ranker: "Ranker") -> "Model":
    """The model to save: a Pipeline if features are scaled."""
    if scaler is None:
        return ranker
    from sklearn.pipeline import Pipeline

    return Pipeline([("scaler", scaler), ("ranker", ranker)])


class LowRankChoice:
    """Chooses C as `RankSVMCV` does, on validation data or by folds of queries, and keeps the same attributes.

    Parameters
    ----------
    make : callable
        Makes the estimator of a C.
    Cs : sequence of float
        The values to try.
    metric, convention, rule : str
        As in `RankSVMCV`.
    cv : int
        Number of folds.
    label : str
        Name of the model in the log.

    Attributes
    ----------
    Cs_, scores_, mean_scores_, standard_errors_, C_, best_score_
        As in `RankSVMCV`.
    ranker_ : estimator
        The estimator with the chosen C, fitted to all data.
    """

    def __init__(
        self,
        make: "Callable[[float], Estimator]",
        Cs: Sequence[float],
        *,
        metric: str,
        cv: int,
        convention: str,
        rule: str,
        label: str,
    ):
        self.make = make
        self.Cs = Cs
        self.metric = metric
        self.cv = cv
        self.convention = convention
        self.rule = rule
        self.label = label

    def fit(
        self,
        X: "Features",
        y: "np.ndarray",
        *,
        qid: "np.ndarray | None" = None,
        group: "ArrayLike | None" = None,
        eval_set: "tuple[Features, np.ndarray] | None" = None,
        eval_qid: "np.ndarray | None" = None,
    ) -> "LowRankChoice":
        """Choose C, and fit the model."""
        import numpy as np

        from ranksvm.model_selection.cross_validation import choose

        self.Cs_ = np.sort(np.asarray(self.Cs, dtype=np.float64))
        if eval_set is None:
            fitted = None
            self._by_folds(X, y, qid)
        else:
            fitted = self._on_validation(X, y, {"qid": qid, "group": group}, (*eval_set, eval_qid))
        chosen = choose(self.mean_scores_, self.standard_errors_, self.rule)
        self.C_, self.best_score_ = float(self.Cs_[chosen]), float(self.mean_scores_[chosen])
        self.ranker_ = self.make(self.C_).fit(X, y, qid=qid, group=group) if fitted is None else fitted[chosen]
        return self

    def predict(self, X: "Features") -> "np.ndarray":
        """Scores of the chosen model."""
        return self.ranker_.predict(X)

    def _by_folds(self, X: "Features", y: "np.ndarray", qid: "np.ndarray | None") -> None:
        """Scores on the same folds as in `RankSVMCV`."""
        import numpy as np

        from ranksvm.data import Queries
        from ranksvm.data.queries import id_array
        from ranksvm.metrics.definitions import on_scale, parse_metric
        from ranksvm.model_selection.cross_validation import mean_and_standard_error, query_splits

        ids = np.zeros(len(y), dtype=np.int64) if qid is None else id_array(qid)
        splits = query_splits(self.cv, X, y, Queries.from_qid(ids, len(y)))
        steps = Steps(len(self.Cs_) * len(splits))
        (metric,) = on_scale([parse_metric(self.metric)], y.max)
        self.scores_ = np.empty((len(self.Cs_), len(splits)))
        for fold, (train, test) in enumerate(splits):
            held_out = X[test], y[test], ids[test]
            for place, C in enumerate(self.Cs_.tolist()):
                ranker = self.make(C).fit(X[train], y[train], qid=ids[train])
                found = self._evaluated(C, ranker, held_out, f"fold {fold + 1} of {len(splits)}", steps, metric)
                self.scores_[place, fold] = found.means[self.metric]
        self.mean_scores_, self.standard_errors_ = mean_and_standard_error(self.scores_)

    def _on_validation(
        self, X: "Features", y: "np.ndarray", grouping: dict[str, Any], valid: "Rows"
    ) -> "list[Estimator]":
        """Scores on validation data, which may also stop a fit early; returns the model of each C."""
        import numpy as np

        from ranksvm.model_selection.cross_validation import standard_error_over_queries

        steps = Steps(len(self.Cs_))
        fitted, scores, errors = [], [], []
        for C in self.Cs_.tolist():
            ranker = self.make(C)
            sets: dict[str, Any] = {}
            if getattr(ranker, "early_stopping_rounds", None) is not None:
                sets = {"eval_set": [valid[:2]], "eval_qid": [valid[2]]}
            fitted.append(ranker.fit(X, y, **grouping, **sets))
            found = self._evaluated(C, ranker, valid, "validation data", steps, self.metric)
            scores.append(found.means[self.metric])
            errors.append(standard_error_over_queries(found.per_query[self.metric], found.weights[self.metric]))
        self.scores_ = np.array(scores)[:, np.newaxis]
        self.mean_scores_, self.standard_errors_ = np.array(scores), np.array(errors)
        return fitted

    def _evaluated(
        self, C: float, ranker: "Estimator", data: "Rows", where: str, steps: Steps, metric: "str | Metric"
    ) -> "Evaluation":
        from ranksvm.metrics import evaluate

        X, y, qid = data
        found = evaluate(y, ranker.predict(X), qid, [metric], convention=self.convention)
        line = "%s, C = %s: %s %.4f on %s"
        logger.info(line, self.label, power(C), self.metric, found.means[self.metric], where, extra=steps.next())
        return found
