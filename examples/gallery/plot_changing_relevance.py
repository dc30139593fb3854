"""
When relevance changes
======================

The true weights are drawn anew every 200 queries. Every model ranks each query before it learns from it. SOLAR with a
forgetting factor adapts quickly. Without one, it still trusts what it learned before the change, and adapts slowly.
"""

# %%
from ranksvm import ProgressiveDisplay, SOLARRanker, make_ranking_stream, progressive_validation


def stream():
    return make_ranking_stream(600, 15, 10, drift="sudden", drift_queries=200, random_state=0)


models = {
    "SOLAR-I, decay 0.97": SOLARRanker(decay=0.97, random_state=0),
    "SOLAR-I": SOLARRanker(random_state=0),
    "SOLAR-II": SOLARRanker(order=2, random_state=0),
}
results = {name: progressive_validation(model, stream(), metrics="ndcg@10") for name, model in models.items()}
for name, result in results.items():
    print(f"{name}: {result['ndcg@10']:.4f}")

display = ProgressiveDisplay.from_result(results, metric="ndcg@10", window=50)
