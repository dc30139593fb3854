"""
Which ranks do users look at?
=============================

Clicks fall from rank to rank, partly because the best documents are on top, and partly because users do not look
further down. If two rankers put the same document at different ranks, the two causes can be separated.
"""

# %%
# A log of two rankers, simulated: users examine rank k with probability 1/k. The share of clicks at each rank mixes
# relevance and examination.
import numpy as np

from ranksvm import make_ranking
from ranksvm.clicks import position_bias, simulate_clicks

data = make_ranking(n_queries=200, n_docs=10, n_features=3, random_state=0)
log = simulate_clicks(data, {"old": data.X[:, 0], "new": data.X @ np.ones(3)}, 50_000, random_state=0)
log.plot()

# %%
# The propensity of each rank, estimated from documents that the rankers put at different ranks, with intervals of 95 %;
# the line is 1/k, which the simulation used.
bias = position_bias(log, random_state=0)
display = bias.plot()
ranks = np.arange(1, 11)
display.ax_.plot(ranks, 1.0 / ranks, "--", color="gray", label="1 / rank")
display.ax_.legend()
