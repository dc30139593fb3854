"""The arguments of ``fit``: training data, and data to evaluate on."""

from dataclasses import dataclass, fields
from typing import Any

from ranksvm.exceptions import DataError, OptionError

__all__ = ["EvalArguments", "TrainingArguments"]


@dataclass(frozen=True, eq=False)
class TrainingArguments:
    """The training data of ``fit``, as they were given or as arrays.

    Parameters
    ----------
    X : object
        Features.
    y : array-like of shape (n_rows,), optional
        Labels, or times with ``event``.
    qid, group : array-like, optional
        Query of each row, or sizes of consecutive queries.
    pairs, pair_weight : array-like, optional
        Row numbers (preferred, other) instead of labels, and the weight of each pair.
    sample_weight, query_weight, propensity : array-like of shape (n_rows,), optional
        Weights by row.
    event : array-like of bool, shape (n_rows,), optional
        Which of the times are observed.
    largest : ndarray of float64, shape (n_features,), optional
        The largest absolute value of each feature, if it is known.
    """

    X: Any
    y: Any = None
    qid: Any = None
    group: Any = None
    pairs: Any = None
    pair_weight: Any = None
    sample_weight: Any = None
    query_weight: Any = None
    propensity: Any = None
    event: Any = None
    largest: Any = None

    def weights(self) -> dict[str, Any]:
        """The weights by row, and ``event``, by the names that `ComparablePairs` has for them."""
        return {
            "sample_weight": self.sample_weight,
            "query_weight": self.query_weight,
            "propensity": self.propensity,
            "event": self.event,
        }

    def check_pairs(self, selection: str, weighting: str) -> None:
        """Raise an error if labels, pairs and the options of pairs contradict each other."""
        if self.event is not None:
            if self.pairs is not None:
                raise DataError("event says which times in y are observed: give y, not pairs.")
            if selection != "all":
                raise OptionError(f"pair_selection={selection!r} is for labels: with event, leave it at 'all'.")
        if self.pairs is None:
            if self.pair_weight is not None:
                raise DataError("pair_weight is given without pairs.")
            return
        if self.y is not None:
            raise DataError("Give y (labels, which imply the pairs) or pairs, not both.")
        if selection != "all":
            raise OptionError(
                f"pair_selection={selection!r} chooses among the pairs that labels imply: leave it at 'all'."
            )
        if weighting not in ("uniform", "per_query"):
            raise OptionError(f"pair_weighting={weighting!r} is computed from labels: with pairs, give pair_weight.")


@dataclass(frozen=True, eq=False)
class EvalArguments:
    """The arguments of ``fit`` about data to evaluate on, as in LightGBM.

    Parameters
    ----------
    eval_set : list of tuple, tuple, Preferences or None
        The sets.
    eval_qid, eval_group : list of array-like, or one for a single set, optional
        Their queries.
    eval_names : list of str, or one for a single set, optional
        Their names.
    eval_sample_weight : list of array-like, or one for a single set, optional
        The weights of their rows.
    eval_metric : str, Metric, or list of either, optional
        What to evaluate.
    eval_at : int or list of int, optional
        Cutoffs of the metrics that have none.
    """

    eval_set: Any = None
    eval_qid: Any = None
    eval_group: Any = None
    eval_names: Any = None
    eval_sample_weight: Any = None
    eval_metric: Any = None
    eval_at: Any = None

    def refuse_without_sets(self) -> None:
        """Raise DataError for the first argument that describes sets although there is none."""
        for field in fields(self):
            if field.name != "eval_set" and getattr(self, field.name) is not None:
                raise DataError(f"{field.name} is given without eval_set=[(X, y)].")
