"""Sentences below a table of metrics: what queries without relevant documents, and without a ranking, count."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ranksvm.cli.tables import count, queries

if TYPE_CHECKING:
    from ranksvm.metrics import Evaluation

__all__ = ["notes_on"]


def notes_on(results: "Mapping[str, Evaluation]", missing: str = "zero") -> list[str]:
    """What a reader who compares the numbers with those of another tool has to know.

    Of 156 test queries of MQ2008, fold 1, 51 have no relevant document: a linear model has NDCG@10 0.4841 under the
    convention "default", and 0.8110 = 0.4841 + 51/156 in XGBoost (`tests/metrics/test_conventions.py`).
    """
    first = next(iter(results.values()))
    notes = []
    if first.n_without_relevant:
        notes.append(_without_relevant(first))
    for name, result in results.items():
        if result.n_missing:
            what = "counted 0" if missing == "zero" else "left out"
            notes.append(f"{name} lacks {queries(result.n_missing)} of the judgements, {what}.")
    return [note for note in notes if note]


def _without_relevant(result: "Evaluation") -> str:
    from ranksvm.metrics import CONVENTIONS, parse_metric
    from ranksvm.metrics.definitions import NDCG, AveragePrecision, MeanNDCG, Recall

    kinds = (NDCG, MeanNDCG, AveragePrecision, Recall)
    concerned = [name for name in result.means if isinstance(parse_metric(name), kinds)]
    if not concerned:
        return ""
    n, of = result.n_without_relevant, result.n_queries
    have = f"{count(n)} of {queries(of)} {'has' if n == 1 else 'have'} no relevant document"
    share = f"{n / of:.4f}"
    if CONVENTIONS[result.convention].no_relevant:
        return (
            f"{have}: in ndcg, map and r they count 1 here, as in {result.convention}. LETOR, trec_eval and the "
            f"default convention count them 0: {share} less."
        )
    return (
        f"{have}: in ndcg, map and r they count 0 here. XGBoost and LightGBM count them 1: {share} more "
        "(--convention xgboost)."
    )
