"""
Do the scores separate the labels?
==================================

Scores of documents by their label, relative to the mean of their query. The overlap of neighboring labels shows which
documents the model confuses.
"""

# %%
from ranksvm import RankSVM, make_ranking
from ranksvm.plotting import LabelDisplay

data = make_ranking(n_queries=100, n_docs=20, n_features=8, noise=0.5, random_state=0)
train, test = data.select(data.qid <= 70), data.select(data.qid > 70)
ranker = RankSVM(C=0.01).fit(train.X, train.y, qid=train.qid)
display = LabelDisplay.from_scores(test.y, ranker.predict(test.X), test.qid)
