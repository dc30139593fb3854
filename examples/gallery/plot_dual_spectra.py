"""
How complex is the dual solution?
=================================

The dual variables of a query form a matrix, with a row for each preferred document and a column for each other one. Xu
et al. (2019) found that a few singular values hold most of its energy (the sum of their squares). So they replaced the
matrix by a product of two matrices of low rank.
"""

# %%
# The energy in the first singular values, for some queries.
from ranksvm import RankSVM, make_ranking
from ranksvm.analysis import dual_spectra
from ranksvm.plotting import DimensionHistogramDisplay, DimensionsDisplay, EnergyDisplay

data = make_ranking(n_queries=60, n_docs=(10, 60), n_features=10, random_state=0)
ranker = RankSVM(C=0.1, loss="hinge").fit(data.X, data.y, qid=data.qid)
spectra = dual_spectra(ranker.dual_coef(data.X, data.y, data.qid))

EnergyDisplay.from_spectra(spectra, queries=[1, 2, 3, 4, 5])

# %%
# The number of dimensions that hold 90 % and 99 % of the energy, against the number of documents of a query.
DimensionsDisplay.from_spectra(spectra, energy=[0.9, 0.99])

# %%
# The same, counted over the queries.
DimensionHistogramDisplay.from_spectra(spectra, energy=[0.9, 0.99])
