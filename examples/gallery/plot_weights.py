"""
Which weights are not 0?
========================

An interval shows how much a weight depends on the sample of queries. A weight whose interval contains 0 may have either
sign.
"""

# %%
from ranksvm import RankSVM, make_ranking
from ranksvm.analysis import weight_intervals
from ranksvm.plotting import WeightsDisplay

data, truth = make_ranking(n_queries=80, n_docs=12, n_features=8, noise=1.0, return_coef=True, random_state=0)
names = [f"feature {number}" for number in range(1, 9)]
weights = weight_intervals(RankSVM(C=0.01), data.X, data.y, data.qid, feature_names=names)
display = WeightsDisplay.from_intervals(weights)

# %%
# The same numbers as a table.
print(weights)
