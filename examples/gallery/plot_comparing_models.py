"""
Comparing models, query by query
================================

The difference of two means says little without an interval. A paired test over the queries tells whether the difference
may be due to chance, and a plot of the difference in each query shows which queries it comes from.
"""

# %%
import matplotlib.pyplot as plt

from ranksvm import RankSVM, make_ranking, metrics
from ranksvm.plotting import CutoffDisplay, DifferenceDisplay

data = make_ranking(n_queries=160, n_docs=20, n_features=10, noise=2.0, random_state=0)
train, test = data.select(data.qid <= 100), data.select(data.qid > 100)
names = [f"ndcg@{k}" for k in range(1, 16)]
scores = {
    "all features": RankSVM(C=0.01).fit(train.X, train.y, qid=train.qid).predict(test.X),
    "five features": RankSVM(C=0.01).fit(train.X[:, :5], train.y, qid=train.qid).predict(test.X[:, :5]),
}
found = {name: metrics.evaluate(test.y, values, test.qid, names) for name, values in scores.items()}
compared = metrics.compare(found["five features"], found["all features"], "ndcg@10")
low, high = compared.confidence_interval
print(f"difference in NDCG@10: {compared.difference:+.3f}")
print(f"95 % interval [{low:.3f}, {high:.3f}], p = {compared.p_value:.2g}")

# %%
# Left: the band is the 95 % interval of the first model. Right: the NDCG@10 of all features minus the NDCG@10 of five
# features. The model given first is subtracted.
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
CutoffDisplay.from_evaluations(found, ax=left)
DifferenceDisplay.from_evaluations(found["five features"], found["all features"], "ndcg@10", ax=right)
