"""
Which curves did the model learn?
=================================

An additive model is a sum of a curve for each feature and of functions of chosen pairs of features. You can read each
curve and each function in a plot, and change it by hand.
"""

# %%
# Products with a medium price are best. Old ones are less relevant, and reviews matter only for new ones.
import numpy as np
import pandas as pd

from ranksvm import AdditiveRankSVM
from ranksvm.analysis import shape_bands
from ranksvm.plotting import ShapeDisplay

random = np.random.default_rng(0)
qid = np.repeat(np.arange(150), 12)
price, age, reviews = random.gamma(4.0, 10.0, len(qid)), random.exponential(3.0, len(qid)), random.normal(size=len(qid))
category = random.integers(0, 4, len(qid))
utility = -(((price - 40.0) / 20.0) ** 2) + 2.0 * np.exp(-age) + (category == 2) + reviews * (age < 2.0)
y = np.digitize(utility + 0.5 * random.normal(size=len(qid)), [-1.0, 0.5, 1.5])
price[random.random(len(qid)) < 0.05] = np.nan
X = pd.DataFrame({"price": price, "age": age, "reviews": reviews, "category": category})

ranker = AdditiveRankSVM(C=0.1, interactions=1, categorical=["category"]).fit(X, y, qid=qid)

# %%
# Bands show how much each curve depends on the sample of queries. The model added a function of age and reviews, the
# pair with the largest bound on the gain. Missing prices have a marker of their own.
bands = shape_bands(ranker, X, y, qid, n_refits=20)
display = ShapeDisplay.from_estimator(ranker, bands=bands)

# %%
# You may edit a curve. The objective of the edited model says how much worse it fits the training data.
edited = ranker.edit_shape("category", {1: 0.0, 2: 0.0}, X, y, qid=qid)
print(f"objective {ranker.objective_:.4f} before, {edited.objective_:.4f} after")
