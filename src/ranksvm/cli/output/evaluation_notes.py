"""Sentences below a table of metrics: how queries without relevant documents, or without a ranking, count."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ranksvm.cli.output.tables import count, queries

if TYPE_CHECKING:
    from ranksvm.metrics import Evaluation

__all__ = ["note_on_no_relevant", "notes_on"]


def notes_on(results: "Mapping[str, Evaluation]", missing: str = "zero") -> list[str]:
    """Notes for a reader who compares the numbers of several systems with those of another tool."""
    notes = [note_on_no_relevant([next(iter(results.values()))])]
    for name, result in results.items():
        if result.n_missing:
            what = "counted 0" if missing == "zero" else "ignored"
            notes.append(f"{name} lacks {queries(result.n_missing)} of the judgments, {what}.")
    return [note for note in notes if note]


def note_on_no_relevant(parts: "Sequence[Evaluation]") -> str:
    """How queries without a relevant document count, here and in other tools, in the mean over some evaluations.

    Of 156 test queries of MQ2008, fold 1, 51 have no relevant document: a linear model has NDCG@10 0.4841 under the
    convention "default", and 0.8110 = 0.4841 + 51/156 in XGBoost (`tests/metrics/test_conventions.py`).
    """
    from ranksvm.metrics import CONVENTIONS, parse_metric
    from ranksvm.metrics.definitions import NDCG, AveragePrecision, MeanNDCG, Recall

    kinds = (NDCG, MeanNDCG, AveragePrecision, Recall)
    n, of = sum(part.n_without_relevant for part in parts), sum(part.n_queries for part in parts)
    if n == 0 or not any(isinstance(parse_metric(name), kinds) for name in parts[0].means):
        return ""
    have = f"{count(n)} of {queries(of)} {'has' if n == 1 else 'have'} no relevant document"
    share = f"{sum(part.n_without_relevant / part.n_queries for part in parts) / len(parts):.4f}"
    convention = parts[0].convention
    if CONVENTIONS[convention].no_relevant:
        return (
            f"{have}: in ndcg, map and r they count 1 here, as in {convention}. LETOR, trec_eval and the default "
            f"convention count them 0: {share} less by that alone."
        )
    return (
        f"{have}: in ndcg, map and r they count 0 here. XGBoost and LightGBM count them 1: {share} more by that alone "
        "(--convention xgboost)."
    )
