"""
A function of two features
==========================

An additive model can have functions of two features. Here two features count only if both are large, which no sum of
functions of one feature can express.
"""

# %%
import numpy as np

from ranksvm import AdditiveRankSVM, make_ranking
from ranksvm.plotting import ShapeDisplay

data = make_ranking(n_queries=80, n_docs=20, n_features=4, random_state=0)
both_large = np.minimum(data.X[:, 0], data.X[:, 1]) > 0.3
data.y = 2.0 * both_large + (data.X[:, 2] > 0.5)
ranker = AdditiveRankSVM(C=0.01, interactions=1).fit(data.X, data.y, qid=data.qid)
display = ShapeDisplay.from_estimator(ranker, top=4)

# %%
# The bound on what each pair of features could add to the fit: the model took the pair with the largest one.
print(ranker.interaction_table()[:5])
