"""
Choosing C
==========

The score of a model against C has a wide, flat top. ``RankSVMCV`` computes it by cross-validation over folds of whole
queries, with warm starts along C; the second plot shows what C does to the weights.
"""

# %%
# Five folds; the band is one standard error.
from ranksvm import PathDisplay, RankSVMCV, make_ranking, regularization_path

data = make_ranking(n_queries=120, n_docs=20, n_features=12, random_state=0)
Cs = [2.0**exponent for exponent in range(-18, 3)]
ranker = RankSVMCV(Cs=Cs, cv=5, metric="ndcg@10").fit(data.X, data.y, qid=data.qid)
print(f"C = {ranker.C_:.3g}, mean NDCG@10 of the folds {ranker.mean_scores_.max():.4f}")

PathDisplay.from_estimator(ranker)

# %%
# A small C keeps all weights near 0. With a large C, the weights fit the data more closely.
path = regularization_path(data.X, data.y, qid=data.qid, Cs=Cs)
PathDisplay.from_path(path, chosen_C=ranker.C_)
