"""
Which weights are certain?
==========================

A bootstrap over queries shows how much each weight depends on the sample. A weight whose interval contains 0 may have
either sign.
"""

# %%
from ranksvm import RankSVM, make_ranking
from ranksvm.analysis import bootstrap_weights
from ranksvm.plotting import WeightsDisplay

data, truth = make_ranking(n_queries=80, n_docs=12, n_features=8, noise=1.0, return_coef=True, random_state=0)
names = [f"feature {number}" for number in range(1, 9)]
weights = bootstrap_weights(RankSVM(C=0.01), data.X, data.y, data.qid, n_resamples=200, random_state=0)
display = WeightsDisplay(weights.coef, *weights.interval(0.95), feature_names=names, level=0.95)
display.plot()

# %%
# Share of the refits that agree with the sign of each weight.
for name, share in zip(names, weights.sign_stability, strict=True):
    print(f"{name}: {share:.2f}")
