"""Choice of C for a model of low rank: by cross-validation, with a fit for each C and fold, or on validation data."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ranksvm._util.text import power
from ranksvm._util.verbosity import Steps

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import ArrayLike

    from ranksvm._util.types import Features
    from ranksvm.cli.rankers import Estimator
    from ranksvm.metrics import Evaluation

    # Features, labels and queries of some rows.
    Rows = tuple[Features, np.ndarray, np.ndarray | None]

__all__ = ["LowRankChoice"]

logger = logging.getLogger("ranksvm.cli")


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

        from ranksvm.model_selection.choice import choose

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
        from ranksvm.model_selection.choice import mean_and_standard_error
        from ranksvm.model_selection.cross_validation import query_splits

        ids = np.zeros(len(y), dtype=np.int64) if qid is None else id_array(qid)
        splits = query_splits(self.cv, X, y, Queries.from_qid(ids, len(y)))
        steps = Steps(len(self.Cs_) * len(splits))
        self.scores_ = np.empty((len(self.Cs_), len(splits)))
        for fold, (train, test) in enumerate(splits):
            held_out = X[test], y[test], ids[test]
            for place, C in enumerate(self.Cs_):
                ranker = self.make(C).fit(X[train], y[train], qid=ids[train])
                found = self._evaluated(C, ranker, held_out, f"fold {fold + 1} of {len(splits)}", steps)
                self.scores_[place, fold] = found.means[self.metric]
        self.mean_scores_, self.standard_errors_ = mean_and_standard_error(self.scores_)

    def _on_validation(
        self, X: "Features", y: "np.ndarray", grouping: dict[str, Any], valid: "Rows"
    ) -> "list[Estimator]":
        """Scores on validation data, which may also stop a fit early; returns the model of each C."""
        import numpy as np

        from ranksvm.model_selection.choice import standard_error_over_queries

        steps = Steps(len(self.Cs_))
        fitted, scores, errors = [], [], []
        for C in self.Cs_:
            ranker = self.make(C)
            sets: dict[str, Any] = {}
            if getattr(ranker, "early_stopping_rounds", None) is not None:
                sets = {"eval_set": [valid[:2]], "eval_qid": [valid[2]]}
            fitted.append(ranker.fit(X, y, **grouping, **sets))
            found = self._evaluated(C, ranker, valid, "validation data", steps)
            scores.append(found.means[self.metric])
            errors.append(standard_error_over_queries(found.per_query[self.metric], found.weights[self.metric]))
        self.scores_ = np.array(scores)[:, np.newaxis]
        self.mean_scores_, self.standard_errors_ = np.array(scores), np.array(errors)
        return fitted

    def _evaluated(self, C: float, ranker: "Estimator", data: "Rows", where: str, steps: Steps) -> "Evaluation":
        from ranksvm.metrics import evaluate

        X, y, qid = data
        found = evaluate(y, ranker.predict(X), qid, [self.metric], convention=self.convention)
        line = "%s, C = %s: %s %.4f on %s"
        logger.info(line, self.label, power(C), self.metric, found.means[self.metric], where, extra=steps.next())
        return found
