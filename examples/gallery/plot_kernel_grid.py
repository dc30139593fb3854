"""
C and gamma of a kernel
=======================

``KernelRankSVMCV`` tries every C with every gamma on folds of whole queries. A small gamma makes a kernel model nearly
linear; with a large one each document is similar only to itself.
"""

# %%
# One line for each gamma: the mean NDCG@10 of the folds.
from ranksvm import KernelRankSVMCV, make_ranking
from ranksvm.plotting import GridDisplay

data = make_ranking(n_queries=40, n_docs=8, n_features=4, random_state=0)
data.y = (data.X[:, 0] * data.X[:, 1] > 0.3).astype(float)  # a product of two features
Cs, gammas = [0.01, 0.1, 1.0, 10.0, 100.0], [0.01, 0.1, 1.0]
ranker = KernelRankSVMCV(Cs, gammas, cv=3).fit(data.X, data.y, qid=data.qid)
print(f"C = {ranker.C_:g}, gamma = {ranker.gamma_:g}")

GridDisplay.from_estimator(ranker)

# %%
# The same values as a map.
GridDisplay.from_estimator(ranker, kind="heatmap")
